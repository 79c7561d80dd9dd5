/* SPDX-License-Identifier: MIT */
#ifndef RSB_FOP_H
#define RSB_FOP_H

/*
 * One request of the kernel under way: born in a handler, ended by its one answer (fuse/reply.h)
 * or, when the caller was killed meanwhile, after it. It holds references to all that it touches.
 *
 * A handler that can answer at once needs none of this and calls fuse/reply.h with the bare
 * request.
 */

#define FUSE_USE_VERSION 314

#include "fuse/fs.h"

#include <fuse_lowlevel.h>

struct rsb_fop;

/* What to do with the reply of the call. r and rep as in link/link.h. Ends fop or calls again. */
typedef void (*rsb_fop_fn)(struct rsb_fop *fop, int r, const void *rep);

struct rsb_fop {
	struct rsb_fs *fs;
	fuse_req_t req; /* NULL: answered already */
	struct rsb_list all;
	struct rsb_list wait; /* in a list of those that wait for something of ours */
	rsb_fop_fn fn;        /* of the call under way, or what to do after the wait */
	uint64_t serial;      /* of the call under way; 0: none */
	uint64_t since;       /* fs->seq when it was sent */
	size_t n_call;        /* calls under way that fop is the argument of */
	bool lock_wait;       /* any signal ends it */
	int error;            /* the first, of several calls */

	struct rsb_inode *inode; /* referenced, as the next */
	struct rsb_inode *other;
	struct rsb_handle *handle;
	char name[RSB_NAME_MAX + 1];
	char newname[RSB_NAME_MAX + 1];
	struct fuse_file_info fi;
	uint64_t offset;
	size_t size;
	uint32_t flags;
	uint8_t *data; /* freed with it */
};

/* NULL: the kernel was answered with ENOMEM. */
struct rsb_fop *rsb_fop_new(fuse_req_t req);
void rsb_fop_free(struct rsb_fop *fop);

/* Finds the node: NULL when the kernel was answered with ESTALE. Borrowed; fop takes its own reference. */
struct rsb_inode *rsb_fop_inode(fuse_req_t req, fuse_ino_t nodeid);
struct rsb_fs *rsb_fop_fs(fuse_req_t req);

/* Sends; fn gets the reply. When it cannot be sent, fn gets the errno at once. */
void rsb_fop_call(struct rsb_fop *fop, uint32_t op, const void *req, uint64_t after, rsb_fop_fn fn);
/*
 * The same for a mutation of inode (and of other, may be NULL): they count as changing until the
 * reply, which fn hands to rsb_fs_change_end() through rsb_fop_changed().
 */
void rsb_fop_mutate(struct rsb_fop *fop, uint32_t op, const void *req, rsb_fop_fn fn);
/* The attributes after the mutation, of fop->inode and fop->other; NULL where the reply has none. */
void rsb_fop_changed(
	struct rsb_fop *fop, const struct rsb_attr *inode, const struct rsb_attr *other);

/* The kernel's FUSE_INTERRUPT: ends it with EINTR if its caller is dying, or for a lock. */
void rsb_fop_interrupt(fuse_req_t req, void *arg);
/* Answers all that wait, at the end of the mount. */
void rsb_fop_fail_all(struct rsb_fs *fs, int r);

#endif
