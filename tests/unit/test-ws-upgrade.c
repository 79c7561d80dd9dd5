/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/ws-upgrade.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* rsb_random() comes through here (--wrap), so that a test can let it fail. */
static bool no_random;

int __real_rsb_random(void *out, size_t size);
int __wrap_rsb_random(void *out, size_t size);

int
__wrap_rsb_random(void *out, size_t size)
{
	return no_random ? -EIO : __real_rsb_random(out, size);
}

/* The example of RFC 6455 1.3. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

#define LINE "GET /rsb HTTP/1.1\r\n"
#define HOST "Host: h:1\r\n"
#define UPGRADE "Upgrade: websocket\r\n"
#define CONNECTION "Connection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY_LINE "Sec-WebSocket-Key: " KEY "\r\n"
#define HEADERS HOST UPGRADE CONNECTION VERSION KEY_LINE
#define REQUEST LINE HEADERS
#define RESPONSE                                                                            \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
	"Sec-WebSocket-Accept: " ACCEPT "\r\n"

static int
accept_str(const char *s, struct rsb_ws_upgrade *ret_upgrade)
{
	return rsb_ws_accept(rsb_bytes_str(s), ret_upgrade);
}

static int
response_str(const char *s, int *ret_status)
{
	return rsb_ws_response(rsb_bytes_str(s), KEY, ret_status);
}

START_TEST(makes_a_fresh_key_of_24_characters)
{
	char key[RSB_WS_KEY_SIZE + 1];
	char other[RSB_WS_KEY_SIZE + 1];

	ck_assert_int_eq(rsb_ws_key(key), 0);
	ck_assert_int_eq(rsb_ws_key(other), 0);
	ck_assert_uint_eq(strlen(key), RSB_WS_KEY_SIZE);
	ck_assert_str_ne(key, other);
	no_random = true;
	ck_assert_int_eq(rsb_ws_key(key), -EIO);
	no_random = false;
}
END_TEST

START_TEST(upgrades_with_itself)
{
	const struct rsb_ws_header headers[] = { { "X-Rsb-Auth", "1 abc" }, { "X-Other", "" } };
	struct rsb_buf out = { .max = 0 };
	struct rsb_ws_upgrade upgrade;
	struct rsb_buf reply = { .max = 0 };
	int status;

	ck_assert_int_eq(rsb_ws_request("h:1", "/rsb?a=b", KEY, headers, 2, &out), 0);
	ck_assert_int_eq(rsb_ws_accept(rsb_buf_view(&out), &upgrade), (int)rsb_buf_len(&out));
	ck_assert(bytes_equal(upgrade.path, rsb_bytes_str("/rsb?a=b")));
	ck_assert(bytes_equal(upgrade.key, rsb_bytes_str(KEY)));
	ck_assert(bytes_equal(upgrade.auth, rsb_bytes_str("1 abc")));
	ck_assert_int_eq(rsb_ws_accept_reply(upgrade.key, &reply), 0);
	ck_assert_ptr_nonnull(
		memmem(rsb_buf_head(&reply), rsb_buf_len(&reply), ACCEPT, strlen(ACCEPT)));
	ck_assert_int_eq(
		rsb_ws_response(rsb_buf_view(&reply), KEY, &status), (int)rsb_buf_len(&reply));
	ck_assert_int_eq(status, 101);
	rsb_buf_done(&out);
	rsb_buf_done(&reply);
}
END_TEST

START_TEST(waits_for_the_end_of_the_head)
{
	static const char request[] = REQUEST "\r\n\x82\x01x";
	static const char response[] = RESPONSE "\r\n\x82\x01x";
	struct rsb_ws_upgrade upgrade;
	int status;

	for (size_t size = 0; size <= sizeof(request) - 1; size++) {
		struct rsb_bytes cut = bytes_cut(rsb_bytes_str(request), size);
		const size_t whole = sizeof(request) - 1 - 3;

		ck_assert_int_eq(rsb_ws_accept(cut, &upgrade), size < whole ? 0 : (int)whole);
		bytes_free(cut);
	}
	for (size_t size = 0; size <= sizeof(response) - 1; size++) {
		struct rsb_bytes cut = bytes_cut(rsb_bytes_str(response), size);
		const size_t whole = sizeof(response) - 1 - 3;

		ck_assert_int_eq(rsb_ws_response(cut, KEY, &status), size < whole ? 0 : (int)whole);
		ck_assert_int_eq(status, size < whole ? 0 : 101);
		bytes_free(cut);
	}
}
END_TEST

START_TEST(takes_other_spellings)
{
	struct rsb_ws_upgrade upgrade;
	int status;

	ck_assert_int_gt(accept_str("GET / HTTP/1.1\r\nhost:h\r\nUPGRADE: \t WebSocket \t\r\n"
				    "connection: keep-alive , upgrade\r\n"
				    "sec-websocket-version:13\r\nsec-websocket-key:" KEY "\r\n\r\n",
				 &upgrade),
		0);
	ck_assert_ptr_null(upgrade.auth.data);
	ck_assert_int_gt(response_str("HTTP/1.1 101\r\nupgrade: WEBSOCKET\r\n"
				      "Connection: Upgrade, keep-alive\r\n"
				      "sec-websocket-accept: " ACCEPT "\r\n\r\n",
				 &status),
		0);
}
END_TEST

START_TEST(refuses_requests_that_are_no_upgrade)
{
	static const char *const cases[] = {
		/* the first line */
		"\r\n" HEADERS "\r\n",
		"GET\r\n" HEADERS "\r\n",
		"GET / HTTP/1.1 \r\n" HEADERS "\r\n",
		"POST /rsb HTTP/1.1\r\n" HEADERS "\r\n",
		"GET rsb HTTP/1.1\r\n" HEADERS "\r\n",
		"GET /rsb HTTP/1.0\r\n" HEADERS "\r\n",
		"GET /a b HTTP/1.1\r\n" HEADERS "\r\n",
		"GET /a\tb HTTP/1.1\r\n" HEADERS "\r\n",
		/* one header missing or wrong */
		LINE UPGRADE CONNECTION VERSION KEY_LINE "\r\n",
		LINE "Host:\r\n" UPGRADE CONNECTION VERSION KEY_LINE "\r\n",
		LINE HOST CONNECTION VERSION KEY_LINE "\r\n",
		LINE HOST "Upgrade: h2c\r\n" CONNECTION VERSION KEY_LINE "\r\n",
		LINE HOST UPGRADE VERSION KEY_LINE "\r\n",
		LINE HOST UPGRADE "Connection: close, upgraded\r\n" VERSION KEY_LINE "\r\n",
		LINE HOST UPGRADE CONNECTION KEY_LINE "\r\n",
		LINE HOST UPGRADE CONNECTION "Sec-WebSocket-Version: 8\r\n" KEY_LINE "\r\n",
		LINE HOST UPGRADE CONNECTION VERSION "\r\n",
		LINE HOST UPGRADE CONNECTION VERSION "Sec-WebSocket-Key: " KEY "x\r\n\r\n",
		LINE HOST UPGRADE CONNECTION VERSION
		"Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!!!\r\n\r\n",
		/* 18 bytes */
		LINE HOST UPGRADE CONNECTION VERSION
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAAAA\r\n\r\n",
		/* twice */
		REQUEST "Host: h\r\n\r\n",
		REQUEST "sec-websocket-key: " KEY "\r\n\r\n",
		REQUEST "X-Rsb-Auth: a\r\nX-Rsb-Auth: b\r\n\r\n",
		/* a body would be taken for frames */
		REQUEST "Content-Length: 0\r\n\r\n",
		REQUEST "Transfer-Encoding: chunked\r\n\r\n",
		/* lines */
		REQUEST "no colon\r\n\r\n",
		REQUEST ": no name\r\n\r\n",
		REQUEST "X-A : blank before the colon\r\n\r\n",
		REQUEST "X-A: a\r\n folded\r\n\r\n",
		REQUEST "X-A: bare\nX-B: line feed\r\n\r\n",
		REQUEST "X-A: bare\rX-B: return\r\n\r\n",
		REQUEST "X-A: \x7f\r\n\r\n",
		REQUEST "X-\xc3\xa4: not a token\r\n\r\n",
	};
	struct rsb_ws_upgrade upgrade = { .path = { .size = 77 } };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_msg(accept_str(cases[i], &upgrade) == -EPROTO, "case %zu", i);
	ck_assert_uint_eq(upgrade.path.size, 77);
}
END_TEST

