/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "proc"
#include "sidecar/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/errmap.h"
#include "sidecar/reaper-cgroup.h"
#include "sidecar/reaper-super.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Fewer wake-ups under bulk output; the limits of pipe(7) may refuse it. */
#define PIPE_SIZE (1 << 20)
#define ID_MAX (UINT64_MAX / 8)

struct rsb_procs {
	struct rsb_sess *sess; /* {const after new} */
	struct rsb_map map;
	void (*gone)(void *arg);
	void *gone_arg;
};

int
rsb_procs_new(struct rsb_sess *sess, struct rsb_procs **ret_procs)
{
	struct rsb_procs *procs = rsb_new(struct rsb_procs);

	if (!procs)
		return -ENOMEM;
	procs->sess = sess;
	rsb_map_init(&procs->map, RSB_PROCS_MAX);
	*ret_procs = procs;
	return 0;
}

void
rsb_procs_free(struct rsb_procs *procs)
{
	if (!procs)
		return;
	rsb_map_done(&procs->map);
	free(procs);
}

struct rsb_proc *
rsb_proc_find(struct rsb_procs *procs, uint64_t id)
{
	struct rsb_proc *proc = rsb_map_get(&procs->map, id);

	return proc && !proc->freed ? proc : NULL;
}

/* ---- answers ---- */

static void
answer_wait(struct rsb_proc *proc, struct rsb_request *rq)
{
	const struct rsb_wait_rep rep = {
		.exited = proc->exit.exited,
		.code = (uint64_t)proc->exit.code,
		.signal = (uint64_t)proc->exit.signal,
		.core = proc->exit.core,
		.out_size = proc->out.size,
		.err_size = proc->err.size,
		.tree_empty = proc->empty,
	};

	rsb_request_reply(rq, proc->exit.unknown ? -EIO : 0, &rep);
}

static bool
is_due(const struct rsb_proc *proc, const struct rsb_request *rq)
{
	const struct rsb_wait_req *req = (const void *)rq->req;

	if (rq->op == RSB_OP_kill)
		return proc->empty;
	if (req->what == RSB_WAIT_LEADER)
		return proc->reported;
	return proc->reported && proc->empty && rsb_outflow_reached(&proc->out) &&
	       rsb_outflow_reached(&proc->err);
}

void
rsb_proc_check(struct rsb_proc *proc)
{
	const struct rsb_kill_rep killed = { .rung = proc->rung };
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &proc->waiters) {
		struct rsb_request *rq = rsb_list_entry(pos, struct rsb_request, link);

		if (!is_due(proc, rq))
			continue;
		rsb_list_remove(&rq->link);
		/*
		 * Who went without being seen may have left others, and that they are dead is not
		 * known.
		 */
		if (rq->op == RSB_OP_kill)
			rsb_request_reply(rq, proc->exit.unknown ? -EIO : 0, &killed);
		else
			answer_wait(proc, rq);
	}
}

static void
answer_kills(struct rsb_proc *proc, uint64_t n)
{
	const struct rsb_kill_rep rep = { .rung = proc->rung, .unkillable = n };
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &proc->waiters) {
		struct rsb_request *rq = rsb_list_entry(pos, struct rsb_request, link);

		if (rq->op != RSB_OP_kill)
			continue;
		rsb_list_remove(&rq->link);
		rsb_request_reply(rq, 0, &rep);
	}
}

/* error: positive errno. */
static void
answer_spawn(struct rsb_proc *proc, pid_t pid, uint64_t stage, int error)
{
	const struct rsb_spawn_rep rep = {
		.pid = (uint64_t)pid,
		.stage = stage,
		.error = stage ? rsb_errmap_to_wire(-error) : 0,
	};
	struct rsb_request *rq = rsb_steal(&proc->spawn);

	if (rq)
		rsb_request_reply(rq, 0, &rep);
}

/* ---- life ---- */

void
rsb_proc_drop(struct rsb_proc *proc)
{
	struct rsb_procs *procs = proc->procs;
	struct rsb_list *pos, *tmp;

	(void)rsb_map_del(&procs->map, proc->id); /* it is this one */
	rsb_list_for_each_safe (pos, tmp, &proc->waiters) {
		struct rsb_request *rq = rsb_list_entry(pos, struct rsb_request, link);

		rsb_list_remove(&rq->link);
		rsb_request_reply(rq, -ESRCH, NULL);
	}
	rsb_timer_del(proc->timer);
	rsb_reaper_free(proc->reaper);
	rsb_inflow_close(&proc->in);
	rsb_outflow_close(&proc->out);
	rsb_outflow_close(&proc->err);
	free(proc);
	if (procs->gone && procs->map.n == 0)
		procs->gone(procs->gone_arg);
}

