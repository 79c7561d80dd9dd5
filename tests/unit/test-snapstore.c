/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper/snapindex.h"
#include "keeper/snapstore.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

#define KILLS 150

static char dir[64];

static void
make_dir(void)
{
	(void)strcpy(dir, "/tmp/rsb-snapstore.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static struct rsb_snapstore *
open_it(void)
{
	struct rsb_snapstore *store;

	ck_assert_int_eq(rsb_snapstore_open(dir, 0, &store, NULL), 0);
	return store;
}

/* Like a real one, as far as the store looks. */
static int
put(struct rsb_snapstore *store, bool base, const char *contents)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	const struct rsb_tree_leaf leaf = { .path = (char *)contents, .mode = S_IFREG | 0644 };
	struct rsb_snappoint point = {
		.base = base, .fuzzy = !base, .taken_ns = 7, .why = "asked"
	};
	rsb_autoclose int fd = rsb_snapstore_begin(store);
	int r = fd < 0 ? fd : rsb_tree_add(&tree, &leaf);

	if (r >= 0)
		r = rsb_fd_write_full(fd, contents, strlen(contents));
	return r < 0 ? r : rsb_snapstore_add(store, fd, &tree, &point);
}

static void
expect_numbers(const struct rsb_snapstore *store, const char *want)
{
	char got[256] = "";

	for (size_t i = 0; i < rsb_snapstore_count(store); i++) {
		const struct rsb_snappoint *point = rsb_snapstore_at(store, i);

		(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d",
			point->base ? "/" : " ", (int)point->number);
	}
	ck_assert_str_eq(got, want);
}

START_TEST(what_is_added_is_there_the_next_time)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	struct rsb_snapstore *other;
	struct rsb_diag diag;

	make_dir();
	store = open_it();
	ck_assert_uint_eq(rsb_snapstore_count(store), 0);
	ck_assert_int_eq(put(store, true, "one"), 0);
	ck_assert_int_eq(put(store, false, "two"), 0);
	ck_assert_int_eq(rsb_snapstore_open(dir, 0, &other, &diag), -EBUSY);
	rsb_snapstore_close(store);
	store = open_it();
	expect_numbers(store, "/1 2");
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(rsb_snapstore_verify(store, i, NULL), 0);
	ck_assert_int_eq(rsb_snapstore_tree(store, 1, &tree, NULL), 0);
	ck_assert_str_eq(tree.leaves[0].path, "two");
	ck_assert_uint_eq(rsb_snapstore_base(store, 1), 0);
	ck_assert_int_eq(rsb_snapstore_find(store, 2, NULL), 1);
	ck_assert_int_eq(rsb_snapstore_find(store, 3, &diag), -ENOENT);
	/* What turns out to be of one moment is so the next time, too. */
	ck_assert(rsb_snapstore_at(store, 1)->fuzzy);
	ck_assert_int_eq(rsb_snapstore_clear(store), 0);
	rsb_snapstore_close(store);
	store = open_it();
	ck_assert(!rsb_snapstore_at(store, 1)->fuzzy);
	/* Numbers are not given again. */
	ck_assert_int_eq(rsb_snapstore_drop(store, 2), 0);
	ck_assert_int_eq(put(store, true, "three"), 0);
	expect_numbers(store, "/3");
	unit_remove_tree(dir);
}
END_TEST

static void
change(const char *name, off_t at)
{
	rsb_autofree char *path = rsb_str_path(dir, name);
	rsb_autoclose int fd = open(path, O_RDWR);
	char c;

	ck_assert_int_eq(pread(fd, &c, 1, at), 1);
	c ^= 1;
	ck_assert_int_eq(pwrite(fd, &c, 1, at), 1);
}

