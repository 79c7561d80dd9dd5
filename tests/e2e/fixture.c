/* SPDX-License-Identifier: MIT */
#include "tests/e2e/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/call.h"
#include "proto/auth.h"
#include "proto/codec.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/spawn.h"
#include "util/str.h"

#define KEY_FD 3
#define SOCKET_FD 4
#define CHANS_MAX 65536

struct fixture_chan {
	struct rsb_buf data;
	uint64_t size;
	bool fin;
	int reset;
};

#define WAIT_UNTIL(fx, condition)                                                                 \
	do {                                                                                      \
		uint64_t deadline_ns_ = rsb_now_ns() + FIXTURE_WAIT_NS;                           \
		rsb_mutex_lock(&(fx)->lock);                                                      \
		while (!(condition))                                                              \
			ck_assert_msg(                                                            \
				rsb_cond_wait_until(&(fx)->cond, &(fx)->lock, deadline_ns_) == 0, \
				"too late: " #condition);                                         \
		rsb_mutex_unlock(&(fx)->lock);                                                    \
	} while (0)

/* ---- the program ---- */

void
fixture_init(struct fixture *fx)
{
	*fx = (struct fixture){ .fd = -1 };
	rsb_log_init("test", RSB_LOG_WARN, 2);
	rsb_mutex_init(&fx->lock);
	rsb_cond_init(&fx->cond);
	rsb_map_init(&fx->chans, CHANS_MAX);
	(void)snprintf(fx->workspace, sizeof(fx->workspace), "/tmp/rsb-fixture-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fx->workspace));
	(void)snprintf(fx->journal, sizeof(fx->journal), "%s.journal", fx->workspace);
	ck_assert_int_eq(rsb_secret_generate(&fx->key, RSB_AUTH_KEY_SIZE), 0);
	fx->user = getpwuid(getuid())->pw_name;
}

static const char *
program(void)
{
	const char *path = getenv("RSB_SIDECAR");

	ck_assert_msg(path != NULL, "RSB_SIDECAR does not say where the program is");
	return path;
}

/* The key is on KEY_FD, sock (-1: none) on SOCKET_FD, and stdout and stderr go to out. */
static pid_t
fork_program(struct fixture *fx, const char *const *argv, size_t key_size, int sock, int out)
{
	int keys[2];
	pid_t pid;

	ck_assert_int_eq(pipe2(keys, O_CLOEXEC), 0);
	ck_assert_int_eq(rsb_fd_write_full(keys[1], fx->key.data, key_size), 0);
	(void)close(keys[1]);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int high_key = fcntl(keys[0], F_DUPFD, 20);
		int high_sock = sock < 0 ? -1 : fcntl(sock, F_DUPFD, 20);

		(void)dup2(out, 1);
		(void)dup2(high_key, KEY_FD);
		if (high_sock >= 0)
			(void)dup2(high_sock, SOCKET_FD);
		rsb_spawn_close_fds((const int[]){ KEY_FD, high_sock < 0 ? -1 : SOCKET_FD }, 2);
		rsb_spawn_reset_signals();
		(void)execv(program(), (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	(void)close(keys[0]);
	return pid;
}

static uint16_t
read_port(int fd)
{
	char line[64] = "";
	unsigned int port = 0;
	ssize_t n = read(fd, line, sizeof(line) - 1);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(sscanf(line, "ready %u\n", &port), 1);
	return (uint16_t)port;
}

static void
start_program(struct fixture *fx)
{
	const char *argv[16] = { "rsb-sidecar", "--workspace", fx->workspace, "--key-fd", "3",
		"--user", fx->user, "--journal", fx->journal };
	int socks[2] = { -1, -1 };
	int out[2];
	int n = 9;

	if (fx->no_cgroup)
		argv[n++] = "--no-cgroup";
	argv[n++] = fx->way == FIXTURE_FD ? "--fd" : "--port";
	argv[n++] = fx->way == FIXTURE_FD ? "4" : "0";
	argv[n++] = "--listen";
	argv[n++] = "127.0.0.1";
	if (fx->way == FIXTURE_FD)
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	fx->pid = fork_program(fx, argv, RSB_AUTH_KEY_SIZE, socks[1], out[1]);
	(void)close(out[1]);
	fx->fd = socks[0];
	if (fx->way == FIXTURE_FD)
		(void)close(socks[1]);
	else
		fx->port = read_port(out[0]);
	(void)close(out[0]);
}

int
fixture_run(struct fixture *fx, const char *const *argv, size_t size, char *text, size_t text_max)
{
	int out[2];
	size_t n;
	pid_t pid;

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	pid = fork_program(fx, argv, size, -1, out[1]);
	(void)close(out[1]);
	ck_assert_int_eq(rsb_fd_read_full(out[0], text, text_max - 1, &n), 0);
	text[n] = 0;
	(void)close(out[0]);
	return rsb_spawn_wait(pid);
}

int
fixture_stop(struct fixture *fx, int signal)
{
	pid_t pid = fx->pid;

	fx->pid = 0;
	ck_assert_int_eq(kill(pid, signal), 0);
	return rsb_spawn_wait(pid);
}

int
fixture_dial(struct fixture *fx)
{
	const struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons(fx->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

/* ---- the link ---- */

static void
begin_connect(struct fixture *fx)
{
	struct rsb_link_target target = { .fd = -1, .timeout_ns = 10 * RSB_NSEC_PER_SEC };
	char url[64];

	(void)snprintf(url, sizeof(url), "ws://127.0.0.1:%u/rsb",
		fx->way == FIXTURE_RELAY ? relay_port(fx->relay) : fx->port);
	if (fx->way == FIXTURE_FD) {
		target.fd = fx->fd;
		fx->fd = -1;
	} else {
		target.url = url;
	}
	ck_assert_int_eq(rsb_link_connect(fx->link, &target), 0);
}

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct fixture *fx = arg;
	bool again;

	rsb_mutex_lock(&fx->lock);
	fx->state = state;
	fx->reason = reason;
	fx->n_epoch += new_epoch;
	fx->n_live += state == RSB_LINK_LIVE;
	again = fx->reconnect && state == RSB_LINK_DOWN;
	rsb_cond_broadcast(&fx->cond);
	rsb_mutex_unlock(&fx->lock);
	if (again)
		begin_connect(fx);
	else if (state == RSB_LINK_SUSPECT)
		rsb_link_disconnect(fx->link, -ETIMEDOUT);
}

static void
on_data(void *arg, uint64_t id, struct rsb_bytes data, bool fin)
{
	struct fixture *fx = arg;
	struct fixture_chan *chan;

	rsb_mutex_lock(&fx->lock);
	chan = rsb_map_get(&fx->chans, id);
	ck_assert_ptr_nonnull(chan);
	ck_assert_int_eq(rsb_buf_append(&chan->data, data.data, data.size), 0);
	chan->size += data.size;
	chan->fin = fin;
	rsb_cond_broadcast(&fx->cond);
	rsb_mutex_unlock(&fx->lock);
	rsb_link_chan_consume(fx->link, id, data.size);
}

static void
on_writable(void *arg, uint64_t id rsb_unused)
{
	struct fixture *fx = arg;

	rsb_mutex_lock(&fx->lock);
	fx->n_news++;
	rsb_cond_broadcast(&fx->cond);
	rsb_mutex_unlock(&fx->lock);
}

static void
on_reset(void *arg, uint64_t id, int r)
{
	struct fixture *fx = arg;
	struct fixture_chan *chan;

	rsb_mutex_lock(&fx->lock);
	chan = rsb_map_get(&fx->chans, id);
	if (chan)
		chan->reset = r;
	fx->n_news++;
	rsb_cond_broadcast(&fx->cond);
	rsb_mutex_unlock(&fx->lock);
}

static const struct rsb_link_ops link_ops = {
	.state = on_state,
	.chan_data = on_data,
	.chan_writable = on_writable,
	.chan_reset = on_reset,
};

void
fixture_start(struct fixture *fx, enum fixture_way way)
{
	struct rsb_link_config config = {
		.sandbox_id = "fixture",
		.ping_ns = RSB_NSEC_PER_SEC,
		.ops = &link_ops,
		.arg = fx,
	};

	fx->way = way;
	start_program(fx);
	if (way == FIXTURE_RELAY)
		fx->relay = relay_new(fx->port);
	config.key = fx->key;
	ck_assert_int_eq(rsb_link_new(&config, &fx->link), 0);
}

void
fixture_connect(struct fixture *fx)
{
	begin_connect(fx);
	WAIT_UNTIL(fx, fx->state == RSB_LINK_LIVE);
}

void
fixture_done(struct fixture *fx)
{
	struct fixture_chan *chan;
	char command[192];
	size_t cursor = 0;
	uint64_t id;

	rsb_mutex_lock(&fx->lock);
	fx->reconnect = false;
	rsb_mutex_unlock(&fx->lock);
	rsb_link_free(fx->link);
	relay_free(fx->relay);
	if (fx->pid)
		ck_assert_int_eq(fixture_stop(fx, SIGTERM), 0);
	if (fx->fd >= 0)
		(void)close(fx->fd);
	while ((chan = rsb_map_next(&fx->chans, &cursor, &id))) {
		rsb_buf_done(&chan->data);
		free(chan);
	}
	rsb_map_done(&fx->chans);
	rsb_secret_done(&fx->key);
	rsb_cond_done(&fx->cond);
	rsb_mutex_done(&fx->lock);
	(void)snprintf(command, sizeof(command), "rm -rf %s %s", fx->workspace, fx->journal);
	ck_assert_int_eq(system(command), 0);
}

/* ---- commands ---- */

static struct fixture_chan *
open_chan(struct fixture *fx, uint64_t id)
{
	struct fixture_chan *chan = rsb_new(struct fixture_chan);

	ck_assert_ptr_nonnull(chan);
	rsb_buf_init(&chan->data, (size_t)1 << 30);
	rsb_mutex_lock(&fx->lock);
	ck_assert_int_eq(rsb_map_put(&fx->chans, id, chan), 0);
	rsb_mutex_unlock(&fx->lock);
	if (id % 4 == 0)
		ck_assert_int_eq(rsb_link_chan_open_sender(fx->link, id, 1 << 20), 0);
	else
		ck_assert_int_eq(rsb_link_chan_open_receiver(fx->link, id, RSB_CHAN_WINDOW_MAX), 0);
	return chan;
}

static void
send_input(struct fixture *fx, uint64_t id, struct fixture_chan *chan, struct rsb_bytes rest)
{
	bool over = false;

	while (!over && rest.size > 0) {
		unsigned int seen;
		int n;

		/* What changes behind this look wakes the wait below. */
		rsb_mutex_lock(&fx->lock);
		seen = fx->n_news;
		over = chan->reset != 0;
		rsb_mutex_unlock(&fx->lock);
		n = over ? -EPIPE : rsb_link_chan_write(fx->link, id, rest);
		over = n < 0;
		if (n > 0) {
			rest.data += n;
			rest.size -= (size_t)n;
		} else if (n == 0) {
			WAIT_UNTIL(fx, fx->n_news != seen);
		}
	}
	if (!over)
		ck_assert_int_eq(rsb_link_chan_finish(fx->link, id), 0);
}

static void
copy_spawn(void *arg, const void *rep)
{
	*(struct rsb_spawn_rep *)arg = *(const struct rsb_spawn_rep *)rep;
}

static void
copy_wait(void *arg, const void *rep)
{
	*(struct rsb_wait_rep *)arg = *(const struct rsb_wait_rep *)rep;
}

void
fixture_spawn(struct fixture *fx, const char *const *argv, const void *input, size_t size,
	struct fixture_exec *ret_exec)
{
	uint64_t proc = rsb_link_new_ids(fx->link, 1);
	struct rsb_spawn_req req = { .proc = proc, .umask = 022 };
	struct fixture_chan *in = NULL;
	struct rsb_buf args;

	rsb_buf_init(&args, RSB_MESSAGE_MAX);
	for (; argv[req.argv.n]; req.argv.n++)
		ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str(argv[req.argv.n]), &args), 0);
	req.argv = rsb_seq_of(&args, req.argv.n);
	/* Before the request: the far side answers it with the first credit of stdin. */
	if (input)
		in = open_chan(fx, RSB_CHAN_STDIN(proc));
	else
		req.flags = RSB_SPAWN_STDIN_NULL;
	(void)open_chan(fx, RSB_CHAN_STDOUT(proc));
	(void)open_chan(fx, RSB_CHAN_STDERR(proc));
	ck_assert_int_eq(rsb_call_spawn(fx->link, &req, NULL, copy_spawn, &ret_exec->spawn), 0);
	rsb_buf_done(&args);
	if (input)
		send_input(fx, RSB_CHAN_STDIN(proc), in,
			(struct rsb_bytes){ .data = input, .size = size });
	ret_exec->proc = proc;
}

void
fixture_wait(
	struct fixture *fx, uint64_t proc, enum rsb_wait_what what, struct rsb_wait_rep *ret_rep)
{
	const struct rsb_wait_req req = { .proc = proc, .what = what };

	ck_assert_int_eq(rsb_call_wait(fx->link, &req, NULL, copy_wait, ret_rep), 0);
}

static void
close_chan(struct fixture *fx, uint64_t id)
{
	struct fixture_chan *chan;

	rsb_link_chan_close(fx->link, id);
	rsb_mutex_lock(&fx->lock);
	chan = rsb_map_get(&fx->chans, id);
	if (chan)
		rsb_buf_clear(&chan->data); /* a late frame may still find it */
	rsb_mutex_unlock(&fx->lock);
}

char *
fixture_output(struct fixture *fx, uint64_t proc, const struct rsb_wait_rep *rep)
{
	const struct rsb_proc_req req = { .proc = proc };
	struct fixture_chan *out;
	char *text;

	rsb_mutex_lock(&fx->lock);
	out = rsb_map_get(&fx->chans, RSB_CHAN_STDOUT(proc));
	rsb_mutex_unlock(&fx->lock);
	WAIT_UNTIL(fx, out->size >= rep->out_size);
	rsb_mutex_lock(&fx->lock);
	text = rsb_buf_steal_str(&out->data);
	rsb_mutex_unlock(&fx->lock);
	ck_assert_int_eq(rsb_call_proc_free(fx->link, &req, NULL, NULL, NULL), 0);
	for (uint64_t id = RSB_CHAN_STDIN(proc); id <= RSB_CHAN_STDERR(proc); id++)
		close_chan(fx, id);
	return text;
}

void
fixture_check(struct fixture *fx, const char *script, const char *expected, uint64_t code)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct fixture_exec exec;
	struct rsb_wait_rep rep;
	char *out;

	fixture_spawn(fx, argv, NULL, 0, &exec);
	ck_assert_uint_eq(exec.spawn.stage, 0);
	fixture_wait(fx, exec.proc, RSB_WAIT_LEADER, &rep);
	out = fixture_output(fx, exec.proc, &rep);
	ck_assert_str_eq(out, expected);
	ck_assert_uint_eq(rep.exited, 1);
	ck_assert_uint_eq(rep.code, code);
	free(out);
}
