/* SPDX-License-Identifier: MIT */
#include "sidecar/local/tunnel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/list.h"
#include "util/loop.h"
#include "util/thread.h"

enum side { CLIENT, SANDBOX };

/* What came from one side and goes to the other. */
struct flow {
	struct rsb_buf buf;
	bool ended; /* end of file read */
	bool shut;  /* and passed on */
};

struct tunnel {
	struct rsb_list node; /* {loop thread} */
	struct rsb_tunnels *tunnels;
	struct rsb_task task;
	struct rsb_inlet *inlet;      /* the sandbox's side */
	int fd[2];                    /* by side */
	struct flow from[2];          /* by side */
	struct rsb_source *source[2]; /* by side; NULL while nothing is wanted of it */
	void (*close_client)(void *arg);
	void *arg;
};

struct rsb_tunnels {
	struct rsb_loop *loop;
	pthread_t thread;
	struct rsb_list list; /* {loop thread} */
};

static void
tunnel_free(struct tunnel *t)
{
	for (int side = CLIENT; side <= SANDBOX; side++) {
		rsb_source_del(t->source[side]);
		rsb_buf_done(&t->from[side].buf);
	}
	rsb_list_remove(&t->node);
	t->close_client(t->arg);
	rsb_inlet_close(t->inlet);
	free(t);
}

/* ---- moving bytes ---- */

/* Negative: the connection is broken. */
static int
fill(struct flow *flow, int fd)
{
	uint8_t *tail;
	ssize_t n;
	size_t room = RSB_TUNNEL_BUFFER - rsb_buf_len(&flow->buf);
	int r;

	if (flow->ended || room == 0)
		return 0;
	r = rsb_buf_reserve(&flow->buf, room, &tail);
	if (r < 0)
		return r;
	n = recv(fd, tail, room, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		flow->ended = true;
	else
		rsb_buf_commit(&flow->buf, (size_t)n);
	return 0;
}

static int
drain(struct flow *flow, int fd)
{
	while (rsb_buf_len(&flow->buf) > 0) {
		ssize_t n = send(fd, rsb_buf_head(&flow->buf), rsb_buf_len(&flow->buf),
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		rsb_buf_consume(&flow->buf, (size_t)n);
	}
	if (flow->ended && !flow->shut) {
		flow->shut = true;
		(void)shutdown(fd, SHUT_WR); /* ENOTCONN: it knows */
	}
	return 0;
}

static void on_client(void *arg, uint32_t events);
static void on_sandbox(void *arg, uint32_t events);

/* A side of which nothing is wanted is not watched: its hang-up would be reported for ever. */
static int
watch(struct tunnel *t, enum side side)
{
	static const rsb_source_fn fns[] = { [CLIENT] = on_client, [SANDBOX] = on_sandbox };
	const struct flow *in = &t->from[side], *out = &t->from[!side];
	uint32_t events = 0;

	if (!in->ended && rsb_buf_len(&in->buf) < RSB_TUNNEL_BUFFER)
		events |= EPOLLIN;
	if (rsb_buf_len(&out->buf) > 0)
		events |= EPOLLOUT;
	if (events && t->source[side])
		return rsb_source_set(t->source[side], events);
	if (events)
		return rsb_loop_add(
			t->tunnels->loop, t->fd[side], events, fns[side], t, &t->source[side]);
	rsb_source_del(t->source[side]);
	t->source[side] = NULL;
	return 0;
}

static int
move(struct tunnel *t, enum side side)
{
	int r = fill(&t->from[side], t->fd[side]);

	if (r == 0)
		r = drain(&t->from[CLIENT], t->fd[SANDBOX]);
	if (r == 0)
		r = drain(&t->from[SANDBOX], t->fd[CLIENT]);
	if (r < 0 || (t->from[CLIENT].shut && t->from[SANDBOX].shut))
		return -EPIPE;
	r = watch(t, CLIENT);
	return r < 0 ? r : watch(t, SANDBOX);
}

static void
on_client(void *arg, uint32_t events)
{
	(void)events;
	if (move(arg, CLIENT) < 0)
		tunnel_free(arg);
}

static void
on_sandbox(void *arg, uint32_t events)
{
	(void)events;
	if (move(arg, SANDBOX) < 0)
		tunnel_free(arg);
}

/* ---- life ---- */

static void
on_add(struct rsb_task *task)
{
	struct tunnel *t = rsb_container_of(task, struct tunnel, task);

	rsb_list_append(&t->tunnels->list, &t->node);
	on_sandbox(t, 0);
}

static void *
run(void *arg)
{
	struct rsb_tunnels *tunnels = arg;

	(void)!rsb_loop_run(tunnels->loop); /* the tunnels end with it, whatever stopped it */
	return NULL;
}

int
rsb_tunnels_new(struct rsb_tunnels **ret_tunnels)
{
	rsb_autofree struct rsb_tunnels *tunnels = rsb_new(struct rsb_tunnels);
	int r;

	if (!tunnels)
		return -ENOMEM;
	rsb_list_init(&tunnels->list);
	r = rsb_loop_new(rsb_clock_monotonic(), &tunnels->loop);
	if (r < 0)
		return r;
	r = rsb_thread_start("tunnels", run, tunnels, &tunnels->thread);
	if (r < 0) {
		rsb_loop_free(tunnels->loop);
		return r;
	}
	*ret_tunnels = rsb_steal(&tunnels);
	return 0;
}

void
rsb_tunnels_free(struct rsb_tunnels *tunnels)
{
	struct rsb_list *pos, *tmp;

	if (!tunnels)
		return;
	rsb_loop_stop(tunnels->loop);
	(void)pthread_join(tunnels->thread, NULL);
	rsb_list_for_each_safe (pos, tmp, &tunnels->list)
		tunnel_free(rsb_list_entry(pos, struct tunnel, node));
	rsb_loop_free(tunnels->loop);
	free(tunnels);
}

static int
prepare(struct tunnel *t, const struct rsb_tunnel_spec *spec)
{
	static const int one = 1;
	int r;

	for (int side = CLIENT; side <= SANDBOX; side++) {
		rsb_buf_init(&t->from[side].buf, 2 * RSB_TUNNEL_BUFFER);
		/* Small messages are the rule; fails only on what is no TCP. */
		(void)setsockopt(t->fd[side], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	r = rsb_buf_append(&t->from[SANDBOX].buf, spec->to_client.data, spec->to_client.size);
	if (r < 0)
		return r;
	return rsb_buf_append(&t->from[CLIENT].buf, spec->to_sandbox.data, spec->to_sandbox.size);
}

int
rsb_tunnels_add(struct rsb_tunnels *tunnels, const struct rsb_tunnel_spec *spec)
{
	struct tunnel *t = rsb_new(struct tunnel);
	int r;

	if (!t) {
		spec->close_client(spec->arg);
		rsb_inlet_close(spec->sandbox);
		return -ENOMEM;
	}
	t->tunnels = tunnels;
	t->fd[CLIENT] = spec->client;
	t->inlet = spec->sandbox;
	t->fd[SANDBOX] = rsb_inlet_fd(t->inlet);
	t->close_client = spec->close_client;
	t->arg = spec->arg;
	t->task.fn = on_add;
	rsb_list_init(&t->node);
	r = prepare(t, spec);
	if (r < 0) {
		tunnel_free(t);
		return r;
	}
	rsb_loop_post(tunnels->loop, &t->task);
	return 0;
}
