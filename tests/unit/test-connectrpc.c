/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "sidecar/envd/connectrpc.h"
#include "sidecar/envd/event.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

static struct rsb_bytes
bytes(const void *data, size_t size)
{
	return (struct rsb_bytes){ .data = data, .size = size };
}

static void
check_text(const struct rsb_buf *buf, const char *want)
{
	ck_assert_uint_eq(rsb_buf_len(buf), strlen(want));
	ck_assert_mem_eq(rsb_buf_head(buf), want, strlen(want));
}

START_TEST(writes_the_bytes_of_the_protocol)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { 0 };

	ck_assert_int_eq(rsb_connectrpc_end(&buf, RSB_CONNECTRPC_OK, NULL), 0);
	ck_assert_uint_eq(rsb_buf_len(&buf), 7);
	ck_assert_mem_eq(rsb_buf_head(&buf), "\x02\0\0\0\x02{}", 7);
	rsb_buf_clear(&buf);
	ck_assert_int_eq(
		rsb_connectrpc_frame(&buf, 0, rsb_bytes_str("{\"process\":{\"pid\":7}}")), 0);
	ck_assert_mem_eq(rsb_buf_head(&buf), "\0\0\0\0\x15{", 6);
	rsb_buf_clear(&buf);
	ck_assert_int_eq(rsb_connectrpc_error(&buf, RSB_CONNECTRPC_NOT_FOUND, "a\"b"), 0);
	check_text(&buf, "{\"code\":\"not_found\",\"message\":\"a\\\"b\"}");
	ck_assert_uint_eq(rsb_connectrpc_status(RSB_CONNECTRPC_NOT_FOUND), 404);
}
END_TEST

START_TEST(tells_an_error_whose_text_is_no_utf8)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { 0 };

	ck_assert_int_eq(rsb_connectrpc_error(&buf, RSB_CONNECTRPC_INTERNAL, "\xff"), 0);
	check_text(&buf, "{\"code\":\"internal\"}");
}
END_TEST

START_TEST(reads_messages_cut_anywhere)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf whole = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf in = { 0 };
	struct rsb_bytes message;
	size_t n_message = 0;
	uint8_t flags;

	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rsb_connectrpc_frame(&whole, 0, rsb_bytes_str("hello")), 0);
	ck_assert_int_eq(rsb_connectrpc_frame(&whole, RSB_CONNECTRPC_END, bytes("", 0)), 0);
	for (size_t i = 0; i < rsb_buf_len(&whole); i++) {
		ck_assert_int_eq(rsb_buf_append(&in, rsb_buf_head(&whole) + i, 1), 0);
		while (rsb_connectrpc_next(&in, &flags, &message) == 1) {
			n_message++;
			if (flags == 0)
				ck_assert_mem_eq(message.data, "hello", 5);
			rsb_buf_consume(&in, RSB_CONNECTRPC_HEAD + message.size);
		}
	}
	ck_assert_uint_eq(n_message, 4);
	ck_assert_uint_eq(rsb_buf_len(&in), 0);
	ck_assert_uint_eq(flags, RSB_CONNECTRPC_END);
}
END_TEST

START_TEST(refuses_sizes_and_flags_before_their_bytes)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf in = { 0 };
	struct rsb_bytes message;
	uint8_t flags;

	ck_assert_int_eq(rsb_buf_append(&in, "\0\xff\xff\xff\xff", 5), 0);
	ck_assert_int_eq(rsb_connectrpc_next(&in, &flags, &message), -EMSGSIZE);
	rsb_buf_clear(&in);
	ck_assert_int_eq(rsb_buf_append(&in, "\x01\0\0\0\x01x", 6), 0);
	ck_assert_int_eq(rsb_connectrpc_next(&in, &flags, &message), -EBADMSG);
}
END_TEST

struct end {
	int status; /* as of waitpid(2) */
	const char *want;
};

static const struct end ends[] = {
	{ 0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}" },
	{ 7 << 8, "{\"event\":{\"end\":{\"exitCode\":7,\"exited\":true,\"error\":\"exit status 7\","
		  "\"status\":\"exit status 7\"}}}" },
	{ 9, "{\"event\":{\"end\":{\"exitCode\":-1,\"error\":\"signal: killed\","
	     "\"status\":\"signal: killed\"}}}" },
	{ 15, "{\"event\":{\"end\":{\"exitCode\":-1,\"error\":\"signal: terminated\","
	      "\"status\":\"signal: terminated\"}}}" },
};

START_TEST(tells_how_a_process_ended)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(ends); i++) {
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { 0 };

		ck_assert_int_eq(rsb_event_end(&buf, ends[i].status), 0);
		rsb_buf_consume(&buf, RSB_CONNECTRPC_HEAD);
		check_text(&buf, ends[i].want);
	}
}
END_TEST

START_TEST(carries_bytes_as_base64)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { 0 };

	ck_assert_int_eq(rsb_event_data(&buf, RSB_EVENT_STDERR, bytes("\0\xff", 2)), 0);
	rsb_buf_consume(&buf, RSB_CONNECTRPC_HEAD);
	check_text(&buf, "{\"event\":{\"data\":{\"stderr\":\"AP8=\"}}}");
	rsb_buf_clear(&buf);
	ck_assert_int_eq(rsb_event_start(&buf, 42), 0);
	rsb_buf_consume(&buf, RSB_CONNECTRPC_HEAD);
	check_text(&buf, "{\"event\":{\"start\":{\"pid\":42}}}");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		writes_the_bytes_of_the_protocol,
		tells_an_error_whose_text_is_no_utf8,
		reads_messages_cut_anywhere,
		refuses_sizes_and_flags_before_their_bytes,
		tells_how_a_process_ended,
		carries_bytes_as_base64,
	};

	return unit_run("connectrpc", tests, RSB_ARRAY_SIZE(tests));
}