void
rsb_proc_forget(struct rsb_proc *proc)
{
	proc->freed = true;
	if (proc->empty || !proc->reaper) {
		rsb_proc_drop(proc);
		return;
	}
	rsb_inflow_close(&proc->in);
	rsb_outflow_mute(&proc->out);
	rsb_outflow_mute(&proc->err);
}

void
rsb_procs_end(struct rsb_procs *procs, void (*gone)(void *arg), void *arg)
{
	struct rsb_proc *proc;
	size_t cursor = 0;
	uint64_t id;

	while ((proc = rsb_map_next(&procs->map, &cursor, &id))) {
		bool alive = proc->reaper && !proc->empty;

		rsb_proc_forget(proc); /* drops it unless it is alive, which iteration allows */
		if (alive)
			rsb_reaper_kill(proc->reaper, 0);
	}
	procs->gone = gone;
	procs->gone_arg = arg;
	if (procs->map.n == 0)
		gone(arg);
}

static void
report(struct rsb_proc *proc)
{
	proc->reported = true;
	rsb_timer_set(proc->timer, 0);
	rsb_proc_check(proc);
}

static void
check_drain(struct rsb_proc *proc)
{
	uint64_t now_ns = rsb_loop_now(proc->procs->sess->loop);

	if (!proc->exited || proc->reported || !rsb_outflow_reached(&proc->out) ||
		!rsb_outflow_reached(&proc->err))
		return;
	if (rsb_outflow_ended(&proc->out) && rsb_outflow_ended(&proc->err)) {
		report(proc);
		return;
	}
	if (!proc->drain_end_ns)
		proc->drain_end_ns = now_ns + RSB_PROC_DRAIN_MAX_NS;
	rsb_timer_set(proc->timer, rsb_min(now_ns + RSB_PROC_DRAIN_NS, proc->drain_end_ns));
}

static void
on_timer(void *arg)
{
	report(arg);
}

static void
on_moved(void *arg)
{
	struct rsb_proc *proc = arg;

	check_drain(proc);
	if (proc->empty)
		rsb_proc_check(proc);
}

static void
on_started(void *arg, pid_t pid, const struct rsb_exec_failure *failure)
{
	struct rsb_proc *proc = arg;

	if (!failure) {
		answer_spawn(proc, pid, 0, 0);
		return;
	}
	answer_spawn(proc, 0, (uint64_t)failure->stage, failure->error);
	rsb_proc_drop(proc);
}

static void
mark(struct rsb_proc *proc)
{
	rsb_outflow_mark(&proc->out);
	rsb_outflow_mark(&proc->err);
}

static void
on_exited(void *arg, const struct rsb_exit *exit)
{
	struct rsb_proc *proc = arg;

	proc->exit = *exit;
	proc->exited = true;
	mark(proc);
	check_drain(proc);
}

static void
on_empty(void *arg)
{
	struct rsb_proc *proc = arg;

	proc->empty = true;
	if (proc->freed) {
		rsb_proc_drop(proc);
		return;
	}
	mark(proc);
	rsb_proc_check(proc);
}

static void
on_unkillable(void *arg, uint64_t n)
{
	struct rsb_proc *proc = arg;

	rsb_warn("%llu processes of command %llu cannot be killed", (unsigned long long)n,
		(unsigned long long)proc->id);
	answer_kills(proc, n);
	if (proc->procs->gone)
		rsb_proc_drop(proc);
}

static const struct rsb_reaper_events reaper_events = {
	.started = on_started,
	.exited = on_exited,
	.empty = on_empty,
	.unkillable = on_unkillable,
};

/* ---- start ---- */

static int
open_chans(struct rsb_proc *proc)
{
	struct rsb_sess *sess = proc->procs->sess;
	int r = 0;

	if (!(proc->flags & RSB_SPAWN_STDIN_NULL))
		r = rsb_inflow_open(
			&proc->in, sess, RSB_CHAN_STDIN(proc->id), RSB_STREAM_IN_WINDOW_MAX);
	if (r == 0)
		r = rsb_outflow_open(&proc->out, sess, RSB_CHAN_STDOUT(proc->id), on_moved, proc);
	if (r == 0 && !(proc->flags & RSB_SPAWN_MERGE_STDERR))
		r = rsb_outflow_open(&proc->err, sess, RSB_CHAN_STDERR(proc->id), on_moved, proc);
	rsb_sess_kick(sess); /* the credit of stdin is news */
	return r;
}

