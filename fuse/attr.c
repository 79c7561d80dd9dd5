/* SPDX-License-Identifier: MIT */
#include "fuse/attr.h"

#include <errno.h>
#include <string.h>

static struct timespec
to_timespec(const struct rsb_time *t)
{
	return (struct timespec){ .tv_sec = t->sec, .tv_nsec = (long)t->nsec };
}

static bool
same_time(const struct rsb_time *a, const struct rsb_time *b)
{
	return a->sec == b->sec && a->nsec == b->nsec;
}

void
rsb_attr_to_stat(const struct rsb_attr *attr, const struct rsb_idmap *map, struct stat *ret_stat)
{
	memset(ret_stat, 0, sizeof(*ret_stat));
	ret_stat->st_ino = attr->ino;
	ret_stat->st_mode = (mode_t)attr->mode;
	ret_stat->st_nlink = attr->nlink;
	ret_stat->st_uid = (uid_t)attr->uid;
	ret_stat->st_gid = (gid_t)attr->gid;
	if (!map->forward && attr->uid == map->far_uid)
		ret_stat->st_uid = map->uid;
	if (!map->forward && attr->gid == map->far_gid)
		ret_stat->st_gid = map->gid;
	ret_stat->st_rdev = attr->rdev;
	ret_stat->st_size = (off_t)attr->size;
	ret_stat->st_blocks = (blkcnt_t)attr->blocks;
	ret_stat->st_blksize = (blksize_t)attr->blksize;
	ret_stat->st_atim = to_timespec(&attr->atime);
	ret_stat->st_mtim = to_timespec(&attr->mtime);
	ret_stat->st_ctim = to_timespec(&attr->ctime);
}

int
rsb_idmap_uid_out(const struct rsb_idmap *map, uid_t uid, uint64_t *ret_uid)
{
	if (map->forward)
		*ret_uid = uid;
	else if (uid == map->uid)
		*ret_uid = map->far_uid;
	else
		return -EPERM;
	return 0;
}

int
rsb_idmap_gid_out(const struct rsb_idmap *map, gid_t gid, uint64_t *ret_gid)
{
	if (map->forward)
		*ret_gid = gid;
	else if (gid == map->gid)
		*ret_gid = map->far_gid;
	else
		return -EPERM;
	return 0;
}

struct rsb_who
rsb_idmap_who(const struct rsb_idmap *map, uid_t uid, gid_t gid)
{
	if (!map->forward)
		return (struct rsb_who){ .has = 0 };
	return (struct rsb_who){ .has = 1, .uid = uid, .gid = gid };
}

int
rsb_attr_check(const struct rsb_attr *attr)
{
	const struct rsb_time *times[] = { &attr->atime, &attr->mtime, &attr->ctime, &attr->btime };

	switch (attr->mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		break;
	default:
		return -EIO;
	}
	if (attr->mode & ~(uint64_t)(S_IFMT | 07777) || attr->size > INT64_MAX ||
		attr->blocks > INT64_MAX || attr->nlink > UINT32_MAX || attr->uid > UINT32_MAX ||
		attr->gid > UINT32_MAX)
		return -EIO;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(times); i++) {
		if (times[i]->nsec >= RSB_NSEC_PER_SEC)
			return -EIO;
	}
	return 0;
}

bool
rsb_attr_same_data(const struct rsb_attr *a, const struct rsb_attr *b)
{
	return a->size == b->size && same_time(&a->mtime, &b->mtime) &&
	       same_time(&a->ctime, &b->ctime);
}
