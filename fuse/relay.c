/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "relay"

#include "fuse/relay.h"

#include <errno.h>

#include "fuse/order.h"
#include "fuse/pipe.h"
#include "fuse/procreq.h"
#include "fuse/relayed.h"
#include "util/log.h"

static void on_back(struct rsb_task *task);

int
rsb_relay_new(struct rsb_control *control, struct rsb_relay **ret_relay)
{
	const struct rsb_control_config *config = rsb_control_config(control);
	struct rsb_relay *relay = rsb_new(struct rsb_relay);
	int r;

	if (!relay)
		return -ENOMEM;
	relay->control = control;
	relay->loop = config->loop;
	relay->fs = config->fs;
	relay->barrier = config->barrier;
	relay->grace_ms = config->grace_ns / RSB_NSEC_PER_MSEC;
	relay->last_ns = rsb_loop_now(config->loop);
	rsb_list_init(&relay->procs);
	rsb_list_init(&relay->orders);
	relay->back = on_back;
	r = rsb_pipes_new(config->loop, config->fs->link, &relay->pipes);
	if (r < 0) {
		free(relay);
		return r;
	}
	*ret_relay = relay;
	return 0;
}

void
rsb_relay_free(struct rsb_relay *relay)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (!relay)
		return;
	rsb_list_for_each_safe (pos, tmp, &relay->orders)
		rsb_order_free(rsb_list_entry(pos, struct rsb_order, all));
	rsb_list_for_each_safe (pos, tmp, &relay->procs)
		rsb_relayed_free(rsb_list_entry(pos, struct rsb_relayed, all));
	rsb_pipes_free(relay->pipes);
	free(relay);
}

/* One of our own about proc. */
static void
send_own(struct rsb_relayed *proc, uint32_t op, union rsb_procreq *req)
{
	struct rsb_order *order = rsb_order_new(proc, op, 0);

	/* Without memory the cache stays off for good, which is never wrong. */
	if (order)
		(void)rsb_order_send(order, req);
}

void
rsb_relayed_end(struct rsb_relayed *proc)
{
	union rsb_procreq kill = { .kill = { .grace_ms = proc->relay->grace_ms } };

	send_own(proc, RSB_OP_kill, &kill);
}

/* ---- replies, on the main thread ---- */

/*
 * What was asked about proc before it was asked for itself: it follows now, or is in vain. The
 * sidecar knows a command from the moment that it takes the spawn, and takes what is sent in this
 * order.
 */
static void
release(struct rsb_relayed *proc, int error)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &proc->relay->orders) {
		struct rsb_order *order = rsb_list_entry(pos, struct rsb_order, all);
		union rsb_procreq req;

		if (order->proc != proc || !order->held)
			continue;
		order->held = false;
		if (error >= 0)
			error = rsb_codec_decode(
				rsb_ops[order->op].req, rsb_buf_view(&order->req), &req);
		if (error >= 0) {
			(void)rsb_order_send(order, &req);
			continue;
		}
		order->error = error;
		rsb_order_answer(order);
		rsb_order_end(order);
	}
}

static void
on_shown(void *arg, bool late)
{
	struct rsb_order *order = arg;

	if (late)
		rsb_warn("the mount may not show yet all that the command changed");
	rsb_order_answer(order);
	if (order->op == RSB_OP_tar_in) {
		rsb_relayed_leave(order->proc);
		release(order->proc, -ESRCH);
	}
	rsb_order_end(order);
}

static void
on_spawned(struct rsb_order *order)
{
	struct rsb_relayed *proc = order->proc;

	proc->started = order->runs;
	rsb_order_answer(order);
	if (order->runs) {
		if (!proc->client || proc->ends)
			rsb_relayed_end(proc);
	} else {
		rsb_relayed_note_end(proc, order->error);
		rsb_relayed_leave(proc);
		proc->freed = true;
		release(proc, -ESRCH);
	}
	rsb_order_end(order);
}

/* Nothing of it lives any more; or nobody will ever say that. */
static void
on_tree_ended(struct rsb_order *order)
{
	union rsb_procreq tree = { .wait = { .what = RSB_WAIT_TREE } };
	struct rsb_relayed *proc = order->proc;

	/* Nobody knew: the link was given up. A new sidecar, if one comes, will not know it. */
	if (order->error == -ENOTCONN && proc->alive && !proc->relay->given_up) {
		send_own(proc, RSB_OP_wait, &tree);
	} else {
		rsb_relayed_note_end(proc, order->error);
		rsb_relayed_leave(proc);
	}
	rsb_order_end(order);
}

static void
on_back(struct rsb_task *task)
{
	struct rsb_order *order = rsb_container_of(task, struct rsb_order, task);
	struct rsb_barrier *barrier = order->proc->relay->barrier;

	if (order->op == RSB_OP_spawn) {
		on_spawned(order);
	} else if (order->op == RSB_OP_signal) {
		rsb_order_answer(order);
		rsb_order_end(order);
	} else if (order->op == RSB_OP_wait && !order->call) {
		on_tree_ended(order);
	} else if (rsb_barrier_show(barrier, on_shown, order) < 0) {
		on_shown(order, true);
	}
}

/* ---- requests ---- */

/* Its end is asked for together with the command, so that it is told without another trip. */
static void
send_spawn(struct rsb_order *order, union rsb_procreq *req)
{
	union rsb_procreq tree = { .wait = { .what = RSB_WAIT_TREE } };
	struct rsb_relayed *proc = order->proc;
	int r;

	r = rsb_order_send(order, req);
	/* The link takes a wait also when it takes no commands: it would outlast this one. */
	if (r < 0)
		return;
	proc->sent = true;
	if (order->op == RSB_OP_spawn)
		send_own(proc, RSB_OP_wait, &tree);
	release(proc, 0);
}

