/* SPDX-License-Identifier: MIT */
#include "tests/unit/far.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/version.h"
#include "util/log.h"

static void
no_data(void *arg rsb_unused, uint64_t chan rsb_unused, struct rsb_bytes data rsb_unused,
	bool fin rsb_unused)
{
}

static void
no_room(void *arg rsb_unused, uint64_t chan rsb_unused)
{
}

static void
no_reset(void *arg rsb_unused, uint64_t chan rsb_unused, int r rsb_unused)
{
}

static void
new_host(struct far *far)
{
	static const struct rsb_chan_ops ops = {
		.data = no_data,
		.writable = no_room,
		.reset = no_reset,
	};
	const struct rsb_session_config config = {
		.send_max = RSB_HOST_SEND_MAX,
		.window = RSB_HOST_WINDOW,
		.ping_ns = RSB_NSEC_PER_SEC,
		.silent_max = 100,
		.chan_ops = &ops,
		.chan_arg = far,
	};

	rsb_session_free(far->host);
	ck_assert_int_eq(rsb_session_new(&config, &far->host), 0);
}

static void
send_bytes(struct far *far, uint32_t op, struct rsb_bytes msg)
{
	uint32_t in_order = RSB_OP_WRITES | RSB_OP_ORDERED;
	enum rsb_class class = rsb_ops[op].flags & in_order ? RSB_CLASS_FIFO : RSB_CLASS_READ;

	ck_assert_int_eq(rsb_stream_send(rsb_session_stream(far->host), class, msg), 0);
}

/* A call that no test waits for. */
static uint64_t
send_own(struct far *far, uint32_t op, const void *req)
{
	struct far_call *call = &far->calls[++far->n_call];

	ck_assert_uint_lt(far->n_call, FAR_CALLS_MAX);
	call->op = op;
	rsb_buf_init(&call->first, RSB_MESSAGE_MAX);
	ck_assert_int_eq(
		rsb_codec_request(op, far->n_call, 0, req, RSB_PROTO_VERSION, &call->first), 0);
	send_bytes(far, op, rsb_buf_view(&call->first));
	return far->n_call;
}

static void
adopt(struct far *far)
{
	struct rsb_buf list;
	struct rsb_adopt_req req;
	uint64_t n = 0;

	rsb_buf_init(&list, RSB_MESSAGE_MAX);
	for (size_t i = 0; i < far->n_node; i++) {
		struct far_node *node = &far->nodes[i];

		if (!node->one.node.id)
			continue;
		node->one.name = rsb_bytes_str(node->name);
		ck_assert_int_eq(rsb_seq_append(&rsb_desc_rsb_adopt_one, &node->one,
					 RSB_PROTO_VERSION, &list),
			0);
		n++;
	}
	req.nodes = rsb_seq_of(&list, n);
	far->wait_for = send_own(far, RSB_OP_adopt, &req);
	rsb_buf_done(&list);
}

static void
call_again(struct far *far, uint64_t n_call, uint64_t fifo, bool before)
{
	for (uint64_t id = 1; id <= n_call; id++) {
		struct far_call *call = &far->calls[id];

		if (call->done || (call->fifo && call->fifo <= fifo) != before)
			continue;
		if (call->op == RSB_OP_adopt || call->op == RSB_OP_reopen)
			call->done = true;
		else
			send_bytes(far, call->op,
				rsb_buf_view(call->fifo ? &call->again : &call->first));
	}
}

/* Another process of the sidecar goes on: what PROTOCOL.md 3.9 says, in its order. */
static void
go_on_anew(struct far *far)
{
	uint64_t n_call = far->n_call;

	adopt(far);
	call_again(far, n_call, far->fifo_anew, true);
	for (size_t i = 0; i < far->n_node; i++) {
		const struct far_node *node = &far->nodes[i];
		const struct rsb_open_req req = {
			.node = node->one.node,
			.fh = node->fh,
			.flags = node->flags,
		};

		if (node->one.node.id && node->fh)
			far->wait_for = send_own(far, RSB_OP_reopen, &req);
	}
	call_again(far, n_call, far->fifo_anew, false);
}

static void
on_hello(void *arg, struct rsb_hello *hello)
{
	struct far *far = arg;
	struct rsb_stream_state state;

	rsb_stream_state(rsb_session_stream(far->host), &state);
	hello->sandbox_id = rsb_bytes_str("box");
	hello->client_id = rsb_bytes_str("client");
	hello->session_id = rsb_bytes_str("session");
	hello->epoch = rsb_bytes_str(far->epoch);
	hello->received = state.received;
	hello->acked = state.acked;
	hello->window = state.limit;
	hello->digest = state.digest;
	hello->ping_ms = 1000;
	hello->incarnation = far->incarnation;
	hello->fifo = far->fifo;
	hello->fifo_done = far->fifo_done;
	hello->calls = far->n_call + 1;
}