START_TEST(refuses_a_nul_in_the_head)
{
	static const char request[] = REQUEST "X-A: a\0b\r\n\r\n";
	struct rsb_ws_upgrade upgrade;

	ck_assert_int_eq(
		rsb_ws_accept((struct rsb_bytes){ (const uint8_t *)request, sizeof(request) - 1 },
			&upgrade),
		-EPROTO);
}
END_TEST

START_TEST(refuses_responses_that_do_not_upgrade)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{ "nonsense\r\n\r\n", 0 },
		{ "HTTP/1.0 101 x\r\n\r\n", 0 },
		{ "HTTP/1.1 1o1 x\r\n\r\n", 0 },
		{ "HTTP/1.1 1:1 x\r\n\r\n", 0 },
		{ "HTTP/1.1 1011\r\n\r\n", 0 },
		{ "HTTP/1.1 401 Unauthorized\r\n\r\n", 401 },
		{ "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>", 502 },
		{ "HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		  "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
			200 },
		{ "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT
		  "\r\n\r\n",
			101 },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " ACCEPT
		  "\r\n\r\n",
			101 },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 101 },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		  "Sec-WebSocket-Accept: AAAALMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
			101 },
		{ RESPONSE "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", 101 },
		{ RESPONSE "Sec-WebSocket-Protocol: chat\r\n\r\n", 101 },
		{ RESPONSE "Upgrade: websocket\r\n\r\n", 0 },
		{ "HTTP/1.1 101 \x01\r\n\r\n", 0 },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		int status = 77;

		ck_assert_msg(response_str(cases[i].text, &status) == -EPROTO, "case %zu", i);
		ck_assert_int_eq(status, cases[i].status);
	}
}
END_TEST

