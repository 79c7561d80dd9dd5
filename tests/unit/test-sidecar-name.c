/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"

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

START_TEST(looks_up_what_is_there_and_nothing_else)
{
	struct rig rig;
	struct rsb_node node;
	struct rsb_attr attr;

	rig_init(&rig);
	rig_put(&rig, "file", "hello");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "file", &node, &attr), 0);
	ck_assert_uint_eq(attr.size, 5);
	ck_assert_uint_eq(attr.mode, S_IFREG | 0644);
	ck_assert_uint_eq(attr.ino, ino_of(&rig, "file"));
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "none", &node, NULL), -ENOENT);
	ck_assert_int_eq(rig_lookup(&rig, &node, "x", &node, NULL), -ENOTDIR);
	rig_done(&rig);
}
END_TEST

START_TEST(refuses_names_that_are_paths)
{
	static const char *const names[] = { "", ".", "..", "a/b", "/etc", "../x" };
	struct rig rig;
	struct rsb_node node;

	rig_init(&rig);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		ck_assert_int_eq(rig_lookup(&rig, &rig_root, names[i], &node, NULL), -EINVAL);
		ck_assert_int_eq(rig_mkdir(&rig, &rig_root, names[i], &node), -EINVAL);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(makes_a_directory_that_belongs_to_the_command_user)
{
	const struct rsb_mkdir_req req = {
		.parent = rig_root,
		.name = rsb_bytes_str("d"),
		.id = 7,
		.mode = 01770,
	};
	struct rig rig;
	struct rsb_entry_rep rep;

	rig_init(&rig);
	ck_assert_int_eq(rig_do(&rig, mkdir, &req, &rep), 0);
	ck_assert_uint_eq(rep.id, 7);
	ck_assert_uint_eq(rep.attr.mode, S_IFDIR | 01770);
	ck_assert_uint_eq(rep.attr.uid, rig.config.cmd_uid);
	ck_assert_uint_eq(rep.attr.gid, rig.config.cmd_gid);
	ck_assert_uint_eq(rep.dir.mode & S_IFMT, S_IFDIR);
	ck_assert_uint_eq(rep.dir.nlink, 3);
	rig_done(&rig);
}
END_TEST

START_TEST(makes_things_for_the_caller_that_is_forwarded)
{
	const struct rsb_mkdir_req req = {
		.parent = rig_root,
		.name = rsb_bytes_str("d"),
		.id = 7,
		.mode = 0700,
		.who = { .has = 1, .uid = 4321, .gid = 5432 },
	};
	struct rsb_mkdir_req bad = req;
	struct rig rig;
	struct rsb_entry_rep rep;

	rig_init(&rig);
	bad.who.uid = UINT32_MAX;
	ck_assert_int_eq(rig_do(&rig, mkdir, &bad, &rep), -EINVAL);
	ck_assert_int_eq(rig_do(&rig, mkdir, &req, &rep), 0);
	if (rig.config.is_root) {
		ck_assert_uint_eq(rep.attr.uid, 4321);
		ck_assert_uint_eq(rep.attr.gid, 5432);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(keeps_the_group_of_a_directory_with_set_group_id)
{
	struct rig rig;
	struct rsb_node dir;

	rig_init(&rig);
	if (rig.config.is_root) {
		ck_assert_int_eq(mkdirat(rig.dir_fd, "shared", 0700), 0);
		ck_assert_int_eq(fchownat(rig.dir_fd, "shared", 0, 777, 0), 0);
		ck_assert_int_eq(fchmodat(rig.dir_fd, "shared", 02700, 0), 0);
		ck_assert_int_eq(rig_lookup(&rig, &rig_root, "shared", &dir, NULL), 0);

		/* Not writable by the owner of what is made: the sidecar may all the same. */
		const struct rsb_mkdir_req req = {
			.parent = dir,
			.name = rsb_bytes_str("d"),
			.id = rig.next++,
			.mode = 0755,
		};
		struct rsb_entry_rep rep;
		ck_assert_int_eq(rig_do(&rig, mkdir, &req, &rep), 0);
		ck_assert_uint_eq(rep.attr.uid, rig.config.cmd_uid);
		ck_assert_uint_eq(rep.attr.gid, 777);
		ck_assert_uint_eq(rep.attr.mode, S_IFDIR | 02755);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(makes_nodes_and_links_without_following_any)
{
	struct rsb_mknod_req node = {
		.parent = rig_root,
		.name = rsb_bytes_str("fifo"),
		.id = 11,
		.mode = S_IFIFO | 0640,
	};
	struct rsb_symlink_req sym = {
		.parent = rig_root,
		.name = rsb_bytes_str("sym"),
		.id = 12,
		.target = rsb_bytes_str("/etc/passwd"),
	};
	struct rig rig;
	struct rsb_entry_rep rep;
	struct rsb_readlink_rep link;

	rig_init(&rig);
	ck_assert_int_eq(rig_do(&rig, mknod, &node, &rep), 0);
	ck_assert_uint_eq(rep.attr.mode, S_IFIFO | 0640);
	ck_assert_uint_eq(rep.attr.uid, rig.config.cmd_uid);

	const struct rsb_readlink_req no_link = { .node = rig_node_of(&rep) };
	ck_assert_int_eq(rig_do(&rig, readlink, &no_link, &link), -EINVAL);

	node.name = rsb_bytes_str("sock");
	node.id = 13;
	node.mode = S_IFSOCK | 0600;
	ck_assert_int_eq(rig_do(&rig, mknod, &node, &rep), 0);
	ck_assert_uint_eq(rep.attr.mode, S_IFSOCK | 0600);
	node.mode = S_IFDIR | 0600;
	node.id = 14;
	ck_assert_int_eq(rig_do(&rig, mknod, &node, &rep), -EINVAL);

	ck_assert_int_eq(rig_do(&rig, symlink, &sym, &rep), 0);
	ck_assert_uint_eq(rep.attr.mode & S_IFMT, S_IFLNK);
	ck_assert_uint_eq(rep.attr.uid, rig.config.cmd_uid);
	const struct rsb_readlink_req read = { .node = rig_node_of(&rep) };
	ck_assert_int_eq(rig_do(&rig, readlink, &read, &link), 0);
	ck_assert_uint_eq(link.target.size, strlen("/etc/passwd"));
	ck_assert_mem_eq(link.target.data, "/etc/passwd", link.target.size);

	/* The name is taken, by a link that leads elsewhere. */
	node.name = rsb_bytes_str("sym");
	node.id = 15;
	node.mode = S_IFREG | 0600;
	ck_assert_int_eq(rig_do(&rig, mknod, &node, &rep), -EEXIST);
	sym.id = 16;
	ck_assert_int_eq(rig_do(&rig, symlink, &sym, &rep), -EEXIST);
	sym.name = rsb_bytes_str("bad");
	sym.target = (struct rsb_bytes){ .data = (const uint8_t *)"a\0b", .size = 3 };
	ck_assert_int_eq(rig_do(&rig, symlink, &sym, &rep), -EINVAL);
	sym.target = rsb_bytes_str("");
	ck_assert_int_eq(rig_do(&rig, symlink, &sym, &rep), -ENOENT);
	rig_done(&rig);
}
END_TEST

START_TEST(refuses_ids_that_are_taken_before_it_makes_anything)
{
	struct rig rig;
	struct rsb_node node;

	rig_init(&rig);
	rig_put(&rig, "file", "");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "file", &node, NULL), 0);
	const uint64_t ids[] = { 0, RSB_NODE_ROOT, node.id };
	for (size_t i = 0; i < RSB_ARRAY_SIZE(ids); i++) {
		const struct rsb_mkdir_req req = {
			.parent = rig_root,
			.name = rsb_bytes_str("d"),
			.id = ids[i],
			.mode = 0755,
		};
		struct rsb_entry_rep rep;

		ck_assert_int_eq(rig_do(&rig, mkdir, &req, &rep), -EINVAL);
		ck_assert(!exists(&rig, "d"));
	}
	rig_done(&rig);
}
END_TEST

START_TEST(does_not_follow_a_link_planted_in_the_way)
{
	struct rig rig;
	struct rsb_node dir, node;

	rig_init(&rig);
	ck_assert_int_eq(mkdirat(rig.dir_fd, "dir", 0755), 0);
	ck_assert_int_eq(mkdirat(rig.dir_fd, "other", 0755), 0);
	rig_put(&rig, "other/secret", "x");
	ck_assert_int_eq(symlinkat("other", rig.dir_fd, "link"), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "link", &dir, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &dir, "secret", &node, NULL), -ENOTDIR);
	ck_assert_int_eq(rig_mkdir(&rig, &dir, "made", &node), -ENOTDIR);

	/*
	 * The directory becomes a link behind the host's back: its id goes on meaning the
	 * directory.
	 */
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "dir", &dir, NULL), 0);
	ck_assert_int_eq(renameat(rig.dir_fd, "dir", rig.dir_fd, "was"), 0);
	ck_assert_int_eq(symlinkat("other", rig.dir_fd, "dir"), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &dir, "made", &node), 0);
	ck_assert(exists(&rig, "was/made") && !exists(&rig, "other/made"));
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		looks_up_what_is_there_and_nothing_else,
		refuses_names_that_are_paths,
		makes_a_directory_that_belongs_to_the_command_user,
		makes_things_for_the_caller_that_is_forwarded,
		keeps_the_group_of_a_directory_with_set_group_id,
		makes_nodes_and_links_without_following_any,
		refuses_ids_that_are_taken_before_it_makes_anything,
		does_not_follow_a_link_planted_in_the_way,
	};

	return unit_run("sidecar-name", tests, RSB_ARRAY_SIZE(tests));
}
