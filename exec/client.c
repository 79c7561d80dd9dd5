/* SPDX-License-Identifier: MIT */
#include "exec/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/ctl.h"
#include "proto/codec.h"
#include "proto/version.h"
#include "util/fd.h"
#include "util/map.h"

/* A daemon that was only started answers when it has reached its sandbox. */
#define HELLO_TIMEOUT_NS (30 * RSB_NSEC_PER_SEC)
/* Stream bytes that the daemon has not acknowledged; well below RSB_CTL_QUEUE_MAX. */
#define IN_FLIGHT_MAX ((size_t)4 << 20)
/* Decoded replies are at most this large; the largest is checked against it. */
#define REPLY_SIZE_MAX 2048

struct call {
	rsb_client_fn fn;
	void *arg;
	uint32_t op;
};

struct rsb_client {
	struct rsb_loop *loop;
	const struct rsb_client_ops *ops;
	void *arg;
	struct rsb_ctl *ctl;
	struct rsb_chans *chans;
	struct rsb_map calls; /* id to struct call */
	struct rsb_task flush;
	uint64_t next_id;
	uint64_t next_proc;
	bool is_open;
};

static void
flush(struct rsb_client *client)
{
	struct rsb_frame frame;

	if (!client->ctl)
		return;
	while (rsb_chans_output(client->chans, RSB_CHANS_STREAM, IN_FLIGHT_MAX, &frame) > 0) {
		/* Without memory for a frame the stream cannot go on whole. */
		if (rsb_ctl_send_frame(client->ctl, &frame) < 0) {
			rsb_chan_reset(client->chans, frame.a, -ENOMEM);
			return;
		}
	}
}

static void
on_flush(struct rsb_task *task)
{
	flush(rsb_container_of(task, struct rsb_client, flush));
}

void
rsb_client_kick(struct rsb_client *client)
{
	rsb_loop_post(client->loop, &client->flush);
}

static void
end_call(struct rsb_client *client, uint64_t id, int r, struct rsb_bytes body)
{
	_Alignas(max_align_t) unsigned char rep[REPLY_SIZE_MAX];
	struct call *call = rsb_map_del(&client->calls, id);
	const struct rsb_message_desc *desc;

	if (!call)
		return;
	desc = rsb_ops[call->op].rep;
	if (r >= 0 && desc->size > sizeof rep)
		r = -EMSGSIZE;
	if (r >= 0)
		r = rsb_codec_decode(desc, body, rep);
	call->fn(call->arg, r < 0 ? r : 0, r < 0 ? NULL : rep);
	free(call);
}

static void
on_message(void *arg, const struct rsb_call_head *head)
{
	struct rsb_client *client = arg;

	if (head->op == 0)
		end_call(client, head->id, head->error, head->body);
}

static void
on_frame(void *arg, const struct rsb_frame *frame)
{
	struct rsb_client *client = arg;

	/*
	 * A frame against the rules can only come from a daemon of another build: its stream ends.
	 */
	if (rsb_chans_input(client->chans, frame) < 0)
		rsb_chan_reset(client->chans, frame->a, -EBADMSG);
	/* Whoever only looked at the room, and wrote nothing short, is told as well. */
	else if (frame->type == RSB_FRAME_CREDIT && rsb_chan_room(client->chans, frame->a))
		client->ops->chans.writable(client->arg, frame->a);
	rsb_client_kick(client);
}

static void
on_closed(void *arg, int r)
{
	struct rsb_client *client = arg;
	size_t cursor = 0;
	uint64_t id;

	rsb_ctl_free(client->ctl);
	client->ctl = NULL;
	while (rsb_map_next(&client->calls, &cursor, &id))
		end_call(client, id, -ENOTCONN, (struct rsb_bytes){ 0 });
	if (client->is_open)
		client->ops->closed(client->arg, r < 0 ? r : -ENOTCONN);
}

static const struct rsb_ctl_ops ctl_ops = {
	.message = on_message,
	.frame = on_frame,
	.closed = on_closed,
};

int
rsb_client_call(
	struct rsb_client *client, uint32_t op, const void *req, rsb_client_fn fn, void *arg)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = RSB_MESSAGE_MAX };
	struct call *call;
	uint64_t id;
	int r;

	if (!client->ctl)
		return -ENOTCONN;
	id = ++client->next_id;
	r = rsb_codec_request(op, id, 0, req, RSB_PROTO_VERSION, &out);
	if (r < 0)
		return r;
	call = rsb_new(struct call);
	if (!call)
		return -ENOMEM;
	call->fn = fn;
	call->arg = arg;
	call->op = op;
	r = rsb_map_put(&client->calls, id, call);
	if (r >= 0)
		r = rsb_ctl_send(client->ctl, rsb_buf_view(&out));
	if (r < 0) {
		(void)rsb_map_del(&client->calls, id);
		free(call);
	}
	return r;
}

