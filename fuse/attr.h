/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_ATTR_H
#define RSB_FUSE_ATTR_H

/*
 * Attributes as the sidecar tells them and as the kernel wants them, and whose ids are whose.
 * idmap user: the ids that commands have over there are the mounting user's here, both ways;
 * others are shown as they are, and giving a file to one of them is refused. idmap none: ids are
 * the same, and the caller's go with what it makes.
 */

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "proto/op.h"

struct rsb_idmap {
	bool forward; /* idmap=none */
	uid_t uid;    /* the mounting user */
	gid_t gid;
	uint64_t far_uid; /* of commands */
	uint64_t far_gid;
};

void rsb_attr_to_stat(
	const struct rsb_attr *attr, const struct rsb_idmap *map, struct stat *ret_stat);
/* -EPERM: not an id that can be given. */
rsb_nodiscard int rsb_idmap_uid_out(const struct rsb_idmap *map, uid_t uid, uint64_t *ret_uid);
rsb_nodiscard int rsb_idmap_gid_out(const struct rsb_idmap *map, gid_t gid, uint64_t *ret_gid);
/* Who a request is made for. */
struct rsb_who rsb_idmap_who(const struct rsb_idmap *map, uid_t uid, gid_t gid);
/* A file type that exists, numbers in range: else a peer could confuse the kernel. -EIO. */
rsb_nodiscard int rsb_attr_check(const struct rsb_attr *attr);
/* The same contents and times: pages may be kept. */
bool rsb_attr_same_data(const struct rsb_attr *a, const struct rsb_attr *b);

#endif
