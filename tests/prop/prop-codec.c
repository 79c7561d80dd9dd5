/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/version.h"
#include "tests/prop/message.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

static struct rng rng;

/* A random message of desc as it goes over the wire, in storage of just its size. */
static struct rsb_bytes
random_wire(const struct rsb_message_desc *desc, bool long_lists)
{
	void *msg = malloc(desc->size);
	struct rsb_buf out = { .max = 0 };
	struct pool pool = { .n = 0 };
	struct rsb_bytes wire;

	message_random(desc, &rng, long_lists, &pool, msg);
	ck_assert_int_eq(rsb_codec_encode(desc, msg, RSB_PROTO_VERSION, &out), 0);
	wire = bytes_cut(rsb_buf_view(&out), rsb_buf_len(&out));
	rsb_buf_done(&out);
	pool_done(&pool);
	free(msg);
	return wire;
}

static void
check_round_trip(const struct rsb_message_desc *desc)
{
	void *msg = malloc(desc->size);
	void *back = malloc(desc->size);
	struct rsb_buf out = { .max = 0 };
	struct pool pool = { .n = 0 };
	struct rsb_bytes wire;

	message_random(desc, &rng, true, &pool, msg);
	ck_assert_int_eq(rsb_codec_encode(desc, msg, RSB_PROTO_VERSION, &out), 0);
	wire = bytes_cut(rsb_buf_view(&out), rsb_buf_len(&out));
	ck_assert_msg(rsb_codec_decode(desc, wire, back) == 0, "%s", desc->name);
	ck_assert_msg(message_equal(desc, msg, back), "%s", desc->name);
	ck_assert(message_settles(desc, wire));
	bytes_free(wire);
	rsb_buf_done(&out);
	pool_done(&pool);
	free(msg);
	free(back);
}

START_TEST(every_message_comes_back_as_it_was)
{
	for (size_t m = 0; rsb_messages[m]; m++)
		for (int i = 0; i < 60; i++)
			check_round_trip(rsb_messages[m]);
}
END_TEST

START_TEST(every_call_comes_back_as_it_was)
{
	for (uint32_t op = 1; op <= RSB_OP_NUMBER_MAX; op++) {
		struct rsb_buf out = { .max = 0 };
		struct pool pool = { .n = 0 };
		struct rsb_call_head head;
		void *req, *back;
		uint64_t id, after;

		if (!rsb_ops[op].name)
			continue;
		req = malloc(rsb_ops[op].req->size);
		back = malloc(rsb_ops[op].req->size);
		id = rng_magnitude(&rng) | 1;
		after = rng_magnitude(&rng);
		message_random(rsb_ops[op].req, &rng, false, &pool, req);
		ck_assert_int_eq(rsb_codec_request(op, id, after, req, RSB_PROTO_VERSION, &out), 0);
		ck_assert_int_eq(rsb_codec_head(rsb_buf_view(&out), &head), 0);
		ck_assert_uint_eq(head.op, op);
		ck_assert_uint_eq(head.id, id);
		ck_assert_uint_eq(head.after, after);
		ck_assert_int_eq(rsb_codec_decode(rsb_ops[op].req, head.body, back), 0);
		ck_assert(message_equal(rsb_ops[op].req, req, back));
		free(req);
		free(back);
		pool_done(&pool);
		rsb_buf_done(&out);
	}
}
END_TEST

/*
 * Whatever is accepted of it must mean the same after another trip; a crash is the sanitizers' to
 * see.
 */
static size_t
try(const struct rsb_message_desc *desc, const uint8_t *data, size_t size)
{
	struct rsb_bytes in = bytes_cut((struct rsb_bytes){ data, size }, size);
	const bool accepted = message_settles(desc, in);

	bytes_free(in);
	return accepted;
}

static size_t
flip_bits(const struct rsb_message_desc *desc, struct rsb_bytes wire)
{
	uint8_t *data = (uint8_t *)(uintptr_t)wire.data;
	size_t n = 0;

	for (size_t bit = 0; bit < 8 * wire.size; bit++) {
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		n += try(desc, data, wire.size);
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	return n;
}

/* Heads that promise more than there is, at every place. */
static size_t
inflate_counts(const struct rsb_message_desc *desc, struct rsb_bytes wire)
{
	static const struct {
		uint8_t data[5];
		uint8_t size;
	} heads[] = { { { 0x9f }, 1 }, { { 0xdc, 0xff, 0xff }, 3 },
		{ { 0xdd, 0xff, 0xff, 0xff, 0xff }, 5 }, { { 0xbf }, 1 }, { { 0xc4, 0xff }, 2 },
		{ { 0xc6, 0xff, 0xff, 0xff, 0xff }, 5 }, { { 0xdf, 0x80, 0, 0, 0 }, 5 } };
	uint8_t *data = malloc(wire.size + 5);
	size_t n = 0;

	for (size_t at = 0; at < wire.size; at++) {
		for (size_t h = 0; h < RSB_ARRAY_SIZE(heads); h++) {
			memcpy(data, wire.data, at);
			memcpy(data + at, heads[h].data, heads[h].size);
			memcpy(data + at + heads[h].size, wire.data + at + 1, wire.size - at - 1);
			n += try(desc, data, wire.size - 1 + heads[h].size);
		}
	}
	free(data);
	return n;
}

START_TEST(mutated_messages_are_refused_or_mean_the_same_twice)
{
	for (size_t m = 0; rsb_messages[m]; m++) {
		for (int i = 0; i < 3; i++) {
			struct rsb_bytes wire = random_wire(rsb_messages[m], false);

			wire.size = rsb_min(wire.size, (size_t)500);
			flip_bits(rsb_messages[m], wire);
			inflate_counts(rsb_messages[m], wire);
			bytes_free(wire);
		}
	}
}
END_TEST

START_TEST(no_truncation_is_accepted)
{
	for (size_t m = 0; rsb_messages[m]; m++) {
		struct rsb_bytes wire = random_wire(rsb_messages[m], false);
		const size_t step = 1 + wire.size / 1000;

		for (size_t size = 0; size < wire.size; size += step)
			ck_assert_uint_eq(try(rsb_messages[m], wire.data, size), 0);
		bytes_free(wire);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_message_comes_back_as_it_was,
		every_call_comes_back_as_it_was,
		mutated_messages_are_refused_or_mean_the_same_twice,
		no_truncation_is_accepted,
	};

	rng_init(&rng);
	return unit_run("codec", tests, RSB_ARRAY_SIZE(tests));
}
