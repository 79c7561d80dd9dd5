/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/e2b-json.h"
#include "backend/e2b.h"
#include "backend/envelope.h"
#include "tests/unit/http-server.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

/* The server: its next answer, and what it was asked. */
struct world {
	struct http_server *server;
	struct rsb_backend *backend;
	int status;
	const char *headers;
	const char *body;
	char head[2048];
	char asked[1024];
	size_t asked_size;
	unsigned int n_request;
	int refuse_gzip; /* the status for it; 0: it is taken */
	bool silent;     /* no answer */
	struct rsb_sandbox sandbox;
	struct rsb_diag diag;
};

static int
on_request(void *arg, const struct http_server_request *req)
{
	struct world *world = arg;

	(void)snprintf(world->head, sizeof(world->head), "%s", req->head);
	ck_assert_uint_lt(req->body_size, sizeof(world->asked));
	memcpy(world->asked, req->body, req->body_size);
	world->asked[req->body_size] = '\0';
	world->asked_size = req->body_size;
	world->n_request++;
	if (world->silent)
		return 0;
	if (world->refuse_gzip && strstr(req->head, "Content-Encoding: gzip"))
		http_server_answer(req->fd, world->refuse_gzip, "", "{}");
	else
		http_server_answer(req->fd, world->status, world->headers, world->body);
	return 0;
}

static void
setup(struct world *world)
{
	struct rsb_e2b_config config = {
		.name = "local",
		.domain = "example",
		.envd_port = 49983,
		.timeout_ns = 60 * RSB_NSEC_PER_SEC,
		.ask_ns = 500 * RSB_NSEC_PER_MSEC,
	};
	char url[64];

	*world = (struct world){ .status = 200, .headers = "", .body = "{}" };
	world->server = http_server_new(on_request, world);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(world->server));
	config.api_url = url;
	config.envd_url = url;
	ck_assert_int_eq(rsb_secret_set(&config.api_key, "e2b_key", 7), 0);
	ck_assert_int_eq(rsb_e2b_new(&config, &world->backend, &world->diag), 0);
}

static void
teardown(struct world *world)
{
	rsb_backend_free(world->backend);
	http_server_free(world->server);
}

/* The next answers. */
static void
answer(struct world *world, int status, const char *headers, const char *body)
{
	http_server_sync(world->server);
	world->status = status;
	world->headers = headers;
	world->body = body;
	http_server_sync(world->server);
}

static const char *
head(struct world *world)
{
	http_server_sync(world->server);
	return world->head;
}

static const char *
asked(struct world *world)
{
	http_server_sync(world->server);
	return world->asked;
}

static const char sandbox_json[] =
	"{\"sandboxID\":\"iabc123\",\"templateID\":\"base\",\"clientID\":\"\",\"state\":\"paused\","
	"\"envdVersion\":\"0.6.13\",\"envdAccessToken\":\"tok\",\"domain\":null,"
	"\"metadata\":{\"rsb-intent\":\"0123456789abcdef0123456789abcdef\",\"rsb-name\":\"n\"},"
	"\"startedAt\":\"2026-08-21T10:00:00.5Z\",\"endAt\":\"2026-08-21T11:00:00Z\"}";

