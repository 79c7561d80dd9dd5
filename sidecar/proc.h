/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROC_H
#define RSB_PROC_H

/*
 * The commands of a session: each with its streams, the reaper that watches its processes, and the
 * requests that wait for its end. On the io thread.
 *
 * An end is reported only after everything that the leader wrote was read: what was in the pipes
 * when it ended, and then, if others still hold them, what comes within RSB_PROC_DRAIN_NS of the
 * last bytes, at most RSB_PROC_DRAIN_MAX_NS. What stays behind goes on running, and its output goes
 * on flowing, until the host frees the command; then it is read and thrown away, so that nobody
 * gets SIGPIPE for outliving its leader.
 */

#include "sidecar/proc-stream.h"
#include "sidecar/reaper.h"
#include "sidecar/request.h"

#define RSB_PROC_DRAIN_NS (250 * RSB_NSEC_PER_MSEC)
#define RSB_PROC_DRAIN_MAX_NS (2 * RSB_NSEC_PER_SEC)

struct rsb_proc {
	struct rsb_procs *procs;
	uint64_t id;
	uint64_t flags; /* RSB_SPAWN_* */
	struct rsb_inflow in;
	struct rsb_outflow out;
	struct rsb_outflow err;
	struct rsb_reaper *reaper; /* NULL: not forked yet */
	uint64_t rung;             /* of the reaper, as in welcome */
	struct rsb_request *spawn; /* NULL: answered */
	struct rsb_list waiters;   /* wait and kill requests */
	struct rsb_exit exit;
	bool exited;
	bool reported; /* and all that the leader wrote was read */
	bool empty;
	bool freed; /* the host does not know it any more */
	struct rsb_timer *timer;
	uint64_t drain_end_ns; /* 0: the drain has not begun */
};

rsb_nodiscard int rsb_procs_new(struct rsb_sess *sess, struct rsb_procs **ret_procs);
/* After rsb_procs_end() said so. NULL is fine. */
void rsb_procs_free(struct rsb_procs *procs);
/*
 * Kills all; gone(arg) comes when nothing is left or can be killed, maybe before this returns. Call
 * once.
 */
void rsb_procs_end(struct rsb_procs *procs, void (*gone)(void *arg), void *arg);

/* NULL: none, or freed. */
struct rsb_proc *rsb_proc_find(struct rsb_procs *procs, uint64_t id);
/*
 * Makes it, with its channels open. -EEXIST, -EINVAL, -ENFILE (RSB_PROCS_MAX), -ENOMEM,
 * rsb_chan_open_*().
 */
rsb_nodiscard int rsb_proc_new(
	struct rsb_procs *procs, const struct rsb_spawn_req *req, struct rsb_proc **ret_proc);
/* Forks. proc->spawn is answered when it is known how that went, at once on an error. */
void rsb_proc_start(struct rsb_proc *proc, const struct rsb_spawn_req *req);
/* All that waited for it is told ESRCH. Processes that are left are killed. */
void rsb_proc_drop(struct rsb_proc *proc);
/* The host does not want it any more; it goes when its tree is empty. May free proc. */
void rsb_proc_forget(struct rsb_proc *proc);
/* Answers those waiters that can be answered. */
void rsb_proc_check(struct rsb_proc *proc);

#endif
