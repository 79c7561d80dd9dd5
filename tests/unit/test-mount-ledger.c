/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/handle.h"
#include "fuse/ledger.h"
#include "fuse/log.h"
#include "tests/unit/unit.h"

/* A daemon's memory; life_new() is what the next one makes of it. */
struct life {
	struct rsb_shared *shared;
	struct rsb_ledger *ledger;
	struct rsb_inodes *inodes;
	struct rsb_handles *handles;
	struct rsb_dirsnaps listings;
};

static void
on_forget(void *arg rsb_unused, uint64_t id rsb_unused, uint64_t n rsb_unused)
{
}

static void
life_new(struct life *life, struct rsb_shared *shared)
{
	*life = (struct life){ .shared = shared, .listings = { .max = 1 << 20 } };
	ck_assert_int_eq(rsb_ledger_new(shared, &life->ledger), 0);
	ck_assert_int_eq(rsb_inodes_new(shared, on_forget, NULL, &life->inodes), 0);
	ck_assert_int_eq(rsb_handles_new(life->ledger, &life->handles), 0);
	ck_assert_int_eq(rsb_handles_restore(life->handles, life->inodes, &life->listings), 0);
}

/* Its own memory goes; in the mapping all stays as if it had never run an orderly end. */
static void
life_end(struct life *life)
{
	struct rsb_shared *shared = life->shared;
	struct rsb_shared_head head = shared->head;
	struct rsb_shared_handle handles[4];
	struct rsb_shared_node nodes[8];
	uint32_t next[64];

	ck_assert_uint_le(head.n_handle, RSB_ARRAY_SIZE(handles));
	ck_assert_uint_le(head.n_block, RSB_ARRAY_SIZE(next));
	memcpy(handles, shared->handles, sizeof(handles));
	memcpy(nodes, shared->nodes, sizeof(nodes));
	memcpy(next, shared->block_next, sizeof(next));
	rsb_handles_free(life->handles);
	rsb_inodes_free(life->inodes);
	rsb_ledger_free(life->ledger);
	shared->head = head;
	memcpy(shared->handles, handles, sizeof(handles));
	memcpy(shared->nodes, nodes, sizeof(nodes));
	memcpy(shared->block_next, next, sizeof(next));
}

static struct rsb_bytes
text(const char *s)
{
	return rsb_bytes_str(s);
}

static void
holds(const struct rsb_arena *arena, const struct rsb_shared_chain *chain, struct rsb_bytes want)
{
	struct rsb_buf buf;

	rsb_buf_init(&buf, 0);
	ck_assert_int_eq(rsb_arena_read(arena, chain, &buf), 0);
	ck_assert_uint_eq(rsb_buf_len(&buf), want.size);
	ck_assert_mem_eq(rsb_buf_head(&buf), want.data, want.size);
	rsb_buf_done(&buf);
}

