/* SPDX-License-Identifier: MIT */
#include "tests/unit/near.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/session.h"
#include "proto/version.h"
#include "sidecar/cgroup.h"
#include "sidecar/dispatch.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/str.h"

static void
host_data(void *arg, uint64_t id, struct rsb_bytes data, bool fin)
{
	struct near *near = arg;
	struct near_chan *chan = rsb_map_get(&near->chans, id);

	ck_assert_ptr_nonnull(chan);
	ck_assert(!chan->fin);
	ck_assert_int_eq(rsb_buf_append(&chan->data, data.data, data.size), 0);
	chan->size += data.size;
	chan->fin = fin;
	if (!chan->hold)
		rsb_chan_consume(rsb_session_chans(near->host), id, data.size);
}

static void
host_writable(void *arg rsb_unused, uint64_t id rsb_unused)
{
}

static void
host_reset(void *arg, uint64_t id, int r)
{
	struct near *near = arg;
	struct near_chan *chan = rsb_map_get(&near->chans, id);

	ck_assert_ptr_nonnull(chan);
	chan->reset = r;
}

static const struct rsb_chan_ops host_ops = {
	.data = host_data,
	.writable = host_writable,
	.reset = host_reset,
};

static void
carrier_output(void *arg rsb_unused)
{
	/* near_step() looks anyway. */
}

static void
carrier_lost(void *arg, int r rsb_unused)
{
	struct near *near = arg;

	near->lost = true;
}

static void
attach(struct near *near)
{
	uint64_t now_ns = rsb_loop_now(near->loop);
	struct rsb_stream_state host, sidecar;

	rsb_stream_state(rsb_session_stream(near->host), &host);
	ck_assert_int_eq(
		rsb_sess_attach(near->sess, &near->carrier, RSB_PROTO_VERSION, &host, NULL), 0);
	rsb_stream_state(rsb_session_stream(near->sess->proto), &sidecar);
	ck_assert_int_eq(rsb_session_attach(near->host, now_ns, &sidecar, NULL), 0);
}

static void
make_config(struct near *near, bool cgroups)
{
	static const gid_t groups[] = { 0 };

	(void)snprintf(near->workspace, sizeof(near->workspace), "/tmp/rsb-near-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(near->workspace));
	near->config = (struct rsb_sidecar_config){
		.root_fd = open(near->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.workspace = near->workspace,
		.cmd_uid = getuid(),
		.cmd_gid = getgid(),
		.cmd_groups = groups,
		.n_cmd_groups = 1,
		.cmd_user = "tester",
		.cmd_home = "/tmp",
		.cmd_shell = "/bin/sh",
		.is_root = getuid() == 0,
	};
	ck_assert_int_ge(near->config.root_fd, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &near->config.cmd_nofile), 0);
	if (cgroups)
		(void)rsb_cgroups_new(&near->config.cgroups); /* else the other rung */
}

struct near *
near_new(bool cgroups)
{
	const struct rsb_session_config config = {
		.send_max = RSB_HOST_SEND_MAX,
		.window = RSB_HOST_WINDOW,
		.ping_ns = RSB_NSEC_PER_SEC,
		.silent_max = 100,
		.chan_ops = &host_ops,
	};
	struct rsb_session_config with_arg = config;
	struct near *near = rsb_new(struct near);

	ck_assert_ptr_nonnull(near);
	rsb_log_init("test", RSB_LOG_WARN, 2);
	ck_assert_ptr_ne(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	make_config(near, cgroups);
	with_arg.chan_arg = near;
	near->next_proc = 1;
	near->carrier = (struct rsb_carrier){
		.output = carrier_output,
		.lost = carrier_lost,
		.arg = near,
	};
	rsb_map_init(&near->chans, NEAR_CHANS_MAX);
	ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &near->loop), 0);
	ck_assert_int_eq(rsb_workers_new("pool", 4, rsb_dispatch_run, &near->pool), 0);
	ck_assert_int_eq(
		rsb_sess_new(&near->config, near->loop, near->pool, RSB_NSEC_PER_SEC, &near->sess),
		0);
	ck_assert_int_eq(rsb_session_new(&with_arg, &near->host), 0);
	attach(near);
	return near;
}

static void
ended(void *arg)
{
	struct near *near = arg;

	near->ended = true;
}

static void
free_chans(struct near *near)
{
	struct near_chan *chan;
	size_t cursor = 0;
	uint64_t id;

	while ((chan = rsb_map_next(&near->chans, &cursor, &id))) {
		rsb_buf_done(&chan->data);
		free(chan);
	}
	rsb_map_done(&near->chans);
}

