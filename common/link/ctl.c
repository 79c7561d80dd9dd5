/* SPDX-License-Identifier: MIT */
#include "link/ctl.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "proto/limits.h"
#include "util/fd.h"
#include "util/list.h"

#define RECV_ROUNDS 64 /* then others get their turn */

struct packet {
	struct rsb_list node;
	size_t size;
	uint8_t data[];
};

struct rsb_ctl {
	struct rsb_loop *loop;
	int fd;
	const struct rsb_ctl_ops *ops;
	void *arg;
	struct rsb_source *source;
	struct rsb_list queue;
	size_t queued;
	struct rsb_buf message; /* of frames with MORE so far */
	struct rsb_buf scratch; /* an encoded frame */
	bool busy;              /* on_socket() is on the stack: it frees */
	bool freed;
	uint8_t in[RSB_FRAME_MAX + 1];
};

void
rsb_ctl_free(struct rsb_ctl *ctl)
{
	struct rsb_list *pos, *tmp;

	if (!ctl)
		return;
	if (ctl->busy) {
		ctl->freed = true;
		return;
	}
	rsb_source_del(ctl->source);
	rsb_cleanup_close(&ctl->fd);
	rsb_list_for_each_safe (pos, tmp, &ctl->queue)
		free(rsb_list_entry(pos, struct packet, node));
	rsb_buf_done(&ctl->message);
	rsb_buf_done(&ctl->scratch);
	free(ctl);
}
RSB_DEFINE_CLEANUP(struct rsb_ctl *, rsb_ctl_free)

size_t
rsb_ctl_queued(const struct rsb_ctl *ctl)
{
	return ctl->queued;
}

/* ---- out ---- */

static int
send_packet(struct rsb_ctl *ctl, const void *data, size_t size)
{
	ssize_t n;

	do
		n = send(ctl->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ENOBUFS ? -EAGAIN : -errno;
	return 0;
}

static int
want_out(struct rsb_ctl *ctl)
{
	return rsb_source_set(ctl->source, EPOLLIN | (rsb_list_empty(&ctl->queue) ? 0u : EPOLLOUT));
}

static int
enqueue(struct rsb_ctl *ctl, struct rsb_bytes data)
{
	bool first = rsb_list_empty(&ctl->queue);
	struct packet *packet = malloc(sizeof(*packet) + data.size);

	if (!packet)
		return -ENOMEM;
	packet->size = data.size;
	memcpy(packet->data, data.data, data.size);
	rsb_list_append(&ctl->queue, &packet->node);
	ctl->queued += data.size;
	return first ? want_out(ctl) : 0;
}

/*
 * A broken socket is found and reported by the loop, never by the sender: that may be anybody's
 * callback.
 */
static int
put(struct rsb_ctl *ctl, const struct rsb_frame *frame)
{
	struct rsb_bytes data;
	int r;

	if (!ctl->source)
		return -EPIPE;
	rsb_buf_clear(&ctl->scratch);
	r = rsb_frame_encode(frame, NULL, &ctl->scratch);
	if (r < 0)
		return r;
	data = rsb_buf_view(&ctl->scratch);
	if (!rsb_list_empty(&ctl->queue))
		return enqueue(ctl, data);
	r = send_packet(ctl, data.data, data.size);
	return r == -EAGAIN ? enqueue(ctl, data) : 0;
}

int
rsb_ctl_send_frame(struct rsb_ctl *ctl, const struct rsb_frame *frame)
{
	if (ctl->queued + RSB_FRAME_HEAD + frame->payload.size > RSB_CTL_QUEUE_MAX)
		return -EAGAIN;
	return put(ctl, frame);
}

int
rsb_ctl_send(struct rsb_ctl *ctl, struct rsb_bytes msg)
{
	struct rsb_frame frame = { .type = RSB_FRAME_MESSAGE };
	size_t n_frame = msg.size / RSB_FRAME_PAYLOAD_MAX + 1;
	size_t n;
	int r;

	if (msg.size > RSB_MESSAGE_MAX)
		return -EMSGSIZE;
	if (ctl->queued + msg.size + n_frame * RSB_FRAME_HEAD > RSB_CTL_QUEUE_MAX)
		return -EAGAIN;
	do {
		n = rsb_min(msg.size, (size_t)RSB_FRAME_PAYLOAD_MAX);
		frame.payload = (struct rsb_bytes){ .data = msg.data, .size = n };
		msg.data += n;
		msg.size -= n;
		frame.flags = msg.size > 0 ? RSB_FRAME_MORE : 0;
		r = put(ctl, &frame);
	} while (r == 0 && msg.size > 0);
	return r;
}

static int
flush(struct rsb_ctl *ctl)
{
	struct packet *packet;
	int r;

	while (!rsb_list_empty(&ctl->queue)) {
		packet = rsb_list_entry(ctl->queue.next, struct packet, node);
		r = send_packet(ctl, packet->data, packet->size);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		rsb_list_remove(&packet->node);
		ctl->queued -= packet->size;
		free(packet);
	}
	return want_out(ctl);
}

/* ---- in ---- */

static int
take_part(struct rsb_ctl *ctl, const struct rsb_frame *frame)
{
	struct rsb_call_head head;
	int r;

	if (frame->a != 0)
		return -EBADMSG;
	r = rsb_buf_append(&ctl->message, frame->payload.data, frame->payload.size);
	if (r < 0 || frame->flags & RSB_FRAME_MORE)
		return r;
	r = rsb_codec_head(rsb_buf_view(&ctl->message), &head);
	if (r < 0)
		return r;
	ctl->ops->message(ctl->arg, &head);
	return 0;
}

static int
take_packet(struct rsb_ctl *ctl, struct rsb_bytes packet)
{
	struct rsb_frame frame;
	int r;

	r = rsb_frame_decode(packet, NULL, &frame);
	if (r == -EOPNOTSUPP)
		return 0;
	if (r < 0)
		return r;
	switch ((enum rsb_frame_type)frame.type) {
	case RSB_FRAME_MESSAGE:
		r = take_part(ctl, &frame);
		if (!(frame.flags & RSB_FRAME_MORE))
			rsb_buf_clear(&ctl->message);
		return r;
	case RSB_FRAME_STREAM:
	case RSB_FRAME_CREDIT:
	case RSB_FRAME_RESET:
		ctl->ops->frame(ctl->arg, &frame);
		return 0;
	case RSB_FRAME_CHALLENGE:
	case RSB_FRAME_HELLO:
	case RSB_FRAME_WELCOME:
	case RSB_FRAME_REFUSE:
	case RSB_FRAME_ACK:
	case RSB_FRAME_PING:
	case RSB_FRAME_PONG:
	case RSB_FRAME_BYE:
		break;
	}
	return -EBADMSG;
}

/* 1: one packet was taken; 0: none now; -ECONNRESET: the peer closed. */
static int
receive(struct rsb_ctl *ctl)
{
	int resets = 0;
	ssize_t n;
	int r;

	/*
	 * A peer that went without having read all makes this fail once, in front of what it had
	 * sent.
	 */
	do
		n = recv(ctl->fd, ctl->in, sizeof(ctl->in), MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !resets++)));
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	if ((size_t)n > RSB_FRAME_MAX)
		return -EMSGSIZE;
	r = take_packet(ctl, (struct rsb_bytes){ .data = ctl->in, .size = (size_t)n });
	return r < 0 ? r : 1;
}

