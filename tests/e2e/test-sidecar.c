/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/call.h"
#include "proto/auth.h"
#include "proto/ws.h"
#include "tests/e2e/fixture.h"
#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/spawn.h"

/* ---- the start ---- */

START_TEST(refuses_to_start_without_a_key)
{
	struct fixture fx;
	char text[1024];

	fixture_init(&fx);
	for (size_t size = 0; size < RSB_AUTH_KEY_SIZE; size += 31) {
		const char *const argv[] = { "rsb-sidecar", "--port", "0", "--workspace",
			fx.workspace, "--user", "root", "--key-fd", "3", NULL };

		ck_assert_int_eq(fixture_run(&fx, argv, size, text, sizeof(text)), 1);
		ck_assert_str_eq(text, "");
	}
	fixture_done(&fx);
}
END_TEST

START_TEST(says_what_is_wrong_with_its_arguments)
{
	const char *const cases[][10] = {
		{ "rsb-sidecar", NULL },
		{ "rsb-sidecar", "--port", "70000", "--workspace", "/tmp", "--user", "root",
			"--key-fd", "3", NULL },
		{ "rsb-sidecar", "--port", "1", "--workspace", "here", "--user", "root", "--key-fd",
			"3", NULL },
		{ "rsb-sidecar", "--fd", "x", "--workspace", "/tmp", "--user", "root", "--key-fd",
			"3", NULL },
	};
	struct fixture fx;
	char text[1024];

	fixture_init(&fx);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_int_eq(fixture_run(&fx, cases[i], 32, text, sizeof(text)), 2);
	fixture_done(&fx);
}
END_TEST

START_TEST(leaves_a_port_to_the_one_that_has_it)
{
	struct fixture fx;
	char port[16], text[1024];
	const char *argv[] = { "rsb-sidecar", "--port", port, "--workspace", "/tmp", "--user", NULL,
		"--key-fd", "3", "--listen", "127.0.0.1", NULL };

	fixture_init(&fx);
	argv[6] = fx.user;
	fixture_start(&fx, FIXTURE_PORT);
	(void)snprintf(port, sizeof(port), "%u", fx.port);
	ck_assert_int_eq(fixture_run(&fx, argv, 32, text, sizeof(text)), 1);
	fixture_connect(&fx);
	fixture_check(&fx, "echo here", "here\n", 0);
	fixture_done(&fx);
}
END_TEST

/* ---- strangers ---- */

/* The status of the answer; -1: closed without one. */
static int
ask(struct fixture *fx, const void *bytes, size_t size)
{
	rsb_autoclose int fd = fixture_dial(fx);
	const struct timeval timeout = { .tv_sec = 5 };
	char answer[256] = "";
	int status = -1;
	size_t n;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
	(void)send(fd, bytes, size, MSG_NOSIGNAL);
	(void)rsb_fd_read_full(fd, answer, sizeof(answer) - 1, &n); /* a reset is an answer, too */
	(void)sscanf(answer, "HTTP/1.1 %d", &status);
	return status;
}

#define UPGRADE                                                                                 \
	"Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
	"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

static int
ask_text(struct fixture *fx, const char *text)
{
	return ask(fx, text, strlen(text));
}

