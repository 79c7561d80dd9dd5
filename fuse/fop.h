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

#include <fuse_lowlevel.h>

#include "fuse/fs.h"

struct rsb_fop;

/* What to do with the reply of the call. r and rep as in link/link.h. Ends fop or calls again. */
typedef void (*rsb_fop_fn)(struct rsb_fop *fop, int r, const void *rep);

struct rsb_fop {
	struct rsb_fs *fs;
	fuse_req_t req;                   /* NULL: answered already */
	struct rsb_shared_flight *flight; /* ends with it */
	struct rsb_list all;
	struct rsb_list wait; /* in a list of those that wait for something of ours */
	rsb_fop_fn fn;        /* of the call under way, or what to do after the wait */
	uint64_t serial;      /* of the call under way; 0: none */
	uint64_t since;       /* fs->seq when it was sent */
	uint32_t op;          /* of the last call */
	uint64_t began_ns;    /* of fuse/hold.h, as the next */
	uint64_t hold_ns;     /* so long without a live link; 0: as long as calls wait */
	size_t n_call;        /* pieces of it under way */
	bool mutating;
	bool interrupted;    /* by a signal that did not kill, at least not yet */
	bool lock_wait;      /* any signal ends it, if others have the lock */
	bool nameless;       /* an open that has to be asked for by name again */
	bool cancelled;      /* the far side was asked to give it up */
	int error;           /* the first, of several calls */
	uint64_t lock_round; /* of fs when a lock was asked for */

	struct rsb_inode *inode; /* referenced, as the next */
	struct rsb_inode *other;
	struct rsb_handle *handle;
	char name[RSB_NAME_MAX + 1];
	char newname[RSB_NAME_MAX + 1];
	struct fuse_file_info fi;
	uint64_t offset;
	uint64_t target; /* rsb_handle.n_done to wait for */
	size_t size;
	uint32_t flags;
	uint8_t *data; /* freed with it */
};

/*
 * NULL: the kernel was answered with ENOMEM. From here on a crash does not end the request: the
 * next process calls the handler again (fuse/recover.h), which then gets the same ids and, by
 * rsb_fop_call(), the reply of the call that was made already.
 */
struct rsb_fop *rsb_fop_new(fuse_req_t req);
/* For a node or an open file that the request at hand may make. */
uint64_t rsb_fop_new_id(struct rsb_fs *fs);
/* The request at hand is one whose fop was there before a crash. */
bool rsb_fop_is_old(const struct rsb_fs *fs);
void rsb_fop_free(struct rsb_fop *fop);

/* The process before answered it with success, or was killed when it was about to. */
bool rsb_fop_was_answered(const struct rsb_fop *fop);

/* Finds the node, borrowed. NULL: the kernel was answered with ESTALE. */
struct rsb_inode *rsb_fop_inode(fuse_req_t req, fuse_ino_t nodeid);
struct rsb_fs *rsb_fop_fs(fuse_req_t req);

/* Sends; fn gets the reply. When it cannot be sent, fn gets the errno at once. */
void rsb_fop_call(struct rsb_fop *fop, uint32_t op, const void *req, rsb_fop_fn fn);
/*
 * The same for a mutation of fop->inode and fop->other (may be NULL): they count as changing
 * until rsb_fop_changed() or the end of fop.
 */
void rsb_fop_mutate(struct rsb_fop *fop, uint32_t op, const void *req, rsb_fop_fn fn);
/* The attributes after the mutation, of fop->inode and fop->other; NULL: not told. */
void rsb_fop_changed(
	struct rsb_fop *fop, const struct rsb_attr *inode, const struct rsb_attr *other);

/*
 * The kernel tells of the first signal alone. Ends those whose caller was killed by a later one; to
 * be called soon again while fs->watch.
 */
void rsb_fop_check_interrupted(struct rsb_fs *fs);
/* Who made req is on its way out: nobody hears the answer, but the process waits for it. */
bool rsb_fop_caller_exits(fuse_req_t req);
/* Of the thread that asked; 0: it waits no more. */
pid_t rsb_fop_pid(const struct rsb_fop *fop);
/* Answers all that wait, at the end of the mount. */
void rsb_fop_fail_all(struct rsb_fs *fs, int r);

#endif
