/* SPDX-License-Identifier: MIT */
#ifndef RSB_HANDLE_H
#define RSB_HANDLE_H

/*
 * Open files and directories, by the fh that we chose (rsb_link_new_ids()), which the kernel and
 * the sidecar both use. An open that was answered before the sidecar confirmed it is "opening":
 * its error stays in broken and is that of all later operations.
 *
 * Writes are acknowledged to the kernel when they are in the buffer or on their way; the first
 * error of what was sent stays in error until write, fsync or flush takes it: once.
 *
 * All under the lock of fuse/fs.h.
 */

#include "fuse/dirsnap.h"
#include "fuse/inode.h"
#include "fuse/wbuf.h"

struct rsb_ahead;
struct rsb_fop;
struct rsb_guard_view;
struct rsb_handles;
struct rsb_ledger;

struct rsb_handle {
	uint64_t fh;             /* const */
	struct rsb_inode *inode; /* const; referenced */
	int flags;               /* const; of open(2) */
	size_t n_ref;            /* the kernel's, and one for each call under way */
	uint64_t epoch;          /* const; of the sidecar that has it */
	struct rsb_list of_inode;

	struct rsb_shared_handle *shared; /* const; what the next process is to know of it */
	struct rsb_wbuf wbuf;
	uint64_t put;    /* bytes of writes taken in all: sent, or in wbuf */
	uint64_t n_sent; /* writes sent, and of these answered; in the same order */
	uint64_t n_done;
	int error;              /* of a write that was not told yet: negative errno */
	bool error_shown;       /* to a write: rsb_handle_show_error() */
	int broken;             /* of the open: nothing can be done with it */
	bool closed;            /* the kernel has released it */
	bool unconfirmed;       /* the kernel was answered before the sidecar opened it */
	struct rsb_list drains; /* of struct rsb_fop.wait: wait for n_done */
	bool posix_locks;       /* an owner may hold some */
	bool flocks;
	bool has_flock;     /* of fuse/lockset.h, as the next two */
	bool locks_unknown; /* it may hold some */
	size_t n_range;     /* of the node's that it holds */
	bool kill_suidgid;  /* with the next write */

	struct rsb_guard_view *view; /* of fuse/guard.h: what is read; NULL: the file */
	struct rsb_ahead *ahead;     /* NULL until it is read */
	struct rsb_dirsnap *snap;    /* directory: its listing; NULL until the first read */
	uint64_t snap_fh;            /* under which the sidecar lists it; 0: not now */
	uint64_t snap_since;         /* the clock of fuse/fs.h when the listing began */
	bool snap_used;              /* it was read beyond its start: rewinding takes a new one */
	struct rsb_list readers;     /* of struct rsb_fop.wait: wait for more of snap */
};

/* Borrows ledger. */
rsb_nodiscard int rsb_handles_new(struct rsb_ledger *ledger, struct rsb_handles **ret_handles);
/* Handles left are freed with it. */
void rsb_handles_free(struct rsb_handles *handles);
RSB_DEFINE_CLEANUP(struct rsb_handles *, rsb_handles_free)

/* Those that the process of before had open; what of them was not sent is in their wbufs again. */
rsb_nodiscard int rsb_handles_restore(
	struct rsb_handles *handles, struct rsb_inodes *inodes, struct rsb_dirsnaps *listings);
/* When their writes hold them again: the kernel's reference goes, of those that it had closed. */
void rsb_handles_drop_closed(struct rsb_handles *handles);
/* After the recovery: what the kernel was never told of, and whose request is gone, goes. */
void rsb_handles_sweep(struct rsb_handles *handles);
/*
 * References inode; the caller gets the kernel's reference. One that is there already is that of
 * the same request, begun by a process that died. -ENFILE over RSB_FHS_MAX, -ENOMEM.
 */
rsb_nodiscard int rsb_handle_open(struct rsb_handles *handles, struct rsb_inode *inode, uint64_t fh,
	int flags, struct rsb_handle **ret_handle);
/* NULL: none such. Borrowed. */
struct rsb_handle *rsb_handle_get(const struct rsb_handles *handles, uint64_t fh);
struct rsb_handle *rsb_handle_ref(struct rsb_handle *handle);
void rsb_handle_unref(struct rsb_handles *handles, struct rsb_handle *handle);
size_t rsb_handles_count(const struct rsb_handles *handles);
struct rsb_handle *rsb_handle_next(const struct rsb_handles *handles, size_t *cursor);

/* The untold error, which is told by this: 0 or negative errno. */
int rsb_handle_take_error(struct rsb_handle *handle);
/*
 * The same for a request of a write(2), which may be one of several: the caller sees then only that
 * fewer bytes were written. So it is told by the second time.
 */
int rsb_handle_show_error(struct rsb_handle *handle);
bool rsb_handle_writes(const struct rsb_handle *handle);
/*
 * An open file names the node even when it has no name any more. 0: none is open. Directories
 * are not opened over there before they are listed.
 */
uint64_t rsb_handle_any_fh(const struct rsb_inode *inode);
/* What is set here survives. */
void rsb_handle_set_error(struct rsb_handle *handle, int error);
void rsb_handle_set_broken(struct rsb_handle *handle, int broken);
void rsb_handle_set_closed(struct rsb_handle *handle);
void rsb_handle_set_locks(struct rsb_handle *handle, bool posix_locks, bool flocks);
void rsb_handle_set_kill(struct rsb_handle *handle, bool kill_suidgid);
/*
 * The kernel is about to be told of it. Before that: who is killed in a write(2) does not come to
 * do anything after it.
 */
void rsb_handle_set_told(struct rsb_handle *handle);

#endif
