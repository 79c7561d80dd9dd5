/* SPDX-License-Identifier: MIT */
#include "link/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "proto/ws.h"

#define READ_SIZE ((size_t)256 << 10)
#define READ_ROUNDS 16 /* then others get their turn */
#define IN_MAX ((size_t)1 << 20)
/*
 * What is encoded ahead of the socket: enough for one large write, little enough to be
 * overtaken.
 */
#define OUT_AHEAD ((size_t)256 << 10)
#define OUT_MAX ((size_t)1 << 20)
#define HEADERS_MAX 16

enum phase { UPGRADE, CHALLENGE, WELCOME, OPEN };

struct rsb_wire {
	struct rsb_loop *loop;
	struct rsb_connect *connect;
	const struct rsb_wire_ops *ops;
	void *arg;
	const struct rsb_secret *key;
	struct rsb_source *source;
	struct rsb_timer *timer;
	struct rsb_task again; /* read on, whatever epoll says */
	enum phase phase;
	bool want_out;
	struct rsb_ws ws;
	struct rsb_handshake hs;
	char ws_key[RSB_WS_KEY_SIZE + 1];
	struct rsb_buf in;
	struct rsb_buf out;
	struct rsb_buf frame; /* between fill and the socket's buffer */
	struct rsb_wire_stats stats;
	struct rsb_diag diag;
};

void
rsb_wire_free(struct rsb_wire *wire)
{
	if (!wire)
		return;
	rsb_loop_unpost(wire->loop, &wire->again);
	rsb_timer_del(wire->timer);
	rsb_source_del(wire->source);
	rsb_connect_free(wire->connect);
	rsb_ws_done(&wire->ws);
	rsb_buf_done(&wire->in);
	rsb_buf_done(&wire->out);
	rsb_buf_done(&wire->frame);
	free(wire);
}

bool
rsb_wire_is_open(const struct rsb_wire *wire)
{
	return wire->phase == OPEN;
}

void
rsb_wire_stats(struct rsb_wire *wire, struct rsb_wire_stats *ret_stats)
{
	*ret_stats = wire->stats;
	wire->stats = (struct rsb_wire_stats){ 0 };
}

/*
 * What an answer that is no upgrade says about the other end; the control plane knows the
 * rest.
 */
static int
status_error(struct rsb_wire *wire, int status, int r)
{
	struct rsb_diag *diag = &wire->diag;

	if (status == 0)
		return rsb_diag_set(diag, r, "no WebSocket server answers there");
	if (status == 401 || status == 403)
		return rsb_diag_set(diag, -EACCES, "the key was refused (HTTP %d)", status);
	if (status == 404 || status == 410 || status == 502 || status == 503 || status == 504)
		return rsb_diag_set(diag, -ECONNREFUSED, "no sidecar is reached (HTTP %d)", status);
	return rsb_diag_set(diag, -EPROTO, "the upgrade was answered by HTTP %d", status);
}

static int
take_upgrade(struct rsb_wire *wire)
{
	int status = 0;
	int n;

	n = rsb_ws_response(rsb_buf_view(&wire->in), wire->ws_key, &status);
	if (n < 0)
		return status_error(wire, status, n);
	if (n == 0)
		return 0;
	rsb_buf_consume(&wire->in, (size_t)n);
	wire->phase = CHALLENGE;
	return 1;
}

static int
take_challenge(struct rsb_wire *wire, struct rsb_bytes msg)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf frame = { 0 };
	struct rsb_hello hello = { 0 };
	int r;

	wire->ops->hello(wire->arg, &hello);
	r = rsb_handshake_hello(&wire->hs, wire->key, msg, &hello, &frame, &wire->diag);
	if (r < 0)
		return r;
	wire->phase = WELCOME;
	return rsb_ws_send(&wire->ws, rsb_buf_view(&frame), &wire->out);
}

static int
take_welcome(struct rsb_wire *wire, struct rsb_bytes msg)
{
	struct rsb_welcome welcome;
	int r;

	r = rsb_handshake_check_welcome(&wire->hs, msg, &welcome, &wire->diag);
	if (r < 0)
		return r;
	rsb_timer_set(wire->timer, 0);
	wire->phase = OPEN;
	return wire->ops->open(wire->arg, &welcome, wire->hs.features);
}