START_TEST(says_everything_that_a_server_could_guess)
{
	const struct rsb_backend_create req = {
		.template = "base",
		.intent = "00112233445566778899aabbccddeeff",
		.name = "work",
		.ttl_ns = 300 * RSB_NSEC_PER_SEC,
		.pause_on_expire = true,
		.internet = false,
	};
	static const char *const parts[] = { "\"templateID\":\"base\"", "\"timeout\":300",
		"\"autoPause\":true", "\"secure\":true", "\"allow_internet_access\":false",
		"\"rsb-intent\":\"00112233445566778899aabbccddeeff\"", "\"rsb-name\":\"work\"" };
	struct world world;
	size_t i;

	setup(&world);
	answer(&world, 201, "", sandbox_json);
	ck_assert_int_eq(
		world.backend->ops->create(world.backend, &req, &world.sandbox, &world.diag), 0);
	ck_assert_ptr_nonnull(strstr(head(&world), "POST /sandboxes HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strstr(head(&world), "X-API-Key: e2b_key\r\n"));
	for (i = 0; i < RSB_ARRAY_SIZE(parts); i++)
		ck_assert_msg(strstr(asked(&world), parts[i]), "%s in %s", parts[i], asked(&world));
	ck_assert_str_eq(world.sandbox.id, "iabc123");
	ck_assert_str_eq(world.sandbox.domain, "");
	ck_assert_int_eq(world.sandbox.state, RSB_SANDBOX_PAUSED);
	ck_assert_uint_eq(world.sandbox.envd_token.size, 3);
	ck_assert_uint_eq(
		world.sandbox.end_ns - world.sandbox.started_ns, 3599500 * RSB_NSEC_PER_MSEC);
	teardown(&world);
}
END_TEST

static const struct {
	int status;
	const char *headers;
	const char *body;
	int want;
} answers[] = {
	{ 404, "", "{\"code\":404,\"message\":\"gone\"}", -ENOENT },
	{ 404, "", "", -ENOENT },
	{ 404, "", "<html>no route</html>", -EBADMSG },
	{ 401, "", "", -EACCES },
	{ 403, "", "{}", -EACCES },
	{ 409, "", "{}", -EBUSY },
	{ 429, "Retry-After: 3\r\n", "{}", -EAGAIN },
	{ 429, "", "{}", -EDQUOT },
	{ 400, "", "{}", -EINVAL },
	{ 500, "", "{}", -EREMOTEIO },
	{ 503, "", "", -EREMOTEIO },
	{ 302, "Location: /x\r\n", "", -EBADMSG },
	{ 200, "", "no json", -EBADMSG },
	{ 200, "", "[]", -EBADMSG },
	{ 200, "", "{\"sandboxID\":\"../../etc\"}", -EBADMSG },
	{ 200, "", "{\"sandboxID\":\"i1\",\"envdAccessToken\":\"a\\r\\nX: y\"}", -EBADMSG },
	{ 200, "", "{\"sandboxID\":\"i1\",\"domain\":\"evil/x\"}", -EBADMSG },
	{ 200, "", "{\"sandboxID\":7}", -EBADMSG },
};

START_TEST(tells_gone_from_everything_else)
{
	struct world world;
	size_t i;
	int r;

	setup(&world);
	for (i = 0; i < RSB_ARRAY_SIZE(answers); i++) {
		answer(&world, answers[i].status, answers[i].headers, answers[i].body);
		r = world.backend->ops->get(world.backend, "iabc123", &world.sandbox, &world.diag);
		ck_assert_msg(r == answers[i].want, "case %zu: %d", i, r);
		if (r == -EAGAIN)
			ck_assert_uint_eq(world.backend->retry_after_ns, 3 * RSB_NSEC_PER_SEC);
	}
	ck_assert_int_eq(world.backend->ops->get(world.backend, "a/b", &world.sandbox, &world.diag),
		-EINVAL);
	teardown(&world);
}
END_TEST

START_TEST(does_not_wait_long_for_an_answer_that_was_lost)
{
	struct world world;

	setup(&world);
	world.silent = true;
	ck_assert_int_eq(
		world.backend->ops->get(world.backend, "iabc123", &world.sandbox, &world.diag),
		-EREMOTEIO);
	ck_assert_int_eq(
		world.backend->ops->extend(world.backend, "iabc123", RSB_NSEC_PER_SEC, &world.diag),
		-EREMOTEIO);
	teardown(&world);
}
END_TEST

START_TEST(shows_the_servers_words_without_its_tricks)
{
	struct world world;

	setup(&world);
	answer(&world, 500, "", "{\"message\":\"bad \\u001b[31mred\\n thing\"}");
	ck_assert_int_eq(world.backend->ops->kill(world.backend, "i1", &world.diag), -EREMOTEIO);
	ck_assert_str_eq(
		world.diag.text, "cannot destroy the sandbox: HTTP 500: bad ?[31mred? thing");
	teardown(&world);
}
END_TEST

START_TEST(uses_the_calls_that_never_shorten_a_life)
{
	struct world world;

	setup(&world);
	answer(&world, 204, "", "");
	ck_assert_int_eq(world.backend->ops->extend(
				 world.backend, "i1", 9000 * RSB_NSEC_PER_SEC, &world.diag),
		0);
	ck_assert_ptr_nonnull(strstr(head(&world), "POST /sandboxes/i1/refreshes "));
	ck_assert_str_eq(asked(&world), "{\"duration\":3600}");
	ck_assert_int_eq(world.backend->ops->pause(world.backend, "i1", &world.diag), 0);
	ck_assert_ptr_nonnull(strstr(head(&world), "POST /sandboxes/i1/pause "));
	teardown(&world);
}
END_TEST

static int
count(void *arg, const struct rsb_sandbox *sandbox)
{
	(*(int *)arg)++;
	ck_assert_str_eq(sandbox->name, "mine");
	return 0;
}

START_TEST(lists_only_what_carries_the_intent)
{
	static const char list[] =
		"[{\"sandboxID\":\"i1\"},"
		"{\"sandboxID\":\"i2\",\"metadata\":{\"rsb-intent\":\"00\",\"rsb-name\":\"mine\"}},"
		"{\"sandboxID\":\"i3\",\"metadata\":{\"rsb-intent\":\"11\",\"rsb-name\":\"other\"}},"
		"{\"sandboxID\":\"/\"}]";
	struct world world;
	int n = 0;

	setup(&world);
	answer(&world, 200, "", list);
	ck_assert_int_eq(world.backend->ops->list(world.backend, "00", count, &n, &world.diag), 0);
	ck_assert_int_eq(n, 1);
	ck_assert_ptr_nonnull(strstr(head(&world), "&metadata=rsb-intent%3D00 "));
	answer(&world, 404, "", "{}");
	ck_assert_int_eq(
		world.backend->ops->list(world.backend, "00", count, &n, &world.diag), -EBADMSG);
	teardown(&world);
}
END_TEST

START_TEST(addresses_ports_by_template_and_headers)
{
	struct rsb_backend_address address;
	struct rsb_sandbox sandbox = { .id = "i1", .domain = "d.example" };
	char *url;
	struct world world;

	setup(&world);
	ck_assert_int_eq(rsb_secret_set(&sandbox.traffic_token, "tt", 2), 0);
	ck_assert_int_eq(world.backend->ops->address(world.backend, &sandbox, 49201, &address), 0);
	ck_assert_str_eq(address.headers[0], "E2b-Sandbox-Id: i1");
	ck_assert_str_eq(address.headers[1], "E2b-Sandbox-Port: 49201");
	ck_assert_str_eq(address.headers[2], "e2b-traffic-access-token: tt");
	rsb_backend_address_done(&address);
	ck_assert_int_eq(rsb_e2b_expand("https://{port}-{id}.{domain}/", 80, "i1", "d", &url), 0);
	ck_assert_str_eq(url, "https://80-i1.d");
	free(url);
	ck_assert_int_eq(rsb_e2b_expand("https://{what}", 80, "i1", "d", &url), -EINVAL);
	teardown(&world);
}
END_TEST

START_TEST(uploads_as_root_and_says_when_the_disk_is_full)
{
	struct rsb_sandbox sandbox = { .id = "i1" };
	struct world world;
	int fd = memfd_create("program", MFD_CLOEXEC);

	setup(&world);
	ck_assert_int_eq(write(fd, "ELF", 3), 3);
	ck_assert_int_eq(rsb_secret_set(&sandbox.envd_token, "et", 2), 0);
	ck_assert_int_eq(
		world.backend->ops->upload(world.backend, &sandbox, "/opt/a b", fd, &world.diag),
		0);
	ck_assert_ptr_nonnull(
		strstr(head(&world), "POST /files?path=%2Fopt%2Fa%20b&username=root "));
	ck_assert_ptr_nonnull(strstr(head(&world), "X-Access-Token: et\r\n"));
	ck_assert_ptr_nonnull(strstr(head(&world), "Authorization: Basic cm9vdDo=\r\n"));
	ck_assert_ptr_nonnull(strstr(head(&world), "Content-Encoding: gzip\r\n"));
	ck_assert_mem_eq(asked(&world), "\x1f\x8b", 2);
	answer(&world, 507, "", "{}");
	ck_assert_int_eq(world.backend->ops->upload(world.backend, &sandbox, "/x", fd, &world.diag),
		-ENOSPC);
	answer(&world, 502, "", "{}");
	ck_assert_int_eq(world.backend->ops->upload(world.backend, &sandbox, "/x", fd, &world.diag),
		-ENOTCONN);
	close(fd);
	teardown(&world);
}
END_TEST

START_TEST(uploads_less_than_the_file_where_gzip_is_taken)
{
	static const int refusals[] = { 400, 415 };
	static const char zeros[1000];
	struct rsb_sandbox sandbox = { .id = "i1" };
	struct world world;
	int fd = memfd_create("program", MFD_CLOEXEC);

	setup(&world);
	ck_assert_int_eq(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	ck_assert_int_eq(
		world.backend->ops->upload(world.backend, &sandbox, "/x", fd, &world.diag), 0);
	http_server_sync(world.server);
	ck_assert_uint_lt(world.asked_size, 100);
	ck_assert_uint_eq(world.n_request, 1);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(refusals); i++) {
		world.refuse_gzip = refusals[i];
		world.n_request = 0;
		ck_assert_int_eq(
			world.backend->ops->upload(world.backend, &sandbox, "/x", fd, &world.diag),
			0);
		ck_assert_ptr_null(strstr(head(&world), "Content-Encoding"));
		ck_assert_uint_eq(world.asked_size, sizeof(zeros));
		ck_assert_mem_eq(world.asked, zeros, sizeof(zeros));
		ck_assert_uint_eq(world.n_request, 2);
	}
	close(fd);
	teardown(&world);
}
END_TEST

START_TEST(reads_frames_over_any_cut)
{
	static const uint8_t bytes[] = { 0, 0, 0, 0, 2, '{', '}', 2, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		'x' };
	struct rsb_envelope_reader reader;
	struct rsb_bytes payload;
	uint8_t flags;
	size_t step, i;
	int n;

	for (step = 1; step <= sizeof(bytes); step++) {
		rsb_envelope_reader_init(&reader);
		for (n = 0, i = 0; i < sizeof(bytes); i += step) {
			ck_assert_int_eq(rsb_envelope_reader_add(&reader,
						 (struct rsb_bytes){ bytes + i,
							 rsb_min(step, sizeof(bytes) - i) }),
				0);
			while (rsb_envelope_reader_next(&reader, &flags, &payload) == 1)
				n += flags == RSB_ENVELOPE_END ? 100 : (int)payload.size;
		}
		ck_assert_int_eq(n, 103);
		rsb_envelope_reader_done(&reader);
	}
	rsb_envelope_reader_init(&reader);
	ck_assert_int_eq(
		rsb_envelope_reader_add(&reader, rsb_bytes_str("\x01\x01\x01\x01\x01")), 0);
	ck_assert_int_eq(rsb_envelope_reader_next(&reader, &flags, &payload), -EMSGSIZE);
	rsb_envelope_reader_done(&reader);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		says_everything_that_a_server_could_guess,
		tells_gone_from_everything_else,
		does_not_wait_long_for_an_answer_that_was_lost,
		shows_the_servers_words_without_its_tricks,
		uses_the_calls_that_never_shorten_a_life,
		lists_only_what_carries_the_intent,
		addresses_ports_by_template_and_headers,
		uploads_as_root_and_says_when_the_disk_is_full,
		uploads_less_than_the_file_where_gzip_is_taken,
		reads_frames_over_any_cut,
	};

	return unit_run("e2b", tests, RSB_ARRAY_SIZE(tests));
}