static int
on_open(void *arg, const struct rsb_welcome *welcome, uint64_t features rsb_unused)
{
	const struct rsb_stream_state peer = {
		.received = welcome->received,
		.acked = welcome->acked,
		.limit = welcome->window,
		.digest = welcome->digest,
	};
	struct far *far = arg;

	if (far->kill_now)
		return -ECONNABORTED; /* this welcome was never seen */
	if (far->welcomed && !welcome->resumed && !welcome->anew) {
		far->n_lost++;
		return -ESTALE;
	}
	far->welcomed = true;
	far->lock_losses = welcome->lock_losses;
	ck_assert_uint_lt(welcome->epoch.size, sizeof(far->epoch));
	memset(far->epoch, 0, sizeof(far->epoch));
	memcpy(far->epoch, welcome->epoch.data, welcome->epoch.size);
	if (welcome->anew)
		new_host(far);
	ck_assert_int_eq(rsb_session_attach(far->host, rsb_loop_now(far->loop), &peer, NULL), 0);
	if (welcome->anew) {
		far->n_anew++;
		far->fifo_anew = welcome->fifo;
		far->adopting = true;
	}
	/* Whoever died while it told all that has to tell it again. */
	if (far->adopting && (welcome->anew || far->crashed)) {
		go_on_anew(far);
	} else if (far->crashed) {
		call_again(far, far->n_call, UINT64_MAX, true);
		call_again(far, far->n_call, UINT64_MAX, false);
	}
	far->crashed = false;
	return 0;
}

static void
count_frame(struct far *far)
{
	if (far->kill_after && --far->kill_after == 0)
		far->kill_now = true;
}

static int
on_frame(void *arg, struct rsb_bytes frame)
{
	struct far *far = arg;
	struct rsb_stream *stream = rsb_session_stream(far->host);
	struct rsb_call_head head;
	struct rsb_msg *msg;
	int r;

	count_frame(far);
	if (far->kill_now)
		return -ECONNABORTED; /* as if it had been lost */
	r = rsb_session_input(far->host, rsb_loop_now(far->loop), frame);
	ck_assert_int_eq(r, 0);
	while ((msg = rsb_stream_take(stream))) {
		struct far_call *call;

		ck_assert_int_eq(
			rsb_codec_head((struct rsb_bytes){ msg->data, msg->size }, &head), 0);
		ck_assert_uint_le(head.id, far->n_call);
		call = &far->calls[head.id];
		if (call->done) {
			free(msg);
			continue;
		}
		call->done = true;
		call->error = head.error;
		call->msg = msg;
		call->body = head.body;
		if (call->error == 0)
			far_learn(far, call);
		if (call->fifo)
			far->fifo_done++;
		if (head.id == far->wait_for)
			far->adopting = false;
	}
	return 0;
}

static void
on_batch(void *arg rsb_unused)
{
}

static int
on_fill(void *arg, struct rsb_buf *frame)
{
	struct far *far = arg;
	int r;

	if (far->kill_now)
		return 0;
	r = rsb_session_output(far->host, rsb_loop_now(far->loop), frame);
	if (r > 0)
		count_frame(far);
	return r;
}

static void
on_closed(void *arg, int r rsb_unused, const char *text rsb_unused)
{
	((struct far *)arg)->closed = true;
}

static void
hang_up(struct far *far)
{
	rsb_wire_free(far->wire);
	far->wire = NULL;
	far->closed = false;
	if (rsb_session_attached(far->host))
		rsb_session_detach(far->host);
}

