/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "conn"
#include "sidecar/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/handshake.h"
#include "proto/session.h"
#include "proto/version.h"
#include "proto/ws.h"
#include "sidecar/dispatch.h"
#include "sidecar/welcome.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/log.h"

#define PATH "/rsb"
#define READ_SIZE ((size_t)64 << 10)
/* Frames are taken from the session only below this, so that urgent ones do not queue behind it. */
#define OUT_LOW ((size_t)128 << 10)
/* A peer that sends pings and reads no answers is not read any more from here on. */
#define OUT_HIGH ((size_t)1 << 20)
#define OUT_MAX ((size_t)4 << 20)
#define IN_MAX (4u * RSB_FRAME_MAX)
#define LINGER_NS (2 * RSB_NSEC_PER_SEC)

enum state {
	STATE_HTTP,
	STATE_HELLO,
	STATE_LIVE,
	STATE_LINGER, /* the last bytes are on their way; what comes in is dropped */
	STATE_CLOSED,
};

struct rsb_conn {
	const struct rsb_conn_host *host; /* {const after new} */
	struct rsb_list node;
	int fd;
	enum state state;
	struct rsb_source *source;
	uint32_t events;
	struct rsb_timer *timer;
	struct rsb_buf in;
	struct rsb_buf out;
	struct rsb_buf frame; /* scratch */
	struct rsb_ws ws;
	struct rsb_handshake hs;
	struct rsb_zip *zip;
	struct rsb_sess *sess; /* LIVE only */
	struct rsb_carrier carrier;
	struct rsb_task gone;
};

struct rsb_list *
rsb_conn_node(struct rsb_conn *conn)
{
	return &conn->node;
}

struct rsb_conn *
rsb_conn_of(struct rsb_list *node)
{
	return rsb_list_entry(node, struct rsb_conn, node);
}

bool
rsb_conn_is_live(const struct rsb_conn *conn)
{
	return conn->state == STATE_LIVE;
}

static void
free_conn(struct rsb_conn *conn)
{
	if (!conn)
		return;
	rsb_loop_unpost(conn->host->loop, &conn->gone);
	rsb_source_del(conn->source);
	rsb_timer_del(conn->timer);
	rsb_cleanup_close(&conn->fd);
	rsb_buf_done(&conn->in);
	rsb_buf_done(&conn->out);
	rsb_buf_done(&conn->frame);
	rsb_ws_done(&conn->ws);
	rsb_zip_free(conn->zip);
	free(conn);
}

static void
gone(struct rsb_task *task)
{
	struct rsb_conn *conn = rsb_container_of(task, struct rsb_conn, gone);

	conn->host->closed(conn->host->arg, conn);
	free_conn(conn);
}

/* The memory stays until the loop comes round: callers up the stack still look at it. */
void
rsb_conn_close(struct rsb_conn *conn)
{
	if (conn->state == STATE_CLOSED)
		return;
	conn->state = STATE_CLOSED;
	if (conn->sess)
		rsb_sess_detach(conn->sess, &conn->carrier);
	conn->sess = NULL;
	rsb_source_del(rsb_steal(&conn->source));
	rsb_timer_set(conn->timer, 0);
	(void)close(rsb_steal_fd(&conn->fd)); /* sockets have nothing to lose here */
	rsb_loop_post(conn->host->loop, &conn->gone);
}

static void
set_events(struct rsb_conn *conn)
{
	uint32_t events = 0;

	if (conn->state == STATE_CLOSED)
		return;
	if (rsb_buf_len(&conn->out) < OUT_HIGH)
		events |= EPOLLIN;
	if (rsb_buf_len(&conn->out) > 0)
		events |= EPOLLOUT;
	if (events == conn->events)
		return;
	if (rsb_source_set(conn->source, events) < 0)
		rsb_conn_close(conn);
	else
		conn->events = events;
}

