/* SPDX-License-Identifier: MIT */
#include "fuse/fop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>

#include "fuse/hold.h"
#include "fuse/ledger.h"
#include "fuse/reply.h"
#include "fuse/send.h"
#include "util/fd.h"

#define STATUS_MAX 16384u /* of /proc/TID/status */

struct rsb_fs *
rsb_fop_fs(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* -ESRCH: of nobody that we can see. */
static int
read_status(pid_t tid, char **ret_text)
{
	char path[64];

	if (tid <= 0)
		return -ESRCH;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	return rsb_fd_read_file(AT_FDCWD, path, STATUS_MAX, ret_text);
}

/*
 * FUSE_INTERRUPT does not say by which signal. One that kills puts SIGKILL into the pending set
 * of every thread of the process; one that has a handler does not, and a call that it ended with
 * EINTR would break programs that never saw that from a disk.
 */
static bool
is_dying(pid_t tid)
{
	rsb_autofree char *text = NULL;
	const char *line;
	unsigned long long pending;

	if (read_status(tid, &text) < 0)
		return true;
	line = strstr(text, "\nSigPnd:");
	if (!line || sscanf(line, "\nSigPnd: %llx", &pending) != 1)
		return false;
	return pending & 1ULL << 8;
}

/* Answers early; what is under way ends by itself. */
static void
end_if_dying(struct rsb_fop *fop)
{
	fuse_req_t req = fop->req;

	if (!req || !is_dying(fuse_req_ctx(req)->pid))
		return;
	fop->req = NULL;
	rsb_reply_req_err(req, -EINTR);
}

/*
 * Only who waits for others may get EINTR, as from a local file system; over a link that is not
 * live nobody can tell.
 */
static void
cancel_lock(struct rsb_fop *fop)
{
	if (!fop->lock_wait || !fop->serial || fop->cancelled || !rsb_hold_is_calm(fop->fs))
		return;
	fop->cancelled = true;
	rsb_send_cancel(fop->fs->send, fop->serial);
}

static void
on_interrupt(fuse_req_t req, void *arg)
{
	struct rsb_fop *fop = arg;

	(void)req;
	fop->interrupted = true;
	fop->flight->interrupted = 1;
	fop->fs->watch = true;
	cancel_lock(fop);
	end_if_dying(fop);
}

void
rsb_fop_check_interrupted(struct rsb_fs *fs)
{
	struct rsb_list *pos;

	fs->watch = false;
	rsb_list_for_each (pos, &fs->fops) {
		struct rsb_fop *fop = rsb_list_entry(pos, struct rsb_fop, all);

		if (!fop->interrupted)
			continue;
		cancel_lock(fop);
		end_if_dying(fop);
		fs->watch |= fop->req != NULL;
	}
}

/*
 * A process that ends has let go of its memory before its files, and one that executes a program
 * has not. /proc/TID/stat would say it, but not while the process waits for us in execve(2): on
 * Linux 6.18 reading it waits for that.
 */
bool
rsb_fop_caller_exits(fuse_req_t req)
{
	rsb_autofree char *text = NULL;

	return read_status(fuse_req_ctx(req)->pid, &text) >= 0 && !strstr(text, "\nVmSize:");
}

pid_t
rsb_fop_pid(const struct rsb_fop *fop)
{
	return fop->req ? fuse_req_ctx(fop->req)->pid : 0;
}

bool
rsb_fop_is_old(const struct rsb_fs *fs)
{
	return fs->hand != &fs->shared->hand;
}

bool
rsb_fop_was_answered(const struct rsb_fop *fop)
{
	return fop->flight->said_before == RSB_SHARED_SAID_OK;
}

uint64_t
rsb_fop_new_id(struct rsb_fs *fs)
{
	struct rsb_shared_flight *hand = fs->hand;
	uint64_t id;

	if (fs->n_hand_id < hand->n_id)
		return hand->ids[fs->n_hand_id++];
	id = rsb_link_new_ids(fs->link, 1);
	if (hand->n_id < RSB_ARRAY_SIZE(hand->ids)) {
		hand->ids[hand->n_id] = id;
		rsb_shared_publish(&hand->n_id, hand->n_id + 1);
		fs->n_hand_id++;
	}
	return id;
}

/* Of a write only what comes before its data, which is in the buffers by then. */
static struct rsb_bytes
raw_request(const struct rsb_shared *shared)
{
	struct fuse_in_header head;

	memcpy(&head, shared->request, sizeof(head));
	if (head.opcode == FUSE_WRITE)
		head.len = sizeof(head) + sizeof(struct fuse_write_in);
	return (struct rsb_bytes){
		.data = shared->request,
		.size = rsb_min((size_t)head.len, sizeof(shared->request)),
	};
}

/* The request at hand goes on by itself. */
static int
enter(struct rsb_fs *fs, struct rsb_fop *fop)
{
	int r;

	if (!rsb_fop_is_old(fs)) {
		r = rsb_ledger_flight(fs->ledger, fs->hand, raw_request(fs->shared), &fs->hand);
		if (r < 0)
			return r;
	}
	fop->flight = fs->hand;
	return 0;
}

struct rsb_fop *
rsb_fop_new(fuse_req_t req)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_fop *fop = rsb_new(struct rsb_fop);

	if (!fop || enter(fs, fop) < 0) {
		free(fop);
		rsb_reply_req_err(req, -ENOMEM);
		return NULL;
	}
	fop->fs = fs;
	fop->req = req;
	rsb_list_init(&fop->wait);
	rsb_list_append(&fs->fops, &fop->all);
	/*
	 * libfuse calls the handler at once when the signal came first, under a lock that an
	 * answer destroys; such a request waits for rsb_fop_check_interrupted() instead.
	 */
	if (fuse_req_interrupted(req) || fop->flight->interrupted)
		fs->watch = fop->interrupted = true;
	else
		fuse_req_interrupt_func(req, on_interrupt, fop);
	return fop;
}

