/* SPDX-License-Identifier: MIT */
#include "path.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/list.h"

#define QUEUE_MAX ((size_t)64 << 20) /* bytes in flight, each direction of a connection */
#define READ_MAX ((size_t)64 << 10)  /* bytes of one chunk */
#define READS_PER_EVENT 16           /* then the others have their turn */
#define LINK_BUFFER_NS (20 * RSB_NSEC_PER_MSEC) /* how far reading may run ahead of a capped link */

struct chunk {
	struct rsb_list link;
	uint64_t due_ns;
	size_t size; /* 0: end of stream */
	size_t off;
	bool reset; /* how the stream ended */
	uint8_t data[];
};

/* One socket of a connection, with the queue of bytes that were read from it. */
struct end {
	struct conn *conn;
	struct rsb_source *source;
	struct rsb_list chunks;
	int fd;
	int dir; /* 0: read from the client, 1: from the target */
	bool eof;
	bool blocked; /* waiting until this socket takes bytes */
	size_t queued;
};

struct conn {
	struct rsb_path *path;
	struct rsb_list link;
	struct end ends[2];
	uint64_t id;
	uint64_t delivered;
	bool connecting;
	bool first[2];
};

struct rsb_path {
	struct rsb_loop *loop;
	struct rsb_source *listener;
	struct rsb_timer *timer;
	struct rsb_list conns;
	struct sockaddr_in target;
	struct rsb_path_options options;
	struct rsb_path_stats stats;
	uint64_t link_busy_ns[2]; /* when the capped link will be idle */
	uint64_t next_id;
	rsb_path_tap_fn tap;
	void *arg;
	int fd;      /* -1: connections are refused */
	int port_fd; /* never listens: nobody else gets the port meanwhile */
	uint16_t port;
};

static void pump(struct rsb_path *path);

static bool
link_full(const struct rsb_path *path, int dir)
{
	return path->options.mbit > 0 &&
	       path->link_busy_ns[dir] > rsb_loop_now(path->loop) + LINK_BUFFER_NS;
}

static void
update(struct conn *conn)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &conn->ends[i];
		uint32_t events = 0;

		if (conn->connecting) {
			events = i == 1 ? EPOLLOUT : 0;
		} else if (!conn->path->options.stalled) {
			if (!end->eof && end->queued < QUEUE_MAX && !link_full(conn->path, i))
				events |= EPOLLIN;
			if (end->blocked)
				events |= EPOLLOUT;
		}
		(void)rsb_source_set(end->source, events); /* a live descriptor */
	}
}

static void
end_conn(struct conn *conn, bool reset)
{
	struct rsb_path *path = conn->path;

	for (int i = 0; i < 2; i++) {
		struct end *end = &conn->ends[i];
		struct linger linger = { .l_onoff = 1, .l_linger = 0 };
		struct rsb_list *pos;
		struct rsb_list *tmp;

		rsb_source_del(end->source);
		if (reset)
			(void)setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
		if (end->fd >= 0)
			(void)close(end->fd);
		rsb_list_for_each_safe (pos, tmp, &end->chunks)
			free(rsb_list_entry(pos, struct chunk, link));
	}
	if (reset)
		path->stats.resets++;
	path->stats.open--;
	if (path->tap)
		(void)path->tap(path->arg, conn->id, 0, NULL, 0);
	rsb_list_remove(&conn->link);
	free(conn);
}

/* -ENOMEM; the caller ends the connection. */
static int
enqueue(struct end *end, const uint8_t *data, size_t size, bool reset)
{
	struct rsb_path *path = end->conn->path;
	uint64_t due_ns = rsb_loop_now(path->loop);
	struct chunk *chunk = malloc(sizeof *chunk + size);

	if (!chunk)
		return -ENOMEM;
	if (path->options.mbit > 0) {
		double ns = (double)size * 8e3 / path->options.mbit;

		path->link_busy_ns[end->dir] =
			rsb_max(due_ns, path->link_busy_ns[end->dir]) + (uint64_t)ns;
		due_ns = path->link_busy_ns[end->dir];
	}
	due_ns += path->options.rtt_ns / 2;
	if (end->conn->first[end->dir] && end->dir == 0)
		due_ns += path->options.rtt_ns;
	end->conn->first[end->dir] = false;
	if (!rsb_list_empty(&end->chunks))
		due_ns = rsb_max(
			due_ns, rsb_list_entry(end->chunks.prev, struct chunk, link)->due_ns);
	chunk->due_ns = due_ns;
	chunk->size = size;
	chunk->off = 0;
	chunk->reset = reset;
	if (size)
		memcpy(chunk->data, data, size);
	end->queued += size;
	rsb_list_append(&end->chunks, &chunk->link);
	return 0;
}