/* Writes what the socket takes. 0, or -EAGAIN when something is left. */
static int
write_out(struct rsb_conn *conn)
{
	ssize_t n;

	while (rsb_buf_len(&conn->out) > 0) {
		n = send(conn->fd, rsb_buf_head(&conn->out), rsb_buf_len(&conn->out),
			MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		rsb_buf_consume(&conn->out, (size_t)n);
	}
	return 0;
}

/* One frame of the session into out: 1; 0: there is none. */
static int
take_frame(struct rsb_conn *conn)
{
	uint64_t now_ns = rsb_loop_now(conn->host->loop);
	int r;

	rsb_buf_clear(&conn->frame);
	r = rsb_session_output(conn->sess->proto, now_ns, &conn->frame);
	if (r <= 0)
		return r;
	r = rsb_ws_send(&conn->ws, rsb_buf_view(&conn->frame), &conn->out);
	return r < 0 ? r : 1;
}

/* From the session to the socket, until one of them has enough. */
static int
pump(struct rsb_conn *conn)
{
	bool more = conn->state == STATE_LIVE;
	int r;

	do {
		while (more && rsb_buf_len(&conn->out) < OUT_LOW) {
			r = take_frame(conn);
			if (r < 0)
				return r;
			more = r > 0;
		}
		r = write_out(conn);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
	} while (more);
	return 0;
}

static void
flush(struct rsb_conn *conn)
{
	int r;

	if (conn->state == STATE_CLOSED)
		return;
	r = pump(conn);
	if (r < 0) {
		(void)rsb_dbg_r(r, "connection broke while sending");
		rsb_conn_close(conn);
		return;
	}
	if (conn->state == STATE_LINGER && rsb_buf_len(&conn->out) == 0)
		(void)shutdown(conn->fd, SHUT_WR); /* the peer may be gone already */
	if (conn->state == STATE_LIVE)
		rsb_timer_set(conn->timer, rsb_session_deadline(conn->sess->proto));
	set_events(conn);
}

/*
 * A close right after the answer would, with bytes of the peer unread, send a reset that overtakes
 * it. So the peer gets a moment to read it and to close.
 */
static void
linger(struct rsb_conn *conn)
{
	conn->state = STATE_LINGER;
	rsb_buf_clear(&conn->in);
	rsb_timer_set(conn->timer, rsb_loop_now(conn->host->loop) + LINGER_NS);
}

static void
output(void *arg)
{
	flush(arg);
}

static void
lost(void *arg, int r)
{
	struct rsb_conn *conn = arg;

	(void)rsb_dbg_r(r, "the session left its connection");
	conn->sess = NULL;
	rsb_conn_close(conn);
}

/* ---- upgrade ---- */

/* The request line names another path than ours: 404 tells that better than 400. */
static bool
other_path(const struct rsb_buf *in)
{
	static const char ours[] = "GET " PATH " ";
	struct rsb_bytes head = rsb_buf_view(in);

	return head.size >= 4 && memcmp(head.data, "GET ", 4) == 0 &&
	       (head.size < strlen(ours) || memcmp(head.data, ours, strlen(ours)) != 0);
}

static int
check_upgrade(struct rsb_conn *conn, const struct rsb_ws_upgrade *upgrade)
{
	if (upgrade->path.size != strlen(PATH) ||
		memcmp(upgrade->path.data, PATH, strlen(PATH)) != 0)
		return 404;
	if (rsb_auth_upgrade_check(
		    conn->host->key, upgrade->auth, upgrade->key, conn->hs.host_nonce) < 0)
		return 401;
	return 101;
}

/* 1: upgraded; 0: more bytes are needed. */
static int
on_http(struct rsb_conn *conn)
{
	struct rsb_ws_upgrade upgrade;
	int status, used, r;

	used = rsb_ws_accept(rsb_buf_view(&conn->in), &upgrade);
	if (used == 0)
		return 0;
	if (used < 0)
		status = other_path(&conn->in) ? 404 : 400;
	else
		status = check_upgrade(conn, &upgrade);
	if (status != 101) {
		rsb_info("refused a connection with status %d", status);
		r = rsb_ws_refuse(status, &conn->out);
		linger(conn);
		return r;
	}
	r = rsb_ws_accept_reply(upgrade.key, &conn->out);
	if (r < 0)
		return r;
	rsb_buf_consume(&conn->in, (size_t)used);
	rsb_buf_clear(&conn->frame);
	r = rsb_handshake_challenge(&conn->hs, conn->host->key, &conn->frame);
	if (r < 0)
		return r;
	conn->state = STATE_HELLO;
	r = rsb_ws_send(&conn->ws, rsb_buf_view(&conn->frame), &conn->out);
	return r < 0 ? r : 1;
}

/* ---- hello ---- */

static int
send_welcome(struct rsb_conn *conn, const struct rsb_joined *joined)
{
	struct rsb_welcome welcome;
	int r;

	rsb_welcome_fill(conn->host->config, conn->host->registry, joined, &welcome);
	rsb_buf_clear(&conn->frame);
	r = rsb_handshake_welcome(&conn->hs, &welcome, &conn->frame);
	if (r < 0)
		return r;
	return rsb_ws_send(&conn->ws, rsb_buf_view(&conn->frame), &conn->out);
}

static int
refuse(struct rsb_conn *conn, int error, const struct rsb_diag *diag)
{
	int r;

	rsb_info("refused a host: %s", rsb_diag_text(diag, error));
	rsb_buf_clear(&conn->frame);
	r = rsb_handshake_refuse(error, rsb_diag_text(diag, error), &conn->frame);
	if (r == 0)
		r = rsb_ws_send(&conn->ws, rsb_buf_view(&conn->frame), &conn->out);
	if (r == 0)
		r = rsb_ws_close(&conn->ws, 1000, &conn->out);
	linger(conn);
	return r;
}

static int
on_hello(struct rsb_conn *conn, struct rsb_bytes frame)
{
	struct rsb_diag diag = { .text = "" };
	struct rsb_hello hello;
	struct rsb_join join = { .hello = &hello, .carrier = &conn->carrier };
	struct rsb_joined joined;
	int r;

	r = rsb_handshake_check_hello(&conn->hs, conn->host->key, frame, &hello, &diag);
	if (r < 0)
		return refuse(conn, r, &diag);
	if (conn->hs.features & RSB_FEATURE_ZSTD) {
		r = rsb_zip_new(&conn->zip);
		if (r < 0)
			return refuse(conn, r, &diag);
	}
	join.version = conn->hs.version;
	join.zip = conn->zip;
	r = rsb_registry_open(conn->host->registry, &join, &joined, &diag);
	if (r < 0)
		return refuse(conn, r, &diag);
	conn->sess = joined.sess;
	conn->state = STATE_LIVE;
	rsb_dbg("a host is connected: %s", joined.resumed ? "again" : joined.anew ? "anew" : "new");
	return send_welcome(conn, &joined);
}

/* ---- frames ---- */

static int
on_message(struct rsb_conn *conn, struct rsb_bytes msg)
{
	int r;

	if (conn->state == STATE_HELLO)
		return on_hello(conn, msg);
	if (conn->state != STATE_LIVE)
		return 0;
	r = rsb_session_input(conn->sess->proto, rsb_loop_now(conn->host->loop), msg);
	if (conn->state != STATE_LIVE)
		return 0;
	if (r == -ESTALE) /* rolled back: nothing of the session can be used any more */
		rsb_sess_fail(conn->sess, r);
	if (r < 0)
		return r;
	/* Also an acknowledgement alone may have made space for a reply, so for a request. */
	rsb_dispatch_pump(conn->sess);
	return 0;
}

static int
on_frames(struct rsb_conn *conn)
{
	struct rsb_bytes msg;
	size_t used;
	int r;

	while (conn->state == STATE_HELLO || conn->state == STATE_LIVE) {
		used = 0;
		r = rsb_ws_input(&conn->ws, &conn->in, &conn->out, &msg, &used);
		if (r < 0)
			return r;
		if (r == 0 && used == 0)
			return 0;
		if (r > 0)
			r = on_message(conn, msg);
		if (r < 0)
			return r;
		if (conn->state != STATE_CLOSED)
			rsb_buf_consume(&conn->in, used);
	}
	return 0;
}

static int
read_in(struct rsb_conn *conn)
{
	uint8_t *tail;
	ssize_t n;
	int r;

	r = rsb_buf_reserve(&conn->in, READ_SIZE, &tail);
	if (r < 0)
		return r;
	n = recv(conn->fd, tail, READ_SIZE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (conn->state == STATE_LINGER)
		return 0;
	rsb_buf_commit(&conn->in, (size_t)n);
	r = conn->state == STATE_HTTP ? on_http(conn) : 1;
	return r > 0 ? on_frames(conn) : r;
}

static void
ready(void *arg, uint32_t events)
{
	struct rsb_conn *conn = arg;
	int r = 0;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = read_in(conn);
	if (conn->state == STATE_CLOSED)
		return;
	/* Broken by the peer's bytes: the reason is in out, as a close frame. */
	if (r == -EPROTO || r == -EMSGSIZE || r == -EBADMSG) {
		(void)rsb_dbg_r(r, "bad bytes from a host");
		if (conn->sess)
			rsb_sess_detach(rsb_steal(&conn->sess), &conn->carrier);
		linger(conn);
	} else if (r < 0) {
		rsb_conn_close(conn);
		return;
	}
	flush(conn);
}

static void
timeout(void *arg)
{
	struct rsb_conn *conn = arg;
	int r;

	if (conn->state != STATE_LIVE) {
		rsb_conn_close(conn);
		return;
	}
	r = rsb_session_tick(conn->sess->proto, rsb_loop_now(conn->host->loop));
	if (r < 0)
		rsb_conn_close(conn);
	else
		flush(conn);
}

int
rsb_conn_new(const struct rsb_conn_host *host, int fd, struct rsb_conn **ret_conn)
{
	rsb_autoclose int owned = fd;
	struct rsb_conn *conn = rsb_new(struct rsb_conn);
	int r;

	if (!conn)
		return -ENOMEM;
	conn->host = host;
	conn->fd = -1;
	conn->carrier = (struct rsb_carrier){ .output = output, .lost = lost, .arg = conn };
	conn->gone.fn = gone;
	conn->events = EPOLLIN;
	rsb_list_init(&conn->node);
	rsb_buf_init(&conn->in, IN_MAX);
	rsb_buf_init(&conn->out, OUT_MAX);
	rsb_buf_init(&conn->frame, 2 * RSB_FRAME_MAX);
	r = rsb_ws_init(&conn->ws, RSB_WS_SERVER);
	if (r == 0)
		r = rsb_fd_nonblock(owned, true);
	if (r == 0)
		r = rsb_timer_new(host->loop, timeout, conn, &conn->timer);
	if (r == 0)
		r = rsb_loop_add(host->loop, owned, conn->events, ready, conn, &conn->source);
	if (r < 0) {
		free_conn(conn);
		return r;
	}
	rsb_timer_set(conn->timer, rsb_loop_now(host->loop) + RSB_CONN_HANDSHAKE_NS);
	conn->fd = rsb_steal_fd(&owned);
	*ret_conn = conn;
	return 0;
}
