/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "sidecar/local/head.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

static const char good[] = "HTTP/1.1 101 Switching Protocols\r\n"
			   "Upgrade: websocket\r\n"
			   "X-Empty:\r\n"
			   "connection:  Upgrade\r\n\r\n";

START_TEST(reads_a_head_that_comes_byte_by_byte)
{
	RSB_CLEANUP(rsb_head_done) struct rsb_head head = { 0 };

	for (size_t n = 0; n < sizeof(good) - 1; n++)
		ck_assert_int_eq(
			rsb_head_parse((struct rsb_bytes){ (const uint8_t *)good, n }, &head), 0);
	/* What follows is not looked at. */
	ck_assert_int_eq(
		rsb_head_parse((struct rsb_bytes){ (const uint8_t *)good, sizeof(good) }, &head),
		1);
	ck_assert_uint_eq(head.size, sizeof(good) - 1);
	ck_assert_uint_eq(head.status, 101);
	ck_assert_uint_eq(head.n_line, 3);
	ck_assert_str_eq(rsb_head_get(&head, "UPGRADE"), "websocket");
	ck_assert_str_eq(rsb_head_get(&head, "Connection"), "Upgrade");
	ck_assert_str_eq(rsb_head_get(&head, "x-empty"), "");
	ck_assert_ptr_null(rsb_head_get(&head, "Nothing"));
}
END_TEST

static const char *const bad[] = {
	"\r\n\r\n",
	"HTTP/1.0 101 x\r\n\r\n",
	"HTTP/2 101 x\r\n\r\n",
	"HTTP/1.1 1x1 x\r\n\r\n",
	"HTTP/1.1 1010 x\r\n\r\n",
	"HTTP/1.1 099 x\r\n\r\n",
	"HTTP/1.1 600 x\r\n\r\n",
	"ICY 200 OK\r\n\r\n",
	"HTTP/1.1 101 x\r\nno colon\r\n\r\n",
	"HTTP/1.1 101 x\r\n: no name\r\n\r\n",
	"HTTP/1.1 101 x\r\nbad name: x\r\n\r\n",
	"HTTP/1.1 101 x\r\n folded: x\r\n\r\n",
	"HTTP/1.1 101 x\r\nA: b\nInjected: c\r\n\r\n",
	"HTTP/1.1 101 x\r\nA: b\rc\r\n\r\n",
	"HTTP/1.1 101 x\r\nA: \x01\r\n\r\n",
	"HTTP/1.1 101 x\r\nA: \x7f\r\n\r\n",
};

START_TEST(refuses_what_is_no_head)
{
	struct rsb_head head = { 0 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(rsb_head_parse(rsb_bytes_str(bad[i]), &head), -EBADMSG);
		ck_assert_ptr_null(head.text);
	}
}
END_TEST

START_TEST(refuses_more_than_its_limits)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { 0 };
	struct rsb_head head = { 0 };

	ck_assert_int_eq(rsb_buf_printf(&buf, "HTTP/1.1 101 x\r\n"), 0);
	for (unsigned int i = 0; i <= RSB_HEAD_LINES_MAX; i++)
		ck_assert_int_eq(rsb_buf_printf(&buf, "A: b\r\n"), 0);
	ck_assert_int_eq(rsb_buf_printf(&buf, "\r\n"), 0);
	ck_assert_int_eq(rsb_head_parse(rsb_buf_view(&buf), &head), -EBADMSG);
	rsb_buf_clear(&buf);
	while (rsb_buf_len(&buf) < RSB_HEAD_MAX)
		ck_assert_int_eq(rsb_buf_append(&buf, "x", 1), 0);
	ck_assert_int_eq(rsb_head_parse(rsb_buf_view(&buf), &head), -EBADMSG);
}
END_TEST

START_TEST(refuses_a_nul)
{
	static const char text[] = "HTTP/1.1 101 x\r\nA: b\0c\r\n\r\n";
	struct rsb_head head = { 0 };

	ck_assert_int_eq(
		rsb_head_parse(
			(struct rsb_bytes){ (const uint8_t *)text, sizeof(text) - 1 }, &head),
		-EBADMSG);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_a_head_that_comes_byte_by_byte,
		refuses_what_is_no_head,
		refuses_more_than_its_limits,
		refuses_a_nul,
	};

	return unit_run("head", tests, RSB_ARRAY_SIZE(tests));
}
