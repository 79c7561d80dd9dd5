/* SPDX-License-Identifier: MIT */
#include "sidecar/proc-stream.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proto/limits.h"
#include "util/cleanup.h"

#define READ_SIZE 65536u
/* Bytes of one pipe in one turn; then others have theirs. */
#define TURN_MAX ((size_t)256 << 10)

/* ---- in ---- */

static void
end_pipe(struct rsb_inflow *in)
{
	rsb_source_del(rsb_steal(&in->source));
	rsb_cleanup_close(&in->fd);
	in->fd = -1;
	rsb_buf_done(&in->buf);
}

static void wait_writable(struct rsb_inflow *in, bool on);

static void
write_some(struct rsb_inflow *in)
{
	ssize_t n = 0;
	size_t done = 0;

	while (in->fd >= 0 && rsb_buf_len(&in->buf) > 0) {
		n = write(in->fd, rsb_buf_head(&in->buf), rsb_buf_len(&in->buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		rsb_buf_consume(&in->buf, (size_t)n);
		done += (size_t)n;
	}
	if (done > 0) {
		rsb_chan_consume(rsb_session_chans(in->sess->proto), in->chan, done);
		rsb_sess_kick(in->sess);
	}
	if (n < 0 && errno == EAGAIN) {
		wait_writable(in, true);
	} else if (n < 0) { /* EPIPE: nobody reads it. That ends this stream and nothing else */
		end_pipe(in);
		rsb_sess_chan_close(in->sess, in->chan, -EPIPE);
	} else if (in->fin && in->fd >= 0) {
		end_pipe(in);
		rsb_sess_chan_close(in->sess, in->chan, 0);
	} else {
		wait_writable(in, false);
	}
}

static void
on_writable(void *arg, uint32_t events rsb_unused)
{
	write_some(arg);
}

static void
wait_writable(struct rsb_inflow *in, bool on)
{
	if (!on)
		rsb_source_del(rsb_steal(&in->source));
	else if (!in->source &&
		 rsb_loop_add(in->sess->loop, in->fd, EPOLLOUT, on_writable, in, &in->source) < 0) {
		/* No memory: as if the reader had gone, which the host is told. */
		end_pipe(in);
		rsb_sess_chan_close(in->sess, in->chan, -ENOMEM);
	}
}

static struct rsb_inflow *
inflow_of(struct rsb_chan_user *user)
{
	return rsb_container_of(user, struct rsb_inflow, user);
}

static void
in_data(struct rsb_chan_user *user, struct rsb_bytes data, bool fin)
{
	struct rsb_inflow *in = inflow_of(user);

	if (rsb_buf_append(&in->buf, data.data, data.size) < 0) {
		end_pipe(in);
		rsb_sess_chan_close(in->sess, in->chan, -ENOMEM);
		return;
	}
	in->fin = in->fin || fin;
	if (in->fd >= 0 && !in->source)
		write_some(in);
}

static void
in_writable(struct rsb_chan_user *user rsb_unused)
{
}

static void
in_reset(struct rsb_chan_user *user, int r rsb_unused)
{
	struct rsb_inflow *in = inflow_of(user);

	in->cut = !in->fin;
	end_pipe(in);
}

int
rsb_inflow_open(struct rsb_inflow *in, struct rsb_sess *sess, uint64_t chan, size_t window_max)
{
	int r;

	*in = (struct rsb_inflow){
		.user = { .data = in_data, .writable = in_writable, .reset = in_reset },
		.chan = chan,
		.fd = -1,
	};
	/* The peer sends at most a window beyond what was consumed. */
	rsb_buf_init(&in->buf, window_max + RSB_FRAME_MAX);
	r = rsb_sess_chan_open_receiver(sess, chan, window_max, &in->user);
	if (r == 0)
		in->sess = sess;
	return r;
}

int
rsb_inflow_start(struct rsb_inflow *in, int fd)
{
	in->started = true;
	if (in->cut) {
		(void)close(fd);
		return 0;
	}
	in->fd = fd;
	write_some(in);
	return 0;
}

void
rsb_inflow_close(struct rsb_inflow *in)
{
	if (!in->sess)
		return;
	end_pipe(in);
	rsb_sess_chan_close(in->sess, in->chan, 0);
	in->sess = NULL;
}

/* ---- out ---- */

static struct rsb_outflow *
outflow_of(struct rsb_chan_user *user)
{
	return rsb_container_of(user, struct rsb_outflow, user);
}

static void
end_read(struct rsb_outflow *out)
{
	rsb_source_del(rsb_steal(&out->source));
	rsb_cleanup_close(&out->fd);
	out->fd = -1;
}

/* 1: there may be more; 0: not now; -EPIPE: it is over. */
static int
read_once(struct rsb_outflow *out, uint8_t *data)
{
	struct rsb_chans *chans = rsb_session_chans(out->sess->proto);
	size_t room = out->mute ? READ_SIZE : rsb_chan_room(chans, out->chan);
	ssize_t n;
	int r;

	if (room == 0) {
		/*
		 * A source without events would still report the end of the writers, again and
		 * again. Room is told of only after a write that came short.
		 */
		rsb_source_del(rsb_steal(&out->source));
		(void)rsb_chan_write(
			chans, out->chan, (struct rsb_bytes){ .data = data, .size = 1 });
		return 0;
	}
	n = read(out->fd, data, rsb_min(room, (size_t)READ_SIZE));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	out->size += (uint64_t)n;
	if (out->mute)
		return 1;
	r = rsb_chan_write(chans, out->chan, (struct rsb_bytes){ .data = data, .size = (size_t)n });
	if (r == n)
		return 1;
	/* No memory. The host must not take what it has for the whole. */
	rsb_sess_chan_close(out->sess, out->chan, -ENOMEM);
	return -EPIPE;
}

static void
on_readable(void *arg, uint32_t events rsb_unused)
{
	struct rsb_outflow *out = arg;
	uint64_t start = out->size;
	uint8_t data[READ_SIZE];
	int r;

	do {
		r = read_once(out, data);
	} while (r > 0 && out->size - start < TURN_MAX);
	if (r < 0) {
		end_read(out);
		if (!out->mute)
			/* Fails only for a channel that is gone already. */
			(void)rsb_chan_finish(rsb_session_chans(out->sess->proto), out->chan);
	}
	if (r < 0 || out->size > start) {
		rsb_sess_kick(out->sess);
		out->moved(out->arg);
	}
}

static int
watch(struct rsb_outflow *out)
{
	if (out->fd < 0 || out->source)
		return 0;
	return rsb_loop_add(out->sess->loop, out->fd, EPOLLIN, on_readable, out, &out->source);
}

static void
out_data(struct rsb_chan_user *user rsb_unused, struct rsb_bytes data rsb_unused,
	bool fin rsb_unused)
{
}

static void
out_writable(struct rsb_chan_user *user)
{
	struct rsb_outflow *out = outflow_of(user);

	if (out->fd < 0 && out->started) {
		/* Ended here, and the host has all of it. */
		if (rsb_chan_drained(rsb_session_chans(out->sess->proto), out->chan)) {
			rsb_sess_chan_close(out->sess, out->chan, 0);
			out->drained = true;
			out->moved(out->arg);
		}
		return;
	}
	if (watch(out) < 0) {
		end_read(out);
		rsb_sess_chan_close(out->sess, out->chan, -ENOMEM);
		out->moved(out->arg);
	}
}

/*
 * Nobody reads over there: the writer gets SIGPIPE here, as it would with a pipe between them. Not
 * so when the host's process died: what shall become of the command, its successor decides.
 */
static void
out_reset(struct rsb_chan_user *user, int r)
{
	struct rsb_outflow *out = outflow_of(user);

	if (r == -EOWNERDEAD) {
		rsb_outflow_mute(out);
		return;
	}
	out->cut = true;
	end_read(out);
	out->moved(out->arg);
}

int
rsb_outflow_open(struct rsb_outflow *out, struct rsb_sess *sess, uint64_t chan,
	void (*moved)(void *arg), void *arg)
{
	int r;

	*out = (struct rsb_outflow){
		.user = { .data = out_data, .writable = out_writable, .reset = out_reset },
		.chan = chan,
		.fd = -1,
		.moved = moved,
		.arg = arg,
	};
	r = rsb_sess_chan_open_sender(sess, chan, RSB_STREAM_OUT_BUFFER_MAX, &out->user);
	if (r == 0)
		out->sess = sess;
	return r;
}

int
rsb_outflow_start(struct rsb_outflow *out, int fd)
{
	out->started = true;
	if (out->cut) {
		(void)close(fd);
		return 0;
	}
	out->fd = fd;
	return watch(out);
}

void
rsb_outflow_mark(struct rsb_outflow *out)
{
	int n = 0;

	if (out->fd >= 0 && ioctl(out->fd, FIONREAD, &n) < 0)
		n = 0; /* never for a pipe */
	out->due = out->size + (uint64_t)n;
}

bool
rsb_outflow_reached(const struct rsb_outflow *out)
{
	return out->fd < 0 || out->size >= out->due;
}

bool
rsb_outflow_ended(const struct rsb_outflow *out)
{
	return out->fd < 0;
}

void
rsb_outflow_mute(struct rsb_outflow *out)
{
	if (!out->sess)
		return;
	out->mute = true;
	rsb_sess_chan_close(out->sess, out->chan, 0);
	if (watch(out) < 0)
		end_read(out);
}

void
rsb_outflow_close(struct rsb_outflow *out)
{
	if (!out->sess)
		return;
	end_read(out);
	rsb_sess_chan_close(out->sess, out->chan, 0);
	out->sess = NULL;
}