START_TEST(turns_strangers_away)
{
	char header[512], wrong[RSB_AUTH_HEADER_SIZE + 1];
	const uint8_t nonce[RSB_AUTH_NONCE_SIZE] = { 1 };
	unsigned char garbage[9000];
	struct rsb_secret other;
	struct fixture fx;

	fixture_init(&fx);
	fixture_start(&fx, FIXTURE_PORT);
	ck_assert_int_eq(ask_text(&fx, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	ck_assert_int_eq(ask_text(&fx, "GET /rsb HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
	ck_assert_int_eq(ask_text(&fx, "POST /rsb HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
	ck_assert_int_eq(ask_text(&fx, "GET /rsb HTTP/1.1\r\n" UPGRADE "\r\n"), 401);
	ck_assert_int_eq(ask_text(&fx, "GET /rsb2 HTTP/1.1\r\n" UPGRADE "\r\n"), 404);
	ck_assert_int_eq(rsb_secret_generate(&other, RSB_AUTH_KEY_SIZE), 0);
	rsb_auth_upgrade_header(&other, nonce, rsb_bytes_str("AAAAAAAAAAAAAAAAAAAAAA=="), wrong);
	(void)snprintf(header, sizeof(header),
		"GET /rsb HTTP/1.1\r\n" UPGRADE RSB_AUTH_HEADER ": %s\r\n\r\n", wrong);
	ck_assert_int_eq(ask_text(&fx, header), 401);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(rsb_random(garbage, sizeof(garbage)), 0);
		(void)ask(&fx, garbage, sizeof(garbage));
	}
	fixture_connect(&fx);
	fixture_check(&fx, "echo alive", "alive\n", 0);
	fixture_done(&fx);
}
END_TEST

START_TEST(bounds_connections_without_a_key)
{
	struct fixture fx;
	int fds[40];
	char byte;

	fixture_init(&fx);
	fixture_start(&fx, FIXTURE_PORT);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(fds); i++)
		fds[i] = fixture_dial(&fx);
	/* The last one is over the limit, and closed at once. */
	ck_assert_int_le(recv(fds[39], &byte, 1, 0), 0);
	ck_assert_int_lt(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
	ck_assert_int_eq(errno, EAGAIN);
	/* Its end is the sidecar's as well when it has seen ours: then there is room again. */
	for (size_t i = 0; i < RSB_ARRAY_SIZE(fds); i++) {
		(void)shutdown(fds[i], SHUT_WR);
		ck_assert_int_le(recv(fds[i], &byte, 1, 0), 0);
		(void)close(fds[i]);
	}
	fixture_connect(&fx);
	fixture_check(&fx, "echo alive", "alive\n", 0);
	fixture_done(&fx);
}
END_TEST

/* ---- commands ---- */

START_TEST(serves_an_inherited_socket_to_its_end)
{
	struct fixture fx;

	fixture_init(&fx);
	fixture_start(&fx, FIXTURE_FD);
	fixture_connect(&fx);
	fixture_check(&fx, "echo over a pair; exit 4", "over a pair\n", 4);
	rsb_link_free(fx.link);
	fx.link = NULL;
	ck_assert_int_eq(rsb_spawn_wait(fx.pid), 0);
	fx.pid = 0;
	fixture_done(&fx);
}
END_TEST

START_TEST(runs_commands_as_the_user)
{
	const struct passwd *nobody = getpwnam("nobody");
	char path[128], expected[256];
	struct fixture fx;
	struct stat st;

	if (getuid() != 0 || !nobody)
		return;
	fixture_init(&fx);
	fx.user = "nobody";
	/* The workspace is made by the program. */
	ck_assert_int_eq(chmod(fx.workspace, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/new/space", fx.workspace);
	ck_assert_uint_lt(strlen(path), sizeof(fx.workspace));
	(void)strcpy(fx.workspace, path);
	fixture_start(&fx, FIXTURE_PORT);
	fixture_connect(&fx);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_uid, nobody->pw_uid);
	(void)snprintf(
		expected, sizeof(expected), "%u %u\n%s\n", nobody->pw_uid, nobody->pw_gid, path);
	fixture_check(&fx, "echo $(id -u) $(id -g); pwd", expected, 0);
	/* It is root, so they can neither look into it nor end it. */
	(void)snprintf(expected, sizeof(expected),
		"cat /proc/%d/environ /proc/%d/mem 2>/dev/null; kill -9 %d 2>/dev/null; echo $?",
		fx.pid, fx.pid, fx.pid);
	fixture_check(&fx, expected, "1\n", 0);
	*strstr(fx.workspace, "/new") = 0;
	fixture_done(&fx);
}
END_TEST

static int
count_fds(pid_t pid)
{
	rsb_autoclosedir DIR *dir = NULL;
	char path[64];
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	/* It is not dumpable: only root may look. */
	while (dir && readdir(dir))
		n++;
	return n;
}

START_TEST(leaks_no_descriptor)
{
	struct fixture fx;
	int before;

	fixture_init(&fx);
	fx.no_cgroup = _i == 1;
	fixture_start(&fx, FIXTURE_PORT);
	fixture_connect(&fx);
	fixture_check(&fx, "true", "", 0);
	before = count_fds(fx.pid);
	for (int i = 0; i < 50; i++)
		fixture_check(&fx, "exec ls /proc/self/fd | wc -l", "4\n", 0);
	/* Those of the last command are closed behind its answer. */
	for (int i = 0; count_fds(fx.pid) > before && i < 1000; i++)
		(void)usleep(10000);
	ck_assert_int_le(count_fds(fx.pid), before);
	fixture_done(&fx);
}
END_TEST

START_TEST(takes_its_commands_with_it)
{
	static const int signals[] = { SIGTERM, SIGKILL };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(signals); i++) {
		const char *const argv[] = { "sh", "-c", "setsid sleep 100 & echo $!; sleep 100",
			NULL };
		struct fixture_exec exec;
		struct fixture fx;
		uint64_t end_ns = rsb_now_ns() + FIXTURE_WAIT_NS;

		fixture_init(&fx);
		fx.no_cgroup = true;
		fixture_start(&fx, FIXTURE_PORT);
		fixture_connect(&fx);
		fixture_spawn(&fx, argv, NULL, 0, &exec);
		ck_assert_int_eq(kill((pid_t)exec.spawn.pid, 0), 0);
		(void)fixture_stop(&fx, signals[i]);
		while (kill((pid_t)exec.spawn.pid, 0) == 0) {
			ck_assert_uint_lt(rsb_now_ns(), end_ns);
			(void)usleep(10000);
		}
		fixture_done(&fx);
	}
}
END_TEST

/* ---- broken connections ---- */

START_TEST(loses_and_doubles_nothing_over_cuts)
{
	unsigned int seed = 3;
	struct fixture fx;

	fixture_init(&fx);
	fixture_start(&fx, FIXTURE_RELAY);
	fx.reconnect = true;
	fixture_connect(&fx);
	for (int i = 0; i < 100; i++) {
		char script[64], expected[64];

		/* At least the handshake gets through, else nothing ever would. */
		relay_cut_after(fx.relay, 2500 + (size_t)rand_r(&seed) % 4000);
		(void)snprintf(script, sizeof(script), "echo %d >> log; wc -l < log", i);
		(void)snprintf(expected, sizeof(expected), "%d\n", i + 1);
		fixture_check(&fx, script, expected, 0);
	}
	fixture_check(&fx, "seq 0 99 | cmp - log && echo same", "same\n", 0);
	ck_assert_uint_gt(relay_count(fx.relay), 10);
	ck_assert_uint_eq(fx.n_epoch, 0);
	fixture_done(&fx);
}
END_TEST

START_TEST(carries_bulk_over_cuts)
{
	const char *const argv[] = { "sh", "-c", "cat; seq 300000", NULL };
	size_t size = 3 << 20;
	char *input = malloc(size);
	struct fixture_exec exec;
	struct rsb_wait_rep rep;
	struct fixture fx;
	char *out;

	ck_assert_int_eq(rsb_random(input, size), 0);
	fixture_init(&fx);
	fixture_start(&fx, FIXTURE_RELAY);
	fx.reconnect = true;
	fixture_connect(&fx);
	relay_cut_after(fx.relay, 400000);
	fixture_spawn(&fx, argv, input, size, &exec);
	fixture_wait(&fx, exec.proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.out_size, size + 1988895);
	out = fixture_output(&fx, exec.proc, &rep);
	ck_assert_int_eq(memcmp(out, input, size), 0);
	ck_assert_str_eq(out + size + 1988895 - 7, "300000\n");
	ck_assert_uint_gt(relay_count(fx.relay), 5);
	free(out);
	free(input);
	fixture_done(&fx);
}
END_TEST

/* The connection of before still stands when the next one comes for the same session. */
START_TEST(goes_on_with_the_newer_connection)
{
	struct fixture fx;

	fixture_init(&fx);
	fixture_start(&fx, FIXTURE_RELAY);
	fx.reconnect = true;
	fixture_connect(&fx);
	for (int i = 0; i < 3; i++) {
		fixture_check(&fx, "echo a", "a\n", 0);
		relay_freeze(fx.relay);
		fixture_check(&fx, "echo b", "b\n", 0);
	}
	ck_assert_uint_ge(relay_count(fx.relay), 4);
	ck_assert_uint_eq(fx.n_epoch, 0);
	fixture_done(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		refuses_to_start_without_a_key,
		says_what_is_wrong_with_its_arguments,
		leaves_a_port_to_the_one_that_has_it,
		turns_strangers_away,
		bounds_connections_without_a_key,
		serves_an_inherited_socket_to_its_end,
		runs_commands_as_the_user,
		takes_its_commands_with_it,
		loses_and_doubles_nothing_over_cuts,
		carries_bulk_over_cuts,
		goes_on_with_the_newer_connection,
	};
	Suite *suite = suite_create("sidecar");
	TCase *tcase = tcase_create("sidecar");
	SRunner *runner;
	int n_failed;

	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, leaks_no_descriptor, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
