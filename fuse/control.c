/* SPDX-License-Identifier: MIT */
#include "fuse/control.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fuse/guest.h"
#include "fuse/pipe.h"
#include "fuse/relay.h"
#include "util/fd.h"

struct rsb_control {
	struct rsb_control_config config;
	int fd;
	struct rsb_source *source;
	struct rsb_map clients; /* by serial */
	uint64_t serial;
	struct rsb_relay *relay;
	struct rsb_map stoppers; /* serial of the client to its call + 1, as a pointer */
};

static void
on_listen(void *arg, uint32_t events)
{
	struct rsb_control *control = arg;
	struct rsb_guest *client;
	int fd;

	(void)events;
	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (rsb_fd_check_peer(fd) < 0 || control->clients.n >= RSB_CONTROL_CLIENTS_MAX) {
		(void)close(fd);
		return;
	}
	if (rsb_guest_new(control, ++control->serial, fd, &client) < 0)
		return;
	if (rsb_map_put(&control->clients, control->serial, client) < 0)
		rsb_guest_free(client);
}

int
rsb_control_new(
	const struct rsb_control_config *config, int listen_fd, struct rsb_control **ret_control)
{
	struct rsb_control *control = rsb_new(struct rsb_control);
	int r = -ENOMEM;

	if (!control) {
		(void)close(listen_fd);
		return -ENOMEM;
	}
	control->config = *config;
	control->fd = listen_fd;
	rsb_map_init(&control->clients, RSB_CONTROL_CLIENTS_MAX);
	rsb_map_init(&control->stoppers, RSB_CONTROL_CLIENTS_MAX);
	r = rsb_fd_nonblock(listen_fd, true);
	if (r >= 0)
		r = rsb_relay_new(control, &control->relay);
	if (r >= 0)
		r = rsb_loop_add(
			config->loop, listen_fd, EPOLLIN, on_listen, control, &control->source);
	if (r < 0) {
		rsb_control_free(control);
		return r;
	}
	*ret_control = control;
	return 0;
}

void
rsb_control_free(struct rsb_control *control)
{
	struct rsb_guest *client;
	size_t cursor = 0;
	uint64_t serial;

	if (!control)
		return;
	rsb_source_del(control->source);
	while ((client = rsb_map_next(&control->clients, &cursor, &serial))) {
		(void)rsb_map_del(&control->clients, serial);
		rsb_guest_free(client);
	}
	rsb_relay_free(control->relay);
	rsb_map_done(&control->clients);
	rsb_map_done(&control->stoppers);
	(void)close(control->fd);
	free(control);
}

const struct rsb_control_config *
rsb_control_config(const struct rsb_control *control)
{
	return &control->config;
}

struct rsb_relay *
rsb_control_relay(struct rsb_control *control)
{
	return control->relay;
}

size_t
rsb_control_clients(const struct rsb_control *control)
{
	return control->clients.n;
}

struct rsb_guest *
rsb_control_client(const struct rsb_control *control, uint64_t serial)
{
	return rsb_map_get(&control->clients, serial);
}

void
rsb_control_drop(struct rsb_control *control, struct rsb_guest *client)
{
	uint64_t serial = rsb_guest_serial(client);

	(void)rsb_map_del(&control->clients, serial);
	(void)rsb_map_del(&control->stoppers, serial);
	rsb_guest_free(client);
}

void
rsb_control_ask_stop(struct rsb_control *control, struct rsb_guest *client, uint64_t call,
	const struct rsb_ctl_stop_req *req)
{
	uint64_t serial = rsb_guest_serial(client);
	int r;

	/* One waiting call of each client; the number is kept in the pointer. */
	r = rsb_map_put(&control->stoppers, serial, (void *)(uintptr_t)(call + 1));
	if (r >= 0)
		r = control->config.stop(control->config.arg, req->force != 0);
	if (r >= 0)
		return;
	(void)rsb_map_del(&control->stoppers, serial);
	rsb_guest_reply(client, RSB_OP_ctl_stop, call, r, NULL);
}

void
rsb_control_stopped(struct rsb_control *control, int r)
{
	size_t cursor = 0;
	uint64_t serial;
	void *value;

	while ((value = rsb_map_next(&control->stoppers, &cursor, &serial))) {
		struct rsb_guest *client = rsb_control_client(control, serial);

		(void)rsb_map_del(&control->stoppers, serial);
		if (client)
			rsb_guest_reply(
				client, RSB_OP_ctl_stop, (uint64_t)(uintptr_t)value - 1, r, NULL);
	}
}

void
rsb_control_tick(struct rsb_control *control)
{
	struct rsb_guest *client;
	size_t cursor = 0;

	while ((client = rsb_map_next(&control->clients, &cursor, NULL)))
		rsb_guest_pump(client);
}

void
rsb_control_chan_data(struct rsb_control *control, uint64_t chan, struct rsb_bytes data, bool fin)
{
	rsb_pipe_take_data(rsb_relay_pipes(control->relay), chan, data, fin);
}

void
rsb_control_chan_writable(struct rsb_control *control, uint64_t chan)
{
	rsb_pipe_take_writable(rsb_relay_pipes(control->relay), chan);
}

void
rsb_control_chan_reset(struct rsb_control *control, uint64_t chan, int r)
{
	rsb_pipe_take_reset(rsb_relay_pipes(control->relay), chan, r);
}
