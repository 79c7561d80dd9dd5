/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-sidecar.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "proto/codec.h"
#include "proto/handshake.h"
#include "proto/session.h"
#include "proto/version.h"
#include "proto/ws.h"
#include "tests/unit/fake-echo.h"
#include "tests/unit/fake-orders.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/thread.h"

#define TICK_MS 5

static void
fresh_session(struct fake_sidecar *fake)
{
	const struct rsb_session_config config = {
		.send_max = RSB_SIDECAR_SEND_MAX,
		.window = RSB_SIDECAR_WINDOW,
		.ping_ns = 10 * RSB_NSEC_PER_SEC,
		.silent_max = 10,
		.chan_ops = &fake_echo_ops,
		.chan_arg = &fake->session,
	};

	rsb_session_free(fake->session);
	ck_assert_int_eq(rsb_session_new(&config, &fake->session), 0);
	fake->known = false;
	fake->n_waiting = 0;
	fake->epoch[7]++;
}

static void
hang_up(struct fake_sidecar *fake)
{
	if (fake->phase == NONE)
		return;
	rsb_session_detach(fake->session);
	rsb_zip_free(fake->zip);
	fake->zip = NULL;
	rsb_ws_done(&fake->ws);
	rsb_buf_clear(&fake->in);
	rsb_buf_clear(&fake->out);
	close(fake->fd);
	fake->phase = NONE;
}

static void
reply(struct fake_sidecar *fake, const struct rsb_call_head *head, int error, const void *rep)
{
	struct rsb_buf msg = { 0 };

	ck_assert_int_eq(
		rsb_codec_reply(head->op, head->id, error, rep, RSB_PROTO_VERSION, &msg), 0);
	ck_assert_int_eq(rsb_stream_send(rsb_session_stream(fake->session), RSB_CLASS_READ,
				 rsb_buf_view(&msg)),
		0);
	rsb_buf_done(&msg);
}

/* id 0: all that wait. */
static void
end_wait(struct fake_sidecar *fake, uint64_t id)
{
	struct rsb_call_head waiting = { .op = RSB_OP_wait };
	size_t i;

	for (i = 0; i < fake->n_waiting; i++)
		if (id == 0 || fake->waiting[i] == id) {
			waiting.id = fake->waiting[i];
			reply(fake, &waiting, -EINTR, NULL);
		}
}

static void
cancel(struct fake_sidecar *fake, const struct rsb_call_head *head)
{
	struct rsb_cancel_req req;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_cancel_req, head->body, &req), 0);
	end_wait(fake, req.call);
	reply(fake, head, 0, NULL);
}

static void
spawn(struct fake_sidecar *fake, const struct rsb_call_head *head)
{
	struct rsb_chans *chans = rsb_session_chans(fake->session);
	struct rsb_spawn_rep rep = { .pid = 77 };
	struct rsb_spawn_req req;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_spawn_req, head->body, &req), 0);
	ck_assert_int_eq(rsb_chan_open_receiver(chans, RSB_CHAN_STDIN(req.proc), 1 << 20), 0);
	ck_assert_int_eq(rsb_chan_open_sender(chans, RSB_CHAN_STDOUT(req.proc), 64 << 20), 0);
	reply(fake, head, 0, &rep);
}

static void
serve(struct fake_sidecar *fake, const struct rsb_msg *msg)
{
	struct rsb_attr_rep attr = { 0 };
	struct rsb_write_rep written = { 0 };
	struct rsb_getattr_req getattr;
	struct rsb_call_head head;

	ck_assert_int_eq(rsb_codec_head((struct rsb_bytes){ msg->data, msg->size }, &head), 0);
	rsb_mutex_lock(&fake->lock);
	written.offset = ++fake->n_seen[head.op];
	rsb_mutex_unlock(&fake->lock);
	switch (head.op) {
	case RSB_OP_getattr:
		ck_assert_int_eq(
			rsb_codec_decode(&rsb_desc_rsb_getattr_req, head.body, &getattr), 0);
		attr.attr.ino = getattr.node.id;
		reply(fake, &head, 0, &attr);
		break;
	case RSB_OP_write:
		reply(fake, &head, 0, &written);
		break;
	case RSB_OP_wait:
		ck_assert_uint_lt(fake->n_waiting, PENDING);
		fake->waiting[fake->n_waiting++] = head.id;
		break;
	case RSB_OP_cancel:
		cancel(fake, &head);
		break;
	case RSB_OP_spawn:
		spawn(fake, &head);
		break;
	default:
		reply(fake, &head, -EOPNOTSUPP, NULL);
	}
}

