/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <libwebsockets.h>

#include "proto/limits.h"
#include "proto/ws.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"
#include "util/fd.h"

/*
 * proto/ws against libwebsockets, which nobody here wrote, as server and as client. It runs in a child process and
 * echoes; the first byte of a message may ask for something else:
 *	P	ping us, then send "pong:" and what the pong brought
 *	F	echo in three fragments
 *	C	close with the code that follows
 * When we close, the code that it saw comes back through a pipe.
 */

#define PING "are you there"
#define QUEUE_MAX 64
#define DEADLINE_S 10

/* ---- libwebsockets' side ---- */

struct item {
	uint8_t *data; /* LWS_PRE bytes of room, then the payload */
	size_t size;
};

struct lws_side {
	struct item queue[QUEUE_MAX];
	size_t first, n;
	uint8_t *joining;
	size_t joined;
	bool ping;
	int report_fd;
	bool ended;
};

static void
enqueue(struct lws_side *side, struct lws *wsi, const char *prefix, const void *data, size_t size)
{
	const size_t n = strlen(prefix);
	struct item *item = &side->queue[(side->first + side->n) % QUEUE_MAX];

	if (side->n == QUEUE_MAX)
		abort();
	item->data = malloc(LWS_PRE + n + size + 1);
	if (!item->data)
		abort();
	memcpy(item->data + LWS_PRE, prefix, n);
	if (size > 0)
		memcpy(item->data + LWS_PRE + n, data, size);
	item->size = n + size;
	side->n++;
	lws_callback_on_writable(wsi);
}

static int
write_item(struct lws *wsi, const struct item *item)
{
	uint8_t *data = item->data + LWS_PRE;
	const size_t third = item->size / 3;

	if (item->size == 0 || data[0] != 'F')
		return lws_write(wsi, data, item->size, LWS_WRITE_BINARY);
	/* libwebsockets writes its heads in front of the payload: each part is a copy. */
	for (size_t part = 0; part < 3; part++) {
		const size_t size = part < 2 ? third : item->size - 2 * third;
		uint8_t *copy = malloc(LWS_PRE + size + 1);
		int flags = part == 0 ? LWS_WRITE_BINARY : LWS_WRITE_CONTINUATION;

		memcpy(copy + LWS_PRE, data + part * third, size);
		if (part < 2)
			flags |= LWS_WRITE_NO_FIN;
		if (lws_write(wsi, copy + LWS_PRE, size, (enum lws_write_protocol)flags) < 0)
			abort();
		free(copy);
	}
	return 0;
}

static int
on_writable(struct lws_side *side, struct lws *wsi)
{
	uint8_t ping[LWS_PRE + sizeof(PING)];
	struct item *item = &side->queue[side->first];
	int r;

	if (side->ping) {
		side->ping = false;
		memcpy(ping + LWS_PRE, PING, sizeof(PING) - 1);
		return lws_write(wsi, ping + LWS_PRE, sizeof(PING) - 1, LWS_WRITE_PING) < 0 ? -1
											    : 0;
	}
	if (side->n == 0)
		return 0;
	r = write_item(wsi, item);
	free(item->data);
	side->first = (side->first + 1) % QUEUE_MAX;
	side->n--;
	if (side->n > 0)
		lws_callback_on_writable(wsi);
	return r < 0 ? -1 : 0;
}

/* -1 closes the connection. */
static int
on_message(struct lws_side *side, struct lws *wsi, const uint8_t *data, size_t size)
{
	if (size == 1 && data[0] == 'P') {
		side->ping = true;
		lws_callback_on_writable(wsi);
		return 0;
	}
	if (size == 3 && data[0] == 'C') {
		lws_close_reason(wsi, (enum lws_close_status)(data[1] << 8 | data[2]), NULL, 0);
		return -1;
	}
	enqueue(side, wsi, "", data, size);
	return 0;
}