START_TEST(keeps_what_counts_and_frees_the_rest)
{
	const struct rsb_shared_flight from = { .unique = 42, .state = 1 };
	uint8_t data[5000];
	struct rsb_shared_flight *flight;
	struct rsb_shared_flight *other;
	struct rsb_shared *shared;
	struct life life;

	memset(data, 'x', sizeof(data));
	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	life_new(&life, shared);
	ck_assert_int_eq(rsb_ledger_flight(life.ledger, &from,
				 (struct rsb_bytes){ data, sizeof(data) }, &flight),
		0);
	ck_assert_int_eq(rsb_ledger_flight(life.ledger, &(struct rsb_shared_flight){ .unique = 44 },
				 text("second"), &other),
		0);
	other->said = RSB_SHARED_SAID_OK;
	ck_assert_uint_eq(rsb_ledger_arena(life.ledger)->n_used, 6);
	/* Killed while it ended the first: it does not count, its blocks are not given back. */
	flight->state = 0;
	life_end(&life);
	life_new(&life, shared);
	ck_assert_ptr_null(rsb_ledger_flight_of(life.ledger, 42));
	other = rsb_ledger_flight_of(life.ledger, 44);
	ck_assert_ptr_nonnull(other);
	ck_assert_uint_eq(other->said_before, RSB_SHARED_SAID_OK);
	holds(rsb_ledger_arena(life.ledger), &other->raw, text("second"));
	ck_assert_uint_eq(rsb_ledger_arena(life.ledger)->n_used, 1);
	/* The same places are used again. */
	ck_assert_int_eq(rsb_ledger_flight(life.ledger, &from,
				 (struct rsb_bytes){ data, sizeof(data) }, &flight),
		0);
	ck_assert_uint_eq(shared->head.n_block, 6);
	ck_assert_uint_eq(shared->head.n_flight, 2);
	holds(rsb_ledger_arena(life.ledger), &flight->raw,
		(struct rsb_bytes){ data, sizeof(data) });
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

START_TEST(believes_no_chain_that_was_torn)
{
	struct rsb_shared_call *call;
	struct rsb_shared *shared;
	struct life life;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	life_new(&life, shared);
	ck_assert_int_eq(
		rsb_ledger_call(life.ledger, &(struct rsb_shared_call){ .call = 1, .fifo = 9 },
			text("request"), &call),
		0);
	shared->block_next[call->req.first] = RSB_SHARED_BLOCKS_MAX + 5;
	call->req.size = 4 * RSB_SHARED_BLOCK;
	life_end(&life);
	life_new(&life, shared);
	ck_assert_uint_eq(shared->calls[0].req.size, RSB_SHARED_BLOCK);
	ck_assert_uint_eq(shared->link.fifo, 0);
	rsb_shared_recover_fifo(shared);
	ck_assert_uint_eq(shared->link.fifo, 9);
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

START_TEST(is_bounded)
{
	static uint8_t data[1 << 20];
	struct rsb_shared_chain chain = { .size = 0 };
	struct rsb_shared *shared;
	struct rsb_arena *arena;
	struct life life;
	int r = 0;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	life_new(&life, shared);
	arena = rsb_ledger_arena(life.ledger);
	while (r == 0)
		r = rsb_arena_append(arena, &chain, (struct rsb_bytes){ data, sizeof(data) });
	ck_assert_int_eq(r, -ENOBUFS);
	ck_assert_uint_eq(chain.size, (uint64_t)RSB_SHARED_BLOCKS_MAX * RSB_SHARED_BLOCK);
	rsb_arena_drop(arena, &chain);
	/* The memory of a burst goes back. */
	ck_assert_uint_eq(shared->head.n_block, 0);
	ck_assert_int_eq(rsb_arena_append(arena, &chain, text("again")), 0);
	holds(arena, &chain, text("again"));
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

static struct rsb_handle *
open_file(struct life *life, uint64_t fh, int flags)
{
	const struct rsb_attr attr = { .ino = 100, .mode = S_IFREG | 0644, .nlink = 1 };
	struct rsb_handle *handle;
	struct rsb_inode *inode;

	ck_assert_int_eq(rsb_inode_given(life->inodes, 5, &attr, &inode), 0);
	ck_assert_int_eq(rsb_handle_open(life->handles, inode, fh, flags, &handle), 0);
	rsb_handle_set_told(handle);
	rsb_inode_unref(inode);
	return handle;
}

static void
put(struct life *life, struct rsb_handle *handle, uint64_t offset, const char *s)
{
	ck_assert_int_eq(rsb_wbuf_put(&handle->wbuf, offset, text(s)), (int)strlen(s));
	ck_assert_int_eq(rsb_log_put(rsb_ledger_arena(life->ledger), handle, offset, text(s)), 0);
}

static void
has_unsent(struct rsb_handle *handle, const char *want)
{
	struct rsb_bytes data;
	uint64_t offset;

	ck_assert_uint_eq(handle->wbuf.size, strlen(want));
	if (!*want)
		return;
	ck_assert_int_eq(rsb_wbuf_next(&handle->wbuf, &offset, &data), 1);
	ck_assert_mem_eq(data.data, want, data.size);
}

START_TEST(what_was_not_sent_comes_back)
{
	struct rsb_handle *handle;
	struct rsb_shared *shared;
	struct life life;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	life_new(&life, shared);
	handle = open_file(&life, 7, O_WRONLY);
	put(&life, handle, 0, "hello world");
	put(&life, handle, 6, "WORLD");
	rsb_handle_set_locks(handle, true, false);
	rsb_handle_set_error(handle, -ENOSPC);
	ck_assert_int_eq(rsb_handle_take_error(handle), -ENOSPC);
	life_end(&life);
	life_new(&life, shared);
	handle = rsb_handle_get(life.handles, 7);
	ck_assert_ptr_nonnull(handle);
	has_unsent(handle, "hello WORLD");
	ck_assert_ptr_eq(handle->inode->dirty, handle);
	ck_assert_uint_eq(handle->put, 16);
	ck_assert(handle->posix_locks);
	/* Nobody knows whether it was told. */
	ck_assert_int_eq(handle->error, -ENOSPC);
	rsb_handles_sweep(life.handles);
	ck_assert_ptr_nonnull(rsb_handle_get(life.handles, 7));
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

START_TEST(what_was_appended_is_sent_once)
{
	struct rsb_handle *handle;
	struct rsb_shared *shared;
	struct rsb_arena *arena;
	struct life life;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	life_new(&life, shared);
	handle = open_file(&life, 7, O_WRONLY | O_APPEND);
	put(&life, handle, 0, "one\n");
	put(&life, handle, 4, "two\n");
	/* Killed between the call that has all of it and the cut of the log. */
	life_end(&life);
	life_new(&life, shared);
	arena = rsb_ledger_arena(life.ledger);
	handle = rsb_handle_get(life.handles, 7);
	has_unsent(handle, "one\ntwo\n");
	ck_assert_int_eq(rsb_log_covered(arena, handle, 8), 0);
	has_unsent(handle, "");
	put(&life, handle, 8, "three\n");
	/* And once more, when that call was answered. */
	life_end(&life);
	life_new(&life, shared);
	handle = rsb_handle_get(life.handles, 7);
	has_unsent(handle, "three\n");
	ck_assert_uint_eq(handle->put, 14);
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

START_TEST(a_file_that_nobody_was_told_of_goes)
{
	struct rsb_handle *handle;
	struct rsb_shared *shared;
	struct life life;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	life_new(&life, shared);
	handle = open_file(&life, 7, O_RDONLY);
	handle->shared->opening = 1;
	rsb_handle_set_closed(open_file(&life, 8, O_RDONLY));
	life_end(&life);
	life_new(&life, shared);
	ck_assert_uint_eq(rsb_handles_count(life.handles), 2);
	rsb_handles_drop_closed(life.handles);
	rsb_handles_sweep(life.handles);
	ck_assert_uint_eq(rsb_handles_count(life.handles), 0);
	ck_assert_uint_eq(shared->handles[0].state, 0);
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

#define N_NAME 10000u
#define N_KILL 15u
#define N_DOT 2u

/* A listing grows until we are killed; *told names were told to a program. */
static void
grow_listing(struct rsb_shared *shared, uint32_t *told)
{
	const struct rsb_attr attr = { .ino = 100, .mode = S_IFDIR | 0755, .nlink = 2 };
	struct rsb_handle *handle;
	struct rsb_inode *inode;
	struct life life;
	char name[16];

	life_new(&life, shared);
	ck_assert_int_eq(rsb_inode_given(life.inodes, 5, &attr, &inode), 0);
	ck_assert_int_eq(rsb_handle_open(life.handles, inode, 7, O_RDONLY, &handle), 0);
	rsb_handle_set_told(handle);
	ck_assert_int_eq(rsb_dirsnap_new(&life.listings, 100, 1, &handle->snap), 0);
	for (uint32_t i = 0; i < N_NAME; i++) {
		struct rsb_dirsnap_entry entry = { .ino = 1000 + i, .name.data = (uint8_t *)name };

		entry.name.size = (size_t)snprintf(name, sizeof(name), "name%u", i);
		/* Without a word to Check: killed in it, it would spoil what the parent says. */
		if (rsb_dirsnap_add(handle->snap, &entry) < 0)
			_exit(1);
		if (i % 50)
			continue;
		rsb_log_snap(rsb_ledger_arena(life.ledger), handle);
		rsb_shared_publish(told, i + 1);
	}
	(void)pause();
}

START_TEST(a_listing_goes_on_wherever_it_was_killed)
{
	uint32_t *told = mmap(
		NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(told, MAP_FAILED);
	for (uint32_t round = 0; round < N_KILL; round++) {
		struct rsb_dirsnap_entry entry;
		struct rsb_handle *handle;
		struct rsb_shared *shared;
		struct life life;
		char name[16];
		pid_t pid;

		ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
		*told = 0;
		pid = fork();
		if (pid == 0) {
			grow_listing(shared, told);
			_exit(1);
		}
		while (__atomic_load_n(told, __ATOMIC_ACQUIRE) < round * N_NAME / N_KILL + 1)
			(void)usleep(50);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		life_new(&life, shared);
		handle = rsb_handle_get(life.handles, 7);
		ck_assert_int_eq(handle->broken, 0);
		ck_assert_int_eq(rsb_dirsnap_state(handle->snap), 0);
		ck_assert_uint_ge(rsb_dirsnap_count(handle->snap), *told + N_DOT);
		for (uint32_t i = 0; rsb_dirsnap_get(handle->snap, i + N_DOT, &entry); i++) {
			(void)snprintf(name, sizeof(name), "name%u", i);
			ck_assert_uint_eq(entry.name.size, strlen(name));
			ck_assert_mem_eq(entry.name.data, name, entry.name.size);
		}
		rsb_handles_free(life.handles);
		rsb_inodes_free(life.inodes);
		rsb_ledger_free(life.ledger);
		rsb_shared_free(shared);
	}
	(void)munmap(told, sizeof(*told));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		keeps_what_counts_and_frees_the_rest,
		believes_no_chain_that_was_torn,
		is_bounded,
		what_was_not_sent_comes_back,
		what_was_appended_is_sent_once,
		a_file_that_nobody_was_told_of_goes,
		a_listing_goes_on_wherever_it_was_killed,
	};

	return unit_run("mount-ledger", tests, RSB_ARRAY_SIZE(tests));
}
