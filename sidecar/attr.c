/* SPDX-License-Identifier: MIT */
#include "sidecar/attr.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

static struct rsb_time
time_of(const struct statx_timestamp *ts)
{
	return (struct rsb_time){ .sec = ts->tv_sec, .nsec = ts->tv_nsec };
}

void
rsb_attr_of(const struct statx *st, struct rsb_attr *ret_attr)
{
	*ret_attr = (struct rsb_attr){
		.ino = st->stx_ino,
		.mode = st->stx_mode,
		.nlink = st->stx_nlink,
		.uid = st->stx_uid,
		.gid = st->stx_gid,
		.rdev = makedev(st->stx_rdev_major, st->stx_rdev_minor),
		.size = st->stx_size,
		.blocks = st->stx_blocks,
		.blksize = st->stx_blksize,
		.atime = time_of(&st->stx_atime),
		.mtime = time_of(&st->stx_mtime),
		.ctime = time_of(&st->stx_ctime),
	};
	if (st->stx_mask & STATX_BTIME)
		ret_attr->btime = time_of(&st->stx_btime);
}

int
rsb_attr_read(int fd, struct rsb_attr *ret_attr)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &st) <
		0)
		return -errno;
	rsb_attr_of(&st, ret_attr);
	return 0;
}