static int
on_receive(struct lws_side *side, struct lws *wsi, const void *data, size_t size)
{
	if (lws_frame_is_binary(wsi) != 1 || side->joined + size > RSB_FRAME_MAX)
		abort();
	if (size > 0)
		memcpy(side->joining + side->joined, data, size);
	side->joined += size;
	if (lws_remaining_packet_payload(wsi) > 0 || !lws_is_final_fragment(wsi))
		return 0;
	size = side->joined;
	side->joined = 0;
	return on_message(side, wsi, side->joining, size);
}

static int
callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct lws_side *side = lws_context_user(lws_get_context(wsi));

	(void)user;
	switch ((int)reason) {
	case LWS_CALLBACK_RECEIVE:
	case LWS_CALLBACK_CLIENT_RECEIVE:
		return on_receive(side, wsi, in, len);
	case LWS_CALLBACK_SERVER_WRITEABLE:
	case LWS_CALLBACK_CLIENT_WRITEABLE:
		return on_writable(side, wsi);
	case LWS_CALLBACK_RECEIVE_PONG:
	case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
		enqueue(side, wsi, "pong:", in, len);
		return 0;
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		return rsb_fd_write_full(side->report_fd, in, rsb_min(len, (size_t)2)) < 0 ? -1 : 0;
	case LWS_CALLBACK_CLOSED:
	case LWS_CALLBACK_CLIENT_CLOSED:
	case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
		side->ended = true;
		return 0;
	default:
		return 0;
	}
}

static const struct lws_protocols protocols[] = {
	{ .name = "rsb", .callback = callback, .rx_buffer_size = RSB_FRAME_MAX },
	{ .name = NULL },
};

/* The child. port 0: a server, whose port goes to the pipe; else a client of it. */
static int
run_lws(int port, int report_fd)
{
	struct lws_side side = { .report_fd = report_fd };
	struct lws_context_creation_info info = {
		.port = port == 0 ? 0 : CONTEXT_PORT_NO_LISTEN,
		.iface = "127.0.0.1",
		.protocols = protocols,
		.pt_serv_buf_size = RSB_FRAME_MAX,
		.user = &side,
		.gid = -1,
		.uid = -1,
	};
	struct lws_client_connect_info client = {
		.address = "127.0.0.1", .port = port, .path = "/rsb", .host = "h", .origin = "h"
	};
	struct lws_context *context;
	uint16_t listening;

	lws_set_log_level(LLL_ERR, NULL);
	side.joining = malloc(RSB_FRAME_MAX);
	context = lws_create_context(&info);
	if (!context || !side.joining)
		return 1;
	client.context = context;
	if (port == 0) {
		listening = (uint16_t)lws_get_vhost_listen_port(
			lws_get_vhost_by_name(context, "default"));
		if (rsb_fd_write_full(report_fd, &listening, sizeof(listening)) < 0)
			return 1;
	} else if (!lws_client_connect_via_info(&client)) {
		return 1;
	}
	while (!side.ended && lws_service(context, 0) >= 0)
		;
	lws_context_destroy(context);
	free(side.joining);
	return 0;
}

/* ---- our side ---- */

struct peer {
	enum rsb_ws_role role;
	pid_t pid;
	int report_fd;
	int fd;
	struct rsb_ws ws;
	struct rsb_buf in;
	struct rsb_buf out;
	size_t used; /* by the message that was taken last */
};

