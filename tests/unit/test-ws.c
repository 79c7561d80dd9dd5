/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/ws.h"
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

/* One end, its input and what it answers. */
struct end {
	struct rsb_ws ws;
	struct rsb_buf in;
	struct rsb_buf out;
};

static void
begin(struct end *e, enum rsb_ws_role role)
{
	memset(e, 0, sizeof(*e));
	ck_assert_int_eq(rsb_ws_init(&e->ws, role), 0);
}

static void
end(struct end *e)
{
	rsb_ws_done(&e->ws);
	rsb_buf_done(&e->in);
	rsb_buf_done(&e->out);
}

static void
feed(struct end *e, struct rsb_bytes bytes)
{
	ck_assert_int_eq(rsb_buf_append(&e->in, bytes.data, bytes.size), 0);
}

/* A frame as a client sends it: mask 0x11223344. */
static void
feed_masked(struct end *e, uint8_t first, struct rsb_bytes payload)
{
	static const uint8_t mask[] = { 0x11, 0x22, 0x33, 0x44 };
	uint8_t *p;

	ck_assert_int_eq(rsb_buf_reserve(&e->in, 14 + payload.size, &p), 0);
	p[0] = first;
	if (payload.size < 126) {
		p[1] = (uint8_t)(0x80 | payload.size);
		p += 2;
		rsb_buf_commit(&e->in, 6 + payload.size);
	} else {
		p[1] = 0x80 | 126;
		p[2] = (uint8_t)(payload.size >> 8);
		p[3] = (uint8_t)payload.size;
		p += 4;
		rsb_buf_commit(&e->in, 8 + payload.size);
	}
	memcpy(p, mask, 4);
	for (size_t i = 0; i < payload.size; i++)
		p[4 + i] = payload.data[i] ^ mask[i % 4];
}

static int
input(struct end *e, struct rsb_bytes *ret_msg, size_t *ret_used)
{
	return rsb_ws_input(&e->ws, &e->in, &e->out, ret_msg, ret_used);
}

/* The whole input of a fresh end, which must be refused with this error and this close code. */
static void
ck_assert_refused(enum rsb_ws_role role, struct rsb_bytes bytes, int r, unsigned int code)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, role);
	feed(&e, bytes);
	ck_assert_int_eq(input(&e, &msg, &used), r);
	if (role == RSB_WS_SERVER)
		ck_assert(bytes_equal(
			rsb_buf_view(&e.out), BYTES(0x88, 2, (uint8_t)(code >> 8), (uint8_t)code)));
	else
		ck_assert_uint_eq(rsb_buf_len(&e.out), 8);
	ck_assert_int_eq(
		rsb_ws_send(&e.ws, msg = (struct rsb_bytes){ .size = 0 }, &e.out), -ENOTCONN);
	end(&e);
}

static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 124, 125, 126, 127, 1000,
	65534, 65535, 65536 };

/* Sends from one end to the other in pieces of step bytes. */
static void
carry(enum rsb_ws_role role, size_t size, size_t step)
{
	const enum rsb_ws_role peer = role == RSB_WS_CLIENT ? RSB_WS_SERVER : RSB_WS_CLIENT;
	uint8_t *payload = malloc(size + 1);
	struct rsb_bytes msg, wire;
	struct end a, b;
	size_t used;
	int r = 0;

	begin(&a, role);
	begin(&b, peer);
	for (size_t i = 0; i < size; i++)
		payload[i] = (uint8_t)(i * 7 + i / 256);
	ck_assert_int_eq(rsb_ws_send(&a.ws, (struct rsb_bytes){ payload, size }, &a.out), 0);
	wire = rsb_buf_view(&a.out);
	for (size_t at = 0; at < wire.size; at += step) {
		ck_assert_int_eq(r, 0);
		feed(&b, (struct rsb_bytes){ wire.data + at, rsb_min(step, wire.size - at) });
		r = input(&b, &msg, &used);
		ck_assert_int_ge(r, 0);
	}
	ck_assert_int_eq(r, 1);
	ck_assert_uint_eq(used, wire.size);
	ck_assert(bytes_equal(msg, (struct rsb_bytes){ payload, size }));
	ck_assert_uint_eq(rsb_buf_len(&b.out), 0);
	end(&a);
	end(&b);
	free(payload);
}