static int
take_message(struct rsb_wire *wire, struct rsb_bytes msg)
{
	wire->stats.frames_in++;
	switch (wire->phase) {
	case CHALLENGE:
		return take_challenge(wire, msg);
	case WELCOME:
		return take_welcome(wire, msg);
	case OPEN:
		return wire->ops->frame(wire->arg, msg);
	case UPGRADE:
		break;
	}
	return -EPROTO;
}

/* All that is whole in the buffer. */
static int
parse(struct rsb_wire *wire)
{
	struct rsb_bytes msg;
	size_t used;
	int got, r;

	if (wire->phase == UPGRADE) {
		r = take_upgrade(wire);
		if (r <= 0)
			return r;
	}
	for (;;) {
		got = rsb_ws_input(&wire->ws, &wire->in, &wire->out, &msg, &used);
		if (got < 0)
			return got;
		if (got > 0) {
			r = take_message(wire, msg);
			if (r < 0)
				return r;
		} else if (used == 0) {
			return 0;
		}
		rsb_buf_consume(&wire->in, used);
	}
}

/* -EAGAIN: the socket is empty. */
static int
receive(struct rsb_wire *wire)
{
	uint8_t *tail;
	size_t n;
	int r;

	r = rsb_buf_reserve(&wire->in, READ_SIZE, &tail);
	if (r < 0)
		return r;
	r = rsb_connect_recv(wire->connect, tail, READ_SIZE, &n);
	if (r < 0)
		return r;
	rsb_buf_commit(&wire->in, n);
	wire->stats.bytes_in += n;
	return parse(wire);
}

static int
send_out(struct rsb_wire *wire)
{
	size_t n;
	int r;

	while (rsb_buf_len(&wire->out) > 0) {
		r = rsb_connect_send(
			wire->connect, rsb_buf_head(&wire->out), rsb_buf_len(&wire->out), &n);
		if (r < 0)
			return r;
		rsb_buf_consume(&wire->out, n);
		wire->stats.bytes_out += n;
	}
	return 0;
}

/* 1: there is something in the buffer that was not there. */
static int
fill_out(struct rsb_wire *wire)
{
	int filled = 0;
	int r;

	while (wire->phase == OPEN && rsb_buf_len(&wire->out) < OUT_AHEAD) {
		rsb_buf_clear(&wire->frame);
		r = wire->ops->fill(wire->arg, &wire->frame);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		r = rsb_ws_send(&wire->ws, rsb_buf_view(&wire->frame), &wire->out);
		if (r < 0)
			return r;
		wire->stats.frames_out++;
		filled = 1;
	}
	return filled;
}

int
rsb_wire_flush(struct rsb_wire *wire)
{
	bool want_out;
	int filled, r;

	do {
		filled = fill_out(wire);
		if (filled < 0)
			return filled;
		r = send_out(wire);
		if (r < 0 && r != -EAGAIN)
			return r;
	} while (filled > 0 && r == 0);
	want_out = rsb_buf_len(&wire->out) > 0;
	if (want_out == wire->want_out)
		return 0;
	wire->want_out = want_out;
	return rsb_source_set(wire->source, EPOLLIN | (want_out ? EPOLLOUT : 0u));
}

static void
end(struct rsb_wire *wire, int r)
{
	rsb_timer_set(wire->timer, 0);
	rsb_source_del(rsb_steal(&wire->source));
	/* a refusal or a close frame for the peer; it may be gone already */
	(void)send_out(wire);
	wire->ops->closed(wire->arg, r, wire->diag.text);
}

static void
read_on(struct rsb_wire *wire)
{
	int rounds = 0;
	int r;

	do
		r = receive(wire);
	while (r == 0 && ++rounds < READ_ROUNDS);
	if (r < 0 && r != -EAGAIN) {
		end(wire, r);
		return;
	}
	if (r == 0)
		rsb_loop_post(wire->loop, &wire->again);
	if (wire->phase == OPEN) {
		wire->ops->batch(wire->arg);
		return;
	}
	r = rsb_wire_flush(wire);
	if (r < 0)
		end(wire, r);
}

static void
on_again(struct rsb_task *task)
{
	read_on(rsb_container_of(task, struct rsb_wire, again));
}

