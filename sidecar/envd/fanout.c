/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/fanout.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/thread.h"

struct rsb_fanout {
	struct rsb_mutex lock;
	struct rsb_list streams; /* {lock} */
	size_t n_stream;         /* {lock} */
	size_t n_full;           /* {lock} streams over RSB_FANOUT_HIGH */
	size_t refs;             /* {lock} its owner and each stream */
	bool ended;              /* {lock} */
	struct rsb_buf last;     /* {lock} what the end was */
	int drain_fd;
};

struct rsb_watcher {
	struct rsb_list node; /* {fanout lock} */
	struct rsb_fanout *fanout;
	struct rsb_buf out; /* {fanout lock} */
	bool full;          /* {fanout lock} counted in n_full */
	bool ended;         /* {fanout lock} */
	int wake_fd;
	uint64_t keepalive_ns;
	uint64_t last_ns; /* when something was sent last; the reader's own */
};

static void
ring(int event_fd)
{
	uint64_t one = 1;

	/* EAGAIN is a counter that is high enough already. */
	(void)!write(event_fd, &one, sizeof(one));
}

int
rsb_fanout_new(struct rsb_fanout **ret_fanout)
{
	rsb_autofree struct rsb_fanout *fanout = rsb_new(struct rsb_fanout);

	if (!fanout)
		return -ENOMEM;
	fanout->drain_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fanout->drain_fd < 0)
		return -errno;
	rsb_mutex_init(&fanout->lock);
	rsb_list_init(&fanout->streams);
	fanout->refs = 1;
	*ret_fanout = rsb_steal(&fanout);
	return 0;
}

static void
unref(struct rsb_fanout *fanout)
{
	size_t left;

	rsb_mutex_lock(&fanout->lock);
	left = --fanout->refs;
	rsb_mutex_unlock(&fanout->lock);
	if (left > 0)
		return;
	rsb_mutex_done(&fanout->lock);
	rsb_buf_done(&fanout->last);
	(void)close(fanout->drain_fd);
	free(fanout);
}

void
rsb_fanout_free(struct rsb_fanout *fanout)
{
	if (fanout)
		unref(fanout);
}

int
rsb_fanout_drain_fd(const struct rsb_fanout *fanout)
{
	return fanout->drain_fd;
}

bool
rsb_fanout_full(struct rsb_fanout *fanout)
{
	bool full;

	rsb_mutex_lock(&fanout->lock);
	full = fanout->n_full > 0;
	rsb_mutex_unlock(&fanout->lock);
	return full;
}

static void
set_full_locked(struct rsb_fanout *fanout, struct rsb_watcher *stream, bool full)
	RSB_REQUIRES(fanout->lock)
{
	if (full == stream->full)
		return;
	stream->full = full;
	fanout->n_full += full ? 1 : (size_t)-1;
}

static void
push_locked(struct rsb_fanout *fanout, struct rsb_watcher *stream, struct rsb_bytes bytes)
	RSB_REQUIRES(fanout->lock)
{
	if (stream->ended)
		return;
	if (rsb_buf_append(&stream->out, bytes.data, bytes.size) < 0)
		stream->ended = true;
	set_full_locked(
		fanout, stream, !stream->ended && rsb_buf_len(&stream->out) > RSB_FANOUT_HIGH);
	ring(stream->wake_fd);
}

void
rsb_fanout_push(struct rsb_fanout *fanout, struct rsb_bytes envelopes)
{
	struct rsb_list *pos;

	rsb_mutex_lock(&fanout->lock);
	rsb_list_for_each (pos, &fanout->streams)
		push_locked(fanout, rsb_list_entry(pos, struct rsb_watcher, node), envelopes);
	rsb_mutex_unlock(&fanout->lock);
}

void
rsb_fanout_end(struct rsb_fanout *fanout, struct rsb_bytes envelopes)
{
	struct rsb_list *pos;

	rsb_mutex_lock(&fanout->lock);
	fanout->ended = true;
	/* Without memory latecomers see a stream that breaks off. */
	(void)!rsb_buf_append(&fanout->last, envelopes.data, envelopes.size);
	rsb_list_for_each (pos, &fanout->streams) {
		struct rsb_watcher *stream = rsb_list_entry(pos, struct rsb_watcher, node);

		push_locked(fanout, stream, envelopes);
		stream->ended = true;
	}
	rsb_mutex_unlock(&fanout->lock);
}

/* -EAGAIN over the number of clients. */
static int
join_locked(struct rsb_fanout *fanout, struct rsb_watcher *stream) RSB_REQUIRES(fanout->lock)
{
	int r;

	if (fanout->n_stream >= RSB_FANOUT_CLIENTS_MAX)
		return -EAGAIN;
	r = rsb_buf_append(&stream->out, rsb_buf_head(&fanout->last), rsb_buf_len(&fanout->last));
	if (r < 0)
		return r;
	rsb_list_append(&fanout->streams, &stream->node);
	fanout->n_stream++;
	fanout->refs++;
	stream->ended = fanout->ended;
	return 0;
}