START_TEST(carries_messages_of_every_length_both_ways)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(sizes); i++) {
		carry(RSB_WS_CLIENT, sizes[i], SIZE_MAX);
		carry(RSB_WS_SERVER, sizes[i], SIZE_MAX);
		carry(RSB_WS_CLIENT, sizes[i], 1 + sizes[i] / 37);
		carry(RSB_WS_SERVER, sizes[i], 1 + sizes[i] / 37);
	}
}
END_TEST

START_TEST(gives_one_message_at_a_time)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x82, rsb_bytes_str("one"));
	feed_masked(&e, 0x82, rsb_bytes_str("two"));
	ck_assert_int_eq(input(&e, &msg, &used), 1);
	ck_assert(bytes_equal(msg, rsb_bytes_str("one")));
	rsb_buf_consume(&e.in, used);
	ck_assert_int_eq(input(&e, &msg, &used), 1);
	ck_assert(bytes_equal(msg, rsb_bytes_str("two")));
	rsb_buf_consume(&e.in, used);
	ck_assert_int_eq(input(&e, &msg, &used), 0);
	ck_assert_uint_eq(used, 0);
	end(&e);
}
END_TEST

START_TEST(masks_each_message_anew)
{
	struct rsb_bytes first, second;
	struct end e;
	int differ = 0;

	begin(&e, RSB_WS_CLIENT);
	for (int i = 0; i < 3 * RSB_WS_MASKS; i++) {
		rsb_buf_clear(&e.out);
		ck_assert_int_eq(rsb_ws_send(&e.ws, rsb_bytes_str("same"), &e.out), 0);
		ck_assert_int_eq(rsb_ws_send(&e.ws, rsb_bytes_str("same"), &e.out), 0);
		first = rsb_buf_view(&e.out);
		ck_assert_uint_eq(first.size, 20);
		second = (struct rsb_bytes){ first.data + 12, 4 };
		first = (struct rsb_bytes){ first.data + 2, 4 };
		differ += !bytes_equal(first, second);
	}
	ck_assert_int_ge(differ, 3 * RSB_WS_MASKS - 1);
	end(&e);
}
END_TEST

START_TEST(refuses_missing_and_unwanted_masks)
{
	ck_assert_refused(RSB_WS_SERVER, BYTES(0x82, 0x01, 'x'), -EPROTO, 1002);
	ck_assert_refused(RSB_WS_CLIENT, BYTES(0x82, 0x81, 0, 0, 0, 0, 'x'), -EPROTO, 1002);
	/* At once: not only when the payload is there. */
	ck_assert_refused(RSB_WS_SERVER, BYTES(0x82, 0x7e), -EPROTO, 1002);
}
END_TEST

START_TEST(refuses_reserved_bits_and_opcodes)
{
	for (unsigned int first = 0; first < 256; first++) {
		const unsigned int opcode = first & 15;
		const bool known = opcode <= 2 || (opcode >= 8 && opcode <= 10);

		if ((first & 0x70) != 0 || !known)
			ck_assert_refused(RSB_WS_SERVER, BYTES((uint8_t)first, 0x80, 0, 0, 0, 0),
				-EPROTO, 1002);
	}
}
END_TEST

START_TEST(refuses_lengths_that_are_not_minimal)
{
	ck_assert_refused(RSB_WS_SERVER, BYTES(0x82, 0xfe, 0, 125), -EPROTO, 1002);
	ck_assert_refused(RSB_WS_SERVER, BYTES(0x82, 0xfe, 0, 0), -EPROTO, 1002);
	ck_assert_refused(
		RSB_WS_SERVER, BYTES(0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff), -EPROTO, 1002);
	ck_assert_refused(RSB_WS_CLIENT, BYTES(0x82, 0x7e, 0, 1), -EPROTO, 1002);
}
END_TEST

