/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"

static int
setattr(struct rig *rig, struct rsb_setattr_req *req, struct rsb_attr *ret_attr)
{
	struct rsb_attr_rep rep;
	int r = rig_do(rig, setattr, req, &rep);

	if (r == 0)
		*ret_attr = rep.attr;
	return r;
}

static void
with_file(struct rig *rig, struct rsb_node *file)
{
	rig_init(rig);
	rig_put(rig, "f", "0123456789");
	ck_assert_int_eq(rig_lookup(rig, &rig_root, "f", file, NULL), 0);
}

START_TEST(tells_all_that_stat_tells)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_attr attr;
	struct stat st;

	with_file(&rig, &file);
	ck_assert_int_eq(fstatat(rig.dir_fd, "f", &st, 0), 0);
	ck_assert_int_eq(rig_getattr(&rig, &file, &attr), 0);
	ck_assert_uint_eq(attr.ino, st.st_ino);
	ck_assert_uint_eq(attr.mode, st.st_mode);
	ck_assert_uint_eq(attr.nlink, st.st_nlink);
	ck_assert_uint_eq(attr.uid, st.st_uid);
	ck_assert_uint_eq(attr.gid, st.st_gid);
	ck_assert_uint_eq(attr.size, (uint64_t)st.st_size);
	ck_assert_uint_eq(attr.blocks, (uint64_t)st.st_blocks);
	ck_assert_uint_eq(attr.blksize, (uint64_t)st.st_blksize);
	ck_assert_int_eq(attr.mtime.sec, st.st_mtim.tv_sec);
	ck_assert_uint_eq(attr.mtime.nsec, (uint64_t)st.st_mtim.tv_nsec);
	ck_assert_uint_eq(attr.ctime.nsec, (uint64_t)st.st_ctim.tv_nsec);
	rig_done(&rig);
}
END_TEST

START_TEST(changes_the_mode_also_without_proc)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_attr attr;

	with_file(&rig, &file);
	struct rsb_setattr_req req = { .node = file, .valid = RSB_SET_MODE, .mode = 04711 };
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFREG | 04711);

	struct rsb_root *root = (struct rsb_root *)rsb_nodes_root(rig.sess.nodes);
	if (root->mount_fd >= 0) {
		int proc_fd = root->proc_fd;

		root->proc_fd = -1;
		req.mode = 0600;
		ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
		ck_assert_uint_eq(attr.mode, S_IFREG | 0600);
		root->proc_fd = proc_fd;
	}
	rig_done(&rig);
}
END_TEST

START_TEST(never_changes_through_a_symlink)
{
	struct rig rig;
	struct rsb_node file, link;
	struct rsb_attr attr;
	struct stat st;

	with_file(&rig, &file);
	ck_assert_int_eq(symlinkat("f", rig.dir_fd, "sym"), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "sym", &link, NULL), 0);
	struct rsb_setattr_req req = { .node = link, .valid = RSB_SET_MODE, .mode = 0777 };
	ck_assert_int_eq(setattr(&rig, &req, &attr), -EOPNOTSUPP);
	req.valid = RSB_SET_SIZE;
	ck_assert_int_eq(setattr(&rig, &req, &attr), -EINVAL);
	req.valid = RSB_SET_MTIME;
	req.mtime = (struct rsb_time){ .sec = 5, .nsec = 6 };
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_uint_eq(attr.mode & S_IFMT, S_IFLNK);
	ck_assert_int_eq(attr.mtime.sec, 5);
	ck_assert_int_eq(fstatat(rig.dir_fd, "f", &st, 0), 0);
	ck_assert_int_ne(st.st_mtim.tv_sec, 5);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
	ck_assert_int_eq(st.st_size, 10);
	rig_done(&rig);
}
END_TEST

START_TEST(changes_owner_before_mode)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_attr attr;

	with_file(&rig, &file);
	if (rig.config.is_root) {
		struct rsb_setattr_req req = {
			.node = file,
			.valid = RSB_SET_UID | RSB_SET_GID | RSB_SET_MODE,
			.uid = 55,
			.gid = 66,
			.mode = 06755,
		};

		ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
		ck_assert_uint_eq(attr.uid, 55);
		ck_assert_uint_eq(attr.gid, 66);
		ck_assert_uint_eq(attr.mode, S_IFREG | 06755);
		req.valid = RSB_SET_GID;
		req.gid = 67;
		ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
		ck_assert_uint_eq(attr.uid, 55);
		ck_assert_uint_eq(attr.mode, S_IFREG | 0755);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(sets_times_to_the_nanosecond_or_leaves_them)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_attr before, attr;

	with_file(&rig, &file);
	ck_assert_int_eq(rig_getattr(&rig, &file, &before), 0);
	struct rsb_setattr_req req = {
		.node = file,
		.valid = RSB_SET_MTIME,
		.mtime = { .sec = 1234567890, .nsec = 123456789 },
	};
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_int_eq(attr.mtime.sec, 1234567890);
	ck_assert_uint_eq(attr.mtime.nsec, 123456789);
	ck_assert_int_eq(attr.atime.sec, before.atime.sec);
	ck_assert_uint_eq(attr.atime.nsec, before.atime.nsec);

	req.valid = RSB_SET_ATIME | RSB_SET_MTIME_NOW;
	req.atime = (struct rsb_time){ .sec = -2, .nsec = 999999999 };
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_int_eq(attr.atime.sec, -2);
	ck_assert_int_ge(attr.mtime.sec, before.mtime.sec);

	req.valid = RSB_SET_ATIME;
	req.atime.nsec = 1000000000;
	ck_assert_int_eq(setattr(&rig, &req, &attr), -EINVAL);
	rig_done(&rig);
}
END_TEST

