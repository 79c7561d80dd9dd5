/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "fuse/hold.h"
#include "fuse/ops.h"
#include "fuse/push.h"
#include "fuse/reply.h"
#include "fuse/send.h"

/*
 * Names outside these are not the workspace's business: security.* is this machine's labels and
 * capabilities, ACLs are not offered. The kernel asks for some of them by itself, at every write.
 */
static bool
is_forwarded(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.", 8) == 0;
}

/* NULL: answered. */
static struct rsb_fop *
begin(fuse_req_t req, fuse_ino_t nodeid)
{
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_fop *fop;

	if (!inode)
		return NULL;
	fop = rsb_fop_new(req);
	if (!fop)
		return NULL;
	if (S_ISDIR(inode->attr.mode))
		rsb_hold_limit(fop);
	fop->inode = rsb_inode_ref(inode);
	rsb_push_inode(fop->fs, inode);
	return fop;
}

static void
on_changed(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (r >= 0)
		rsb_fop_changed(fop, &got->attr, NULL);
	rsb_reply_err(fop, r);
}

void
op_setxattr(fuse_req_t req, fuse_ino_t nodeid, const char *name, const char *value, size_t size,
	int flags)
{
	struct rsb_setxattr_req msg;
	struct rsb_fop *fop;

	if (!is_forwarded(name) || size > RSB_XATTR_MAX) {
		rsb_reply_req_err(req, size > RSB_XATTR_MAX ? -E2BIG : -EOPNOTSUPP);
		return;
	}
	fop = begin(req, nodeid);
	if (!fop)
		return;
	msg = (struct rsb_setxattr_req){
		.node = fop->inode->wire,
		.name = rsb_bytes_str(name),
		.value = { .data = (const uint8_t *)value, .size = size },
		.flags = (uint64_t)(unsigned int)flags,
	};
	rsb_fop_mutate(fop, RSB_OP_setxattr, &msg, on_changed);
}

/* fop->size: what the caller has room for, 0: it asks how much there is. */
static void
on_value(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_xattr_rep *got = rep;

	if (r >= 0 && fop->size && got->value.size > fop->size)
		r = -ERANGE;
	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	if (fop->size) {
		rsb_reply_data(fop, got->value);
		return;
	}
	if (fop->req)
		(void)fuse_reply_xattr(fop->req, got->value.size);
	rsb_fop_free(fop);
}

void
op_getxattr(fuse_req_t req, fuse_ino_t nodeid, const char *name, size_t size)
{
	struct rsb_getxattr_req msg;
	struct rsb_fop *fop;

	if (!is_forwarded(name)) {
		rsb_reply_req_err(req, strncmp(name, "security.", 9) == 0 ? -ENODATA : -EOPNOTSUPP);
		return;
	}
	fop = begin(req, nodeid);
	if (!fop)
		return;
	fop->size = size;
	msg = (struct rsb_getxattr_req){
		.node = fop->inode->wire,
		.name = rsb_bytes_str(name),
	};
	rsb_fop_call(fop, RSB_OP_getxattr, &msg, on_value);
}

void
op_listxattr(fuse_req_t req, fuse_ino_t nodeid, size_t size)
{
	struct rsb_fop *fop = begin(req, nodeid);

	if (!fop)
		return;
	fop->size = size;
	rsb_fop_call(fop, RSB_OP_listxattr, &(struct rsb_listxattr_req){ .node = fop->inode->wire },
		on_value);
}

void
op_removexattr(fuse_req_t req, fuse_ino_t nodeid, const char *name)
{
	struct rsb_getxattr_req msg = { .name = rsb_bytes_str(name) };
	struct rsb_fop *fop;

	if (!is_forwarded(name)) {
		rsb_reply_req_err(req, -EOPNOTSUPP);
		return;
	}
	fop = begin(req, nodeid);
	if (!fop)
		return;
	msg.node = fop->inode->wire;
	rsb_fop_mutate(fop, RSB_OP_removexattr, &msg, on_changed);
}