void
near_free(struct near *near)
{
	uint64_t deadline_ns = rsb_now_ns() + NEAR_WAIT_NS;
	char command[128];

	rsb_sess_end(near->sess, ended, near);
	while (!near->ended) {
		ck_assert(rsb_now_ns() < deadline_ns);
		ck_assert_int_eq(rsb_loop_step(near->loop, 10), 0);
	}
	rsb_workers_free(near->pool);
	rsb_loop_free(near->loop);
	rsb_cgroups_free(near->config.cgroups);
	rsb_session_free(near->host);
	free_chans(near);
	for (size_t i = 0; i < NEAR_CALLS_MAX; i++)
		free(near->calls[i].msg);
	(void)close(near->config.root_fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", near->workspace);
	ck_assert_int_eq(system(command), 0);
	free(near);
}

/* ---- frames ---- */

static void
take_replies(struct near *near)
{
	struct rsb_stream *stream = rsb_session_stream(near->host);
	struct rsb_call_head head;
	struct rsb_msg *msg;

	while ((msg = rsb_stream_take(stream))) {
		struct near_call *call;

		ck_assert_int_eq(
			rsb_codec_head((struct rsb_bytes){ msg->data, msg->size }, &head), 0);
		ck_assert_uint_eq(head.op, 0);
		ck_assert_uint_le(head.id, near->n_call);
		call = &near->calls[head.id];
		if (call->done) {
			near->n_double++;
			free(msg);
			continue;
		}
		call->done = true;
		call->error = head.error;
		call->msg = msg;
		call->body = head.body;
	}
}

/* One frame from one end to the other: 1; 0: there is none. */
static int
move(struct near *near, struct rsb_session *from, struct rsb_session *to)
{
	uint64_t now_ns = rsb_loop_now(near->loop);
	struct rsb_buf frame;
	int r;

	rsb_buf_init(&frame, 2 * RSB_FRAME_MAX);
	r = rsb_session_output(from, now_ns, &frame);
	ck_assert_int_ge(r, 0);
	if (r > 0 && near->cut_after && --near->cut_after == 0) {
		near->n_cut++;
		near_cut(near); /* and this frame is lost */
	} else if (r > 0) {
		ck_assert_int_eq(rsb_session_input(to, now_ns, rsb_buf_view(&frame)), 0);
	}
	rsb_buf_done(&frame);
	return r;
}

void
near_cut(struct near *near)
{
	rsb_session_detach(near->host);
	rsb_sess_detach(near->sess, &near->carrier);
	attach(near);
}

void
near_pump(struct near *near)
{
	int moved;

	do {
		moved = move(near, near->host, near->sess->proto);
		rsb_dispatch_pump(near->sess);
		if (near->lost)
			return;
		moved += move(near, near->sess->proto, near->host);
		take_replies(near);
	} while (moved > 0);
}

void
near_step(struct near *near, int timeout_ms)
{
	uint64_t now_ns = rsb_loop_now(near->loop);

	near_pump(near);
	ck_assert(!near->lost);
	ck_assert_int_eq(rsb_session_tick(near->host, now_ns), 0);
	ck_assert_int_eq(rsb_session_tick(near->sess->proto, now_ns), 0);
	ck_assert_int_eq(rsb_loop_step(near->loop, timeout_ms), 0);
}

/* ---- calls ---- */

uint64_t
near_call(struct near *near, uint32_t op, const void *req, uint64_t after)
{
	enum rsb_class class = rsb_ops[op].flags & RSB_OP_WRITES ? RSB_CLASS_FIFO : RSB_CLASS_READ;
	uint64_t id = ++near->n_call;
	struct rsb_buf msg;

	ck_assert_uint_lt(id, NEAR_CALLS_MAX);
	rsb_buf_init(&msg, RSB_MESSAGE_MAX);
	near->calls[id].op = op;
	ck_assert_int_eq(rsb_codec_request(op, id, after, req, RSB_PROTO_VERSION, &msg), 0);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(near->host), class, rsb_buf_view(&msg)), 0);
	rsb_buf_done(&msg);
	return id;
}

int
near_reply(struct near *near, uint64_t id, void *ret_rep)
{
	struct near_call *call = &near->calls[id];

	near_until(near, call->done);
	if (call->error == 0 && ret_rep)
		ck_assert_int_eq(rsb_codec_decode(rsb_ops[call->op].rep, call->body, ret_rep), 0);
	return call->error;
}

int
near_do(struct near *near, uint32_t op, const void *req, void *ret_rep)
{
	return near_reply(near, near_call(near, op, req, 0), ret_rep);
}

/* ---- streams ---- */