static int
take_hello(struct fake_sidecar *fake, struct rsb_bytes frame)
{
	struct rsb_welcome welcome = {
		.cmd_uid = 1000,
		.cmd_gid = 1000,
		.wall_sec = rsb_wall_ns() / RSB_NSEC_PER_SEC + FAKE_AHEAD_S,
	};
	struct rsb_buf out = { 0 };
	struct rsb_stream_state state;
	struct rsb_hello hello;
	int r;

	r = rsb_handshake_check_hello(&fake->hs, &fake->key, frame, &hello, NULL);
	if (r < 0)
		return r;
	ck_assert_uint_eq(hello.session_id.size, sizeof(fake->session_id));
	if (fake->known && hello.incarnation > fake->incarnation) {
		fresh_session(fake);
		fake->epoch[7]--;
		fake->known = true;
		hello.received = hello.acked = hello.digest = 0;
	}
	fake->incarnation = hello.incarnation;
	if (fake->known && memcmp(fake->session_id, hello.session_id.data, 16) != 0)
		fresh_session(fake);
	memcpy(fake->session_id, hello.session_id.data, sizeof(fake->session_id));
	const struct rsb_stream_state peer = {
		.received = hello.received,
		.acked = hello.acked,
		.limit = hello.window,
		.digest = hello.digest,
	};
	rsb_stream_state(rsb_session_stream(fake->session), &state);
	welcome.epoch = rsb_bytes_str(fake->epoch);
	welcome.resumed = fake->known;
	welcome.anew = fake->goes_anew && hello.calls;
	fake->goes_anew = false;
	rsb_mutex_lock(&fake->lock);
	welcome.fifo = fake->fifo;
	welcome.lock_losses = fake->lock_losses;
	rsb_mutex_unlock(&fake->lock);
	welcome.received = state.received;
	welcome.acked = state.acked;
	welcome.window = state.limit;
	welcome.digest = state.digest;
	welcome.workspace = rsb_bytes_str("/w");
	welcome.boot_id = rsb_bytes_str("boot");
	ck_assert_int_eq(rsb_handshake_welcome(&fake->hs, &welcome, &out), 0);
	ck_assert_int_eq(rsb_ws_send(&fake->ws, rsb_buf_view(&out), &fake->out), 0);
	rsb_buf_done(&out);
	ck_assert_int_eq(rsb_zip_new(&fake->zip), 0);
	/* a session that is new here is new there: the host begins again when it hears that */
	r = rsb_session_attach(fake->session, rsb_now_ns(),
		fake->known ? &peer : &(struct rsb_stream_state){ .limit = peer.limit }, fake->zip);
	fake->known = true;
	fake->phase = OPEN;
	return r;
}

static int
take_upgrade(struct fake_sidecar *fake)
{
	struct rsb_ws_upgrade upgrade;
	struct rsb_buf frame = { 0 };
	int n, r;

	n = rsb_ws_accept(rsb_buf_view(&fake->in), &upgrade);
	if (n <= 0)
		return n;
	ck_assert_uint_eq(upgrade.path.size, 4);
	r = rsb_auth_upgrade_check(&fake->key, upgrade.auth, upgrade.key, fake->hs.host_nonce);
	if (r < 0) {
		ck_assert_int_eq(rsb_ws_refuse(401, &fake->out), 0);
		return r;
	}
	ck_assert_int_eq(rsb_ws_accept_reply(upgrade.key, &fake->out), 0);
	rsb_buf_consume(&fake->in, (size_t)n);
	ck_assert_int_eq(rsb_handshake_challenge(&fake->hs, &fake->key, &frame), 0);
	ck_assert_int_eq(rsb_ws_send(&fake->ws, rsb_buf_view(&frame), &fake->out), 0);
	rsb_buf_done(&frame);
	fake->phase = HELLO;
	return 1;
}

static int
take_frame(struct fake_sidecar *fake, struct rsb_bytes frame)
{
	bool cut;
	int r;

	if (fake->phase == HELLO)
		return take_hello(fake, frame);
	rsb_mutex_lock(&fake->lock);
	cut = fake->cut_after > 0 && --fake->cut_after == 0;
	rsb_mutex_unlock(&fake->lock);
	if (cut)
		return -ECONNRESET;
	r = rsb_session_input(fake->session, rsb_now_ns(), frame);
	if (r < 0)
		return r;
	while (rsb_stream_peek(rsb_session_stream(fake->session))) {
		struct rsb_msg *msg = rsb_stream_take(rsb_session_stream(fake->session));

		serve(fake, msg);
		free(msg);
	}
	return 0;
}