START_TEST(damage_is_told)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	struct rsb_snapstore *other;
	rsb_autofree char *index = NULL;
	struct rsb_diag diag;
	struct stat st;

	make_dir();
	store = open_it();
	index = rsb_str_path(dir, "snapshots");
	ck_assert_int_eq(put(store, true, "one"), 0);
	change("snapshot-1.tar.zst", 1);
	ck_assert_int_eq(rsb_snapstore_verify(store, 0, &diag), -EBADMSG);
	ck_assert_str_eq(
		diag.text, "snapshot 1 is damaged: snapshot-1.tar.zst is not what was written");
	change("snapshot-1.tar.zst", 1);
	change("snapshot-1.tree", 1);
	ck_assert_int_eq(rsb_snapstore_verify(store, 0, &diag), -EBADMSG);
	ck_assert_int_eq(rsb_snapstore_tree(store, 0, &tree, &diag), -EBADMSG);
	rsb_snapstore_close(rsb_steal(&store));
	ck_assert_int_eq(stat(index, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		change("snapshots", at);
		ck_assert_int_eq(rsb_snapstore_look(dir, &other, &diag), -EBADMSG);
		change("snapshots", at);
	}
	for (off_t size = 0; size < st.st_size; size++) {
		ck_assert_int_eq(truncate(index, size), 0);
		ck_assert_int_eq(rsb_snapstore_look(dir, &other, &diag), -EBADMSG);
	}
	/* A new one gets a number that no file has. */
	store = open_it();
	ck_assert(rsb_snapstore_was_damaged(store));
	ck_assert_int_eq(put(store, true, "two"), 0);
	expect_numbers(store, "/2");
	ck_assert(!rsb_snapstore_was_damaged(store));
	unit_remove_tree(dir);
}
END_TEST

/* Goes on until it is killed. */
rsb_noreturn static void
work(unsigned int seed)
{
	for (unsigned int n = seed;; n++) {
		RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
		char text[32];

		/* The one that was killed before may hold it for a moment. */
		if (rsb_snapstore_open(dir, RSB_FD_LOCK_PROBE_NS, &store, NULL) < 0)
			_exit(1);
		(void)snprintf(text, sizeof(text), "%u", n);
		if (put(store, n % 4 == 0, text) < 0 ||
			(n % 8 == 5 && rsb_snapstore_drop(
					       store, rsb_snapstore_base(store,
							      rsb_snapstore_count(store) - 1)) < 0))
			_exit(2);
	}
}

static size_t
count_files(void)
{
	rsb_autoclosedir DIR *entries = opendir(dir);
	size_t n = 0;

	while (readdir(entries))
		n++;
	return n - 2; /* "." and ".." */
}

START_TEST(a_kill_at_any_moment_leaves_what_is_whole)
{
	uint64_t newest = 0;

	make_dir();
	rsb_snapstore_close(open_it());
	/* On a machine that has much else to do some come to nothing: then they get longer. */
	for (unsigned int i = 0; i < KILLS || (!newest && i < 2 * KILLS); i++) {
		const struct timespec life = { .tv_nsec = i < KILLS ? 100000 + 53000 * (long)i
								    : 500000000 };
		struct rsb_snapstore *store;
		pid_t pid = fork();
		size_t n;
		int status;

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			work(4 * i);
		(void)nanosleep(&life, NULL);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status));
		store = open_it();
		ck_assert(!rsb_snapstore_was_damaged(store));
		n = rsb_snapstore_count(store);
		for (size_t k = 0; k < n; k++)
			ck_assert_int_eq(rsb_snapstore_verify(store, k, NULL), 0);
		ck_assert(!n || rsb_snapstore_at(store, 0)->base);
		ck_assert(!n || rsb_snapstore_at(store, n - 1)->number >= newest);
		newest = n ? rsb_snapstore_at(store, n - 1)->number : newest;
		/* Index, lock, and two files of each: what was left half done is swept. */
		ck_assert_uint_eq(count_files(), 1 + (size_t)(newest > 0) + 2 * n);
		rsb_snapstore_close(store);
	}
	ck_assert_uint_gt(newest, 0);
	unit_remove_tree(dir);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { what_is_added_is_there_the_next_time, damage_is_told,
		a_kill_at_any_moment_leaves_what_is_whole };

	return unit_run("snapstore", tests, RSB_ARRAY_SIZE(tests));
}