int
rsb_watcher_new(struct rsb_fanout *fanout, uint64_t keepalive_ns, struct rsb_bytes first,
	struct rsb_watcher **ret_stream)
{
	rsb_autofree struct rsb_watcher *stream = rsb_new(struct rsb_watcher);
	int r;

	if (!stream)
		return -ENOMEM;
	stream->fanout = fanout;
	stream->keepalive_ns = keepalive_ns;
	stream->last_ns = rsb_now_ns();
	rsb_buf_init(&stream->out, RSB_FANOUT_MAX);
	r = rsb_buf_append(&stream->out, first.data, first.size);
	if (r < 0)
		return r;
	stream->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stream->wake_fd < 0) {
		r = -errno;
		rsb_buf_done(&stream->out);
		return r;
	}
	rsb_mutex_lock(&fanout->lock);
	r = join_locked(fanout, stream);
	rsb_mutex_unlock(&fanout->lock);
	if (r < 0) {
		(void)close(stream->wake_fd);
		rsb_buf_done(&stream->out);
		return r;
	}
	*ret_stream = rsb_steal(&stream);
	return 0;
}

void
rsb_watcher_free(struct rsb_watcher *stream)
{
	struct rsb_fanout *fanout;
	bool was_full;

	if (!stream)
		return;
	fanout = stream->fanout;
	rsb_mutex_lock(&fanout->lock);
	was_full = stream->full;
	set_full_locked(fanout, stream, false);
	rsb_list_remove(&stream->node);
	fanout->n_stream--;
	rsb_mutex_unlock(&fanout->lock);
	if (was_full)
		ring(fanout->drain_fd);
	unref(fanout);
	(void)close(stream->wake_fd);
	rsb_buf_done(&stream->out);
	free(stream);
}

/* Bytes taken, 0 when there are none; *ret_ended when there will be none. */
static size_t
take(struct rsb_watcher *stream, uint8_t *out, size_t size, bool *ret_ended)
{
	struct rsb_fanout *fanout = stream->fanout;
	bool was_full;
	size_t n;

	rsb_mutex_lock(&fanout->lock);
	n = rsb_min(size, rsb_buf_len(&stream->out));
	if (n > 0) {
		memcpy(out, rsb_buf_head(&stream->out), n);
		rsb_buf_consume(&stream->out, n);
	}
	was_full = stream->full;
	set_full_locked(
		fanout, stream, stream->full && rsb_buf_len(&stream->out) > RSB_FANOUT_HIGH / 2);
	was_full = was_full && !stream->full;
	*ret_ended = stream->ended;
	rsb_mutex_unlock(&fanout->lock);
	if (was_full)
		ring(fanout->drain_fd);
	return n;
}

static void
keep_alive(struct rsb_watcher *stream)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	struct rsb_fanout *fanout = stream->fanout;

	/* Without memory there is no keep-alive this time. */
	if (rsb_connectrpc_frame(&text, RSB_CONNECTRPC_MESSAGE,
		    rsb_bytes_str("{\"event\":{\"keepalive\":{}}}")) < 0)
		return;
	rsb_mutex_lock(&fanout->lock);
	push_locked(fanout, stream, rsb_buf_view(&text));
	rsb_mutex_unlock(&fanout->lock);
}

/* Until there is something to take. */
static int
wait_more(struct rsb_watcher *stream, int client_fd)
{
	struct pollfd fds[2] = {
		{ .fd = stream->wake_fd, .events = POLLIN },
		{ .fd = client_fd, .events = POLLRDHUP },
	};
	uint64_t now = rsb_now_ns();
	uint64_t due = stream->last_ns + stream->keepalive_ns;
	uint64_t count;

	if (now >= due) {
		keep_alive(stream);
		return 0;
	}
	if (poll(fds, 2, (int)((due - now) / RSB_NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
		return -errno;
	if (fds[1].revents)
		return -EPIPE;
	(void)!read(stream->wake_fd, &count, sizeof(count)); /* EAGAIN after a timeout */
	return 0;
}

ssize_t
rsb_watcher_read(struct rsb_watcher *stream, int client_fd, uint8_t *out, size_t size)
{
	bool ended;

	for (;;) {
		size_t n = take(stream, out, size, &ended);
		int r;

		if (n > 0) {
			stream->last_ns = rsb_now_ns();
			return (ssize_t)n;
		}
		if (ended)
			return 0;
		r = wait_more(stream, client_fd);
		if (r < 0)
			return r;
	}
}