START_TEST(changes_the_size_with_and_without_an_open_file)
{
	struct rig rig;
	struct rsb_node file, dir;
	struct rsb_attr attr;
	uint64_t fh;

	with_file(&rig, &file);
	struct rsb_setattr_req req = { .node = file, .valid = RSB_SET_SIZE, .size = 4 };
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_uint_eq(attr.size, 4);

	ck_assert_int_eq(rig_open(&rig, &file, O_RDWR, &fh), 0);
	ck_assert_int_eq(unlinkat(rig.dir_fd, "f", 0), 0);
	req.fh = fh;
	req.size = UINT64_C(5) << 32;
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_uint_eq(attr.size, UINT64_C(5) << 32);
	ck_assert_uint_eq(attr.nlink, 0);
	req.size = (uint64_t)INT64_MAX + 1;
	ck_assert_int_eq(setattr(&rig, &req, &attr), -EFBIG);
	req.size = 1;
	req.fh = 424242;
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);

	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	req = (struct rsb_setattr_req){ .node = dir, .valid = RSB_SET_SIZE };
	ck_assert_int_eq(setattr(&rig, &req, &attr), -EISDIR);
	rig_done(&rig);
}
END_TEST

START_TEST(drops_set_user_id_when_told_to)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_attr attr;

	with_file(&rig, &file);
	ck_assert_int_eq(fchmodat(rig.dir_fd, "f", 06775, 0), 0);
	struct rsb_setattr_req req = {
		.node = file,
		.valid = RSB_SET_SIZE | RSB_SET_KILL_SUIDGID,
		.size = 1,
	};
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFREG | 0775);

	/* Alone, as chown(2) to nobody new. */
	struct rsb_attr before = attr;
	ck_assert_int_eq(fchmodat(rig.dir_fd, "f", 06775, 0), 0);
	ck_assert_int_eq(usleep(11000), 0);
	req.valid = RSB_SET_KILL_SUIDGID;
	ck_assert_int_eq(setattr(&rig, &req, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFREG | 0775);
	ck_assert_uint_eq(attr.size, 1);
	ck_assert(attr.ctime.sec != before.ctime.sec || attr.ctime.nsec != before.ctime.nsec);
	rig_done(&rig);
}
END_TEST

START_TEST(changes_nothing_when_a_member_makes_no_sense)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_attr attr;

	with_file(&rig, &file);
	const struct rsb_setattr_req bad[] = {
		{ .node = file, .valid = RSB_SET_MODE | 1 << 9, .mode = 0777 },
		{ .node = file,
			.valid = RSB_SET_MODE | RSB_SET_UID,
			.mode = 0777,
			.uid = UINT32_MAX },
		{ .node = file,
			.valid = RSB_SET_MODE | RSB_SET_GID,
			.mode = 0777,
			.gid = UINT64_MAX },
		{ .node = file, .valid = RSB_SET_MODE, .mode = 0200777 },
	};
	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		struct rsb_setattr_req req = bad[i];

		ck_assert_int_eq(setattr(&rig, &req, &attr), -EINVAL);
		ck_assert_int_eq(rig_getattr(&rig, &file, &attr), 0);
		ck_assert_uint_eq(attr.mode, S_IFREG | 0644);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(tells_the_space_of_the_file_system)
{
	struct rig rig;
	struct rsb_statfs_rep rep;
	struct statvfs fs;
	const struct rsb_empty req = { .end_ = 0 };

	rig_init(&rig);
	ck_assert_int_eq(statvfs(rig.path, &fs), 0);
	ck_assert_int_eq(rig_do(&rig, statfs, &req, &rep), 0);
	ck_assert_uint_eq(rep.blocks, fs.f_blocks);
	ck_assert_uint_eq(rep.bsize, fs.f_bsize);
	ck_assert_uint_eq(rep.namemax, fs.f_namemax);
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		tells_all_that_stat_tells,
		changes_the_mode_also_without_proc,
		never_changes_through_a_symlink,
		changes_owner_before_mode,
		sets_times_to_the_nanosecond_or_leaves_them,
		changes_the_size_with_and_without_an_open_file,
		drops_set_user_id_when_told_to,
		changes_nothing_when_a_member_makes_no_sense,
		tells_the_space_of_the_file_system,
	};

	return unit_run("sidecar-attr", tests, RSB_ARRAY_SIZE(tests));
}