static int
read_end(struct end *end)
{
	struct rsb_path *path = end->conn->path;
	uint8_t data[READ_MAX];

	for (int i = 0; i < READS_PER_EVENT && end->queued < QUEUE_MAX; i++) {
		ssize_t n = recv(end->fd, data, sizeof data, 0);
		size_t passes = (size_t)n;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			end->eof = true;
			return enqueue(end, NULL, 0, n < 0);
		}
		if (path->tap)
			passes = path->tap(path->arg, end->conn->id, end->dir, data, (size_t)n);
		if (passes && enqueue(end, data, passes, false) < 0)
			return -ENOMEM;
		if (passes < (size_t)n) {
			end->eof = true;
			return enqueue(end, NULL, 0, true);
		}
		if (link_full(path, end->dir))
			return 0;
	}
	return 0;
}

/* Sends what is due from end's queue to the other side. 1: the connection is over, 2: by reset. */
static int
deliver(struct end *end)
{
	struct conn *conn = end->conn;
	struct end *to = &conn->ends[!end->dir];
	const struct rsb_path_options *options = &conn->path->options;

	to->blocked = false;
	while (!rsb_list_empty(&end->chunks)) {
		struct chunk *chunk = rsb_list_entry(end->chunks.next, struct chunk, link);
		ssize_t n;

		if (chunk->due_ns > rsb_loop_now(conn->path->loop))
			return 0;
		if (chunk->size == 0)
			return chunk->reset ? 2 : 1;
		n = send(to->fd, chunk->data + chunk->off, chunk->size - chunk->off, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			to->blocked = true;
			return 0;
		}
		if (n < 0)
			return 2;
		chunk->off += (size_t)n;
		end->queued -= (size_t)n;
		conn->path->stats.bytes[end->dir] += (uint64_t)n;
		conn->delivered += (uint64_t)n;
		if (options->drop_after && conn->delivered >= options->drop_after)
			return 2;
		if (chunk->off == chunk->size) {
			rsb_list_remove(&chunk->link);
			free(chunk);
		}
	}
	return 0;
}

/* When something is due next, or a capped link has room again. */
static uint64_t
next_due(const struct rsb_path *path)
{
	uint64_t due_ns = UINT64_MAX;
	struct rsb_list *pos;

	rsb_list_for_each (pos, &path->conns) {
		struct conn *conn = rsb_list_entry(pos, struct conn, link);

		for (int i = 0; i < 2; i++) {
			struct rsb_list *chunks = &conn->ends[i].chunks;

			if (!rsb_list_empty(chunks) && !conn->ends[!i].blocked)
				due_ns = rsb_min(due_ns,
					rsb_list_entry(chunks->next, struct chunk, link)->due_ns);
			if (link_full(path, i))
				due_ns = rsb_min(due_ns, path->link_busy_ns[i] - LINK_BUFFER_NS);
		}
	}
	return due_ns == UINT64_MAX ? 0 : due_ns;
}

static void
pump(struct rsb_path *path)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (path->options.stalled) {
		rsb_timer_set(path->timer, 0);
		rsb_list_for_each (pos, &path->conns)
			update(rsb_list_entry(pos, struct conn, link));
		return;
	}
	rsb_list_for_each_safe (pos, tmp, &path->conns) {
		struct conn *conn = rsb_list_entry(pos, struct conn, link);
		int over = 0;

		for (int i = 0; i < 2 && !over && !conn->connecting; i++)
			over = deliver(&conn->ends[i]);
		if (over)
			end_conn(conn, over == 2);
		else
			update(conn);
	}
	rsb_timer_set(path->timer, next_due(path));
}

static void
on_timer(void *arg)
{
	pump(arg);
}

static void
on_end(void *arg, uint32_t events)
{
	struct end *end = arg;
	struct conn *conn = end->conn;
	struct rsb_path *path = conn->path;

	if (conn->connecting) {
		int error = 0;
		socklen_t size = sizeof error;

		if (end->dir != 1)
			return;
		if (getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error) {
			end_conn(conn, true);
			return;
		}
		conn->connecting = false;
	} else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !end->eof && read_end(end) < 0) {
		end_conn(conn, true);
		return;
	}
	pump(path);
}

