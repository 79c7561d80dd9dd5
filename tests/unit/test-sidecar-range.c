/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"

static uint64_t
open_in(struct rig *rig, const struct rsb_node *dir, const char *path, const char *name)
{
	struct rsb_node node;
	uint64_t fh;

	rig_put(rig, path, "");
	ck_assert_int_eq(rig_lookup(rig, dir, name, &node, NULL), 0);
	ck_assert_int_eq(rig_open(rig, &node, O_RDWR, &fh), 0);
	return fh;
}

static uint64_t
open_new(struct rig *rig, const char *name)
{
	return open_in(rig, &rig_root, name, name);
}

/* A small file system at m, in a mount namespace of our own so that nothing is left behind. */
static bool
with_small_disk(struct rig *rig, struct rsb_node *disk)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	rig_init(rig);
	ck_assert_int_eq(mkdirat(rig->dir_fd, "m", 0755), 0);
	ck_assert_int_eq(fchdir(rig->dir_fd), 0);
	if (mount("tmpfs", "m", "tmpfs", 0, "size=64k") < 0) {
		ck_assert_int_eq(chdir("/"), 0);
		rig_done(rig);
		return false;
	}
	ck_assert_int_eq(rig_lookup(rig, &rig_root, "m", disk, NULL), 0);
	return true;
}

static void
small_disk_done(struct rig *rig)
{
	ck_assert_int_eq(umount2("m", MNT_DETACH), 0);
	ck_assert_int_eq(chdir("/"), 0);
	rig_done(rig);
}

START_TEST(reads_and_writes_far_out_and_finds_the_holes)
{
	const uint64_t far = UINT64_C(6) << 32;
	struct rig rig;
	struct rsb_lseek_rep rep;
	struct rsb_attr_rep attr;

	rig_init(&rig);
	uint64_t fh = open_new(&rig, "f");
	ck_assert_int_eq(rig_write(&rig, fh, far, "end"), 0);
	ck_assert(rig_reads(&rig, fh, far, "end"));
	ck_assert_int_eq(rig_write(&rig, fh, INT64_MAX, "x"), -EFBIG);

	struct rsb_lseek_req seek = { .fh = fh, .whence = SEEK_DATA };
	ck_assert_int_eq(rig_do(&rig, lseek, &seek, &rep), 0);
	ck_assert_uint_eq(rep.offset, far);
	seek.whence = SEEK_HOLE;
	ck_assert_int_eq(rig_do(&rig, lseek, &seek, &rep), 0);
	ck_assert_uint_eq(rep.offset, 0);
	seek.offset = far + 100;
	ck_assert_int_eq(rig_do(&rig, lseek, &seek, &rep), -ENXIO);
	seek.offset = UINT64_MAX;
	ck_assert_int_eq(rig_do(&rig, lseek, &seek, &rep), -EINVAL);
	seek = (struct rsb_lseek_req){ .fh = fh, .whence = SEEK_END };
	ck_assert_int_eq(rig_do(&rig, lseek, &seek, &rep), -EINVAL);

	struct rsb_fallocate_req req = { .fh = fh, .offset = 0, .length = 65536 };
	ck_assert_int_eq(rig_do(&rig, fallocate, &req, &attr), 0);
	ck_assert_uint_ge(attr.attr.blocks, 65536 / 512);
	req.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	req.offset = far;
	ck_assert_int_eq(rig_do(&rig, fallocate, &req, &attr), 0);
	ck_assert_uint_eq(attr.attr.size, far + 3);
	req.length = 0;
	ck_assert_int_eq(rig_do(&rig, fallocate, &req, &attr), -EINVAL);
	req.length = UINT64_MAX;
	ck_assert_int_eq(rig_do(&rig, fallocate, &req, &attr), -EINVAL);
	req.mode = UINT64_MAX;
	ck_assert_int_eq(rig_do(&rig, fallocate, &req, &attr), -EOPNOTSUPP);
	rig_done(&rig);
}
END_TEST

START_TEST(copies_ranges_between_files_and_within_one)
{
	struct rig rig;
	struct rsb_copy_rep rep;

	rig_init(&rig);
	uint64_t in = open_new(&rig, "in");
	uint64_t out = open_new(&rig, "out");
	ck_assert_int_eq(rig_write(&rig, in, 0, "0123456789"), 0);
	struct rsb_copy_req req = {
		.fh_in = in,
		.off_in = 2,
		.fh_out = out,
		.off_out = 1,
		.length = 5,
	};
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert_uint_eq(rep.length, 5);
	ck_assert_uint_eq(rep.attr.size, 6);
	req.length = UINT64_C(1) << 40;
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert_uint_eq(rep.length, 8);
	req.off_in = 10;
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert_uint_eq(rep.length, 0);

	req = (struct rsb_copy_req){ .fh_in = in, .fh_out = in, .off_out = 5, .length = 5 };
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert(rig_reads(&rig, in, 0, "0123401234"));
	req.off_out = 3;
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), -EINVAL);
	req.length = UINT64_MAX;
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), -EINVAL);
	rig_done(&rig);
}
END_TEST