static int
receive(struct fake_sidecar *fake)
{
	struct rsb_bytes msg;
	uint8_t *tail;
	size_t used;
	ssize_t n;
	int r;

	ck_assert_int_eq(rsb_buf_reserve(&fake->in, 1 << 16, &tail), 0);
	n = read(fake->fd, tail, 1 << 16);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
	rsb_buf_commit(&fake->in, (size_t)n);
	if (fake->phase == UPGRADE) {
		r = take_upgrade(fake);
		if (r <= 0)
			return r;
	}
	for (;;) {
		r = rsb_ws_input(&fake->ws, &fake->in, &fake->out, &msg, &used);
		if (r < 0)
			return r;
		if (r == 0 && used == 0)
			return 0;
		if (r > 0) {
			r = take_frame(fake, msg);
			if (r < 0)
				return r;
		}
		rsb_buf_consume(&fake->in, used);
	}
}

static void
flush(struct fake_sidecar *fake)
{
	struct rsb_buf frame = { 0 };
	ssize_t n;

	while (fake->phase == OPEN && rsb_buf_len(&fake->out) < 1 << 18 &&
		rsb_session_output(fake->session, rsb_now_ns(), &frame) > 0) {
		ck_assert_int_eq(rsb_ws_send(&fake->ws, rsb_buf_view(&frame), &fake->out), 0);
		rsb_buf_clear(&frame);
	}
	rsb_buf_done(&frame);
	if (rsb_buf_len(&fake->out) == 0)
		return;
	n = send(fake->fd, rsb_buf_head(&fake->out), rsb_buf_len(&fake->out), MSG_NOSIGNAL);
	if (n > 0)
		rsb_buf_consume(&fake->out, (size_t)n);
}

/* What the test ordered; false: stop. */
static bool
take_orders(struct fake_sidecar *fake, bool *ret_frozen)
{
	struct rsb_call_head head = { .op = RSB_OP_wait };
	bool stop, answer;

	rsb_mutex_lock(&fake->lock);
	if (fake->cut || fake->forget || fake->anew || fake->next_fd >= 0)
		hang_up(fake);
	if (fake->forget || fake->anew)
		fresh_session(fake);
	fake->goes_anew |= fake->anew;
	fake->anew = false;
	if (fake->next_fd >= 0) {
		fake->fd = fake->next_fd;
		fake->phase = UPGRADE;
		ck_assert_int_eq(rsb_fd_nonblock(fake->fd, true), 0);
		ck_assert_int_eq(rsb_ws_init(&fake->ws, RSB_WS_SERVER), 0);
	}
	fake->next_fd = -1;
	fake->cut = false;
	fake->forget = false;
	*ret_frozen = fake->frozen;
	stop = fake->stop;
	answer = fake->answer;
	head.id = fake->answer_id;
	fake->answer = false;
	rsb_mutex_unlock(&fake->lock);
	if (answer && head.id)
		reply(fake, &head, -EINTR, NULL);
	else if (answer)
		end_wait(fake, 0);
	return !stop;
}

static void *
run(void *arg)
{
	struct fake_sidecar *fake = arg;
	bool frozen;

	while (take_orders(fake, &frozen)) {
		struct pollfd pfd = { .fd = fake->fd, .events = POLLIN };

		if (fake->phase == NONE || frozen) {
			(void)poll(NULL, 0, TICK_MS);
			continue;
		}
		if (rsb_buf_len(&fake->out) > 0)
			pfd.events |= POLLOUT;
		(void)poll(&pfd, 1, TICK_MS);
		if (pfd.revents & (POLLIN | POLLHUP) && receive(fake) < 0) {
			flush(fake);
			hang_up(fake);
			continue;
		}
		flush(fake);
		if (fake->phase == OPEN && rsb_session_tick(fake->session, rsb_now_ns()) < 0)
			hang_up(fake);
	}
	hang_up(fake);
	return NULL;
}

struct fake_sidecar *
fake_sidecar_new(const struct rsb_secret *key)
{
	struct fake_sidecar *fake = calloc(1, sizeof(*fake));

	ck_assert_ptr_nonnull(fake);
	fake->key = *key;
	fake->next_fd = -1;
	strcpy(fake->epoch, "epoch--0");
	rsb_mutex_init(&fake->lock);
	rsb_buf_init(&fake->in, 4 << 20);
	rsb_buf_init(&fake->out, 4 << 20);
	fresh_session(fake);
	ck_assert_int_eq(rsb_thread_start("fake", run, fake, &fake->thread), 0);
	return fake;
}

void
fake_sidecar_free(struct fake_sidecar *fake)
{
	rsb_mutex_lock(&fake->lock);
	fake->stop = true;
	rsb_mutex_unlock(&fake->lock);
	pthread_join(fake->thread, NULL);
	rsb_session_free(fake->session);
	rsb_buf_done(&fake->in);
	rsb_buf_done(&fake->out);
	rsb_mutex_done(&fake->lock);
	free(fake);
}