static void
on_socket(void *arg, uint32_t events)
{
	struct rsb_wire *wire = arg;
	int r;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		read_on(wire);
		return;
	}
	r = rsb_wire_flush(wire);
	if (r < 0)
		end(wire, r);
}

static void
on_deadline(void *arg)
{
	struct rsb_wire *wire = arg;

	end(wire, rsb_diag_set(&wire->diag, -ETIMEDOUT, "no answer to the handshake in time"));
}

void
rsb_wire_bye(struct rsb_wire *wire)
{
	const struct rsb_frame bye = { .type = RSB_FRAME_BYE };

	if (wire->phase != OPEN)
		return;
	rsb_buf_clear(&wire->frame);
	/* best effort: an abrupt end means the same to the peer, only later */
	if (rsb_frame_encode(&bye, NULL, &wire->frame) == 0 &&
		rsb_ws_send(&wire->ws, rsb_buf_view(&wire->frame), &wire->out) == 0 &&
		rsb_ws_close(&wire->ws, 1000, &wire->out) == 0)
		(void)send_out(wire);
}

/* "Name: value" lines and the proof of the key. */
static int
request(struct rsb_wire *wire, const char *const *lines)
{
	char auth[RSB_AUTH_HEADER_SIZE + 1];
	struct rsb_ws_header headers[HEADERS_MAX + 1];
	char *names[HEADERS_MAX] = { NULL };
	size_t n, i;
	const char *colon;
	int r = 0;

	rsb_auth_upgrade_header(wire->key, wire->hs.host_nonce, rsb_bytes_str(wire->ws_key), auth);
	headers[0] = (struct rsb_ws_header){ .name = RSB_AUTH_HEADER, .value = auth };
	for (n = 0; lines && lines[n]; n++) {
		colon = strstr(lines[n], ": ");
		if (n == HEADERS_MAX || !colon) {
			r = -EINVAL;
			break;
		}
		names[n] = strdup(lines[n]);
		if (!names[n]) {
			r = -ENOMEM;
			break;
		}
		names[n][colon - lines[n]] = '\0';
		headers[n + 1] = (struct rsb_ws_header){ .name = names[n],
			.value = names[n] + (colon - lines[n]) + 2 };
	}
	if (r == 0)
		r = rsb_ws_request(rsb_connect_host(wire->connect), rsb_connect_path(wire->connect),
			wire->ws_key, headers, n + 1, &wire->out);
	for (i = 0; i < RSB_ARRAY_SIZE(names); i++)
		free(names[i]);
	return r;
}

static int
start(struct rsb_wire *wire, const struct rsb_wire_config *config)
{
	int r;

	r = rsb_ws_init(&wire->ws, RSB_WS_CLIENT);
	if (r < 0)
		return r;
	r = rsb_random(wire->hs.host_nonce, sizeof(wire->hs.host_nonce));
	if (r < 0)
		return r;
	r = rsb_ws_key(wire->ws_key);
	if (r < 0)
		return r;
	r = request(wire, config->headers);
	if (r < 0)
		return r;
	r = rsb_timer_new(wire->loop, on_deadline, wire, &wire->timer);
	if (r < 0)
		return r;
	rsb_timer_set(wire->timer, config->deadline_ns);
	r = rsb_loop_add(
		wire->loop, rsb_connect_fd(wire->connect), EPOLLIN, on_socket, wire, &wire->source);
	if (r < 0)
		return r;
	return rsb_wire_flush(wire);
}

int
rsb_wire_new(const struct rsb_wire_config *config, struct rsb_wire **ret_wire)
{
	RSB_CLEANUP(rsb_connect_freep) struct rsb_connect *connect = config->connect;
	RSB_CLEANUP(rsb_wire_freep) struct rsb_wire *wire = rsb_new(struct rsb_wire);
	int r;

	if (!wire)
		return -ENOMEM;
	wire->loop = config->loop;
	wire->connect = rsb_steal(&connect);
	wire->ops = config->ops;
	wire->arg = config->arg;
	wire->key = config->key;
	wire->again.fn = on_again;
	rsb_buf_init(&wire->in, IN_MAX);
	rsb_buf_init(&wire->out, OUT_MAX);
	rsb_buf_init(&wire->frame, 2 * RSB_FRAME_MAX);
	r = start(wire, config);
	if (r < 0)
		return r;
	*ret_wire = rsb_steal(&wire);
	return 0;
}