static void
connect_to(struct far *far)
{
	static const struct rsb_wire_ops ops = {
		.hello = on_hello,
		.open = on_open,
		.frame = on_frame,
		.batch = on_batch,
		.fill = on_fill,
		.closed = on_closed,
	};
	const struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons(far->port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	struct rsb_link_target target = {
		.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		.timeout_ns = FAR_WAIT_NS,
	};
	struct rsb_wire_config config = {
		.loop = far->loop,
		.key = &far->key,
		.deadline_ns = rsb_now_ns() + FAR_WAIT_NS,
		.ops = &ops,
		.arg = far,
	};

	ck_assert_int_ge(target.fd, 0);
	ck_assert_int_eq(connect(target.fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(rsb_connect_open(&target, -1, &config.connect, NULL), 0);
	ck_assert_int_eq(rsb_wire_new(&config, &far->wire), 0);
}

void
far_kill(struct far *far)
{
	hang_up(far);
	far_box_end(far);
	far->kill_now = false;
	far->kill_after = 0;
	far->n_kill++;
	far_box_start(far);
}

void
far_cut(struct far *far)
{
	hang_up(far);
}

void
far_crash(struct far *far)
{
	hang_up(far);
	new_host(far);
	far->incarnation++;
	far->crashed = true;
}

void
far_step(struct far *far, int timeout_ms)
{
	if (far->kill_now) {
		/* What was sent is executed meanwhile, as far as it comes. */
		(void)poll(NULL, 0, far->kill_delay_ms);
		far_kill(far);
	}
	if (far->closed)
		hang_up(far);
	if (!far->wire)
		connect_to(far);
	if (!far->closed && rsb_wire_is_open(far->wire) && rsb_wire_flush(far->wire) < 0)
		far->closed = true;
	ck_assert_int_eq(rsb_loop_step(far->loop, timeout_ms), 0);
}

void
far_send(struct far *far)
{
	ck_assert(!far->closed && rsb_wire_is_open(far->wire));
	ck_assert_int_eq(rsb_wire_flush(far->wire), 0);
}

void
far_until_stalled(struct far *far)
{
	struct pollfd pfd = { .fd = far->stall_fds[0], .events = POLLIN };

	far_until(far, poll(&pfd, 1, 0) == 1);
	far_wait_stalled(far);
}

void
far_wait_stalled(struct far *far)
{
	struct pollfd pfd = { .fd = far->stall_fds[0], .events = POLLIN };
	char byte;

	ck_assert_int_eq(poll(&pfd, 1, (int)(FAR_WAIT_NS / RSB_NSEC_PER_MSEC)), 1);
	ck_assert_int_eq(read(far->stall_fds[0], &byte, 1), 1);
}

/* ---- life ---- */

struct far *
far_new(bool with_journal)
{
	struct far *far = rsb_new(struct far);

	ck_assert_ptr_nonnull(far);
	rsb_log_init("test", RSB_LOG_WARN, 2);
	ck_assert_ptr_ne(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	(void)strcpy(far->workspace, "/tmp/rsb-far-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(far->workspace));
	(void)snprintf(far->journal, sizeof(far->journal), "%s.journal", far->workspace);
	far->config = (struct rsb_sidecar_config){
		.root_fd = open(far->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.workspace = far->workspace,
		.cmd_uid = getuid(),
		.cmd_gid = getgid(),
		.cmd_user = "tester",
		.cmd_home = "/tmp",
		.cmd_shell = "/bin/sh",
		.is_root = getuid() == 0,
		.journal = with_journal ? far->journal : NULL,
	};
	ck_assert_int_ge(far->config.root_fd, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &far->config.cmd_nofile), 0);
	ck_assert_int_eq(rsb_secret_generate(&far->key, RSB_AUTH_KEY_SIZE), 0);
	ck_assert_int_eq(pipe2(far->stall_fds, O_CLOEXEC), 0);
	far->incarnation = 1;
	ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &far->loop), 0);
	new_host(far);
	far_box_start(far);
	return far;
}

void
far_free(struct far *far)
{
	hang_up(far);
	far_box_end(far);
	rsb_session_free(far->host);
	rsb_loop_free(far->loop);
	for (size_t i = 0; i < FAR_CALLS_MAX; i++) {
		rsb_buf_done(&far->calls[i].first);
		rsb_buf_done(&far->calls[i].again);
		free(far->calls[i].msg);
	}
	rsb_secret_done(&far->key);
	(void)close(far->stall_fds[0]);
	(void)close(far->stall_fds[1]);
	(void)close(far->config.root_fd);
	unit_remove_tree(far->workspace);
	(void)unlink(far->journal);
	free(far);
}

/* ---- calls ---- */

uint64_t
far_call(struct far *far, uint32_t op, const void *req, const struct far_effect *effect)
{
	uint64_t id = ++far->n_call;
	struct far_call *call = &far->calls[id];

	ck_assert_uint_lt(id, FAR_CALLS_MAX);
	call->op = op;
	call->fifo = rsb_ops[op].flags & RSB_OP_WRITES ? ++far->fifo : 0;
	if (effect) {
		call->parent = effect->parent;
		(void)snprintf(
			call->name, sizeof(call->name), "%s", effect->name ? effect->name : "");
		call->node = effect->node;
		call->fh = effect->fh;
		call->flags = effect->flags;
	}
	rsb_buf_init(&call->first, RSB_MESSAGE_MAX);
	rsb_buf_init(&call->again, RSB_MESSAGE_MAX);
	ck_assert_int_eq(rsb_codec_request(op, id, 0, req, RSB_PROTO_VERSION, &call->first), 0);
	ck_assert_int_eq(rsb_codec_request(op, id, call->fifo ? call->fifo - 1 : 0, req,
				 RSB_PROTO_VERSION, &call->again),
		0);
	if (!far->crashed) /* else with all the others */
		send_bytes(far, op, rsb_buf_view(&call->first));
	return id;
}

int
far_reply(struct far *far, uint64_t id, void *ret_rep)
{
	struct far_call *call = &far->calls[id];

	far_until(far, call->done);
	if (call->error == 0 && ret_rep)
		ck_assert_int_eq(rsb_codec_decode(rsb_ops[call->op].rep, call->body, ret_rep), 0);
	return call->error;
}