struct waiting {
	void (*copy)(void *arg, const void *rep);
	void *arg;
	int r;
	bool done;
};

static void
on_waited(void *arg, int r, const void *rep)
{
	struct waiting *w = arg;

	if (r >= 0 && w->copy)
		w->copy(w->arg, rep);
	w->r = r;
	w->done = true;
}

int
rsb_client_call_wait(struct rsb_client *client, uint32_t op, const void *req, uint64_t timeout_ns,
	void (*copy)(void *arg, const void *rep), void *arg)
{
	struct waiting w = { .copy = copy, .arg = arg };
	uint64_t deadline_ns = timeout_ns ? rsb_loop_now(client->loop) + timeout_ns : 0;
	int r;

	r = rsb_client_call(client, op, req, on_waited, &w);
	while (r >= 0 && !w.done) {
		uint64_t now_ns = rsb_loop_now(client->loop);
		int wait_ms = 1000;

		if (deadline_ns && now_ns >= deadline_ns) {
			/* w goes out of scope: a late answer must find nobody. */
			free(rsb_map_del(&client->calls, client->next_id));
			return -ETIMEDOUT;
		}
		if (deadline_ns)
			wait_ms = (int)rsb_min(
				(deadline_ns - now_ns) / RSB_NSEC_PER_MSEC + 1, (uint64_t)wait_ms);
		r = rsb_loop_step(client->loop, wait_ms);
	}
	return r < 0 ? r : w.r;
}

static int
say_hello(struct rsb_client *client, struct rsb_diag *diag)
{
	struct rsb_ctl_hello_req req = { .version = RSB_PROTO_VERSION,
		.table_hash = rsb_op_table_hash() };
	int r;

	r = rsb_client_call_wait(client, RSB_OP_ctl_hello, &req, HELLO_TIMEOUT_NS, NULL, NULL);
	if (r == -EPROTONOSUPPORT)
		return rsb_diag_set(diag, r,
			"the running daemon is of another version; 'rsb umount' and mount again");
	if (r < 0)
		return rsb_diag_set(diag, r, "the daemon does not answer: %s", strerror(-r));
	return 0;
}

int
rsb_client_open(struct rsb_loop *loop, const char *path, const struct rsb_client_ops *ops,
	void *arg, struct rsb_client **ret_client, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_client_freep) struct rsb_client *client = NULL;
	int fd;
	int r;

	fd = rsb_fd_unix_connect(path, SOCK_SEQPACKET);
	if (fd < 0)
		return fd;
	r = rsb_fd_check_peer(fd);
	client = r < 0 ? NULL : rsb_new(struct rsb_client);
	if (!client) {
		(void)close(fd);
		return r < 0 ? rsb_diag_set(diag, r, "somebody else's program listens at %s", path)
			     : -ENOMEM;
	}
	client->loop = loop;
	client->ops = ops;
	client->arg = arg;
	client->flush.fn = on_flush;
	rsb_map_init(&client->calls, RSB_CALLS_MAX);
	r = rsb_ctl_new(loop, fd, &ctl_ops, client, &client->ctl);
	if (r < 0)
		return r;
	r = rsb_chans_new(&ops->chans, arg, &client->chans);
	if (r < 0)
		return r;
	/* The socket is the one connection that these streams ever have. */
	rsb_chans_attach(client->chans);
	r = say_hello(client, diag);
	if (r < 0 || !client->ctl)
		return r < 0 ? r : -ENOTCONN;
	client->is_open = true;
	*ret_client = rsb_steal(&client);
	return 0;
}

void
rsb_client_free(struct rsb_client *client)
{
	size_t cursor = 0;
	struct call *call;

	if (!client)
		return;
	rsb_loop_unpost(client->loop, &client->flush);
	rsb_ctl_free(client->ctl);
	rsb_chans_free(client->chans);
	while ((call = rsb_map_next(&client->calls, &cursor, NULL)))
		free(call);
	rsb_map_done(&client->calls);
	free(client);
}

struct rsb_chans *
rsb_client_chans(struct rsb_client *client)
{
	return client->chans;
}

uint64_t
rsb_client_new_proc(struct rsb_client *client)
{
	return ++client->next_proc;
}
