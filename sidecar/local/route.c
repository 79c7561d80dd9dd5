/* SPDX-License-Identifier: MIT */
#include "sidecar/local/route.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/str.h"

#define HOST_MAX 255U
#define PORT_MAX 65535U

static struct rsb_route
bad(const char *error)
{
	return (struct rsb_route){ .kind = RSB_ROUTE_BAD, .error = error };
}

static bool
id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n > 0 && n <= RSB_ROUTE_ID_MAX && id[n] == '\0';
}

static struct rsb_route
to_sandbox(const char *id, const char *port)
{
	struct rsb_route route = { .kind = RSB_ROUTE_SANDBOX };
	uint64_t number;

	if (rsb_str_u64(port, PORT_MAX, &number) < 0 || number == 0)
		return bad("Invalid sandbox port");
	if (!id_ok(id))
		return bad("Invalid sandbox ID");
	route.port = (unsigned int)number;
	(void)strcpy(route.id, id);
	return route;
}

/* The name without the port, which an IPv6 address has after its bracket. */
static int
host_name(const char *host, char out[static HOST_MAX + 1])
{
	size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");

	if (host[0] == '[') {
		host++;
		n--;
	}
	if (n > HOST_MAX)
		return -1;
	memcpy(out, host, n);
	out[n] = '\0';
	return 0;
}

static bool
takes_headers(const char *name)
{
	struct in6_addr addr;

	return strcasecmp(name, "localhost") == 0 || strncasecmp(name, "sandbox.", 8) == 0 ||
	       inet_pton(AF_INET, name, &addr) == 1 || inet_pton(AF_INET6, name, &addr) == 1;
}

/* "PORT-ID" and whatever follows another dash. */
static struct rsb_route
by_label(const char *name)
{
	char label[HOST_MAX + 1];
	char *save = NULL;
	const char *port, *id;

	(void)snprintf(label, sizeof(label), "%.*s", (int)strcspn(name, "."), name);
	if (!strchr(name, '.') || !strchr(label, '-'))
		return (struct rsb_route){ .kind = RSB_ROUTE_CONTROL };
	port = strtok_r(label, "-", &save);
	id = strtok_r(NULL, "-", &save);
	if (!port || !id)
		return bad("Invalid host");
	return to_sandbox(id, port);
}

struct rsb_route
rsb_route_find(const char *host, const char *id, const char *port)
{
	char name[HOST_MAX + 1];

	if (!host || host_name(host, name) < 0)
		return bad("Invalid host");
	if (!takes_headers(name))
		return by_label(name);
	if (!id && !port) {
		if (strncasecmp(name, "sandbox.", 8) == 0)
			return bad("missing header");
		return (struct rsb_route){ .kind = RSB_ROUTE_CONTROL };
	}
	if (!id || !port)
		return bad("missing header");
	return to_sandbox(id, port);
}
