/* SPDX-License-Identifier: MIT */
#include "sidecar/local/upgrade.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"

#include "sidecar/local/head.h"
#include "sidecar/local/hop.h"

struct rsb_upgrade {
	struct rsb_tunnels *tunnels;
	struct rsb_inlet *inlet; /* NULL once the tunnel has it */
	int fd;                  /* its socket */
	struct rsb_buf in;       /* from the sandbox */
	struct rsb_head head;
};

/* ---- the request ---- */

bool
rsb_upgrade_wanted(const struct rsb_httpd_req *req)
{
	const char *connection = rsb_httpd_header(req, "Connection");

	return rsb_httpd_header(req, "Upgrade") && connection &&
	       strcasestr(connection, "upgrade") && !rsb_httpd_has_body(req);
}

static int
pass_header(void *arg, const char *name, const char *value)
{
	if (rsb_hop_is(name))
		return 0;
	return rsb_buf_printf(arg, "%s: %s\r\n", name, value);
}

static int
write_request(const struct rsb_httpd_req *req, struct rsb_buf *out)
{
	int r = rsb_buf_printf(
		out, "%s %s HTTP/1.1\r\n", rsb_httpd_method(req), rsb_httpd_target(req));

	if (r == 0)
		r = rsb_httpd_each_header(req, pass_header, out);
	if (r == 0)
		r = rsb_buf_printf(out, "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n",
			rsb_httpd_header(req, "Upgrade"));
	return r;
}

static int
wait_fd(int fd, short events, uint64_t end_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now = rsb_now_ns();

	if (now >= end_ns)
		return -ETIMEDOUT;
	if (poll(&p, 1, (int)((end_ns - now) / RSB_NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static int
send_all(int fd, struct rsb_bytes data, uint64_t end_ns)
{
	while (data.size > 0) {
		ssize_t n = send(fd, data.data, data.size, MSG_DONTWAIT | MSG_NOSIGNAL);
		int r;

		if (n > 0) {
			data.data += n;
			data.size -= (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_fd(fd, POLLOUT, end_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the answer ---- */

/* Bytes read, 0 at the end of file. */
static int
receive(struct rsb_upgrade *u, size_t max, uint64_t end_ns)
{
	size_t room = max - rsb_min(max, rsb_buf_len(&u->in));
	uint8_t *tail;
	ssize_t n;
	int r;

	if (room == 0)
		return -EMSGSIZE;
	r = rsb_buf_reserve(&u->in, room, &tail);
	if (r < 0)
		return r;
	for (;;) {
		n = recv(u->fd, tail, room, MSG_DONTWAIT);
		if (n >= 0)
			break;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_fd(u->fd, POLLIN, end_ns);
		if (r < 0)
			return r;
	}
	rsb_buf_commit(&u->in, (size_t)n);
	return (int)n;
}

static int
read_head(struct rsb_upgrade *u, uint64_t end_ns)
{
	for (;;) {
		int r = rsb_head_parse(rsb_buf_view(&u->in), &u->head);

		if (r != 0)
			return r < 0 ? r : 0;
		r = receive(u, RSB_HEAD_MAX, end_ns);
		if (r <= 0)
			return r < 0 ? r : -EBADMSG;
	}
}

/*
 * A refusal is short and has a length, or ends with its connection; what has neither is passed on
 * without its body.
 */
static int
read_body(struct rsb_upgrade *u, uint64_t end_ns)
{
	const char *text = rsb_head_get(&u->head, "Content-Length");
	uint64_t want = RSB_UPGRADE_BODY_MAX;
	bool sized = text && rsb_str_u64(text, RSB_UPGRADE_BODY_MAX, &want) == 0;

	if (rsb_head_get(&u->head, "Transfer-Encoding") || (text && !sized))
		want = 0;
	while (rsb_buf_len(&u->in) < want) {
		int r = receive(u, (size_t)want, end_ns);

		if (r < 0)
			return r;
		if (r == 0)
			return sized ? -EBADMSG : (int)rsb_buf_len(&u->in);
	}
	return (int)want;
}

static int
add_headers(struct rsb_upgrade *u, struct rsb_httpd_req *req)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->head.n_line; i++) {
		const struct rsb_head_line *line = &u->head.lines[i];

		if (!rsb_hop_is(line->name))
			r = rsb_httpd_answer_header(req, line->name, line->value);
	}
	return r;
}

static void
close_client(void *arg)
{
	rsb_httpd_upgrade_close(arg);
}

static void
on_upgraded(void *arg, int client, struct rsb_bytes early, struct rsb_httpd_upgrade *upgrade)
{
	struct rsb_upgrade *u = arg;
	struct rsb_tunnel_spec spec = {
		.client = client,
		.sandbox = rsb_steal(&u->inlet),
		.to_client = rsb_buf_view(&u->in),
		.to_sandbox = early,
		.close_client = close_client,
		.arg = upgrade,
	};

	(void)!rsb_tunnels_add(u->tunnels, &spec); /* both sides see the end */
}

static int
answer(struct rsb_upgrade *u, struct rsb_httpd_req *req, uint64_t end_ns)
{
	const char *protocol = rsb_head_get(&u->head, "Upgrade");
	int r;

	rsb_buf_consume(&u->in, u->head.size);
	if (u->head.status == 101) {
		r = rsb_httpd_answer_upgrade(req, on_upgraded, u);
		if (r == 0 && protocol)
			r = rsb_httpd_answer_header(req, "Upgrade", protocol);
		return r < 0 ? r : add_headers(u, req);
	}
	if (u->head.status < 200)
		return -EBADMSG;
	r = read_body(u, end_ns);
	if (r < 0)
		return r;
	r = rsb_httpd_answer(
		req, u->head.status, NULL, (struct rsb_bytes){ rsb_buf_head(&u->in), (size_t)r });
	return r < 0 ? r : add_headers(u, req);
}

static int
talk(struct rsb_upgrade *u, struct rsb_httpd_req *req)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf request = { .max = RSB_UPGRADE_REQUEST_MAX };
	uint64_t end_ns = rsb_now_ns() + RSB_UPGRADE_ANSWER_NS;
	int r;

	r = write_request(req, &request);
	if (r < 0)
		return r;
	r = send_all(u->fd, rsb_buf_view(&request), end_ns);
	if (r < 0)
		return r;
	r = read_head(u, end_ns);
	return r < 0 ? r : answer(u, req, end_ns);
}

int
rsb_upgrade_new(struct rsb_tunnels *tunnels, struct rsb_httpd_req *req, struct rsb_inlet *inlet,
	struct rsb_upgrade **ret_upgrade)
{
	struct rsb_upgrade *u = rsb_new(struct rsb_upgrade);
	int r;

	if (!u) {
		rsb_inlet_close(inlet);
		return -ENOMEM;
	}
	u->tunnels = tunnels;
	u->inlet = inlet;
	u->fd = rsb_inlet_fd(inlet);
	rsb_buf_init(&u->in, RSB_UPGRADE_BODY_MAX);
	r = talk(u, req);
	if (r < 0) {
		rsb_upgrade_free(u);
		return r;
	}
	*ret_upgrade = u;
	return 0;
}

void
rsb_upgrade_free(struct rsb_upgrade *u)
{
	if (!u)
		return;
	rsb_inlet_close(u->inlet);
	rsb_buf_done(&u->in);
	rsb_head_done(&u->head);
	free(u);
}