void
rsb_fop_free(struct rsb_fop *fop)
{
	struct rsb_fs *fs = fop->fs;

	if (fop->mutating)
		rsb_fop_changed(fop, NULL, NULL);
	rsb_list_remove(&fop->all);
	rsb_list_remove(&fop->wait);
	if (fop->handle)
		rsb_handle_unref(fs->handles, fop->handle);
	rsb_inode_unref(fop->inode);
	rsb_inode_unref(fop->other);
	rsb_ledger_end_flight(fs->ledger, fop->flight);
	free(fop->data);
	free(fop);
}

struct rsb_inode *
rsb_fop_inode(fuse_req_t req, fuse_ino_t nodeid)
{
	struct rsb_inode *inode = rsb_inode_by_nodeid(rsb_fop_fs(req)->inodes, nodeid);

	if (inode && rsb_inode_check(inode) == 0)
		return inode;
	rsb_reply_req_err(req, -ESTALE);
	return NULL;
}

static void
on_reply(void *arg, int r, const void *rep)
{
	struct rsb_fop *fop = arg;

	fop->serial = 0;
	if (r == -ENOTCONN && fop->mutating)
		rsb_hold_unknown(fop);
	/* Of a session that is lost; with ESTALE the kernel asks the next one, by name. */
	else if (r == -ENOTCONN && !fop->handle && !(rsb_ops[fop->op].flags & RSB_OP_WRITES) &&
		 rsb_link_state(fop->fs->link) != RSB_LINK_FAILED)
		r = -ESTALE;
	/* Why it is not open over there says more. */
	if (r == -EBADF && fop->handle && fop->handle->broken)
		r = fop->handle->broken;
	fop->fn(fop, r, rep);
}

void
rsb_fop_call(struct rsb_fop *fop, uint32_t op, const void *req, rsb_fop_fn fn)
{
	int r;

	fop->since = fop->fs->seq;
	fop->op = op;
	fop->fn = fn;
	r = rsb_send_call_of(fop, op, req, on_reply, &fop->serial);
	if (r < 0)
		fn(fop, r, NULL);
}

void
rsb_fop_mutate(struct rsb_fop *fop, uint32_t op, const void *req, rsb_fop_fn fn)
{
	(void)rsb_fs_change_begin(fop->fs, fop->inode);
	if (fop->other)
		(void)rsb_fs_change_begin(fop->fs, fop->other);
	/* Both are to count as last changed by this: learn() compares with since. */
	fop->inode->changed = fop->fs->seq;
	fop->mutating = true;
	rsb_fop_call(fop, op, req, fn);
}

void
rsb_fop_changed(struct rsb_fop *fop, const struct rsb_attr *inode, const struct rsb_attr *other)
{
	if (!fop->mutating)
		return;
	fop->mutating = false;
	rsb_fs_change_end(fop->fs, fop->inode, inode, fop->since);
	if (fop->other)
		rsb_fs_change_end(fop->fs, fop->other, other, fop->since);
}

void
rsb_fop_fail_all(struct rsb_fs *fs, int r)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &fs->fops) {
		struct rsb_fop *fop = rsb_list_entry(pos, struct rsb_fop, all);
		fuse_req_t req = fop->req;

		fop->req = NULL;
		if (req)
			rsb_reply_req_err(req, r);
	}
}
