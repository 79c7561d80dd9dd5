/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>

#include "sidecar/proc.h"
#include "sidecar/request.h"
#include "sidecar/serve.h"
#include "sidecar/sess.h"

/* Longer is as good as never. */
#define GRACE_MAX_MS UINT64_C(3600000)

/* ---- spawn ---- */

static void
cancel_spawn(struct rsb_request *rq)
{
	struct rsb_proc *proc = rq->priv;

	proc->spawn = NULL;
	if (proc->reaper)
		rsb_reaper_kill(proc->reaper, 0);
	rsb_proc_forget(proc);
	rsb_request_reply(rq, -EINTR, NULL);
}

static void
go_spawn(struct rsb_request *rq)
{
	rsb_proc_start(rq->priv, (const void *)rq->req);
}

void
rsb_serve_spawn(struct rsb_request *rq, const struct rsb_spawn_req *req)
{
	struct rsb_proc *proc;
	int r;

	r = rsb_proc_new(rq->sess->procs, req, &proc);
	if (r < 0) {
		rsb_request_reply(rq, r, NULL);
		return;
	}
	proc->spawn = rq;
	rq->priv = proc;
	r = rsb_request_waits(rq, cancel_spawn);
	if (r < 0) {
		cancel_spawn(rq);
		return;
	}
	rsb_request_after(rq, go_spawn);
}

/* ---- wait and kill ---- */

static void
cancel_waiter(struct rsb_request *rq)
{
	rsb_list_remove(&rq->link);
	rsb_request_reply(rq, -EINTR, NULL);
}

static void
add_waiter(struct rsb_proc *proc, struct rsb_request *rq)
{
	int r = rsb_request_waits(rq, cancel_waiter);

	if (r < 0) {
		rsb_request_reply(rq, r, NULL);
		return;
	}
	rsb_list_append(&proc->waiters, &rq->link);
	rsb_proc_check(proc);
}

void
rsb_serve_wait(struct rsb_request *rq, const struct rsb_wait_req *req)
{
	struct rsb_proc *proc = rsb_proc_find(rq->sess->procs, req->proc);

	if (!proc)
		rsb_request_reply(rq, -ESRCH, NULL);
	else if (req->what != RSB_WAIT_LEADER && req->what != RSB_WAIT_TREE)
		rsb_request_reply(rq, -EINVAL, NULL);
	else
		add_waiter(proc, rq);
}

void
rsb_serve_kill(struct rsb_request *rq, const struct rsb_kill_req *req)
{
	uint64_t grace_ms = rsb_min(req->grace_ms, GRACE_MAX_MS);
	struct rsb_proc *proc = rsb_proc_find(rq->sess->procs, req->proc);
	const struct rsb_kill_rep none = { .rung = 0 };

	if (!proc) {
		rsb_request_reply(rq, -ESRCH, NULL);
		return;
	}
	if (!proc->reaper) {
		/* It still waits for a mutation, and now it never starts. */
		rsb_request_cancel(proc->spawn);
		rsb_request_reply(rq, 0, &none);
		return;
	}
	if (!proc->empty)
		rsb_reaper_kill(proc->reaper, grace_ms * RSB_NSEC_PER_MSEC);
	add_waiter(proc, rq);
}

/* ---- the others ---- */

void
rsb_serve_signal(struct rsb_request *rq, const struct rsb_signal_req *req)
{
	struct rsb_proc *proc = rsb_proc_find(rq->sess->procs, req->proc);
	int r;

	if (req->signal == 0 || req->signal > (uint64_t)SIGRTMAX || req->to > RSB_SIGNAL_TREE)
		r = -EINVAL;
	else if (!proc || !proc->reaper || proc->empty)
		r = -ESRCH;
	else
		r = rsb_reaper_signal(proc->reaper, (int)req->signal, req->to);
	rsb_request_reply(rq, r, NULL);
}

void
rsb_serve_proc_free(struct rsb_request *rq, const struct rsb_proc_req *req)
{
	struct rsb_proc *proc = rsb_proc_find(rq->sess->procs, req->proc);
	int r = 0;

	if (!proc)
		r = -ESRCH;
	else if (!proc->exited)
		r = -EBUSY;
	else
		rsb_proc_forget(proc);
	rsb_request_reply(rq, r, NULL);
}

void
rsb_serve_cancel(struct rsb_request *rq, const struct rsb_cancel_req *req)
{
	struct rsb_request *target = rsb_map_get(&rq->sess->calls, req->call);

	/* Gone already, or one that runs and cannot be stopped: its reply tells. */
	if (target && target != rq)
		rsb_request_cancel(target);
	rsb_request_reply(rq, 0, NULL);
}
