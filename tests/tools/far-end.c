/* SPDX-License-Identifier: MIT */
#include "far-end.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/version.h"
#include "util/clock.h"
#include "util/fd.h"

#define TICK_MS 20
#define READ_SIZE ((size_t)65536)
#define BUFFER_MAX ((size_t)64 << 20)
#define SESSION_OUT_MAX ((size_t)1 << 18) /* beyond it the session keeps what it has */

/* Ours to get right: what fails here is no answer of the peer. */
static void
must(int r, const char *what)
{
	if (r < 0)
		errx(1, "%s: %s", what, strerror(-r));
}

static void
hang_up(struct far_end *far)
{
	if (far->phase == FAR_END_NONE)
		return;
	rsb_session_free(far->session);
	far->session = NULL;
	rsb_ws_done(&far->ws);
	rsb_buf_clear(&far->in);
	rsb_buf_clear(&far->out);
	(void)close(far->fd);
	far->phase = FAR_END_NONE;
}

void
far_end_frame(struct far_end *far, const struct rsb_frame *frame)
{
	struct rsb_buf bytes = { 0 };

	must(rsb_frame_encode(frame, NULL, &bytes), "frame");
	must(rsb_ws_send(&far->ws, rsb_buf_view(&bytes), &far->out), "send");
	rsb_buf_done(&bytes);
}

void
far_end_message(struct far_end *far, struct rsb_bytes msg)
{
	must(rsb_stream_send(rsb_session_stream(far->session), RSB_CLASS_READ, msg), "message");
}

void
far_end_reply(struct far_end *far, const struct rsb_call_head *head, int error, const void *rep)
{
	struct rsb_buf msg = { .max = RSB_MESSAGE_MAX };

	must(rsb_codec_reply(head->op, head->id, error, rep, RSB_PROTO_VERSION, &msg), "reply");
	far_end_message(far, rsb_buf_view(&msg));
	rsb_buf_done(&msg);
}

static int
take_hello(struct far_end *far, struct rsb_bytes frame)
{
	struct rsb_welcome welcome = { .workspace = rsb_bytes_str("/w"),
		.boot_id = rsb_bytes_str("boot") };
	const struct rsb_session_config config = {
		.send_max = BUFFER_MAX,
		.window = RSB_SIDECAR_WINDOW,
		.ping_ns = 10 * RSB_NSEC_PER_SEC,
		.silent_max = 10,
		.chan_ops = far->chan_ops,
		.chan_arg = far,
	};
	struct rsb_buf out = { 0 };
	struct rsb_stream_state state;
	struct rsb_hello hello;
	int r;

	r = rsb_handshake_check_hello(&far->hs, &far->key, frame, &hello, NULL);
	if (r < 0)
		return r;
	must(rsb_session_new(&config, &far->session), "session");
	rsb_stream_state(rsb_session_stream(far->session), &state);
	far->epoch[7]++;
	welcome.epoch = rsb_bytes_str(far->epoch);
	welcome.window = state.limit;
	welcome.cmd_uid = 1000;
	welcome.cmd_gid = 1000;
	/* Without zstd, so that what is said is what is sent. */
	far->hs.features = 0;
	must(rsb_handshake_welcome(&far->hs, &welcome, &out), "welcome");
	must(rsb_ws_send(&far->ws, rsb_buf_view(&out), &far->out), "send");
	rsb_buf_done(&out);
	far->phase = FAR_END_OPEN;
	return rsb_session_attach(far->session, rsb_now_ns(),
		&(struct rsb_stream_state){ .limit = hello.window }, NULL);
}

static int
take_upgrade(struct far_end *far)
{
	struct rsb_ws_upgrade upgrade;
	struct rsb_buf frame = { 0 };
	int n, r;

	n = rsb_ws_accept(rsb_buf_view(&far->in), &upgrade);
	if (n <= 0)
		return n;
	r = rsb_auth_upgrade_check(&far->key, upgrade.auth, upgrade.key, far->hs.host_nonce);
	if (r < 0)
		return r;
	must(rsb_ws_accept_reply(upgrade.key, &far->out), "upgrade");
	rsb_buf_consume(&far->in, (size_t)n);
	must(rsb_handshake_challenge(&far->hs, &far->key, &frame), "challenge");
	must(rsb_ws_send(&far->ws, rsb_buf_view(&frame), &far->out), "send");
	rsb_buf_done(&frame);
	far->phase = FAR_END_HELLO;
	return 1;
}

