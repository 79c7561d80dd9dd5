/* SPDX-License-Identifier: MIT */
#ifndef RSB_TUNNEL_H
#define RSB_TUNNEL_H

/*
 * Pairs of sockets whose bytes pass both ways untouched. One thread moves the bytes of all, with a
 * bounded buffer for each direction; an end of file passes as one, too.
 */

#include "util/buf.h"

#include "sidecar/local/inlet.h"

#define RSB_TUNNEL_BUFFER ((size_t)64 << 10)

struct rsb_tunnels;

struct rsb_tunnel_spec {
	int client;                 /* borrowed until close_client */
	struct rsb_inlet *sandbox;  /* taken */
	struct rsb_bytes to_client; /* what came early; copied */
	struct rsb_bytes to_sandbox;
	void (*close_client)(void *arg); /* once, on any thread */
	void *arg;
};

rsb_nodiscard int rsb_tunnels_new(struct rsb_tunnels **ret_tunnels);
/* Closes what is left. NULL is fine. */
void rsb_tunnels_free(struct rsb_tunnels *tunnels);

/* Any thread, does not wait. After a failure both sides are closed. */
rsb_nodiscard int rsb_tunnels_add(struct rsb_tunnels *tunnels, const struct rsb_tunnel_spec *spec);

#endif
