/* SPDX-License-Identifier: MIT */
/* What is known here of locks and names, for a sidecar that knows nothing. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fuse/alias.h"
#include "fuse/ledger.h"
#include "fuse/lockset.h"
#include "fuse/namestore.h"
#include "fuse/seen.h"
#include "tests/unit/unit.h"

struct world {
	struct rsb_shared *shared;
	struct rsb_inodes *inodes;
	struct rsb_ledger *ledger;
	struct rsb_handles *handles;
	struct rsb_inode *inode;
	struct rsb_handle *a, *b;
};

static void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	(void)arg;
	(void)id;
	(void)n;
}

static void
world_new(struct world *w)
{
	const struct rsb_attr attr = { .ino = 100, .mode = S_IFREG | 0644, .nlink = 2 };

	ck_assert_int_eq(rsb_shared_new(&w->shared, NULL), 0);
	ck_assert_int_eq(rsb_inodes_new(w->shared, on_forget, NULL, &w->inodes), 0);
	ck_assert_int_eq(rsb_ledger_new(w->shared, &w->ledger), 0);
	ck_assert_int_eq(rsb_handles_new(w->ledger, &w->handles), 0);
	ck_assert_int_eq(rsb_inode_given(w->inodes, 5, &attr, &w->inode), 0);
	ck_assert_int_eq(rsb_handle_open(w->handles, w->inode, 10, O_RDWR, &w->a), 0);
	ck_assert_int_eq(rsb_handle_open(w->handles, w->inode, 11, O_RDWR, &w->b), 0);
}

static void
world_free(struct world *w)
{
	rsb_inode_unref(w->inode);
	rsb_handles_free(w->handles);
	rsb_ledger_free(w->ledger);
	rsb_inodes_free(w->inodes);
	rsb_shared_free(w->shared);
}

static void
posix(struct rsb_handle *handle, uint64_t owner, int type, uint64_t start, uint64_t length)
{
	const struct rsb_lock_req req = {
		.owner = owner,
		.kind = RSB_LOCK_POSIX,
		.type = (uint64_t)type,
		.start = start,
		.length = length,
	};

	rsb_lockset_note(handle, &req);
	ck_assert_uint_eq(handle->shared->locked, rsb_lockset_holds(handle));
}

START_TEST(ranges_are_taken_and_given_up_in_parts)
{
	struct world w;

	world_new(&w);
	posix(w.a, 1, F_WRLCK, 10, 10);
	ck_assert(rsb_lockset_holds(w.a) && !rsb_lockset_holds(w.b));
	posix(w.a, 1, F_UNLCK, 12, 2);
	posix(w.a, 1, F_UNLCK, 0, 12);
	ck_assert(rsb_lockset_holds(w.a));
	/* By whatever descriptor; what another owner gives up is his. */
	posix(w.b, 2, F_UNLCK, 0, 0);
	ck_assert(rsb_lockset_holds(w.a));
	posix(w.b, 1, F_UNLCK, 14, 6);
	ck_assert(!rsb_lockset_holds(w.a));
	/* Over and over it is one range. */
	for (int i = 0; i < 3 * (int)RSB_LOCKSET_MAX; i++)
		posix(w.a, 1, i & 1 ? F_WRLCK : F_RDLCK, 0, 0);
	posix(w.a, 1, F_UNLCK, UINT64_MAX / 2, 0);
	posix(w.a, 1, F_UNLCK, 0, UINT64_MAX / 2);
	ck_assert(!rsb_lockset_holds(w.a));
	world_free(&w);
}
END_TEST

START_TEST(too_many_ranges_count_as_some)
{
	struct world w;

	world_new(&w);
	for (uint64_t i = 0; i < 2 * RSB_LOCKSET_MAX; i++)
		posix(w.a, 1, F_WRLCK, 3 * i, 1);
	ck_assert_uint_eq(w.inode->n_range, RSB_LOCKSET_MAX);
	for (uint64_t i = 0; i < 2 * RSB_LOCKSET_MAX; i++)
		posix(w.a, 1, F_UNLCK, 3 * i, 1);
	ck_assert(rsb_lockset_holds(w.a));
	posix(w.a, 1, F_UNLCK, 0, 0);
	ck_assert(!rsb_lockset_holds(w.a));
	world_free(&w);
}
END_TEST

