/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sidecar/local/route.h"
#include "tests/unit/unit.h"

struct want {
	const char *host;
	const char *id;
	const char *port;
	enum rsb_route_kind kind;
	unsigned int to_port;
	const char *text; /* id, or error */
};

static const struct want wants[] = {
	{ "localhost", NULL, NULL, RSB_ROUTE_CONTROL, 0, NULL },
	{ "127.0.0.1:80", NULL, NULL, RSB_ROUTE_CONTROL, 0, NULL },
	{ "api.sb.test", "iabc", "80", RSB_ROUTE_CONTROL, 0, NULL },
	{ "my-host", NULL, NULL, RSB_ROUTE_CONTROL, 0, NULL },
	{ "my-host:8080", "iabc", "80", RSB_ROUTE_CONTROL, 0, NULL },
	{ "localhost:3000", "iabc", "49983", RSB_ROUTE_SANDBOX, 49983, "iabc" },
	{ "LOCALHOST", "iabc", "1", RSB_ROUTE_SANDBOX, 1, "iabc" },
	{ "[::1]:3000", "iabc", "65535", RSB_ROUTE_SANDBOX, 65535, "iabc" },
	{ "[::1]", "iabc", "80", RSB_ROUTE_SANDBOX, 80, "iabc" },
	{ "10.1.2.3", "iabc", "80", RSB_ROUTE_SANDBOX, 80, "iabc" },
	{ "sandbox.e2b.app", "iabc", "80", RSB_ROUTE_SANDBOX, 80, "iabc" },
	{ "8080-iabc.sb.test", NULL, NULL, RSB_ROUTE_SANDBOX, 8080, "iabc" },
	{ "8080-iabc.sb.test:99", "iother", "1", RSB_ROUTE_SANDBOX, 8080, "iabc" },
	{ "8080-iabc-more-x.sb.test", NULL, NULL, RSB_ROUTE_SANDBOX, 8080, "iabc" },
	{ "localhost", "iabc", NULL, RSB_ROUTE_BAD, 0, "missing header" },
	{ "localhost", NULL, "80", RSB_ROUTE_BAD, 0, "missing header" },
	{ "sandbox.e2b.app", NULL, NULL, RSB_ROUTE_BAD, 0, "missing header" },
	{ "localhost", "iabc", "0", RSB_ROUTE_BAD, 0, "Invalid sandbox port" },
	{ "localhost", "iabc", "65536", RSB_ROUTE_BAD, 0, "Invalid sandbox port" },
	{ "localhost", "iabc", "-1", RSB_ROUTE_BAD, 0, "Invalid sandbox port" },
	{ "localhost", "iabc", "", RSB_ROUTE_BAD, 0, "Invalid sandbox port" },
	{ "localhost", "iA", "80", RSB_ROUTE_BAD, 0, "Invalid sandbox ID" },
	{ "localhost", "../x", "80", RSB_ROUTE_BAD, 0, "Invalid sandbox ID" },
	{ "localhost", "", "80", RSB_ROUTE_BAD, 0, "Invalid sandbox ID" },
	{ "x-iabc.sb.test", NULL, NULL, RSB_ROUTE_BAD, 0, "Invalid sandbox port" },
	{ "80-.sb.test", NULL, NULL, RSB_ROUTE_BAD, 0, "Invalid host" },
	{ NULL, NULL, NULL, RSB_ROUTE_BAD, 0, "Invalid host" },
};

START_TEST(finds_where_a_request_goes)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(wants); i++) {
		const struct want *w = &wants[i];
		struct rsb_route route = rsb_route_find(w->host, w->id, w->port);

		ck_assert_int_eq(route.kind, w->kind);
		ck_assert_uint_eq(route.port, w->to_port);
		if (w->kind == RSB_ROUTE_SANDBOX)
			ck_assert_str_eq(route.id, w->text);
		if (w->kind == RSB_ROUTE_BAD)
			ck_assert_str_eq(route.error, w->text);
	}
}
END_TEST

START_TEST(refuses_names_without_end)
{
	char host[400], id[100];

	memset(host, 'a', sizeof(host));
	host[sizeof(host) - 1] = '\0';
	memset(id, 'i', sizeof(id));
	id[sizeof(id) - 1] = '\0';
	ck_assert_int_eq(rsb_route_find(host, NULL, NULL).kind, RSB_ROUTE_BAD);
	ck_assert_int_eq(rsb_route_find("localhost", id, "80").kind, RSB_ROUTE_BAD);
	id[RSB_ROUTE_ID_MAX] = '\0';
	ck_assert_int_eq(rsb_route_find("localhost", id, "80").kind, RSB_ROUTE_SANDBOX);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		finds_where_a_request_goes,
		refuses_names_without_end,
	};

	return unit_run("route", tests, RSB_ARRAY_SIZE(tests));
}
