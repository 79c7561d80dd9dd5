/* SPDX-License-Identifier: MIT */
#ifndef RSB_SERVER_H
#define RSB_SERVER_H

/*
 * The listening port (or the one inherited socket), the connections on it, the registry of sessions
 * and the pool of workers: the whole sidecar but its process-wide setup. On the io thread.
 */

#include "sidecar/sess.h"
#include "util/diag.h"
#include "util/secret.h"

/* Connections that have not proved the key. More are closed as they come. */
#define RSB_SERVER_STRANGERS_MAX 32u
#define RSB_SERVER_WORKERS 4u

struct rsb_server;

/* config and key are borrowed. */
rsb_nodiscard int rsb_server_new(const struct rsb_sidecar_config *config,
	const struct rsb_secret *key, struct rsb_loop *loop, struct rsb_server **ret_server);
/* After the loop has ended by rsb_server_stop(). NULL is fine. */
void rsb_server_free(struct rsb_server *server);

/* address: an IPv4 or IPv6 address in digits. port 0: any; *ret_port is the real one. */
rsb_nodiscard int rsb_server_listen(struct rsb_server *server, const char *address, uint16_t port,
	uint16_t *ret_port, struct rsb_diag *diag);
/* Serves one connected socket, which it takes, and stops when that closes. */
rsb_nodiscard int rsb_server_adopt(struct rsb_server *server, int fd);

/* No new connections; ends all sessions with their processes, then stops the loop. */
void rsb_server_stop(struct rsb_server *server);

#endif