static int
take_frame(struct far_end *far, struct rsb_bytes frame)
{
	int r;

	if (far->phase == FAR_END_HELLO)
		return take_hello(far, frame);
	r = rsb_session_input(far->session, rsb_now_ns(), frame);
	if (r < 0)
		return r;
	while (rsb_stream_peek(rsb_session_stream(far->session))) {
		struct rsb_msg *msg = rsb_stream_take(rsb_session_stream(far->session));
		struct rsb_call_head head;

		r = rsb_codec_head((struct rsb_bytes){ msg->data, msg->size }, &head);
		if (r == 0)
			far->call(far, &head);
		free(msg);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
receive(struct far_end *far)
{
	struct rsb_bytes msg;
	uint8_t *tail;
	size_t used;
	ssize_t n;
	int r;

	must(rsb_buf_reserve(&far->in, READ_SIZE, &tail), "receive");
	n = read(far->fd, tail, READ_SIZE);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
	rsb_buf_commit(&far->in, (size_t)n);
	if (far->phase == FAR_END_UPGRADE) {
		r = take_upgrade(far);
		if (r <= 0)
			return r;
	}
	for (;;) {
		r = rsb_ws_input(&far->ws, &far->in, &far->out, &msg, &used);
		if (r < 0)
			return r;
		if (r == 0 && used == 0)
			return 0;
		if (r > 0) {
			r = take_frame(far, msg);
			if (r < 0)
				return r;
		}
		rsb_buf_consume(&far->in, used);
	}
}

static int
flush(struct far_end *far)
{
	struct rsb_buf frame = { 0 };
	ssize_t n;

	while (far->phase == FAR_END_OPEN && rsb_buf_len(&far->out) < SESSION_OUT_MAX &&
		rsb_session_output(far->session, rsb_now_ns(), &frame) > 0) {
		must(rsb_ws_send(&far->ws, rsb_buf_view(&frame), &far->out), "send");
		rsb_buf_clear(&frame);
	}
	rsb_buf_done(&frame);
	if (rsb_buf_len(&far->out) == 0)
		return 0;
	n = send(far->fd, rsb_buf_head(&far->out), rsb_buf_len(&far->out), MSG_NOSIGNAL);
	if (n > 0)
		rsb_buf_consume(&far->out, (size_t)n);
	return n < 0 && errno != EAGAIN ? -errno : 0;
}

static int
take_connection(struct far_end *far)
{
	int fd = accept4(far->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno == EAGAIN || errno == ECONNABORTED ? 0 : -errno;
	hang_up(far);
	far->fd = fd;
	far->phase = FAR_END_UPGRADE;
	return rsb_ws_init(&far->ws, RSB_WS_SERVER);
}

static int
serve_connection(struct far_end *far, short events)
{
	int r = 0;

	if (events & (POLLIN | POLLHUP | POLLERR))
		r = receive(far);
	if (r == 0)
		r = flush(far);
	if (r == 0 && far->phase == FAR_END_OPEN)
		r = rsb_session_tick(far->session, rsb_now_ns());
	return r;
}

int
far_end_run(struct far_end *far)
{
	(void)strcpy(far->epoch, "epoch--0");
	rsb_buf_init(&far->in, BUFFER_MAX);
	rsb_buf_init(&far->out, BUFFER_MAX);
	for (;;) {
		struct pollfd pfds[] = {
			{ .fd = far->listen_fd, .events = POLLIN },
			{ .fd = far->phase == FAR_END_NONE ? -1 : far->fd, .events = POLLIN },
		};
		int r;

		if (rsb_buf_len(&far->out) > 0)
			pfds[1].events |= POLLOUT;
		if (poll(pfds, 2, TICK_MS) < 0 && errno != EINTR)
			return -errno;
		if (far->phase != FAR_END_NONE && serve_connection(far, pfds[1].revents) < 0)
			hang_up(far);
		if (pfds[0].revents) {
			r = take_connection(far);
			if (r < 0)
				return r;
		}
	}
}
