/* SPDX-License-Identifier: MIT */
/*
 * The link's own code (WebSocket, frames, numbered stream) beside raw TCP, in one run on loopback:
 * 1 MiB messages one way, and 128-byte messages to and fro. Prints both and their ratios. Two
 * threads, one for each end, blocking only in poll(2).
 */
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/session.h"
#include "proto/ws.h"
#include "util/clock.h"
#include "util/thread.h"

#define BULK_SIZE ((size_t)1 << 20)
#define SMALL_SIZE ((size_t)128)
#define BUFFER ((size_t)256 << 10)

/*
 * n messages of size bytes; echo: each is answered by one of the same size before the next is sent.
 */
struct job {
	size_t n;
	size_t size;
	int echo;
	int fd;
	int is_client;
};

struct end {
	struct job job;
	struct rsb_ws ws;
	struct rsb_session *session;
	struct rsb_buf in;
	struct rsb_buf out;
	struct rsb_buf frame;
	size_t n_sent;
	size_t n_taken;
	int is_drained; /* the session had nothing more to send */
};

static void
die(const char *what, int r)
{
	(void)fprintf(stderr, "bench-link: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void
must(int r, const char *what)
{
	if (r < 0)
		die(what, r);
}

/* ---- raw ---- */

static void
raw_move(int fd, uint8_t *data, size_t size, int is_write)
{
	while (size) {
		size_t part = rsb_min(size, BUFFER);
		ssize_t n = is_write ? write(fd, data, part) : read(fd, data, part);

		if (n <= 0)
			die("raw", n < 0 ? -errno : -EPIPE);
		size -= (size_t)n;
	}
}

static void *
raw_end(void *arg)
{
	struct job *job = arg;
	uint8_t *data = calloc(1, BUFFER);

	if (!data)
		die("memory", -ENOMEM);
	for (size_t i = 0; i < job->n; i++) {
		raw_move(job->fd, data, job->size, job->is_client);
		if (job->echo)
			raw_move(job->fd, data, job->size, !job->is_client);
	}
	/* One way: the last byte is seen to arrive. */
	raw_move(job->fd, data, 1, !job->is_client);
	free(data);
	return NULL;
}

/* ---- the link ---- */

static int
may_send(const struct end *end)
{
	size_t total = end->job.echo || end->job.is_client ? end->job.n : 1;

	if (end->n_sent == total)
		return 0;
	if (!end->job.echo)
		return end->job.is_client || end->n_taken == end->job.n;
	return end->job.is_client ? end->n_sent == end->n_taken : end->n_sent < end->n_taken;
}

static int
is_done(const struct end *end)
{
	size_t takes = end->job.echo || !end->job.is_client ? end->job.n : 1;
	size_t sends = end->job.echo || end->job.is_client ? end->job.n : 1;

	return end->n_taken == takes && end->n_sent == sends && end->is_drained &&
	       rsb_buf_len(&end->out) == 0;
}

static void
send_messages(struct end *end, const uint8_t *data)
{
	struct rsb_stream *stream = rsb_session_stream(end->session);

	while (may_send(end)) {
		int r = rsb_stream_send(
			stream, RSB_CLASS_FIFO, (struct rsb_bytes){ data, end->job.size });

		if (r == -EAGAIN)
			return;
		must(r, "send");
		end->n_sent++;
	}
}

static void
fill(struct end *end)
{
	end->is_drained = 0;
	while (!end->is_drained && rsb_buf_len(&end->out) < BUFFER) {
		int r = rsb_session_output(end->session, rsb_now_ns(), &end->frame);

		must(r, "output");
		end->is_drained = r == 0;
		if (r > 0)
			must(rsb_ws_send(&end->ws, rsb_buf_view(&end->frame), &end->out), "frame");
		rsb_buf_clear(&end->frame);
	}
}

static void
take_all(struct end *end)
{
	struct rsb_bytes msg;
	size_t used;
	int r;

	while ((r = rsb_ws_input(&end->ws, &end->in, &end->out, &msg, &used)) > 0) {
		must(rsb_session_input(end->session, rsb_now_ns(), msg), "input");
		rsb_buf_consume(&end->in, used);
		while (rsb_stream_peek(rsb_session_stream(end->session))) {
			free(rsb_stream_take(rsb_session_stream(end->session)));
			end->n_taken++;
		}
	}
	must(r, "WebSocket");
	rsb_buf_consume(&end->in, used);
}

/* Until the session has something to do by itself: an acknowledgement waits for company, say. */
static int
time_left(const struct end *end)
{
	uint64_t deadline = rsb_session_deadline(end->session);
	uint64_t now = rsb_now_ns();

	return deadline <= now ? 0 : (int)((deadline - now) / RSB_NSEC_PER_MSEC) + 1;
}

static void
turn(struct end *end, const uint8_t *data)
{
	struct pollfd p = { .fd = end->job.fd, .events = POLLIN };
	uint8_t *tail;
	ssize_t n;

	must(rsb_session_tick(end->session, rsb_now_ns()), "tick");
	send_messages(end, data);
	fill(end);
	if (rsb_buf_len(&end->out)) {
		n = send(
			end->job.fd, rsb_buf_head(&end->out), rsb_buf_len(&end->out), MSG_DONTWAIT);
		if (n > 0)
			rsb_buf_consume(&end->out, (size_t)n);
		p.events |= POLLOUT;
	}
	if (is_done(end) || poll(&p, 1, time_left(end)) < 0 || !(p.revents & POLLIN))
		return;
	must(rsb_buf_reserve(&end->in, BUFFER, &tail), "memory");
	n = recv(end->job.fd, tail, BUFFER, MSG_DONTWAIT);
	if (n == 0)
		die("connection", -EPIPE);
	if (n > 0)
		rsb_buf_commit(&end->in, (size_t)n);
	take_all(end);
}

static void *
link_end(void *arg)
{
	struct job *job = arg;
	struct rsb_chan_ops chan_ops = { 0 };
	struct rsb_session_config config = { .send_max = RSB_HOST_SEND_MAX,
		.window = RSB_HOST_WINDOW,
		.ping_ns = RSB_NSEC_PER_SEC,
		.silent_max = 100,
		.chan_ops = &chan_ops };
	struct rsb_stream_state peer = { .limit = RSB_HOST_WINDOW };
	struct end end = { .job = *job };
	uint8_t *data = calloc(1, job->size);

	if (!data)
		die("memory", -ENOMEM);
	rsb_buf_init(&end.in, 0);
	rsb_buf_init(&end.out, 0);
	rsb_buf_init(&end.frame, RSB_FRAME_MAX);
	must(rsb_ws_init(&end.ws, job->is_client ? RSB_WS_CLIENT : RSB_WS_SERVER), "ws");
	must(rsb_session_new(&config, &end.session), "session");
	must(rsb_session_attach(end.session, rsb_now_ns(), &peer, NULL), "attach");
	while (!is_done(&end))
		turn(&end, data);
	rsb_session_free(end.session);
	rsb_ws_done(&end.ws);
	rsb_buf_done(&end.in);
	rsb_buf_done(&end.out);
	rsb_buf_done(&end.frame);
	free(data);
	return NULL;
}

/* ---- both ---- */

static void
connect_pair(int fds[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof sa;
	int one = 1;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (l < 0 || bind(l, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(l, 1) < 0 ||
		getsockname(l, (struct sockaddr *)&sa, &size) < 0)
		die("listen", -errno);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fds[0] < 0 || connect(fds[0], (struct sockaddr *)&sa, sizeof sa) < 0)
		die("connect", -errno);
	fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	if (fds[1] < 0)
		die("accept", -errno);
	(void)close(l);
	for (int i = 0; i < 2; i++)
		(void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Seconds that the job took. */
static double
run(void *(*fn)(void *), size_t n, size_t size, int echo)
{
	struct job server = { .n = n, .size = size, .echo = echo };
	struct job client = server;
	pthread_t thread;
	uint64_t start;
	int fds[2];

	connect_pair(fds);
	client.fd = fds[0];
	client.is_client = 1;
	server.fd = fds[1];
	start = rsb_now_ns();
	must(rsb_thread_start("server", fn, &server, &thread), "thread");
	(void)fn(&client);
	(void)pthread_join(thread, NULL);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return (double)(rsb_now_ns() - start) / 1e9;
}

int
main(void)
{
	size_t n_bulk = 1000;
	size_t n_small = 20000;

	/* What is compared is the link, not how the kernel clears fresh pages. */
	(void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
	(void)mallopt(M_TOP_PAD, 16 << 20);

	for (int round = 0; round < 3; round++) {
		double raw_bulk = run(raw_end, n_bulk, BULK_SIZE, 0);
		double link_bulk = run(link_end, n_bulk, BULK_SIZE, 0);
		double raw_small = run(raw_end, n_small, SMALL_SIZE, 1);
		double link_small = run(link_end, n_small, SMALL_SIZE, 1);

		(void)printf("1 MiB: raw %.0f MB/s, link %.0f MB/s, ratio %.2f   "
			     "128 B: raw %.1f us, link %.1f us, ratio %.2f\n",
			(double)n_bulk * 1.048576 / raw_bulk, (double)n_bulk * 1.048576 / link_bulk,
			raw_bulk / link_bulk, raw_small / (double)n_small * 1e6,
			link_small / (double)n_small * 1e6, link_small / raw_small);
	}
	return 0;
}
