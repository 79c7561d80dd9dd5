/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "relay"

#include "fuse/relay.h"

#include <errno.h>

#include "fuse/pipe.h"
#include "fuse/procreq.h"
#include "fuse/relayed.h"
#include "fuse/send.h"
#include "proto/version.h"
#include "util/log.h"

/* One request under way. */
struct order {
	struct rsb_relayed *proc;
	struct rsb_list all;
	struct rsb_task task; /* to the main thread, with the reply */
	uint32_t op;
	uint64_t call;      /* the client's; 0: our own */
	struct rsb_buf req; /* encoded; its proc number is the client's */
	struct rsb_buf rep; /* encoded reply */
	int error;          /* of the call */
	bool runs;          /* spawn: it runs */
	bool held;          /* until its spawn was sent */
};

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
	r = rsb_pipes_new(config->loop, config->fs->link, &relay->pipes);
	if (r < 0) {
		free(relay);
		return r;
	}
	*ret_relay = relay;
	return 0;
}

static void
order_free(struct order *order)
{
	rsb_list_remove(&order->all);
	rsb_buf_done(&order->req);
	rsb_buf_done(&order->rep);
	free(order);
}

void
rsb_relay_free(struct rsb_relay *relay)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (!relay)
		return;
	rsb_list_for_each_safe (pos, tmp, &relay->orders)
		order_free(rsb_list_entry(pos, struct order, all));
	rsb_list_for_each_safe (pos, tmp, &relay->procs)
		rsb_relayed_free(rsb_list_entry(pos, struct rsb_relayed, all));
	rsb_pipes_free(relay->pipes);
	free(relay);
}

static void on_back(struct rsb_task *task);

static struct order *
order_new(struct rsb_relayed *proc, uint32_t op, uint64_t call)
{
	struct order *order = rsb_new(struct order);

	if (!order)
		return NULL;
	order->proc = proc;
	order->op = op;
	order->call = call;
	order->task.fn = on_back;
	rsb_buf_init(&order->req, RSB_MESSAGE_MAX);
	rsb_buf_init(&order->rep, RSB_MESSAGE_MAX);
	rsb_list_append(&proc->relay->orders, &order->all);
	proc->n_order++;
	return order;
}

/* The far record goes when nobody asks for it, nothing of it lives and no request names it. */
static void
collect(struct rsb_relayed *proc)
{
	struct rsb_fs *fs = proc->relay->fs;
	const struct rsb_proc_req req = { .proc = proc->far };

	if (!proc->freed || proc->alive || proc->n_order)
		return;
	if (proc->started) {
		rsb_mutex_lock(&fs->lock);
		rsb_send_post(fs->send, RSB_OP_proc_free, &req);
		rsb_mutex_unlock(&fs->lock);
	}
	rsb_relayed_free(proc);
}

static void
end_order(struct order *order)
{
	struct rsb_relayed *proc = order->proc;

	order_free(order);
	proc->n_order--;
	collect(proc);
}

/* The client hears of it, if it is still there. */
static void
answer(struct order *order)
{
	struct rsb_relay *relay = order->proc->relay;
	struct rsb_guest *client = rsb_control_client(relay->control, order->proc->client);

	if (!client || !order->call)
		return;
	/* How it ended is our doing. */
	if (order->proc->ends) {
		rsb_guest_pump(client);
		rsb_guest_reply(client, order->op, order->call, -ESHUTDOWN, NULL);
	} else if (rsb_buf_len(&order->rep)) {
		rsb_guest_pump(client);
		rsb_guest_send(client, rsb_buf_view(&order->rep));
	} else {
		rsb_guest_reply(client, order->op, order->call,
			order->error < 0 ? order->error : -ENOMEM, NULL);
	}
}

/* {io} */
static void
on_reply(void *arg, int r, const void *rep)
{
	struct order *order = arg;
	const struct rsb_spawn_rep *spawned = rep;

	order->proc->relay->fs->n_wait -= order->op == RSB_OP_wait;
	order->error = r;
	order->runs = order->op == RSB_OP_spawn && r >= 0 && !spawned->stage;
	/* Without memory the reply is empty, which answer() knows. */
	if (order->call &&
		rsb_codec_reply(order->op, order->call, r, rep, RSB_PROTO_VERSION, &order->rep) < 0)
		rsb_buf_clear(&order->rep);
	rsb_loop_post(order->proc->relay->loop, &order->task);
}

/*
 * Sends req with the far proc number; the reply comes to on_back(), also that it failed, which is
 * returned as well.
 */
static int
send_order(struct order *order, union rsb_procreq *req)
{
	struct rsb_fs *fs = order->proc->relay->fs;
	int r;

	*rsb_procreq_proc(req) = order->proc->far;
	rsb_mutex_lock(&fs->lock);
	fs->n_wait += order->op == RSB_OP_wait;
	r = rsb_send_call(fs->send, order->op, req, on_reply, order, NULL);
	if (r < 0)
		on_reply(order, r, NULL);
	rsb_mutex_unlock(&fs->lock);
	return r;
}

