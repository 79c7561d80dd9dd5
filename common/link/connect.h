/* SPDX-License-Identifier: MIT */
#ifndef RSB_CONNECT_H
#define RSB_CONNECT_H

/*
 * A byte connection to a port of the sandbox. libcurl makes it (DNS, proxies, TLS with
 * verification) and carries its bytes; or it is a socket that somebody else connected.
 * Reading and writing never wait.
 *
 * TLS holds decrypted bytes back that epoll(7) does not see: read until -EAGAIN.
 */

#include "link/link.h"

struct rsb_connect;

/*
 * Waits until the connection is made, the time is over or abort_fd is readable.
 * -ECONNREFUSED, -EHOSTUNREACH (no such host), -ETIMEDOUT, -EKEYREJECTED (certificate),
 * -EINVAL (URL), -ECANCELED, -EIO. A socket in target->fd is taken over, also on failure.
 */
rsb_nodiscard int rsb_connect_open(const struct rsb_link_target *target, int abort_fd,
	struct rsb_connect **ret_connect, struct rsb_diag *diag);
void rsb_connect_free(struct rsb_connect *connect); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_connect *, rsb_connect_free)

/* For epoll; borrowed. */
int rsb_connect_fd(const struct rsb_connect *connect);
/* Of the URL, for the upgrade: "host:port" as in a Host header, and the path with its query. */
const char *rsb_connect_host(const struct rsb_connect *connect);
const char *rsb_connect_path(const struct rsb_connect *connect);

/*
 * -EAGAIN: nothing now; -ECONNRESET: closed by the peer, in order or not. On 0 *ret_size > 0.
 */
rsb_nodiscard int rsb_connect_recv(
	struct rsb_connect *connect, void *data, size_t size, size_t *ret_size);
rsb_nodiscard int rsb_connect_send(
	struct rsb_connect *connect, const void *data, size_t size, size_t *ret_size);

#endif