START_TEST(refuses_payloads_over_the_maximum)
{
	struct rsb_bytes msg = { .size = RSB_FRAME_MAX + 1 };
	struct end e;

	ck_assert_refused(
		RSB_WS_SERVER, BYTES(0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1), -EMSGSIZE, 1009);
	ck_assert_refused(
		RSB_WS_SERVER, BYTES(0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0), -EMSGSIZE, 1009);
	ck_assert_refused(RSB_WS_SERVER,
		BYTES(0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), -EMSGSIZE, 1009);
	begin(&e, RSB_WS_CLIENT);
	ck_assert_int_eq(rsb_ws_send(&e.ws, msg, &e.out), -EMSGSIZE);
	end(&e);
}
END_TEST

START_TEST(refuses_long_and_fragmented_control_frames)
{
	const uint8_t control[] = { 0x88, 0x89, 0x8a };

	for (size_t i = 0; i < sizeof(control); i++) {
		ck_assert_refused(RSB_WS_SERVER, BYTES(control[i], 0xfe), -EPROTO, 1002);
		ck_assert_refused(RSB_WS_SERVER, BYTES(control[i], 0xff), -EPROTO, 1002);
		ck_assert_refused(
			RSB_WS_SERVER, BYTES((uint8_t)(control[i] & 0x7f), 0x80), -EPROTO, 1002);
	}
}
END_TEST

START_TEST(refuses_text)
{
	ck_assert_refused(RSB_WS_SERVER, BYTES(0x81, 0x80, 0, 0, 0, 0), -EBADMSG, 1003);
	ck_assert_refused(RSB_WS_CLIENT, BYTES(0x01, 0x01, 'x'), -EBADMSG, 1003);
}
END_TEST

START_TEST(joins_fragments_around_control_frames)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x02, rsb_bytes_str("ab"));
	feed_masked(&e, 0x89, rsb_bytes_str("?"));
	feed_masked(&e, 0x00, rsb_bytes_str(""));
	ck_assert_int_eq(input(&e, &msg, &used), 0);
	ck_assert_uint_eq(used, rsb_buf_len(&e.in));
	rsb_buf_consume(&e.in, used);
	ck_assert(bytes_equal(rsb_buf_view(&e.out), BYTES(0x8a, 1, '?')));
	feed_masked(&e, 0x80, rsb_bytes_str("cd"));
	feed_masked(&e, 0x82, rsb_bytes_str("next"));
	ck_assert_int_eq(input(&e, &msg, &used), 1);
	ck_assert(bytes_equal(msg, rsb_bytes_str("abcd")));
	rsb_buf_consume(&e.in, used);
	ck_assert_int_eq(input(&e, &msg, &used), 1);
	ck_assert(bytes_equal(msg, rsb_bytes_str("next")));
	rsb_buf_consume(&e.in, used);
	/* Nothing of the first is left. */
	feed_masked(&e, 0x02, rsb_bytes_str("e"));
	feed_masked(&e, 0x80, rsb_bytes_str("f"));
	ck_assert_int_eq(input(&e, &msg, &used), 1);
	ck_assert(bytes_equal(msg, rsb_bytes_str("ef")));
	end(&e);
}
END_TEST

START_TEST(refuses_fragments_out_of_turn)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	ck_assert_refused(RSB_WS_SERVER, BYTES(0x80, 0x80, 0, 0, 0, 0), -EPROTO, 1002);
	ck_assert_refused(RSB_WS_SERVER, BYTES(0x00, 0x80, 0, 0, 0, 0), -EPROTO, 1002);
	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x02, rsb_bytes_str("ab"));
	feed_masked(&e, 0x82, rsb_bytes_str("cd"));
	ck_assert_int_eq(input(&e, &msg, &used), -EPROTO);
	end(&e);
}
END_TEST

