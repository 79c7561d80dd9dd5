/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/http.h"
#include "tests/unit/http-server.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/thread.h"

#define TIMEOUT_NS (10 * RSB_NSEC_PER_SEC)

/* What a test looks at afterwards. */
struct seen {
	char head[2048];
	char body[256];
	size_t body_size;
};

static bool
asks(const struct http_server_request *req, const char *path)
{
	const char *blank = strchr(req->head, ' ');

	return blank && strncmp(blank + 1, path, strlen(path)) == 0;
}

static void
send_big(int fd)
{
	static char block[1 << 16];
	size_t i;

	(void)dprintf(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (i = 0; i < RSB_HTTP_BODY_MAX / sizeof(block) + 2; i++)
		if (dprintf(fd, "%zx\r\n", sizeof(block)) < 0 ||
			send(fd, block, sizeof(block), MSG_NOSIGNAL) < 0 ||
			send(fd, "\r\n", 2, MSG_NOSIGNAL) < 0)
			return;
}

static int
on_request(void *arg, const struct http_server_request *req)
{
	struct seen *seen = arg;

	(void)snprintf(seen->head, sizeof(seen->head), "%s", req->head);
	seen->body_size = req->body_size;
	memcpy(seen->body, req->body, rsb_min(req->body_size, sizeof(seen->body)));
	if (asks(req, "/busy")) {
		http_server_answer(req->fd, 429, "retry-after: 7\r\n", "{}");
	} else if (asks(req, "/page")) {
		http_server_answer(req->fd, 200, "X-Next-Token:  abc \r\n", "[]");
	} else if (asks(req, "/big")) {
		send_big(req->fd);
		return -1;
	} else if (asks(req, "/cut")) {
		(void)dprintf(req->fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
		return -1;
	} else if (asks(req, "/close-me")) {
		http_server_answer(req->fd, 200, "", "and gone");
		return -1;
	} else if (asks(req, "/silent")) {
		return 0;
	} else if (asks(req, "/once-more") && req->n_on_connection > 1) {
		return -1; /* closed while it was kept */
	} else if (asks(req, "/stream")) {
		(void)dprintf(req->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				       "5\r\nfirst\r\n");
		return 0; /* and nothing more */
	} else {
		http_server_answer(req->fd, 200, "", "hello");
	}
	return 0;
}

struct world {
	struct seen seen;
	struct http_server *server;
	struct rsb_http *http;
	struct rsb_http_reply reply;
	struct rsb_diag diag;
	char url[128];
	int abort_fd;
};

static void
setup(struct world *world)
{
	struct rsb_http_config config;

	*world = (struct world){ .abort_fd = eventfd(0, EFD_CLOEXEC) };
	config = (struct rsb_http_config){ .abort_fd = world->abort_fd };
	world->server = http_server_new(on_request, &world->seen);
	ck_assert_int_eq(rsb_http_new(&config, &world->http), 0);
}

static void
teardown(struct world *world)
{
	rsb_buf_done(&world->reply.body);
	rsb_http_free(world->http);
	http_server_free(world->server);
	close(world->abort_fd);
}

static int
ask(struct world *world, struct rsb_http_request req, const char *path)
{
	int r;

	(void)snprintf(world->url, sizeof(world->url), "http://127.0.0.1:%u%s",
		http_server_port(world->server), path);
	req.url = world->url;
	req.method = req.method ? req.method : "GET";
	req.timeout_ns = req.timeout_ns ? req.timeout_ns : TIMEOUT_NS;
	r = rsb_http_do(world->http, &req, &world->reply, &world->diag);
	http_server_sync(world->server);
	return r;
}

START_TEST(sends_what_it_is_told_and_nothing_else)
{
	const char *const headers[] = { "X-API-Key: secret", NULL };
	struct world world;

	setup(&world);
	ck_assert_int_eq(ask(&world,
				 (struct rsb_http_request){ .method = "DELETE",
					 .headers = headers,
					 .body = rsb_bytes_str("some body") },
				 "/x?y=z"),
		0);
	ck_assert_int_eq(world.reply.status, 200);
	ck_assert_mem_eq(rsb_buf_head(&world.reply.body), "hello", 5);
	ck_assert_ptr_nonnull(strstr(world.seen.head, "DELETE /x?y=z HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strstr(world.seen.head, "X-API-Key: secret\r\n"));
	ck_assert_ptr_nonnull(strstr(world.seen.head, "User-Agent: rsb/"));
	ck_assert_ptr_null(strstr(world.seen.head, "Expect"));
	ck_assert_ptr_null(strstr(world.seen.head, "Accept-Encoding"));
	ck_assert_mem_eq(world.seen.body, "some body", 9);
	teardown(&world);
}
END_TEST

START_TEST(sends_a_file_from_its_start)
{
	struct world world;
	int fd = memfd_create("body", MFD_CLOEXEC);

	setup(&world);
	ck_assert_int_eq(write(fd, "contents", 8), 8);
	ck_assert_int_eq(ask(&world,
				 (struct rsb_http_request){
					 .method = "POST", .body_fd = fd, .body_size = 8 },
				 "/files"),
		0);
	ck_assert_uint_eq(world.seen.body_size, 8);
	ck_assert_mem_eq(world.seen.body, "contents", 8);
	/* shorter than was said: the request is given up, not padded */
	ck_assert_int_eq(ask(&world,
				 (struct rsb_http_request){
					 .method = "POST", .body_fd = fd, .body_size = 9 },
				 "/files"),
		-EIO);
	close(fd);
	teardown(&world);
}
END_TEST

START_TEST(reads_the_headers_that_count)
{
	struct world world;

	setup(&world);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/busy"), 0);
	ck_assert_int_eq(world.reply.status, 429);
	ck_assert(world.reply.has_retry_after);
	ck_assert_uint_eq(world.reply.retry_after_s, 7);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/page"), 0);
	ck_assert_str_eq(world.reply.next_token, "abc");
	ck_assert(!world.reply.has_retry_after);
	teardown(&world);
}
END_TEST

START_TEST(keeps_its_connection_and_replaces_a_dead_one)
{
	struct world world;

	setup(&world);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/a"), 0);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/b"), 0);
	ck_assert_uint_eq(http_server_connections(world.server), 1);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/once-more"), 0);
	ck_assert_int_eq(world.reply.status, 200);
	ck_assert_uint_eq(http_server_connections(world.server), 2);
	teardown(&world);
}
END_TEST

START_TEST(never_sends_twice_what_must_be_sent_once)
{
	struct world world;
	int r;

	setup(&world);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/close-me"), 0);
	r = ask(&world, (struct rsb_http_request){ .method = "POST", .once = true }, "/cut");
	ck_assert_int_eq(r, -EREMOTEIO);
	ck_assert_uint_le(http_server_connections(world.server), 2);
	teardown(&world);
}
END_TEST

START_TEST(tells_what_was_not_sent_from_what_is_unclear)
{
	struct world world;
	char url[] = "http://127.0.0.1:1/";
	struct rsb_http_request req = { .method = "GET", .url = url, .timeout_ns = TIMEOUT_NS };

	setup(&world);
	ck_assert_int_eq(rsb_http_do(world.http, &req, &world.reply, &world.diag), -ENOTCONN);
	ck_assert_str_ne(world.diag.text, "");
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/cut"), -EREMOTEIO);
	ck_assert_int_eq(
		ask(&world, (struct rsb_http_request){ .timeout_ns = 50 * RSB_NSEC_PER_MSEC },
			"/silent"),
		-EREMOTEIO);
	req.url = "file:///etc/passwd";
	ck_assert_int_eq(rsb_http_do(world.http, &req, &world.reply, &world.diag), -EINVAL);
	teardown(&world);
}
END_TEST

START_TEST(bounds_an_answer)
{
	struct world world;

	setup(&world);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/big"), -EMSGSIZE);
	ck_assert_uint_le(rsb_buf_len(&world.reply.body), RSB_HTTP_BODY_MAX);
	teardown(&world);
}
END_TEST

static int
take_first(void *arg, struct rsb_bytes data)
{
	ck_assert_mem_eq(data.data, "first", 5);
	(*(int *)arg)++;
	return 1;
}

START_TEST(hands_a_stream_on_and_hangs_up_when_told)
{
	struct world world;
	int n = 0;

	setup(&world);
	ck_assert_int_eq(
		ask(&world, (struct rsb_http_request){ .data = take_first, .arg = &n }, "/stream"),
		0);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(world.reply.status, 200);
	/* an error's body is kept, not streamed */
	ck_assert_int_eq(
		ask(&world, (struct rsb_http_request){ .data = take_first, .arg = &n }, "/busy"),
		0);
	ck_assert_int_eq(n, 1);
	ck_assert_uint_eq(rsb_buf_len(&world.reply.body), 2);
	teardown(&world);
}
END_TEST

static void *
abort_soon(void *arg)
{
	struct world *world = arg;

	(void)poll(NULL, 0, 50);
	(void)eventfd_write(world->abort_fd, 1);
	return NULL;
}

START_TEST(gives_up_when_it_is_aborted)
{
	struct world world;
	pthread_t thread;

	setup(&world);
	ck_assert_int_eq(rsb_thread_start("abort", abort_soon, &world, &thread), 0);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/silent"), -ECANCELED);
	ck_assert_int_eq(ask(&world, (struct rsb_http_request){ 0 }, "/a"), -ECANCELED);
	pthread_join(thread, NULL);
	teardown(&world);
}
END_TEST

START_TEST(escapes_all_but_the_unreserved)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };

	ck_assert_int_eq(
		rsb_http_escape(
			(struct rsb_bytes){ (const uint8_t *)"aZ9-._~ /\xff\0%", 12 }, &out),
		0);
	ck_assert_int_eq(rsb_buf_append(&out, "", 1), 0);
	ck_assert_str_eq((const char *)rsb_buf_head(&out), "aZ9-._~%20%2F%FF%00%25");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sends_what_it_is_told_and_nothing_else,
		sends_a_file_from_its_start,
		reads_the_headers_that_count,
		keeps_its_connection_and_replaces_a_dead_one,
		never_sends_twice_what_must_be_sent_once,
		tells_what_was_not_sent_from_what_is_unclear,
		bounds_an_answer,
		hands_a_stream_on_and_hangs_up_when_told,
		gives_up_when_it_is_aborted,
		escapes_all_but_the_unreserved,
	};

	return unit_run("http", tests, RSB_ARRAY_SIZE(tests));
}