static void
on_listener(void *arg, uint32_t events)
{
	struct rsb_path *path = arg;
	rsb_autoclose int client = accept4(path->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	rsb_autoclose int target = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct conn *conn;
	int one = 1;

	(void)events;
	if (client < 0 || target < 0)
		return;
	if (connect(target, (struct sockaddr *)&path->target, sizeof path->target) < 0 &&
		errno != EINPROGRESS)
		return;
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(target, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	conn = rsb_new(struct conn);
	if (!conn)
		return;
	conn->path = path;
	conn->id = ++path->next_id;
	conn->connecting = true;
	rsb_list_append(&path->conns, &conn->link);
	path->stats.accepted++;
	path->stats.open++;
	for (int i = 0; i < 2; i++) {
		conn->first[i] = true;
		conn->ends[i].conn = conn;
		conn->ends[i].dir = i;
		conn->ends[i].fd = i == 0 ? rsb_steal_fd(&client) : rsb_steal_fd(&target);
		rsb_list_init(&conn->ends[i].chunks);
	}
	for (int i = 0; i < 2; i++) {
		if (rsb_loop_add(path->loop, conn->ends[i].fd, 0, on_end, &conn->ends[i],
			    &conn->ends[i].source) < 0) {
			end_conn(conn, true);
			return;
		}
	}
	update(conn);
}

/* Bound to the port, which *port becomes if it was 0; like the others of this path. */
static int
bind_port(uint16_t *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons(*port),
		.sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof sa;
	rsb_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	/* not SO_REUSEADDR, which would share it with all who say so too */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 ||
		getsockname(fd, (struct sockaddr *)&sa, &size) < 0)
		return -errno;
	*port = ntohs(sa.sin_port);
	return rsb_steal_fd(&fd);
}

static int
start_listening(struct rsb_path *path)
{
	rsb_autoclose int fd = bind_port(&path->port);
	int r;

	if (fd < 0)
		return fd;
	if (listen(fd, 128) < 0)
		return -errno;
	r = rsb_loop_add(path->loop, fd, EPOLLIN, on_listener, path, &path->listener);
	if (r < 0)
		return r;
	path->fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_path_new(struct rsb_loop *loop, uint16_t port, const struct sockaddr_in *target,
	rsb_path_tap_fn tap, void *arg, struct rsb_path **ret_path)
{
	struct rsb_path *path = rsb_new(struct rsb_path);
	int r;

	if (!path)
		return -ENOMEM;
	path->loop = loop;
	path->target = *target;
	path->tap = tap;
	path->arg = arg;
	path->fd = -1;
	path->port_fd = -1;
	path->port = port;
	rsb_list_init(&path->conns);
	r = rsb_timer_new(loop, on_timer, path, &path->timer);
	if (r >= 0)
		r = path->port_fd = bind_port(&path->port);
	if (r >= 0)
		r = start_listening(path);
	if (r < 0) {
		rsb_path_free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}

void
rsb_path_free(struct rsb_path *path)
{
	if (!path)
		return;
	while (!rsb_list_empty(&path->conns))
		end_conn(rsb_list_entry(path->conns.next, struct conn, link), true);
	rsb_source_del(path->listener);
	rsb_timer_del(path->timer);
	rsb_cleanup_close(&path->fd);
	rsb_cleanup_close(&path->port_fd);
	free(path);
}

uint16_t
rsb_path_port(const struct rsb_path *path)
{
	return path->port;
}

struct rsb_path_options
rsb_path_options(const struct rsb_path *path)
{
	return path->options;
}

void
rsb_path_set(struct rsb_path *path, const struct rsb_path_options *options)
{
	path->options = *options;
	pump(path);
}

void
rsb_path_drop(struct rsb_path *path)
{
	while (!rsb_list_empty(&path->conns))
		end_conn(rsb_list_entry(path->conns.next, struct conn, link), true);
}

int
rsb_path_refuse(struct rsb_path *path, bool on)
{
	if (on == (path->fd < 0))
		return 0;
	if (!on)
		return start_listening(path);
	rsb_source_del(path->listener);
	path->listener = NULL;
	(void)close(path->fd);
	path->fd = -1;
	return 0;
}

void
rsb_path_stats(const struct rsb_path *path, struct rsb_path_stats *ret_stats)
{
	*ret_stats = path->stats;
}
