/* SPDX-License-Identifier: MIT */
/* Tables that are full: an error that says so, nothing done, and all well again afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/entries.h"
#include "tests/unit/rig.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

#define FEW 40u

/* So many more descriptors than there are. */
static void
allow_descriptors(rlim_t n)
{
	rsb_autoclose int next = dup(0);
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)next + n;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static struct rsb_node
with_file(struct rig *rig)
{
	struct rsb_node node;

	rig_init(rig);
	rig_put(rig, "f", "0123456789");
	ck_assert_int_eq(rig_lookup(rig, &rig_root, "f", &node, NULL), 0);
	return node;
}

START_TEST(files_up_to_the_table)
{
	struct rsb_fhs *fhs;
	struct rsb_fh *file;
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < RSB_FHS_MAX + 100)
		return;
	allow_descriptors(RSB_FHS_MAX + 50);
	ck_assert_int_eq(rsb_fhs_new(&fhs), 0);
	for (uint64_t fh = 1; fh <= RSB_FHS_MAX; fh++)
		ck_assert_int_eq(rsb_fhs_add_file(fhs, fh, 1, dup(0), O_RDONLY), 0);
	ck_assert_int_eq(rsb_fhs_offer(fhs, UINT64_MAX), -ENFILE);
	ck_assert_int_eq(rsb_fhs_remove(fhs, 77, RSB_FH_FILE, &file), 0);
	rsb_fhs_put(fhs, file);
	ck_assert_int_eq(rsb_fhs_offer(fhs, UINT64_MAX), 0);
	rsb_fhs_free(fhs);
}
END_TEST

START_TEST(files_up_to_the_descriptors)
{
	struct rsb_create_req create = { .name = rsb_bytes_str("new"),
		.id = 1000000,
		.fh = 1000001,
		.flags = O_RDWR | O_EXCL,
		.mode = 0644 };
	struct rsb_entry_rep rep;
	uint64_t fhs[FEW];
	struct rsb_node node;
	struct rig rig;
	size_t n = 0;
	int r = 0;

	node = with_file(&rig);
	create.parent = rig_root;
	allow_descriptors(FEW);
	while (n < FEW && r == 0) {
		r = rig_open(&rig, &node, O_RDWR, &fhs[n]);
		n += r == 0;
	}
	ck_assert_int_eq(r, -EMFILE);
	ck_assert_uint_gt(n, 4);
	r = rig_do(&rig, create, &create, &rep);
	ck_assert_int_eq(r, -EMFILE);
	/* It was not made. */
	while (n > 0)
		ck_assert_int_eq(rig_release(&rig, fhs[--n]), 0);
	ck_assert_int_eq(rig_do(&rig, create, &create, &rep), 0);
	ck_assert_int_eq(rig_release(&rig, create.fh), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(locks_up_to_the_descriptors)
{
	struct rsb_lock_req req = { .kind = RSB_LOCK_POSIX, .type = F_RDLCK };
	struct rsb_unlock_all_req unlock = { .owner = 1 };
	struct rsb_node node;
	struct rig rig;
	int r = 0;

	node = with_file(&rig);
	ck_assert_int_eq(rig_open(&rig, &node, O_RDWR, &req.fh), 0);
	unlock.fh = req.fh;
	allow_descriptors(FEW);
	while (r == 0 && req.owner < 2 * FEW) {
		req.owner++;
		r = rig_do(&rig, lock, &req, NULL);
	}
	ck_assert_int_eq(r, -ENOLCK);
	req.wait = 1;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), -ENOLCK);
	ck_assert_int_eq(rig_do(&rig, unlock_all, &unlock, NULL), 0);
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(nodes_up_to_the_table)
{
	struct rsb_ident ident = { .dev = 1, .type = S_IFREG };
	struct rsb_trash trash = RSB_TRASH_EMPTY;
	struct rsb_entry *entries[3] = { NULL };
	struct rsb_entries t;

	rsb_entries_init(&t, 10);
	t.n_entry = RSB_NODES_MAX - 2;
	for (uint64_t i = 0; i < 2; i++) {
		ident.ino = 10 + i;
		ck_assert_int_eq(rsb_entries_name(&t, &ident, 100 + i, &entries[i]), 0);
	}
	ident.ino = 12;
	ck_assert_int_eq(rsb_entries_offer(&t, 102), -ENFILE);
	ck_assert_int_eq(rsb_entries_name(&t, &ident, 102, &entries[2]), -ENFILE);
	ck_assert_ptr_null(entries[2]);
	ck_assert_ptr_null(rsb_entries_find(&t, &ident));
	rsb_entries_reap(&t, entries[0], &trash);
	rsb_trash_empty(&trash);
	ck_assert_int_eq(rsb_entries_name(&t, &ident, 102, &entries[2]), 0);
	rsb_entries_done(&t);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		files_up_to_the_table,
		files_up_to_the_descriptors,
		locks_up_to_the_descriptors,
		nodes_up_to_the_table,
	};

	return unit_run("sidecar-full", tests, RSB_ARRAY_SIZE(tests));
}