START_TEST(closing_gives_up_what_an_owner_has)
{
	const struct rsb_lock_req flock = { .kind = RSB_LOCK_FLOCK, .type = F_WRLCK };
	const struct rsb_lock_req unlock = { .kind = RSB_LOCK_FLOCK, .type = F_UNLCK };
	struct world w;

	world_new(&w);
	posix(w.a, 1, F_WRLCK, 0, 1);
	posix(w.a, 2, F_WRLCK, 1, 1);
	rsb_lockset_note(w.b, &flock);
	rsb_lockset_drop_owner(w.b, 1);
	ck_assert(rsb_lockset_holds(w.a) && rsb_lockset_holds(w.b));
	rsb_lockset_drop_owner(w.a, 2);
	ck_assert(!rsb_lockset_holds(w.a));
	rsb_lockset_note(w.b, &unlock);
	ck_assert(!rsb_lockset_holds(w.b));
	posix(w.a, 2, F_WRLCK, 1, 1);
	rsb_handle_unref(w.handles, w.a);
	ck_assert_uint_eq(w.inode->n_range, 0);
	/* The next process knows only that there was one. */
	rsb_lockset_drop_handle(w.b);
	w.b->shared->locked = 1;
	rsb_lockset_restore(w.b);
	ck_assert(rsb_lockset_holds(w.b));
	rsb_lockset_drop_owner(w.b, 7);
	ck_assert(!rsb_lockset_holds(w.b));
	world_free(&w);
}
END_TEST

START_TEST(names_are_there_for_the_next_process)
{
	struct world w;
	struct rsb_inodes *next;
	struct rsb_inode *again, *parent;
	char name[RSB_NAME_MAX + 1];

	world_new(&w);
	/* Of all lengths, over each other. */
	for (int i = 1; i <= (int)RSB_NAME_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%0*d", i, i);
		rsb_seen_hint(w.inode, rsb_inode_root(w.inodes), rsb_bytes_str(name));
	}
	ck_assert_uint_lt(w.shared->head.n_name_piece, 200 * (RSB_ALIASES_MAX + 1));
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, NULL, &next), 0);
	again = rsb_inode_by_id(next, 5);
	ck_assert_ptr_null(again->name);
	ck_assert_str_eq(rsb_seen_last(again, &parent), name);
	ck_assert_ptr_eq(parent, rsb_inode_root(next));
	/* A rename that the process before had made. */
	rsb_seen_moved(again, parent, rsb_bytes_str("other"), parent, rsb_bytes_str("no"));
	rsb_seen_moved(again, parent, rsb_bytes_str(name), parent, rsb_bytes_str("moved"));
	ck_assert_str_eq(rsb_seen_last(again, &parent), "moved");
	rsb_inodes_free(next);
	world_free(&w);
}
END_TEST

START_TEST(free_pieces_are_found_again)
{
	struct rsb_shared *shared;
	struct rsb_namestore *store;
	uint64_t words[64];
	char name[RSB_NAME_MAX + 1];
	uint32_t n;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	ck_assert_int_eq(rsb_namestore_new(shared, &store), 0);
	for (int i = 0; i < 64; i++) {
		(void)snprintf(name, sizeof(name), "%0*d", 4 * i + 1, i);
		ck_assert_int_eq(rsb_namestore_put(store, rsb_bytes_str(name), &words[i]), 0);
	}
	n = shared->head.n_name_piece;
	ck_assert_int_eq(
		rsb_namestore_put(store, (struct rsb_bytes){ 0, 256 }, &words[0]), -ENAMETOOLONG);
	ck_assert_ptr_null(rsb_namestore_get(store, 0));
	ck_assert_ptr_null(rsb_namestore_get(store, UINT64_MAX));
	ck_assert_str_eq(rsb_namestore_get(store, words[3]), "0000000000003");
	/* None belongs to a node: to the next process all are free. */
	rsb_namestore_free(store);
	ck_assert_int_eq(rsb_namestore_new(shared, &store), 0);
	for (int i = 63; i >= 0; i--) {
		(void)snprintf(name, sizeof(name), "%0*d", 4 * i + 1, i);
		ck_assert_int_eq(rsb_namestore_put(store, rsb_bytes_str(name), &words[i]), 0);
	}
	ck_assert_uint_le(shared->head.n_name_piece, n + RSB_NAME_MAX);
	rsb_namestore_free(store);
	rsb_shared_free(shared);
}
END_TEST

