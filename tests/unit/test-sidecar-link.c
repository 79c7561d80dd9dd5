/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"

static int
unlink_name(
	struct rig *rig, const struct rsb_node *dir, const char *name, struct rsb_unlink_rep *rep)
{
	const struct rsb_unlink_req req = { .parent = *dir, .name = rsb_bytes_str(name) };

	return rig_do(rig, unlink, &req, rep);
}

static int
rmdir_name(
	struct rig *rig, const struct rsb_node *dir, const char *name, struct rsb_unlink_rep *rep)
{
	const struct rsb_unlink_req req = { .parent = *dir, .name = rsb_bytes_str(name) };

	return rig_do(rig, rmdir, &req, rep);
}

static int
rename_name(struct rig *rig, const char *from, const char *to, uint64_t flags,
	struct rsb_rename_rep *rep)
{
	const struct rsb_rename_req req = {
		.parent = rig_root,
		.name = rsb_bytes_str(from),
		.newparent = rig_root,
		.newname = rsb_bytes_str(to),
		.flags = flags,
	};

	return rig_do(rig, rename, &req, rep);
}

static int
link_name(struct rig *rig, const struct rsb_node *node, const char *name, struct rsb_entry_rep *rep)
{
	const struct rsb_link_req req = {
		.node = *node,
		.newparent = rig_root,
		.newname = rsb_bytes_str(name),
	};

	return rig_do(rig, link, &req, rep);
}

static bool
exists(struct rig *rig, const char *name)
{
	return faccessat(rig->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static uint64_t
ino_of(struct rig *rig, const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(rig->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_ino;
}

START_TEST(tells_of_the_victim_what_is_left_of_it)
{
	struct rig rig;
	struct rsb_node node;
	struct rsb_entry_rep entry;
	struct rsb_unlink_rep rep;

	rig_init(&rig);
	rig_put(&rig, "a", "x");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &node, NULL), 0);
	ck_assert_int_eq(link_name(&rig, &node, "b", &entry), 0);
	ck_assert_uint_eq(entry.id, node.id);
	ck_assert_uint_eq(entry.attr.nlink, 2);

	ck_assert_int_eq(unlink_name(&rig, &rig_root, "a", &rep), 0);
	ck_assert_uint_eq(rep.id, node.id);
	ck_assert_uint_eq(rep.attr.nlink, 1);
	ck_assert_uint_eq(rep.dir.mode & S_IFMT, S_IFDIR);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), 0);
	ck_assert_int_eq(unlink_name(&rig, &rig_root, "b", &rep), 0);
	ck_assert_uint_eq(rep.id, node.id);
	ck_assert_uint_eq(rep.attr.nlink, 0);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), -ESTALE);

	rig_put(&rig, "unknown", "x");
	ck_assert_int_eq(unlink_name(&rig, &rig_root, "unknown", &rep), 0);
	ck_assert_uint_eq(rep.id, 0);
	ck_assert_int_eq(unlink_name(&rig, &rig_root, "unknown", &rep), -ENOENT);
	rig_done(&rig);
}
END_TEST

START_TEST(removes_empty_directories_only)
{
	struct rig rig;
	struct rsb_node dir, sub;
	struct rsb_unlink_rep rep;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &dir, "sub", &sub), 0);
	ck_assert_int_eq(rmdir_name(&rig, &rig_root, "d", &rep), -ENOTEMPTY);
	ck_assert_int_eq(unlink_name(&rig, &rig_root, "d", &rep), -EISDIR);
	ck_assert_int_eq(rmdir_name(&rig, &dir, "sub", &rep), 0);
	ck_assert_uint_eq(rep.id, sub.id);
	ck_assert_uint_eq(rep.attr.nlink, 0);
	ck_assert_uint_eq(rep.dir.nlink, 2);
	ck_assert_int_eq(rmdir_name(&rig, &rig_root, "d", &rep), 0);
	rig_put(&rig, "f", "");
	ck_assert_int_eq(rmdir_name(&rig, &rig_root, "f", &rep), -ENOTDIR);
	rig_done(&rig);
}
END_TEST

START_TEST(unlinks_a_symlink_and_not_its_target)
{
	struct rig rig;
	struct rsb_unlink_rep rep;

	rig_init(&rig);
	rig_put(&rig, "target", "x");
	ck_assert_int_eq(symlinkat("target", rig.dir_fd, "sym"), 0);
	ck_assert_int_eq(unlink_name(&rig, &rig_root, "sym", &rep), 0);
	ck_assert(exists(&rig, "target"));
	rig_done(&rig);
}
END_TEST