START_TEST(bounds_the_work_of_one_copy)
{
	const uint64_t size = UINT64_C(65) << 20;
	struct rig rig;
	struct rsb_copy_rep rep;

	rig_init(&rig);
	uint64_t in = open_new(&rig, "in");
	uint64_t out = open_new(&rig, "out");
	ck_assert_int_eq(rig_write(&rig, in, size - 1, "x"), 0);
	const struct rsb_copy_req req = { .fh_in = in, .fh_out = out, .length = size };
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert_uint_eq(rep.length, UINT64_C(64) << 20);
	rig_done(&rig);
}
END_TEST

START_TEST(copies_between_file_systems)
{
	struct rig rig;
	struct rsb_node disk;
	struct rsb_copy_rep rep;

	if (!with_small_disk(&rig, &disk))
		return;
	uint64_t in = open_new(&rig, "in");
	uint64_t out = open_in(&rig, &disk, "m/out", "out");
	ck_assert_int_eq(rig_write(&rig, in, 0, "0123456789"), 0);
	struct rsb_copy_req req = { .fh_in = in, .off_in = 1, .fh_out = out, .length = 100 };
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert_uint_eq(rep.length, 9);
	ck_assert(rig_reads(&rig, out, 0, "123456789"));

	/* As far as the disk goes; then the error. */
	ck_assert_int_eq(rig_write(&rig, in, 200000, "end"), 0);
	req.off_in = 0;
	req.length = 200000;
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), 0);
	ck_assert_uint_gt(rep.length, 0);
	ck_assert_uint_lt(rep.length, 200000);
	req.off_out = 100000;
	ck_assert_int_eq(rig_do(&rig, copy, &req, &rep), -ENOSPC);
	small_disk_done(&rig);
}
END_TEST

START_TEST(says_when_the_disk_is_full)
{
	static uint8_t block[RSB_IO_MAX];
	struct rig rig;
	struct rsb_node disk, node;
	struct rsb_write_rep rep;
	struct rsb_attr_rep attr;

	if (!with_small_disk(&rig, &disk))
		return;
	uint64_t fh = open_in(&rig, &disk, "m/f", "f");
	struct rsb_write_req req = { .fh = fh, .data = { .data = block, .size = sizeof(block) } };
	ck_assert_int_eq(rig_do(&rig, write, &req, &rep), 0);
	/* The first part of it fits: still it is an error. */
	req.offset = sizeof(block);
	ck_assert_int_eq(rig_do(&rig, write, &req, &rep), -ENOSPC);
	req.flags = RSB_WRITE_APPEND;
	ck_assert_int_eq(rig_do(&rig, write, &req, &rep), -ENOSPC);
	const struct rsb_fallocate_req more = { .fh = fh, .length = 1 << 20 };
	ck_assert_int_eq(rig_do(&rig, fallocate, &more, &attr), -ENOSPC);
	ck_assert_int_eq(rig_lookup(&rig, &disk, "f", &node, NULL), 0);
	small_disk_done(&rig);
}
END_TEST

START_TEST(syncs_and_says_what_the_file_is_then)
{
	struct rig rig;
	struct rsb_attr_rep rep;

	rig_init(&rig);
	uint64_t fh = open_new(&rig, "f");
	ck_assert_int_eq(rig_write(&rig, fh, 0, "text"), 0);
	struct rsb_fsync_req req = { .fh = fh };
	ck_assert_int_eq(rig_do(&rig, fsync, &req, &rep), 0);
	ck_assert_uint_eq(rep.attr.size, 4);
	req.data_only = 1;
	ck_assert_int_eq(rig_do(&rig, fsync, &req, &rep), 0);
	req.fh = 9999;
	ck_assert_int_eq(rig_do(&rig, fsync, &req, &rep), -EBADF);
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_and_writes_far_out_and_finds_the_holes,
		copies_ranges_between_files_and_within_one,
		bounds_the_work_of_one_copy,
		copies_between_file_systems,
		says_when_the_disk_is_full,
		syncs_and_says_what_the_file_is_then,
	};

	return unit_run("sidecar-range", tests, RSB_ARRAY_SIZE(tests));
}