START_TEST(a_file_is_known_by_its_other_names)
{
	struct world w;
	struct rsb_inode *root, *parent;
	char name[16];

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	rsb_seen_hint(w.inode, root, rsb_bytes_str("one"));
	rsb_seen_hint(w.inode, root, rsb_bytes_str("two"));
	ck_assert_str_eq(rsb_alias_get(w.inode, 0, &parent), "one");
	ck_assert_ptr_eq(parent, root);
	rsb_alias_lose(w.inode, root, rsb_bytes_str("two"));
	ck_assert_str_eq(w.inode->name, "one");
	ck_assert_ptr_null(rsb_alias_get(w.inode, 0, &parent));
	for (int i = 0; i < 2 * (int)RSB_ALIASES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		rsb_seen_hint(w.inode, root, rsb_bytes_str(name));
	}
	ck_assert_ptr_nonnull(rsb_alias_get(w.inode, RSB_ALIASES_MAX - 1, &parent));
	ck_assert_ptr_null(rsb_alias_get(w.inode, RSB_ALIASES_MAX, &parent));
	world_free(&w);
}
END_TEST

START_TEST(other_names_are_there_for_the_next_process)
{
	struct world w;
	struct rsb_inodes *next;
	struct rsb_inode *again, *parent;

	world_new(&w);
	rsb_seen_hint(w.inode, rsb_inode_root(w.inodes), rsb_bytes_str("one"));
	rsb_seen_hint(w.inode, rsb_inode_root(w.inodes), rsb_bytes_str("two"));
	rsb_seen_hint(w.inode, rsb_inode_root(w.inodes), rsb_bytes_str("three"));
	rsb_seen_hint(w.inode, rsb_inode_root(w.inodes), rsb_bytes_str("four"));
	/* One whose name makes no sense. */
	w.shared->aliases[2].name = UINT64_MAX;
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, NULL, &next), 0);
	again = rsb_inode_by_id(next, 5);
	ck_assert_str_eq(rsb_alias_get(again, 0, &parent), "three");
	ck_assert_ptr_eq(parent, rsb_inode_root(next));
	ck_assert_str_eq(rsb_alias_get(again, 1, &parent), "one");
	ck_assert_ptr_null(rsb_alias_get(again, 2, &parent));
	/* A name that goes when nobody has looked at the file since. */
	rsb_alias_lose(again, parent, rsb_bytes_str("four"));
	ck_assert_str_eq(rsb_seen_last(again, &parent), "three");
	/* What this process sees is kept beside what the one before saw. */
	rsb_seen_hint(again, parent, rsb_bytes_str("five"));
	ck_assert_str_eq(rsb_alias_get(again, 0, &parent), "three");
	rsb_seen_hint(again, parent, rsb_bytes_str("three"));
	ck_assert_str_eq(rsb_alias_get(again, 0, &parent), "five");
	ck_assert_str_eq(rsb_alias_get(again, 2, &parent), "one");
	ck_assert_uint_eq(w.shared->head.n_alias, 3);
	rsb_alias_lose_all(again);
	ck_assert_ptr_null(rsb_alias_get(again, 0, &parent));
	rsb_inodes_free(next);
	world_free(&w);
}
END_TEST

START_TEST(other_names_have_a_bound)
{
	const struct rsb_attr attr = { .ino = 101, .mode = S_IFREG | 0644, .nlink = 2 };
	struct rsb_inode *root, *inode, *parent;
	struct world w;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	for (uint64_t id = 6; w.shared->head.n_alias < RSB_SHARED_ALIASES_MAX; id++) {
		ck_assert_int_eq(rsb_inode_given(w.inodes, id, &attr, &inode), 0);
		rsb_seen_hint(inode, root, rsb_bytes_str("one"));
		rsb_seen_hint(inode, root, rsb_bytes_str("two"));
	}
	rsb_seen_hint(w.inode, root, rsb_bytes_str("three"));
	rsb_seen_hint(w.inode, root, rsb_bytes_str("four"));
	ck_assert_ptr_null(rsb_alias_get(w.inode, 0, &parent));
	/* The place of one that goes is taken again. */
	rsb_inode_unref(inode);
	rsb_seen_hint(w.inode, root, rsb_bytes_str("five"));
	ck_assert_str_eq(rsb_alias_get(w.inode, 0, &parent), "four");
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		ranges_are_taken_and_given_up_in_parts,
		too_many_ranges_count_as_some,
		closing_gives_up_what_an_owner_has,
		names_are_there_for_the_next_process,
		free_pieces_are_found_again,
		a_file_is_known_by_its_other_names,
		other_names_are_there_for_the_next_process,
		other_names_have_a_bound,
	};

	return unit_run("mount-lockset", tests, RSB_ARRAY_SIZE(tests));
}
