/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "revive"

#include "fuse/revive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuse/adopt.h"
#include "fuse/hold.h"
#include "fuse/limbo.h"
#include "fuse/lockset.h"
#include "fuse/ops.h"
#include "fuse/send.h"
#include "util/log.h"

#define REOPENS_MAX 256u /* under way at a time */

enum stage { IDLE, ADOPT, BEGUN, REOPEN, REST, SKIP, OTHERS };

struct rsb_revive {
	struct rsb_fs *fs;
	enum stage stage;
	uint64_t round; /* answers to what an earlier one asked count for nothing */
	uint64_t fifo;
	struct rsb_adopt *adopt;
	uint64_t *fhs; /* to be opened again */
	size_t n_fh;
	size_t at_fh;
	size_t n_call; /* under way */
	bool in_step;
	size_t n_opened;
	size_t n_lost;
	bool ended; /* there is something to say */
	size_t n_node;
};

struct question {
	struct rsb_revive *revive;
	uint64_t round;
	struct rsb_handle *handle; /* referenced */
};

int
rsb_revive_new(struct rsb_fs *fs, struct rsb_revive **ret_revive)
{
	struct rsb_revive *revive = rsb_new(struct rsb_revive);

	if (!revive)
		return -ENOMEM;
	revive->fs = fs;
	*ret_revive = revive;
	return 0;
}

static void
reset(struct rsb_revive *revive)
{
	revive->stage = IDLE;
	revive->round++;
	rsb_adopt_free(rsb_steal(&revive->adopt));
	free(rsb_steal(&revive->fhs));
	revive->n_fh = revive->at_fh = revive->n_call = 0;
}

void
rsb_revive_free(struct rsb_revive *revive)
{
	if (!revive)
		return;
	reset(revive);
	free(revive);
}

void
rsb_revive_abort(struct rsb_revive *revive)
{
	reset(revive);
}

/* ---- open files ---- */

static bool
is_wanted(const struct rsb_handle *handle)
{
	/* An open that was not answered is made again by itself; directories need none. */
	return S_ISREG(handle->inode->attr.mode) && !handle->broken && !handle->unconfirmed &&
	       !handle->shared->opening;
}

static int
find_files(struct rsb_revive *revive)
{
	struct rsb_handles *handles = revive->fs->handles;
	struct rsb_handle *handle;
	size_t cursor = 0;

	revive->fhs = rsb_new_array(uint64_t, rsb_handles_count(handles) + 1);
	if (!revive->fhs)
		return -ENOMEM;
	while ((handle = rsb_handle_next(handles, &cursor))) {
		if (is_wanted(handle))
			revive->fhs[revive->n_fh++] = handle->fh;
	}
	return 0;
}

static void
lose(struct rsb_revive *revive, struct rsb_handle *handle, int r)
{
	struct rsb_fs *fs = revive->fs;

	revive->n_lost++;
	rsb_fs_lose_handle(fs, handle, -ESTALE);
	rsb_hold_note_lost(fs, handle->inode, "is open, and cannot be opened again in the sandbox");
	rsb_dbg_r(r, "a file cannot be opened again");
}

static void
on_reopened(void *arg, int r, const void *rep)
{
	struct question *question = arg;
	struct rsb_revive *revive = question->revive;
	struct rsb_handle *handle = question->handle;
	struct rsb_fs *fs = revive->fs;

	(void)rep;
	if (question->round == revive->round && !rsb_revive_is_over(r)) {
		revive->n_call--;
		if (r >= 0)
			revive->n_opened++;
		else if (!handle->closed)
			lose(revive, handle, r);
		rsb_revive_step(revive);
	}
	rsb_handle_unref(fs->handles, handle);
	free(question);
}

static int
reopen(struct rsb_revive *revive, struct rsb_handle *handle)
{
	struct question *question = rsb_new(struct question);
	const struct rsb_open_req msg = {
		.node = handle->inode->wire,
		.fh = handle->fh,
		.flags = (uint64_t)(handle->flags & (O_ACCMODE | O_SYNC | O_DSYNC)) |
			 RSB_OPEN_KEEP_SUIDGID,
	};
	int r;

	if (!question)
		return -ENOMEM;
	*question = (struct question){
		.revive = revive,
		.round = revive->round,
		.handle = rsb_handle_ref(handle),
	};
	r = rsb_send_first(revive->fs->send, RSB_OP_reopen, &msg, on_reopened, question);
	if (r < 0) {
		rsb_handle_unref(revive->fs->handles, handle);
		free(question);
		return r;
	}
	revive->n_call++;
	return 0;
}