START_TEST(refuses_fragments_that_are_too_long_together)
{
	static uint8_t half[RSB_FRAME_MAX / 2];
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x02, (struct rsb_bytes){ half, sizeof(half) });
	feed_masked(&e, 0x00, (struct rsb_bytes){ half, sizeof(half) });
	ck_assert_int_eq(input(&e, &msg, &used), 0);
	rsb_buf_consume(&e.in, used);
	feed_masked(&e, 0x80, rsb_bytes_str("x"));
	ck_assert_int_eq(input(&e, &msg, &used), -EMSGSIZE);
	ck_assert(bytes_equal(rsb_buf_view(&e.out), BYTES(0x88, 2, 1009 >> 8, 1009 & 255)));
	end(&e);
}
END_TEST

START_TEST(answers_pings_and_ignores_pongs)
{
	uint8_t longest[125];
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	memset(longest, 'p', sizeof(longest));
	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x8a, rsb_bytes_str("unasked"));
	feed_masked(&e, 0x89, (struct rsb_bytes){ longest, sizeof(longest) });
	ck_assert_int_eq(input(&e, &msg, &used), 0);
	ck_assert_uint_eq(used, rsb_buf_len(&e.in));
	ck_assert_uint_eq(rsb_buf_len(&e.out), 127);
	ck_assert_uint_eq(rsb_buf_head(&e.out)[0], 0x8a);
	ck_assert_mem_eq(rsb_buf_head(&e.out) + 2, longest, sizeof(longest));
	end(&e);

	begin(&e, RSB_WS_CLIENT);
	feed(&e, BYTES(0x89, 0x00));
	ck_assert_int_eq(input(&e, &msg, &used), 0);
	ck_assert_uint_eq(rsb_buf_len(&e.out), 6);
	ck_assert_uint_eq(rsb_buf_head(&e.out)[1], 0x80);
	end(&e);
}
END_TEST

START_TEST(answers_a_close_once_with_its_code)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x88, BYTES(3001 >> 8, 3001 & 255, 'b', 'y', 'e'));
	ck_assert_int_eq(input(&e, &msg, &used), -ECONNRESET);
	ck_assert(bytes_equal(rsb_buf_view(&e.out), BYTES(0x88, 2, 3001 >> 8, 3001 & 255)));
	/* Whatever comes behind it is not looked at. */
	ck_assert_int_eq(input(&e, &msg, &used), -ECONNRESET);
	ck_assert_uint_eq(rsb_buf_len(&e.out), 4);
	end(&e);

	begin(&e, RSB_WS_SERVER);
	feed_masked(&e, 0x88, rsb_bytes_str(""));
	ck_assert_int_eq(input(&e, &msg, &used), -ECONNRESET);
	ck_assert(bytes_equal(rsb_buf_view(&e.out), BYTES(0x88, 2, 1000 >> 8, 1000 & 255)));
	end(&e);
}
END_TEST

START_TEST(closes_first_and_still_takes_what_is_under_way)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, RSB_WS_SERVER);
	ck_assert_int_eq(rsb_ws_close(&e.ws, 1001, &e.out), 0);
	ck_assert_int_eq(rsb_ws_close(&e.ws, 1001, &e.out), 0);
	ck_assert_int_eq(rsb_ws_send(&e.ws, rsb_bytes_str("late"), &e.out), -ENOTCONN);
	feed_masked(&e, 0x82, rsb_bytes_str("last"));
	feed_masked(&e, 0x89, rsb_bytes_str("no answer"));
	feed_masked(&e, 0x88, BYTES(1001 >> 8, 1001 & 255));
	ck_assert_int_eq(input(&e, &msg, &used), 1);
	ck_assert(bytes_equal(msg, rsb_bytes_str("last")));
	rsb_buf_consume(&e.in, used);
	ck_assert_int_eq(input(&e, &msg, &used), -ECONNRESET);
	ck_assert(bytes_equal(rsb_buf_view(&e.out), BYTES(0x88, 2, 1001 >> 8, 1001 & 255)));
	end(&e);
}
END_TEST

