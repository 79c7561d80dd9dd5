/* SPDX-License-Identifier: MIT */
#include "fuse/order.h"

#include <errno.h>

#include "fuse/send.h"
#include "proto/version.h"

struct rsb_order *
rsb_order_new(struct rsb_relayed *proc, uint32_t op, uint64_t call)
{
	struct rsb_order *order = rsb_new(struct rsb_order);

	if (!order)
		return NULL;
	order->proc = proc;
	order->op = op;
	order->call = call;
	order->task.fn = proc->relay->back;
	rsb_buf_init(&order->req, RSB_MESSAGE_MAX);
	rsb_buf_init(&order->rep, RSB_MESSAGE_MAX);
	rsb_list_append(&proc->relay->orders, &order->all);
	proc->n_order++;
	return order;
}

void
rsb_order_free(struct rsb_order *order)
{
	rsb_list_remove(&order->all);
	rsb_buf_done(&order->req);
	rsb_buf_done(&order->rep);
	free(order);
}

void
rsb_order_end(struct rsb_order *order)
{
	struct rsb_relayed *proc = order->proc;

	rsb_order_free(order);
	proc->n_order--;
	rsb_relayed_collect(proc);
}

void
rsb_order_answer(struct rsb_order *order)
{
	struct rsb_relay *relay = order->proc->relay;
	struct rsb_guest *client = rsb_control_client(relay->control, order->proc->client);

	if (!client || !order->call)
		return;
	rsb_guest_pump(client);
	/* How it ended is our doing. */
	if (order->proc->ends && order->op == RSB_OP_wait && order->error >= 0)
		rsb_guest_reply(client, order->op, order->call, -ESHUTDOWN, NULL);
	else if (rsb_buf_len(&order->rep))
		rsb_guest_send(client, rsb_buf_view(&order->rep));
	else
		rsb_guest_reply(client, order->op, order->call,
			order->error < 0 ? order->error : -ENOMEM, NULL);
}

/* What a reply that is no failure says of the command. {fs->lock} */
static void
learn(struct rsb_order *order, const void *rep)
{
	const struct rsb_spawn_rep *spawned = rep;
	struct rsb_relayed *proc = order->proc;

	if (order->op == RSB_OP_spawn)
		order->runs = !spawned->stage;
	else if (order->op == RSB_OP_wait && order->call)
		proc->over = true;
	else if (order->op == RSB_OP_wait || order->op == RSB_OP_kill)
		proc->gone = true;
}

/* All but an archive wait for the command, and carry nothing that was written. */
static bool
waits(const struct rsb_order *order)
{
	return order->op != RSB_OP_tar_in;
}

/* {io} */
static void
on_reply(void *arg, int r, const void *rep)
{
	struct rsb_order *order = arg;

	order->proc->relay->fs->n_wait -= waits(order);
	/* Of us it says that another daemon may take the command. */
	if (r == -ECONNREFUSED)
		r = -EIO;
	order->error = r;
	if (r >= 0)
		learn(order, rep);
	/* Without memory the reply is empty, which rsb_order_answer() knows. */
	if (order->call &&
		rsb_codec_reply(order->op, order->call, r, rep, RSB_PROTO_VERSION, &order->rep) < 0)
		rsb_buf_clear(&order->rep);
	order->replied = true;
	rsb_loop_post(order->proc->relay->loop, &order->task);
}

int
rsb_order_send(struct rsb_order *order, union rsb_procreq *req)
{
	struct rsb_fs *fs = order->proc->relay->fs;
	int r;

	*rsb_procreq_proc(req) = order->proc->far;
	rsb_mutex_lock(&fs->lock);
	fs->n_wait += waits(order);
	r = rsb_send_call(fs->send, order->op, req, on_reply, order, NULL);
	if (r < 0)
		on_reply(order, r, NULL);
	rsb_mutex_unlock(&fs->lock);
	return r;
}

/* Nobody will ever say how it went on. */
static int
untold(const struct rsb_order *order)
{
	if (!order->proc->sent)
		return -ECANCELED;
	return order->op == RSB_OP_wait && order->proc->gone ? -ESHUTDOWN : -ECONNABORTED;
}

void
rsb_relay_say_end(struct rsb_relay *relay)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &relay->orders) {
		struct rsb_order *order = rsb_list_entry(pos, struct rsb_order, all);

		/* The end of the link is no answer of the sandbox. */
		if (!order->replied || order->error == -ECANCELED) {
			order->error = untold(order);
			rsb_buf_clear(&order->rep);
		}
		rsb_order_answer(order);
	}
}