/* 1: all were opened, or were not; 0: there is more to come. */
static int
reopen_files(struct rsb_revive *revive)
{
	int r = 0;

	while (r >= 0 && revive->at_fh < revive->n_fh && revive->n_call < REOPENS_MAX) {
		uint64_t fh = revive->fhs[revive->at_fh];
		struct rsb_handle *handle = rsb_handle_get(revive->fs->handles, fh);

		if (handle && is_wanted(handle))
			r = reopen(revive, handle);
		if (r >= 0)
			revive->at_fh++;
	}
	if (r < 0 && r != -EAGAIN)
		return r;
	return revive->at_fh == revive->n_fh && revive->n_call == 0;
}

/* ---- the order of things ---- */

static void
ignore_reply(void *arg, int r, const void *rep)
{
	(void)arg;
	(void)r;
	(void)rep;
}

/*
 * What waits for mutations waits for all; so the count over there goes to where ours is, past those
 * that were given up here. As in fuse/resend.c.
 */
static int
skip(struct rsb_send *send)
{
	int r = rsb_send_first(send, RSB_OP_skip, NULL, ignore_reply, NULL);

	return r == -EAGAIN ? 0 : r < 0 ? r : 1;
}

/* Negative: without memory, or the link has ended. */
static int
do_stage(struct rsb_revive *revive)
{
	struct rsb_send *send = revive->fs->send;
	int r;

	switch (revive->stage) {
	case IDLE:
		return 0;
	case ADOPT:
		return rsb_adopt_step(revive->adopt);
	case BEGUN:
		r = rsb_limbo_mutations(send, revive->fifo);
		return r == 1 ? find_files(revive) < 0 ? -ENOMEM : 1 : r;
	case REOPEN:
		return reopen_files(revive);
	case REST:
		return rsb_limbo_mutations(send, UINT64_MAX);
	case SKIP:
		return skip(send);
	case OTHERS:
		return rsb_limbo_others(send);
	}
	return -EINVAL;
}

static void
finish(struct rsb_revive *revive)
{
	struct rsb_fs *fs = revive->fs;

	revive->n_node = rsb_adopt_count(revive->adopt);
	revive->ended = true;
	reset(revive);
	rsb_link_go_on(fs->link);
	rsb_send_retry(fs->send);
}

void
rsb_revive_step(struct rsb_revive *revive)
{
	int r = 1;

	/* What is called in here may end at once, and come by again. */
	if (revive->in_step)
		return;
	revive->in_step = true;
	while (revive->stage != IDLE && r == 1) {
		r = do_stage(revive);
		if (r != 1)
			break;
		if (revive->stage == OTHERS)
			finish(revive);
		else
			revive->stage++;
	}
	revive->in_step = false;
	if (r >= 0)
		return;
	/* The next connection begins with it once more: it is the same sidecar, so that is all. */
	rsb_dbg_r(r, "a session cannot go on anew now");
}

void
rsb_revive_lose_locks(struct rsb_fs *fs)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	fs->lock_round++;
	while ((handle = rsb_handle_next(fs->handles, &cursor))) {
		if (handle->broken || handle->closed || !rsb_lockset_holds(handle))
			continue;
		rsb_fs_lose_handle(fs, handle, -EIO);
		rsb_hold_note_lost(fs, handle->inode, "was locked, and the lock was lost");
	}
}

void
rsb_revive_begin(struct rsb_revive *revive, uint64_t fifo)
{
	struct rsb_fs *fs = revive->fs;
	int r;

	reset(revive);
	revive->n_opened = revive->n_lost = 0;
	revive->fifo = fifo;
	r = rsb_adopt_new(fs, &revive->adopt);
	rsb_revive_lose_locks(fs);
	op_dir_again(fs);
	rsb_limbo_end_unentered(fs->send);
	rsb_fs_drop_locked(fs);
	if (r >= 0)
		r = rsb_limbo_sort(fs->send);
	if (r < 0) {
		(void)rsb_err_r(r, "the sandbox cannot be told what is open");
		return;
	}
	revive->stage = ADOPT;
	rsb_revive_step(revive);
}

bool
rsb_revive_say(struct rsb_fs *fs, char *text, size_t size)
{
	struct rsb_revive *revive = fs->revive;
	bool any;

	rsb_mutex_lock(&fs->lock);
	any = revive->ended;
	revive->ended = false;
	if (any)
		(void)snprintf(text, size,
			"the sidecar was started again: %zu known file%s and %zu open one%s go on, "
			"%zu cannot",
			revive->n_node, revive->n_node == 1 ? "" : "s", revive->n_opened,
			revive->n_opened == 1 ? "" : "s", revive->n_lost);
	rsb_mutex_unlock(&fs->lock);
	return any;
}