START_TEST(refuses_close_codes_that_are_never_sent)
{
	static const struct {
		unsigned int code;
		bool legal;
	} cases[] = { { 0, false }, { 999, false }, { 1000, true }, { 1003, true }, { 1004, false },
		{ 1005, false }, { 1006, false }, { 1007, true }, { 1011, true }, { 1014, true },
		{ 1015, false }, { 1016, false }, { 2999, false }, { 3000, true }, { 4999, true },
		{ 5000, false }, { 65535, false } };

	ck_assert_refused(RSB_WS_SERVER, BYTES(0x88, 0x81, 0, 0, 0, 0, 3), -EPROTO, 1002);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		const uint8_t hi = (uint8_t)(cases[i].code >> 8), lo = (uint8_t)cases[i].code;

		ck_assert_refused(RSB_WS_SERVER, BYTES(0x88, 0x82, 0, 0, 0, 0, hi, lo),
			cases[i].legal ? -ECONNRESET : -EPROTO,
			cases[i].legal ? cases[i].code : 1002);
	}
}
END_TEST

START_TEST(waits_for_the_rest_of_every_truncation)
{
	struct rsb_bytes msg, whole;
	struct end full, e;
	size_t used;

	begin(&full, RSB_WS_SERVER);
	feed_masked(&full, 0x82,
		rsb_bytes_str(
			"a message that is longer than 125 bytes, so that "
			"its length takes two bytes more: 0123456789012345678901234567890123456789012345678901"
			"0123456789"));
	whole = rsb_buf_view(&full.in);
	for (size_t size = 0; size < whole.size; size++) {
		begin(&e, RSB_WS_SERVER);
		feed(&e, (struct rsb_bytes){ whole.data, size });
		ck_assert_int_eq(input(&e, &msg, &used), 0);
		ck_assert_uint_eq(used, 0);
		ck_assert_uint_eq(rsb_buf_len(&e.out), 0);
		end(&e);
	}
	end(&full);
}
END_TEST

START_TEST(passes_on_that_something_is_missing)
{
	struct rsb_bytes msg;
	struct end e;
	size_t used;

	begin(&e, RSB_WS_CLIENT);
	no_random = true;
	ck_assert_int_eq(rsb_ws_send(&e.ws, rsb_bytes_str("x"), &e.out), -EIO);
	ck_assert_int_eq(rsb_ws_close(&e.ws, 1000, &e.out), -EIO);
	feed(&e, BYTES(0x88, 0x00));
	ck_assert_int_eq(input(&e, &msg, &used), -EIO);
	no_random = false;
	ck_assert_uint_eq(rsb_buf_len(&e.out), 0);
	end(&e);

	/* No room for the close frame: the error of that comes back. */
	begin(&e, RSB_WS_SERVER);
	e.out.max = 1;
	feed(&e, BYTES(0x82, 0x00));
	ck_assert_int_eq(input(&e, &msg, &used), -EMSGSIZE);
	end(&e);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		carries_messages_of_every_length_both_ways,
		gives_one_message_at_a_time,
		masks_each_message_anew,
		refuses_missing_and_unwanted_masks,
		refuses_reserved_bits_and_opcodes,
		refuses_lengths_that_are_not_minimal,
		refuses_payloads_over_the_maximum,
		refuses_long_and_fragmented_control_frames,
		refuses_text,
		joins_fragments_around_control_frames,
		refuses_fragments_out_of_turn,
		refuses_fragments_that_are_too_long_together,
		answers_pings_and_ignores_pongs,
		answers_a_close_once_with_its_code,
		closes_first_and_still_takes_what_is_under_way,
		refuses_close_codes_that_are_never_sent,
		waits_for_the_rest_of_every_truncation,
		passes_on_that_something_is_missing,
	};

	return unit_run("ws", tests, RSB_ARRAY_SIZE(tests));
}