START_TEST(renames_by_the_table)
{
	static const struct {
		bool target;
		uint64_t flags;
		int r;
	} cases[] = {
		{ false, 0, 0 },
		{ true, 0, 0 },
		{ false, RENAME_NOREPLACE, 0 },
		{ true, RENAME_NOREPLACE, -EEXIST },
		{ false, RENAME_EXCHANGE, -ENOENT },
		{ true, RENAME_EXCHANGE, 0 },
		{ true, RENAME_EXCHANGE | RENAME_NOREPLACE, -EINVAL },
		{ true, RENAME_WHITEOUT, -EINVAL },
		{ true, UINT64_C(1) << 40, -EINVAL },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		struct rig rig;
		struct rsb_node from, to = { .id = 0 };
		struct rsb_rename_rep rep;
		bool exchanges = cases[i].flags & RENAME_EXCHANGE;

		rig_init(&rig);
		rig_put(&rig, "from", "from");
		ck_assert_int_eq(rig_lookup(&rig, &rig_root, "from", &from, NULL), 0);
		if (cases[i].target) {
			rig_put(&rig, "to", "to");
			ck_assert_int_eq(rig_lookup(&rig, &rig_root, "to", &to, NULL), 0);
		}
		ck_assert_int_eq(rename_name(&rig, "from", "to", cases[i].flags, &rep), cases[i].r);
		if (cases[i].r == 0) {
			ck_assert_uint_eq(rep.attr.ino, from.ino);
			ck_assert_uint_eq(rep.over_id, to.id);
			ck_assert_uint_eq(rep.over.nlink, exchanges ? 1 : 0);
			ck_assert_uint_eq(ino_of(&rig, "to"), from.ino);
			ck_assert_int_eq(exists(&rig, "from"), exchanges);
			ck_assert_uint_eq(rep.dir.ino, rep.newdir.ino);
			/* The ids follow their inodes. */
			ck_assert_int_eq(rig_getattr(&rig, &from, NULL), 0);
			if (cases[i].target)
				ck_assert_int_eq(
					rig_getattr(&rig, &to, NULL), exchanges ? 0 : -ESTALE);
		} else {
			ck_assert_uint_eq(ino_of(&rig, "from"), from.ino);
		}
		rig_done(&rig);
	}
}
END_TEST

START_TEST(renames_between_directories)
{
	struct rig rig;
	struct rsb_node a, b, dir, node;
	struct rsb_rename_rep rep;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "a", &a), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "b", &b), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &a, "dir", &dir), 0);
	rig_put(&rig, "a/dir/f", "text");
	ck_assert_int_eq(rig_lookup(&rig, &dir, "f", &node, NULL), 0);

	const struct rsb_rename_req req = {
		.parent = a,
		.name = rsb_bytes_str("dir"),
		.newparent = b,
		.newname = rsb_bytes_str("moved"),
	};
	ck_assert_int_eq(rig_do(&rig, rename, &req, &rep), 0);
	ck_assert_uint_eq(rep.dir.ino, a.ino);
	ck_assert_uint_eq(rep.dir.nlink, 2);
	ck_assert_uint_eq(rep.newdir.ino, b.ino);
	ck_assert_uint_eq(rep.newdir.nlink, 3);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), 0);

	/* Into itself. */
	const struct rsb_rename_req ring = {
		.parent = rig_root,
		.name = rsb_bytes_str("b"),
		.newparent = dir,
		.newname = rsb_bytes_str("x"),
	};
	ck_assert_int_eq(rig_do(&rig, rename, &ring, &rep), -EINVAL);
	rig_done(&rig);
}
END_TEST

START_TEST(leaves_two_names_of_one_inode_alone)
{
	struct rig rig;
	struct rsb_node node;
	struct rsb_rename_rep rep;

	rig_init(&rig);
	rig_put(&rig, "a", "x");
	ck_assert_int_eq(linkat(rig.dir_fd, "a", rig.dir_fd, "b", 0), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &node, NULL), 0);
	ck_assert_int_eq(rename_name(&rig, "a", "b", 0, &rep), 0);
	ck_assert(exists(&rig, "a") && exists(&rig, "b"));
	ck_assert_uint_eq(rep.over_id, node.id);
	ck_assert_uint_eq(rep.attr.nlink, 2);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(links_files_and_symlinks_but_no_directory)
{
	struct rig rig;
	struct rsb_node node;
	struct rsb_entry_rep rep;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &node), 0);
	ck_assert_int_eq(link_name(&rig, &node, "d2", &rep), -EPERM);
	ck_assert_int_eq(symlinkat("nowhere", rig.dir_fd, "sym"), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "sym", &node, NULL), 0);
	ck_assert_int_eq(link_name(&rig, &node, "sym2", &rep), 0);
	ck_assert_uint_eq(rep.attr.mode & S_IFMT, S_IFLNK);
	ck_assert_uint_eq(ino_of(&rig, "sym2"), node.ino);
	ck_assert_int_eq(link_name(&rig, &node, "sym", &rep), -EEXIST);
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		tells_of_the_victim_what_is_left_of_it,
		removes_empty_directories_only,
		unlinks_a_symlink_and_not_its_target,
		renames_by_the_table,
		renames_between_directories,
		leaves_two_names_of_one_inode_alone,
		links_files_and_symlinks_but_no_directory,
	};

	return unit_run("sidecar-link", tests, RSB_ARRAY_SIZE(tests));
}