int
rsb_proc_new(struct rsb_procs *procs, const struct rsb_spawn_req *req, struct rsb_proc **ret_proc)
{
	struct rsb_proc *proc;
	int r;

	if (req->proc == 0 || req->proc > ID_MAX ||
		req->flags & ~(uint64_t)(RSB_SPAWN_STDIN_NULL | RSB_SPAWN_MERGE_STDERR))
		return -EINVAL;
	if (procs->gone)
		return -ESHUTDOWN;
	if (rsb_map_get(&procs->map, req->proc))
		return -EEXIST;
	proc = rsb_new(struct rsb_proc);
	if (!proc)
		return -ENOMEM;
	proc->procs = procs;
	proc->id = req->proc;
	proc->flags = req->flags;
	proc->in.fd = -1;
	proc->out.fd = -1;
	proc->err.fd = -1;
	rsb_list_init(&proc->waiters);
	r = rsb_map_put(&procs->map, proc->id, proc);
	if (r < 0) {
		free(proc);
		return r == -ENOSPC ? -ENFILE : r;
	}
	r = rsb_timer_new(procs->sess->loop, on_timer, proc, &proc->timer);
	if (r == 0)
		r = open_chans(proc);
	if (r < 0)
		rsb_proc_drop(proc);
	else
		*ret_proc = proc;
	return r;
}

/* ours: 0 when we read, 1 when we write. Our end does not block, the command's does. */
static int
make_pipe(int ours, int *ret_ours, int *ret_theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE);
	*ret_ours = fds[ours];
	*ret_theirs = fds[!ours];
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* fds: our ends. The command's go into exec. */
static int
make_stdio(const struct rsb_proc *proc, struct rsb_exec *exec, int fds[3])
{
	int r = 0;

	if (proc->flags & RSB_SPAWN_STDIN_NULL)
		exec->stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else
		r = make_pipe(1, &fds[0], &exec->stdio[0]);
	if (r == 0)
		r = make_pipe(0, &fds[1], &exec->stdio[1]);
	if (r < 0)
		return r;
	if (proc->flags & RSB_SPAWN_MERGE_STDERR)
		exec->stdio[2] = fcntl(exec->stdio[1], F_DUPFD_CLOEXEC, 0);
	else
		r = make_pipe(0, &fds[2], &exec->stdio[2]);
	if (r == 0 && (exec->stdio[0] < 0 || exec->stdio[2] < 0))
		r = -errno;
	return r;
}

static int
fork_command(struct rsb_proc *proc, const struct rsb_exec *exec)
{
	struct rsb_loop *loop = proc->procs->sess->loop;
	int r;

	if (exec->config->cgroups) {
		proc->rung = 1;
		r = rsb_reaper_cgroup_new(loop, exec, &reaper_events, proc, &proc->reaper);
		if (r == 0)
			return 0;
		(void)rsb_warn_r(r, "no cgroup for a command, it gets a supervisor");
	}
	proc->rung = 2;
	return rsb_reaper_super_new(loop, exec, &reaper_events, proc, &proc->reaper);
}

static int
begin(struct rsb_proc *proc, const struct rsb_spawn_req *req)
{
	RSB_CLEANUP(rsb_exec_freep) struct rsb_exec *exec = NULL;
	rsb_autoclose int in = -1;
	rsb_autoclose int out = -1;
	rsb_autoclose int err = -1;
	int fds[3] = { -1, -1, -1 };
	int r;

	r = rsb_exec_new(proc->procs->sess->config, req, &exec);
	if (r < 0)
		return r;
	r = make_stdio(proc, exec, fds);
	in = fds[0];
	out = fds[1];
	err = fds[2];
	if (r == 0)
		r = fork_command(proc, exec);
	if (r < 0)
		return r;
	if (in >= 0)
		r = rsb_inflow_start(&proc->in, rsb_steal_fd(&in));
	if (r == 0)
		r = rsb_outflow_start(&proc->out, rsb_steal_fd(&out));
	if (r == 0 && err >= 0)
		r = rsb_outflow_start(&proc->err, rsb_steal_fd(&err));
	return r;
}

void
rsb_proc_start(struct rsb_proc *proc, const struct rsb_spawn_req *req)
{
	int r = begin(proc, req);

	if (r == 0)
		return;
	answer_spawn(proc, 0, RSB_SPAWN_STAGE_SETUP, -r);
	rsb_proc_drop(proc);
}