static void
start_lws(struct peer *peer, int port)
{
	const pid_t parent = getpid();
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	peer->pid = fork();
	ck_assert_int_ge(peer->pid, 0);
	if (peer->pid == 0) {
		/* Must not outlive a test that failed. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(getppid() == parent ? run_lws(port, fds[1]) : 1);
	}
	(void)close(fds[1]);
	peer->report_fd = fds[0];
}

static uint16_t
reported(struct peer *peer)
{
	uint16_t value;
	size_t n;

	ck_assert_int_eq(rsb_fd_read_full(peer->report_fd, &value, sizeof(value), &n), 0);
	ck_assert_uint_eq(n, sizeof(value));
	return value;
}

static void
set_deadline(int fd)
{
	const struct timeval deadline = { .tv_sec = DEADLINE_S };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline)), 0);
}

static void
flush_out(struct peer *peer)
{
	struct rsb_bytes bytes = rsb_buf_view(&peer->out);

	ck_assert_int_eq(rsb_fd_write_full(peer->fd, bytes.data, bytes.size), 0);
	rsb_buf_clear(&peer->out);
}

static void
read_more(struct peer *peer)
{
	uint8_t *tail;
	ssize_t n;

	ck_assert_int_eq(rsb_buf_reserve(&peer->in, 65536, &tail), 0);
	n = recv(peer->fd, tail, 65536, 0);
	ck_assert_msg(n > 0, "%s", n == 0 ? "the other end is gone" : strerror(errno));
	rsb_buf_commit(&peer->in, (size_t)n);
}

static void
upgrade_client(struct peer *peer)
{
	char key[RSB_WS_KEY_SIZE + 1];
	int r, status;

	ck_assert_int_eq(rsb_ws_key(key), 0);
	ck_assert_int_eq(rsb_ws_request("h", "/rsb", key, NULL, 0, &peer->out), 0);
	flush_out(peer);
	do {
		read_more(peer);
		r = rsb_ws_response(rsb_buf_view(&peer->in), key, &status);
	} while (r == 0);
	ck_assert_msg(r > 0, "status %d, %s", status, strerror(-r));
	rsb_buf_consume(&peer->in, (size_t)r);
}

static void
upgrade_server(struct peer *peer)
{
	struct rsb_ws_upgrade upgrade;
	int r;

	do {
		read_more(peer);
		r = rsb_ws_accept(rsb_buf_view(&peer->in), &upgrade);
	} while (r == 0);
	ck_assert_int_gt(r, 0);
	ck_assert(bytes_equal(upgrade.path, rsb_bytes_str("/rsb")));
	ck_assert_int_eq(rsb_ws_accept_reply(upgrade.key, &peer->out), 0);
	rsb_buf_consume(&peer->in, (size_t)r);
	flush_out(peer);
}

static void
begin(struct peer *peer, enum rsb_ws_role role)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(peer, 0, sizeof(*peer));
	peer->role = role;
	ck_assert_int_eq(rsb_ws_init(&peer->ws, role), 0);
	ck_assert_int_ge(fd, 0);
	set_deadline(fd);
	if (role == RSB_WS_CLIENT) {
		start_lws(peer, 0);
		addr.sin_port = htons(reported(peer));
		ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, size), 0);
		peer->fd = fd;
		upgrade_client(peer);
		return;
	}
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, size), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
	start_lws(peer, ntohs(addr.sin_port));
	peer->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(peer->fd, 0);
	set_deadline(peer->fd);
	(void)close(fd);
	upgrade_server(peer);
}

static void
end(struct peer *peer)
{
	(void)close(peer->fd);
	(void)close(peer->report_fd);
	ck_assert_int_eq(kill(peer->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(peer->pid, NULL, 0), peer->pid);
	rsb_ws_done(&peer->ws);
	rsb_buf_done(&peer->in);
	rsb_buf_done(&peer->out);
}

static void
send_msg(struct peer *peer, struct rsb_bytes msg)
{
	ck_assert_int_eq(rsb_ws_send(&peer->ws, msg, &peer->out), 0);
}

/* The next message, or a negative errno as of rsb_ws_input(). Answers are sent. */
static int
next(struct peer *peer, struct rsb_bytes *ret_msg)
{
	int r;

	rsb_buf_consume(&peer->in, peer->used);
	for (;;) {
		peer->used = 0;
		r = rsb_ws_input(&peer->ws, &peer->in, &peer->out, ret_msg, &peer->used);
		flush_out(peer);
		if (r != 0)
			return r;
		rsb_buf_consume(&peer->in, peer->used);
		read_more(peer);
	}
}

static void
expect(struct peer *peer, struct rsb_bytes expected)
{
	struct rsb_bytes msg;

	ck_assert_int_eq(next(peer, &msg), 1);
	ck_assert(bytes_equal(msg, expected));
}

static const enum rsb_ws_role roles[] = { RSB_WS_CLIENT, RSB_WS_SERVER };
static uint8_t payload[RSB_FRAME_MAX];

static void
fill(void)
{
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 31 + i / 256);
	payload[0] = 'E';
}

START_TEST(echoes_messages_of_every_length)
{
	struct peer peer;

	begin(&peer, roles[_i]);
	for (size_t size = 0; size <= 65535;) {
		send_msg(&peer, (struct rsb_bytes){ payload, size });
		flush_out(&peer);
		expect(&peer, (struct rsb_bytes){ payload, size });
		/* Each of the short ones, then wider steps, with the last ones below 65,536. */
		if (size < 300 || size >= 65530)
			size++;
		else
			size = rsb_min(size + 997, (size_t)65530);
	}
	end(&peer);
}
END_TEST

START_TEST(echoes_many_messages_that_arrive_at_once)
{
	struct peer peer;

	begin(&peer, roles[_i]);
	for (size_t i = 0; i < QUEUE_MAX; i++)
		send_msg(&peer, (struct rsb_bytes){ payload, 2 + i * 3 });
	flush_out(&peer);
	for (size_t i = 0; i < QUEUE_MAX; i++)
		expect(&peer, (struct rsb_bytes){ payload, 2 + i * 3 });
	end(&peer);
}
END_TEST

START_TEST(joins_the_fragments_of_another)
{
	uint8_t fragmented[1000];
	struct peer peer;

	begin(&peer, roles[_i]);
	memcpy(fragmented, payload, sizeof(fragmented));
	fragmented[0] = 'F';
	for (size_t size = 3; size <= sizeof(fragmented); size += 89) {
		send_msg(&peer, (struct rsb_bytes){ fragmented, size });
		flush_out(&peer);
		expect(&peer, (struct rsb_bytes){ fragmented, size });
	}
	end(&peer);
}
END_TEST

START_TEST(answers_the_ping_of_another)
{
	struct peer peer;

	begin(&peer, roles[_i]);
	send_msg(&peer, rsb_bytes_str("P"));
	flush_out(&peer);
	expect(&peer, rsb_bytes_str("pong:" PING));
	end(&peer);
}
END_TEST

START_TEST(answers_the_close_of_another)
{
	const uint16_t codes[] = { 1000, 1001, 1011, 3000, 4999 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(codes); i++) {
		struct rsb_bytes msg;
		struct peer peer;

		begin(&peer, roles[_i]);
		send_msg(&peer, BYTES('C', (uint8_t)(codes[i] >> 8), (uint8_t)codes[i]));
		flush_out(&peer);
		ck_assert_int_eq(next(&peer, &msg), -ECONNRESET);
		/* It takes our answer and ends the connection in order. */
		ck_assert_int_eq((int)recv(peer.fd, payload + 1, 1, 0), 0);
		end(&peer);
	}
}
END_TEST

START_TEST(closes_with_a_code_that_the_other_sees)
{
	const uint16_t codes[] = { 1000, 1001, 1002, 1003, 1009, 4000 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(codes); i++) {
		struct rsb_bytes msg;
		struct peer peer;

		begin(&peer, roles[_i]);
		ck_assert_int_eq(rsb_ws_close(&peer.ws, codes[i], &peer.out), 0);
		flush_out(&peer);
		ck_assert_uint_eq(ntohs(reported(&peer)), codes[i]);
		ck_assert_int_eq(next(&peer, &msg), -ECONNRESET);
		end(&peer);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ws-interop");
	TCase *tcase = tcase_create("libwebsockets");
	const TTest *const tests[] = {
		echoes_messages_of_every_length,
		echoes_many_messages_that_arrive_at_once,
		joins_the_fragments_of_another,
		answers_the_ping_of_another,
		answers_the_close_of_another,
		closes_with_a_code_that_the_other_sees,
	};
	SRunner *runner;
	int n_failed;

	fill();
	tcase_set_timeout(tcase, 60);
	/* Each once as client and once as server. */
	for (size_t i = 0; i < RSB_ARRAY_SIZE(tests); i++)
		tcase_add_loop_test(tcase, tests[i], 0, RSB_ARRAY_SIZE(roles));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
