/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "server"
#include "sidecar/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "sidecar/conn.h"
#include "sidecar/dispatch.h"
#include "sidecar/registry.h"
#include "sidecar/worker.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Bytes in the kernel that are not sent yet: what is urgent would queue behind them. */
#define NOTSENT_LOWAT (256 << 10)
#define RETRY_NS (200 * RSB_NSEC_PER_MSEC)

struct rsb_server {
	struct rsb_loop *loop; /* {const after new} */
	struct rsb_registry *registry;
	struct rsb_workers *pool;
	struct rsb_conn_host host;
	struct rsb_list conns;
	size_t n_conn;
	int listen_fd;
	struct rsb_source *source;
	struct rsb_timer *retry; /* armed while there are no descriptors for new connections */
	bool single;             /* one inherited socket: its end is ours */
	bool stopping;
};

static size_t
count_strangers(struct rsb_server *server)
{
	struct rsb_list *pos;
	size_t n = 0;

	rsb_list_for_each (pos, &server->conns)
		n += !rsb_conn_is_live(rsb_conn_of(pos));
	return n;
}

static void
idle(void *arg)
{
	struct rsb_server *server = arg;

	rsb_loop_stop(server->loop);
}

static void
closed(void *arg, struct rsb_conn *conn)
{
	struct rsb_server *server = arg;

	rsb_list_remove(rsb_conn_node(conn));
	server->n_conn--;
	if (server->single && server->n_conn == 0)
		rsb_server_stop(server);
}

static int
add_conn(struct rsb_server *server, int fd)
{
	struct rsb_conn *conn;
	int r;

	r = rsb_conn_new(&server->host, fd, &conn);
	if (r < 0)
		return r;
	rsb_list_append(&server->conns, rsb_conn_node(conn));
	server->n_conn++;
	return 0;
}

/* Failures are not fatal: a socket pair has no TCP, a kernel may lack an option. */
static void
tune(int fd)
{
	int on = 1;
	int lowat = NOTSENT_LOWAT;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

static void
accept_one(void *arg, uint32_t events rsb_unused)
{
	struct rsb_server *server = arg;
	int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		/* It goes on waiting, and the loop would find it again at once, and again. */
		(void)rsb_source_set(server->source, 0);
		rsb_timer_set(server->retry, rsb_loop_now(server->loop) + RETRY_NS);
	}
	if (fd < 0)
		return;
	if (count_strangers(server) >= RSB_SERVER_STRANGERS_MAX) {
		rsb_info("too many connections without a key, one was closed");
		(void)close(fd);
		return;
	}
	tune(fd);
	(void)add_conn(server, fd); /* it is closed then, and the host tries again */
}

static void
accept_again(void *arg)
{
	struct rsb_server *server = arg;

	if (server->source)
		(void)rsb_source_set(server->source, EPOLLIN);
}

int
rsb_server_new(const struct rsb_sidecar_config *config, const struct rsb_secret *key,
	struct rsb_loop *loop, struct rsb_server **ret_server)
{
	struct rsb_server *server = rsb_new(struct rsb_server);
	int r;

	if (!server)
		return -ENOMEM;
	server->loop = loop;
	server->listen_fd = -1;
	rsb_list_init(&server->conns);
	r = rsb_workers_new("rsb-worker", RSB_SERVER_WORKERS, rsb_dispatch_run, &server->pool);
	if (r == 0)
		r = rsb_registry_new(config, loop, server->pool, &server->registry);
	if (r == 0)
		r = rsb_timer_new(loop, accept_again, server, &server->retry);
	if (r < 0) {
		rsb_server_free(server);
		return r;
	}
	server->host = (struct rsb_conn_host){
		.loop = loop,
		.config = config,
		.key = key,
		.registry = server->registry,
		.closed = closed,
		.arg = server,
	};
	*ret_server = server;
	return 0;
}

void
rsb_server_free(struct rsb_server *server)
{
	if (!server)
		return;
	rsb_source_del(server->source);
	rsb_timer_del(server->retry);
	rsb_cleanup_close(&server->listen_fd);
	rsb_registry_free(server->registry);
	rsb_workers_free(server->pool);
	free(server);
}

/* Digits only: getaddrinfo(3) would pull the name service switch into a static program. */
static int
parse_address(
	const char *address, uint16_t port, struct sockaddr_storage *ret_sa, socklen_t *ret_size)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ret_sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_sa;

	memset(ret_sa, 0, sizeof(*ret_sa));
	if (inet_pton(AF_INET, address, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		*ret_size = sizeof(*in4);
		return 0;
	}
	if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		*ret_size = sizeof(*in6);
		return 0;
	}
	return -EINVAL;
}

static int
bind_port(const struct sockaddr_storage *sa, socklen_t size, int *ret_fd, uint16_t *ret_port)
{
	rsb_autoclose int fd = socket(sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage bound;
	socklen_t bound_size = sizeof(bound);
	int on = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, (const struct sockaddr *)sa, size) < 0 || listen(fd, SOMAXCONN) < 0 ||
		getsockname(fd, (struct sockaddr *)&bound, &bound_size) < 0)
		return -errno;
	/* The port stands in the same place for both families. */
	*ret_port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_server_listen(struct rsb_server *server, const char *address, uint16_t port, uint16_t *ret_port,
	struct rsb_diag *diag)
{
	struct sockaddr_storage sa;
	socklen_t size;
	int r;

	r = parse_address(address, port, &sa, &size);
	if (r < 0)
		return rsb_diag_set(diag, r, "'%s' is not an IP address", address);
	r = bind_port(&sa, size, &server->listen_fd, ret_port);
	if (r == -EADDRINUSE)
		return rsb_diag_set(diag, r, "port %u on %s is in use: another sidecar runs there",
			port, address);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot listen on %s port %u: %s", address, port, strerror(-r));
	return rsb_loop_add(
		server->loop, server->listen_fd, EPOLLIN, accept_one, server, &server->source);
}

int
rsb_server_adopt(struct rsb_server *server, int fd)
{
	server->single = true;
	return add_conn(server, fd);
}

void
rsb_server_stop(struct rsb_server *server)
{
	struct rsb_list *pos;

	if (server->stopping)
		return;
	server->stopping = true;
	rsb_source_del(rsb_steal(&server->source));
	rsb_list_for_each (pos, &server->conns)
		rsb_conn_close(rsb_conn_of(pos)); /* leaves the list later */
	rsb_registry_end(server->registry, idle, server);
}
