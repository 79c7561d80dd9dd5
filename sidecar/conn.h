/* SPDX-License-Identifier: MIT */
#ifndef RSB_CONN_H
#define RSB_CONN_H

/*
 * One accepted connection: upgrade request, handshake, then frames between the socket and a
 * session. Until the host has proved the key, a connection costs at most RSB_WS_HEADERS_MAX bytes
 * and RSB_CONN_HANDSHAKE_NS of time. On the io thread.
 */

#include "sidecar/registry.h"
#include "util/list.h"
#include "util/secret.h"

#define RSB_CONN_HANDSHAKE_NS (10 * RSB_NSEC_PER_SEC)

struct rsb_conn;

/* What connections share. */
struct rsb_conn_host {
	struct rsb_loop *loop;
	const struct rsb_sidecar_config *config;
	const struct rsb_secret *key;
	struct rsb_registry *registry;
	/* The last call for conn: it frees itself afterwards. */
	void (*closed)(void *arg, struct rsb_conn *conn);
	void *arg;
};

/* Takes fd, also on failure. host is borrowed. */
rsb_nodiscard int rsb_conn_new(
	const struct rsb_conn_host *host, int fd, struct rsb_conn **ret_conn);
/* Closes at once; closed() comes later, from the loop. */
void rsb_conn_close(struct rsb_conn *conn);
/* It has said a proved hello. */
bool rsb_conn_is_live(const struct rsb_conn *conn);
/* For the owner's list of connections. */
struct rsb_list *rsb_conn_node(struct rsb_conn *conn);
struct rsb_conn *rsb_conn_of(struct rsb_list *node);

#endif