struct near_chan *
near_chan(struct near *near, uint64_t id)
{
	struct rsb_chans *chans = rsb_session_chans(near->host);
	struct near_chan *chan = rsb_map_get(&near->chans, id);

	if (chan)
		return chan;
	chan = rsb_new(struct near_chan);
	ck_assert_ptr_nonnull(chan);
	chan->chan = id;
	rsb_buf_init(&chan->data, (size_t)1 << 30);
	ck_assert_int_eq(rsb_map_put(&near->chans, id, chan), 0);
	if (id % 4 == 0)
		ck_assert_int_eq(rsb_chan_open_sender(chans, id, 1 << 20), 0);
	else
		ck_assert_int_eq(rsb_chan_open_receiver(chans, id, RSB_CHAN_WINDOW_MAX), 0);
	return chan;
}

int
near_send(struct near *near, uint64_t id, const void *data, size_t size, bool fin)
{
	struct rsb_chans *chans = rsb_session_chans(near->host);
	struct near_chan *chan = near_chan(near, id);
	struct rsb_bytes rest = { .data = data, .size = size };

	near_until(near, ({
		int n = chan->reset ? 0 : rsb_chan_write(chans, id, rest);

		ck_assert_int_ge(n, 0);
		rest.data += n;
		rest.size -= (size_t)n;
		chan->reset || rest.size == 0;
	}));
	if (chan->reset)
		return chan->reset;
	return fin ? rsb_chan_finish(chans, id) : 0;
}

/* ---- commands ---- */

static struct rsb_seq
make_strs(const char *const *strings, struct rsb_buf *buf)
{
	uint64_t n = 0;

	rsb_buf_init(buf, RSB_MESSAGE_MAX);
	for (; strings && strings[n]; n++)
		ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str(strings[n]), buf), 0);
	return rsb_seq_of(buf, n);
}

uint64_t
near_spawn_async(struct near *near, const struct near_spawn *spawn, uint64_t *ret_proc)
{
	uint64_t proc = near->next_proc++;
	struct rsb_buf argv, env;
	struct rsb_spawn_req req = {
		.proc = proc,
		.argv = make_strs(spawn->argv, &argv),
		.env = make_strs(spawn->env, &env),
		.cwd = rsb_bytes_str(spawn->cwd ? spawn->cwd : ""),
		.flags = spawn->flags,
		.umask = 022,
	};
	uint64_t call;

	if (!(spawn->flags & RSB_SPAWN_STDIN_NULL))
		(void)near_chan(near, RSB_CHAN_STDIN(proc));
	(void)near_chan(near, RSB_CHAN_STDOUT(proc));
	if (!(spawn->flags & RSB_SPAWN_MERGE_STDERR))
		(void)near_chan(near, RSB_CHAN_STDERR(proc));
	call = near_call(near, RSB_OP_spawn, &req, spawn->after);
	rsb_buf_done(&argv);
	rsb_buf_done(&env);
	*ret_proc = proc;
	return call;
}

uint64_t
near_spawn(struct near *near, const struct near_spawn *spawn, uint64_t *ret_pid)
{
	struct rsb_spawn_rep rep;
	uint64_t proc;
	uint64_t call = near_spawn_async(near, spawn, &proc);

	ck_assert_int_eq(near_reply(near, call, &rep), 0);
	ck_assert_uint_eq(rep.stage, 0);
	ck_assert_uint_gt(rep.pid, 0);
	if (ret_pid)
		*ret_pid = rep.pid;
	return proc;
}

uint64_t
near_script(struct near *near, const char *script)
{
	const char *const argv[] = { "bash", "-c", script, NULL };
	const struct near_spawn spawn = { .argv = argv, .flags = RSB_SPAWN_STDIN_NULL };

	return near_spawn(near, &spawn, NULL);
}

void
near_wait(struct near *near, uint64_t proc, enum rsb_wait_what what, struct rsb_wait_rep *ret_rep)
{
	const struct rsb_wait_req req = { .proc = proc, .what = what };

	ck_assert_int_eq(near_do(near, RSB_OP_wait, &req, ret_rep), 0);
}

char *
near_output(struct near *near, uint64_t proc, const struct rsb_wait_rep *rep)
{
	struct near_chan *out = near_chan(near, RSB_CHAN_STDOUT(proc));

	near_until(near, out->size >= rep->out_size);
	ck_assert_uint_eq(out->size, rep->out_size);
	return rsb_buf_steal_str(&out->data);
}

int
near_count_processes(const char *text)
{
	rsb_autoclosedir DIR *dir = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir))) {
		char path[300], line[4096];
		ssize_t n;
		int fd;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, line, sizeof(line));
		(void)close(fd);
		count += n > 0 && memmem(line, (size_t)n, text, strlen(text)) != NULL;
	}
	return count;
}

int
near_run(const char *name, const TTest *const *plain, size_t n_plain, const TTest *const *twice,
	size_t n_twice)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int n_failed;

	tcase_set_timeout(tcase, 150);
	for (size_t i = 0; i < n_plain; i++)
		tcase_add_test(tcase, plain[i]);
	for (size_t i = 0; i < n_twice; i++)
		tcase_add_loop_test(tcase, twice[i], 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