static void
on_socket(void *arg, uint32_t events)
{
	struct rsb_ctl *ctl = arg;
	int rounds = 0;
	int r = 0;

	ctl->busy = true;
	/* Who has gone takes nothing; what was sent before is to be had all the same. */
	if (events & EPOLLOUT && !(events & EPOLLHUP))
		r = flush(ctl);
	if (r == 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		do
			r = receive(ctl);
		while (!ctl->freed && r > 0 && ++rounds < RECV_ROUNDS);
	if (!ctl->freed && r < 0) {
		rsb_source_del(rsb_steal(&ctl->source));
		ctl->ops->closed(ctl->arg, r == -ECONNRESET ? 0 : r);
	}
	ctl->busy = false;
	if (ctl->freed)
		rsb_ctl_free(ctl);
}

int
rsb_ctl_new(struct rsb_loop *loop, int fd, const struct rsb_ctl_ops *ops, void *arg,
	struct rsb_ctl **ret_ctl)
{
	rsb_autoclose int own_fd = fd;
	RSB_CLEANUP(rsb_ctl_freep) struct rsb_ctl *ctl = rsb_new(struct rsb_ctl);
	int r;

	if (!ctl)
		return -ENOMEM;
	ctl->fd = rsb_steal_fd(&own_fd);
	ctl->loop = loop;
	ctl->ops = ops;
	ctl->arg = arg;
	rsb_list_init(&ctl->queue);
	rsb_buf_init(&ctl->message, RSB_MESSAGE_MAX);
	rsb_buf_init(&ctl->scratch, RSB_FRAME_MAX);
	r = rsb_fd_check_peer(ctl->fd);
	if (r < 0)
		return r;
	r = rsb_loop_add(loop, ctl->fd, EPOLLIN, on_socket, ctl, &ctl->source);
	if (r < 0)
		return r;
	*ret_ctl = rsb_steal(&ctl);
	return 0;
}