/* One of our own about proc. */
static void
send_own(struct rsb_relayed *proc, uint32_t op, union rsb_procreq *req)
{
	struct order *order = order_new(proc, op, 0);

	/* Without memory the cache stays off for good, which is never wrong. */
	if (order)
		(void)send_order(order, req);
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
		struct order *order = rsb_list_entry(pos, struct order, all);
		union rsb_procreq req;

		if (order->proc != proc || !order->held)
			continue;
		order->held = false;
		if (error >= 0)
			error = rsb_codec_decode(
				rsb_ops[order->op].req, rsb_buf_view(&order->req), &req);
		if (error >= 0) {
			(void)send_order(order, &req);
			continue;
		}
		order->error = error;
		answer(order);
		end_order(order);
	}
}

static void
on_shown(void *arg, bool late)
{
	struct order *order = arg;

	if (late)
		rsb_warn("the mount may not show yet all that the command changed");
	answer(order);
	if (order->op == RSB_OP_tar_in) {
		rsb_relayed_leave(order->proc);
		release(order->proc, -ESRCH);
	}
	end_order(order);
}

static void
on_spawned(struct order *order)
{
	struct rsb_relayed *proc = order->proc;

	proc->started = order->runs;
	answer(order);
	if (order->runs) {
		if (!proc->client || proc->ends)
			rsb_relayed_end(proc);
	} else {
		rsb_relayed_note_end(proc, order->error);
		rsb_relayed_leave(proc);
		proc->freed = true;
		release(proc, -ESRCH);
	}
	end_order(order);
}

/* Nothing of it lives any more; or nobody will ever say that. */
static void
on_tree_ended(struct order *order)
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
	end_order(order);
}

static void
on_back(struct rsb_task *task)
{
	struct order *order = rsb_container_of(task, struct order, task);
	struct rsb_barrier *barrier = order->proc->relay->barrier;

	if (order->op == RSB_OP_spawn) {
		on_spawned(order);
	} else if (order->op == RSB_OP_signal) {
		answer(order);
		end_order(order);
	} else if (order->op == RSB_OP_wait && !order->call) {
		on_tree_ended(order);
	} else if (rsb_barrier_show(barrier, on_shown, order) < 0) {
		on_shown(order, true);
	}
}

/* ---- requests ---- */

/* Its end is asked for together with the command, so that it is told without another trip. */
static void
send_spawn(struct order *order, union rsb_procreq *req)
{
	union rsb_procreq tree = { .wait = { .what = RSB_WAIT_TREE } };
	struct rsb_relayed *proc = order->proc;
	int r;

	r = send_order(order, req);
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
	struct order *order = arg;
	struct rsb_relayed *proc = order->proc;
	union rsb_procreq req;

	if (late)
		rsb_warn("a command starts although the mount's last changes may be missing");
	/* Who wanted it went away meanwhile, or nobody would hear it: then it does not begin. */
	if (!proc->client || proc->cut ||
		rsb_codec_decode(rsb_ops[order->op].req, rsb_buf_view(&order->req), &req) < 0) {
		order->error = proc->cut ? -ERESTART : -ECANCELED;
		answer(order);
		rsb_relayed_leave(proc);
		proc->freed = true;
		release(proc, order->error);
		end_order(order);
		return;
	}
	send_spawn(order, &req);
}

static int
begin(struct rsb_relay *relay, struct rsb_guest *client, const struct rsb_call_head *head,
	union rsb_procreq *req)
{
	struct order *order;
	struct rsb_relayed *proc;
	int r;

	r = rsb_relayed_new(relay, client, *rsb_procreq_proc(req),
		rsb_pipe_streams(head->op == RSB_OP_spawn ? &req->spawn : NULL), &proc);
	if (r < 0)
		return r;
	if (head->op == RSB_OP_spawn)
		rsb_relayed_describe(proc, &req->spawn);
	order = order_new(proc, head->op, head->id);
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
		end_order(order);
	else
		collect(proc);
	return r;
}

static void
go_or_hold(struct order *order, const struct rsb_call_head *head, union rsb_procreq *req)
{
	if (order->proc->sent) {
		(void)send_order(order, req);
	} else if (rsb_buf_append(&order->req, head->body.data, head->body.size) >= 0) {
		order->held = true;
	} else {
		order->error = -ENOMEM;
		answer(order);
		end_order(order);
	}
}

void
rsb_relay_call(struct rsb_relay *relay, struct rsb_guest *client, const struct rsb_call_head *head)
{
	union rsb_procreq req;
	struct order *order;
	struct rsb_relayed *proc;
	int r;

	if (rsb_codec_decode(rsb_ops[head->op].req, head->body, &req) < 0) {
		rsb_guest_kick(client);
		return;
	}
	if (head->op == RSB_OP_spawn || head->op == RSB_OP_tar_in) {
		r = begin(relay, client, head, &req);
		if (r < 0)
			rsb_guest_reply(client, head->op, head->id, r, NULL);
		return;
	}
	proc = rsb_relayed_find(client, *rsb_procreq_proc(&req));
	order = proc && head->op != RSB_OP_proc_free ? order_new(proc, head->op, head->id) : NULL;
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
		collect(proc);
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
		collect(proc);
	}
}

void
rsb_relay_say_end(struct rsb_relay *relay)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &relay->orders) {
		struct order *order = rsb_list_entry(pos, struct order, all);

		order->proc->ends = true;
		answer(order);
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
