/* SPDX-License-Identifier: MIT */
#ifndef RSB_ROUTE_H
#define RSB_ROUTE_H

/*
 * Which sandbox and port a request is for, by its Host and its two routing headers. Pure. Names
 * that begin with "PORT-ID." are a sandbox's; "localhost", addresses and "sandbox.…" are a
 * sandbox's with both headers; all else is the control plane.
 */

#include "util/macro.h"

#define RSB_ROUTE_ID_MAX 63U

enum rsb_route_kind {
	RSB_ROUTE_CONTROL,
	RSB_ROUTE_SANDBOX,
	RSB_ROUTE_BAD, /* 400 with error */
};

struct rsb_route {
	enum rsb_route_kind kind;
	unsigned int port;
	char id[RSB_ROUTE_ID_MAX + 1];
	const char *error; /* static text */
};

/* host: value of Host; id and port: of the routing headers; NULL where absent. */
struct rsb_route rsb_route_find(const char *host, const char *id, const char *port);

#endif