/* The barrier in front of a command is passed: it may start. */
static void
on_entered(void *arg, bool late)
{
	struct rsb_order *order = arg;
	struct rsb_relayed *proc = order->proc;
	union rsb_procreq req;

	if (late)
		rsb_warn("a command starts although the mount's last changes may be missing");
	/* Who wanted it went away meanwhile, or nobody would hear it: then it does not begin. */
	if (!proc->client || proc->cut || proc->ends ||
		rsb_codec_decode(rsb_ops[order->op].req, rsb_buf_view(&order->req), &req) < 0) {
		order->error = proc->cut ? -ERESTART : -ECANCELED;
		rsb_order_answer(order);
		rsb_relayed_leave(proc);
		proc->freed = true;
		release(proc, order->error);
		rsb_order_end(order);
		return;
	}
	send_spawn(order, &req);
}

static int
begin(struct rsb_relay *relay, struct rsb_guest *client, const struct rsb_call_head *head,
	union rsb_procreq *req)
{
	struct rsb_order *order;
	struct rsb_relayed *proc;
	int r;

	r = rsb_relayed_new(relay, client, *rsb_procreq_proc(req),
		rsb_pipe_streams(head->op == RSB_OP_spawn ? &req->spawn : NULL), &proc);
	if (r < 0)
		return r;
	if (head->op == RSB_OP_spawn)
		rsb_relayed_describe(proc, &req->spawn);
	order = rsb_order_new(proc, head->op, head->id);
	r = order ? rsb_buf_append(&order->req, head->body.data, head->body.size) : -ENOMEM;
	/* Before: with nobody to wait for, the barrier is passed at once. */
	proc->alive = true;
	if (r >= 0)
		r = rsb_barrier_enter(relay->barrier, on_entered, order);
	if (r >= 0)
		return 0;
	proc->alive = false;
	proc->freed = true;
	if (order)
		rsb_order_end(order);
	else
		rsb_relayed_collect(proc);
	return r;
}

static void
go_or_hold(struct rsb_order *order, const struct rsb_call_head *head, union rsb_procreq *req)
{
	if (order->proc->sent) {
		(void)rsb_order_send(order, req);
	} else if (rsb_buf_append(&order->req, head->body.data, head->body.size) >= 0) {
		order->held = true;
	} else {
		order->error = -ENOMEM;
		rsb_order_answer(order);
		rsb_order_end(order);
	}
}

void
rsb_relay_call(struct rsb_relay *relay, struct rsb_guest *client, const struct rsb_call_head *head)
{
	union rsb_procreq req;
	struct rsb_order *order;
	struct rsb_relayed *proc;
	int r;

	if (rsb_codec_decode(rsb_ops[head->op].req, head->body, &req) < 0) {
		rsb_guest_kick(client);
		return;
	}
	if (head->op == RSB_OP_spawn || head->op == RSB_OP_tar_in) {
		r = relay->closed ? relay->closed : begin(relay, client, head, &req);
		/* The credit for its input, which says that it is taken. */
		if (r >= 0)
			rsb_guest_pump(client);
		else
			rsb_guest_reply(client, head->op, head->id, r, NULL);
		return;
	}
	proc = rsb_relayed_find(client, *rsb_procreq_proc(&req));
	order = proc && head->op != RSB_OP_proc_free ? rsb_order_new(proc, head->op, head->id)
						     : NULL;
	if (order) {
		go_or_hold(order, head, &req);
		return;
	}
	r = !proc ? -ESRCH : (head->op == RSB_OP_proc_free ? 0 : -ENOMEM);
	rsb_guest_reply(client, head->op, head->id, r, NULL);
	if (r == 0) {
		/* What it left running goes on without the client. */
		rsb_relayed_part(proc);
		proc->shared->left = 1;
		rsb_pipe_free(rsb_steal(&proc->pipe));
		if (rsb_relayed_leaves_too_much(proc))
			rsb_relayed_end(proc);
		rsb_relayed_collect(proc);
	}
}

void
rsb_relay_drop_client(struct rsb_guest *client)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, rsb_guest_procs(client)) {
		struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, of_client);

		rsb_relayed_part(proc);
		if (proc->pipe)
			rsb_pipe_orphan(proc->pipe);
		if (proc->started && proc->alive)
			rsb_relayed_end(proc);
		rsb_relayed_collect(proc);
	}
}

/* ---- after a crash ---- */

/*
 * Its client was cut off, and has told that it is lost; it ends as it does when the client goes.
 * What a command had left behind goes on. One that never reached the sandbox is unknown there.
 */
static int
recover(struct rsb_relay *relay, struct rsb_shared_proc *shared)
{
	union rsb_procreq wait = { .wait = { .what = RSB_WAIT_TREE } };
	struct rsb_relayed *proc;
	int r;

	r = rsb_relayed_restore(relay, shared, &proc);
	if (r < 0)
		return r;
	rsb_mutex_lock(&relay->fs->lock);
	rsb_fs_foreign_begin_locked(relay->fs);
	rsb_mutex_unlock(&relay->fs->lock);
	send_own(proc, RSB_OP_wait, &wait);
	if (!shared->left)
		rsb_relayed_end(proc);
	return 0;
}

int
rsb_relay_recover(struct rsb_relay *relay)
{
	struct rsb_shared *shared = relay->fs->shared;
	int r = 0;

	for (size_t i = 0; i < RSB_PROCS_MAX && r >= 0; i++) {
		if (shared->procs[i].far)
			r = recover(relay, &shared->procs[i]);
	}
	return r;
}
