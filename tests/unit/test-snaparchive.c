/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/snaparchive.h"
#include "keeper/treelist.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/pack.h"
#include "util/str.h"

#define SMALL "s"

/* A directory, its list as a sandbox gives it, and an archive of it. */
struct rig {
	char dir[32];
	int root_fd;
	int fd; /* of the archive */
	struct rsb_tree tree;
};

static void
put(const struct rig *rig, const char *name, const char *text)
{
	rsb_autoclose int fd = openat(rig->root_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	ck_assert_int_eq(rsb_fd_write_full(fd, text, strlen(text)), 0);
}

static void
begin(struct rig *rig)
{
	*rig = (struct rig){ .dir = "/tmp/rsb-snaparch.XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(rig->dir));
	rig->root_fd = open(rig->dir, O_RDONLY | O_DIRECTORY);
	rig->fd = open("/tmp", O_RDWR | O_TMPFILE, 0600);
	ck_assert_int_ge(rig->fd, 0);
	put(rig, "a", SMALL);
	ck_assert_int_eq(mkdirat(rig->root_fd, "d", 0750), 0);
	ck_assert_int_eq(symlinkat("a", rig->root_fd, "d/link"), 0);
	ck_assert_int_eq(linkat(rig->root_fd, "a", rig->root_fd, "d/more", 0), 0);
}

static void
end(struct rig *rig)
{
	rsb_tree_done(&rig->tree);
	(void)close(rig->root_fd);
	(void)close(rig->fd);
	unit_remove_tree(rig->dir);
}

static void
list(struct rig *rig)
{
	ck_assert_int_eq(rsb_tree_walk(&rig->tree, rig->root_fd, NULL), 0);
	for (size_t i = 0; i < rig->tree.n; i++) {
		struct rsb_tree_leaf *leaf = &rig->tree.leaves[i];

		leaf->there = leaf->here;
		leaf->there.ctime_ns = 5; /* what they have is old enough */
	}
}

static int
write_fd(void *arg, struct rsb_bytes data)
{
	return rsb_fd_write_full(*(int *)arg, data.data, data.size);
}

static void
pack(struct rig *rig, const char *const *paths)
{
	struct rsb_pack *pack;

	ck_assert_int_eq(ftruncate(rig->fd, 0), 0);
	ck_assert_int_eq(lseek(rig->fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(rsb_pack_new(rig->root_fd, write_fd, &rig->fd, &pack), 0);
	for (; *paths; paths++)
		ck_assert_int_eq(rsb_pack_add(pack, *paths), 0);
	ck_assert_int_eq(rsb_pack_finish(pack), 0);
	rsb_pack_free(pack);
}

static const char *const all[] = { "a", "d", "d/link", "d/more", NULL };

static int64_t
stamp(const struct rig *rig, const char *path)
{
	const struct rsb_tree_leaf *leaf = rsb_tree_find(&rig->tree, path);

	ck_assert(leaf->hashed);
	return leaf->there.ctime_ns;
}

START_TEST(what_was_asked_for_is_taken)
{
	struct rig rig;
	bool torn = false;

	begin(&rig);
	list(&rig);
	pack(&rig, all);
	ck_assert_int_eq(rsb_snaparchive_check(rig.fd, &rig.tree, &torn, NULL), 0);
	ck_assert(!torn);
	for (const char *const *p = all; *p; p++)
		ck_assert_int_eq(stamp(&rig, *p), 5);
	end(&rig);
}
END_TEST

START_TEST(what_changed_since_the_list_has_no_stamp)
{
	struct rig rig;
	bool torn = false;

	begin(&rig);
	list(&rig);
	put(&rig, "a", "another text");
	ck_assert_int_eq(unlinkat(rig.root_fd, "d/link", 0), 0);
	ck_assert_int_eq(symlinkat("b", rig.root_fd, "d/link"), 0);
	pack(&rig, all);
	ck_assert_int_eq(rsb_snaparchive_check(rig.fd, &rig.tree, &torn, NULL), 0);
	ck_assert_int_eq(stamp(&rig, "a"), 0);
	ck_assert_int_eq(stamp(&rig, "d/more"), 0);
	ck_assert_int_eq(stamp(&rig, "d/link"), 0);
	ck_assert_str_eq(rsb_tree_find(&rig.tree, "d/link")->target, "b");
	ck_assert_uint_eq(rsb_tree_find(&rig.tree, "d/more")->size, strlen("another text"));
	/* What is not in it is not taken. */
	pack(&rig, (const char *const[]){ "a", NULL });
	ck_assert_int_eq(rsb_snaparchive_check(rig.fd, &rig.tree, &torn, NULL), 0);
	ck_assert(!rsb_tree_find(&rig.tree, "d")->hashed);
	end(&rig);
}
END_TEST

/* The sandbox says so: in a directory of its own that file is a file as any. */
START_TEST(what_changed_while_it_was_read_is_known)
{
	struct rig rig;
	bool torn = false;
	rsb_autoclose int fd = -1;

	begin(&rig);
	list(&rig);
	ck_assert_int_eq(mkdirat(rig.root_fd, ".rsb", 0755), 0);
	fd = openat(rig.root_fd, RSB_PACK_LEFT_OUT, O_WRONLY | O_CREAT, 0644);
	ck_assert_int_eq(rsb_fd_write_full(fd, "a\0nothing\0d/mo", 14), 0);
	pack(&rig, (const char *const[]){ "a", "d", "d/link", "d/more", RSB_PACK_LEFT_OUT, NULL });
	ck_assert_int_eq(rsb_snaparchive_check(rig.fd, &rig.tree, &torn, NULL), 0);
	ck_assert(torn);
	ck_assert_int_eq(stamp(&rig, "a"), 0);
	ck_assert_int_eq(stamp(&rig, "d/more"), 5);
	end(&rig);
}
END_TEST

static void
expect_refused(struct rig *rig, int want, const char *text)
{
	struct rsb_diag diag = { 0 };
	bool torn;

	ck_assert_int_eq(rsb_snaparchive_check(rig->fd, &rig->tree, &torn, &diag), want);
	ck_assert_msg(strstr(diag.text, text), "'%s' is not in '%s'", text, diag.text);
}

START_TEST(anything_else_is_refused)
{
	struct rig rig;
	struct stat st;

	begin(&rig);
	list(&rig);
	put(&rig, "evil\x1b[2J", "e");
	pack(&rig, (const char *const[]){ "a", "evil\x1b[2J", NULL });
	expect_refused(&rig, -EBADMSG, "evil\\x1b[2J, which nobody asked for");
	/* Of another kind. */
	ck_assert_int_eq(unlinkat(rig.root_fd, "a", 0), 0);
	ck_assert_int_eq(symlinkat("d", rig.root_fd, "a"), 0);
	pack(&rig, all);
	expect_refused(&rig, -EBADMSG, "something else");
	/* Larger than it can have become. */
	ck_assert_int_eq(unlinkat(rig.root_fd, "a", 0), 0);
	put(&rig, "a", "");
	for (int i = 0; i < 300; i++) {
		static const char zeros[1 << 20];
		rsb_autoclose int fd = openat(rig.root_fd, "a", O_WRONLY | O_APPEND);

		ck_assert_int_eq(rsb_fd_write_full(fd, zeros, sizeof(zeros)), 0);
	}
	pack(&rig, (const char *const[]){ "a", NULL });
	expect_refused(&rig, -EFBIG, "more than there was");
	/* Cut off anywhere, or no archive at all. */
	put(&rig, "a", SMALL);
	pack(&rig, all);
	ck_assert_int_eq(fstat(rig.fd, &st), 0);
	for (off_t size = st.st_size - 1; size > 0; size -= 1 + size / 9) {
		ck_assert_int_eq(ftruncate(rig.fd, size), 0);
		expect_refused(&rig, -EBADMSG, "archive");
	}
	end(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { what_was_asked_for_is_taken,
		what_changed_since_the_list_has_no_stamp, what_changed_while_it_was_read_is_known,
		anything_else_is_refused };

	return unit_run("snaparchive", tests, RSB_ARRAY_SIZE(tests));
}
