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

#include "proto/limits.h"
#include "proto/ws.h"
#include "tests/unit/bytes.h"
#include "tests/unit/lws-echo.h"
#include "tests/unit/unit.h"
#include "util/fd.h"

/* proto/ws against libwebsockets, as client and as server. */

#define DEADLINE_S 10

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
		_exit(getppid() == parent ? lws_echo(port, fds[1]) : 1);
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
	for (size_t i = 0; i < LWS_ECHO_QUEUE_MAX; i++)
		send_msg(&peer, (struct rsb_bytes){ payload, 2 + i * 3 });
	flush_out(&peer);
	for (size_t i = 0; i < LWS_ECHO_QUEUE_MAX; i++)
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
	expect(&peer, rsb_bytes_str("pong:" LWS_ECHO_PING));
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