START_TEST(gives_up_on_a_head_without_end)
{
	static char text[RSB_WS_HEADERS_MAX + 100];
	struct rsb_bytes in = { (const uint8_t *)text, RSB_WS_HEADERS_MAX - 1 };
	struct rsb_ws_upgrade upgrade;
	int status;

	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(rsb_ws_accept(in, &upgrade), 0);
	in.size++;
	ck_assert_int_eq(rsb_ws_accept(in, &upgrade), -EMSGSIZE);
	ck_assert_int_eq(rsb_ws_response(in, KEY, &status), -EMSGSIZE);
	/* An end beyond the maximum does not count. */
	memcpy(text + RSB_WS_HEADERS_MAX - 2, "\r\n\r\n", 4);
	in.size = sizeof(text);
	ck_assert_int_eq(rsb_ws_accept(in, &upgrade), -EMSGSIZE);
}
END_TEST

START_TEST(lets_nobody_smuggle_lines_into_a_request)
{
	static const struct {
		const char *host, *path, *name, *value;
	} cases[] = {
		{ "h\r\nX: y", "/", "A", "b" },
		{ "h", "/\r\n", "A", "b" },
		{ "h", "/a b", "A", "b" },
		{ "h", "/a\tb", "A", "b" },
		{ "h", "a", "A", "b" },
		{ "h", "", "A", "b" },
		{ "h", "/", "", "b" },
		{ "h", "/", "A:", "b" },
		{ "h", "/", "A\r\nB", "b" },
		{ "h", "/", "A", "b\r\nC: d" },
		{ "h", "/", "A", "b\x7f" },
	};
	struct rsb_buf out = { .max = 0 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		const struct rsb_ws_header header = { cases[i].name, cases[i].value };

		ck_assert_msg(rsb_ws_request(cases[i].host, cases[i].path, KEY, &header, 1, &out) ==
				      -EINVAL,
			"case %zu", i);
	}
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
}
END_TEST

START_TEST(says_when_the_buffer_is_too_small)
{
	const struct rsb_ws_header header = { "A", "b" };
	struct rsb_buf out = { .max = 0 };
	size_t size;

	ck_assert_int_eq(rsb_ws_request("h", "/", KEY, &header, 1, &out), 0);
	size = rsb_buf_len(&out);
	rsb_buf_done(&out);
	for (size_t max = 1; max < size; max++) {
		out = (struct rsb_buf){ .max = max };
		ck_assert_int_eq(rsb_ws_request("h", "/", KEY, &header, 1, &out), -EMSGSIZE);
		rsb_buf_done(&out);
	}
	out = (struct rsb_buf){ .max = 5 };
	ck_assert_int_eq(rsb_ws_accept_reply(rsb_bytes_str(KEY), &out), -EMSGSIZE);
	ck_assert_int_eq(rsb_ws_refuse(404, &out), -EMSGSIZE);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(refuses_a_key_of_another_length)
{
	struct rsb_buf out = { .max = 0 };
	int status;

	ck_assert_int_eq(rsb_ws_accept_reply(rsb_bytes_str("short"), &out), -EINVAL);
	ck_assert_int_eq(
		rsb_ws_response(rsb_bytes_str(RESPONSE "\r\n"), "short", &status), -EINVAL);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(refuses_in_http)
{
	static const int codes[] = { 400, 401, 404, 426, 431, 503, 599 };
	struct rsb_buf out = { .max = 0 };
	char start[16];
	int status;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(codes); i++) {
		struct rsb_bytes view;

		rsb_buf_clear(&out);
		ck_assert_int_eq(rsb_ws_refuse(codes[i], &out), 0);
		(void)snprintf(start, sizeof(start), "HTTP/1.1 %d ", codes[i]);
		view = rsb_buf_view(&out);
		ck_assert_mem_eq(view.data, start, strlen(start));
		ck_assert((memmem(view.data, view.size, "Sec-WebSocket-Version: 13", 25) != NULL) ==
			  (codes[i] == 426));
		ck_assert_int_eq(rsb_ws_response(view, KEY, &status), -EPROTO);
		ck_assert_int_eq(status, codes[i]);
	}
	rsb_buf_done(&out);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		makes_a_fresh_key_of_24_characters,
		upgrades_with_itself,
		waits_for_the_end_of_the_head,
		takes_other_spellings,
		refuses_requests_that_are_no_upgrade,
		refuses_a_nul_in_the_head,
		refuses_responses_that_do_not_upgrade,
		gives_up_on_a_head_without_end,
		lets_nobody_smuggle_lines_into_a_request,
		says_when_the_buffer_is_too_small,
		refuses_a_key_of_another_length,
		refuses_in_http,
	};

	return unit_run("ws-upgrade", tests, RSB_ARRAY_SIZE(tests));
}
