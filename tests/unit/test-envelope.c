/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "proto/codec.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* The arrays around requests and replies, proto/codec.c's other half. */

START_TEST(brings_back_a_request)
{
	const struct rsb_lookup_req req = {
		.parent = { .id = 1 }, .name = rsb_bytes_str("etc"), .id = 7
	};
	struct rsb_buf out = { .max = 0 };
	struct rsb_call_head head;
	struct rsb_lookup_req back;

	ck_assert_int_eq(rsb_codec_request(RSB_OP_lookup, 5, 3, &req, 1, &out), 0);
	ck_assert_int_eq(rsb_codec_head(rsb_buf_view(&out), &head), 0);
	ck_assert_uint_eq(head.op, RSB_OP_lookup);
	ck_assert_uint_eq(head.id, 5);
	ck_assert_uint_eq(head.after, 3);
	ck_assert_int_eq(head.error, 0);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_lookup_req, head.body, &back), 0);
	ck_assert_uint_eq(back.id, 7);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(brings_back_a_reply_and_an_error)
{
	const struct rsb_lseek_rep rep = { .offset = 99 };
	struct rsb_buf out = { .max = 0 };
	struct rsb_call_head head;
	struct rsb_lseek_rep back;

	ck_assert_int_eq(rsb_codec_reply(RSB_OP_lseek, 5, 0, &rep, 1, &out), 0);
	ck_assert_int_eq(rsb_codec_head(rsb_buf_view(&out), &head), 0);
	ck_assert_uint_eq(head.op, 0);
	ck_assert_uint_eq(head.id, 5);
	ck_assert_int_eq(head.error, 0);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_lseek_rep, head.body, &back), 0);
	ck_assert_uint_eq(back.offset, 99);

	rsb_buf_clear(&out);
	ck_assert_int_eq(rsb_codec_reply(RSB_OP_lseek, 6, -ENXIO, &rep, 1, &out), 0);
	ck_assert_int_eq(rsb_codec_head(rsb_buf_view(&out), &head), 0);
	ck_assert_int_eq(head.error, -ENXIO);
	ck_assert_uint_eq(head.body.size, 0);

	/* Nothing to say. */
	rsb_buf_clear(&out);
	ck_assert_int_eq(rsb_codec_reply(RSB_OP_forget, 6, 0, NULL, 1, &out), 0);
	ck_assert_int_eq(rsb_codec_head(rsb_buf_view(&out), &head), 0);
	ck_assert_uint_eq(head.body.size, 1);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(passes_through_an_op_that_it_does_not_know)
{
	struct rsb_buf out = { .max = 0 };
	struct rsb_call_head head;

	ck_assert_int_eq(rsb_codec_head(BYTES(0x94, 126, 5, 0, 0xc1), &head), 0);
	ck_assert_uint_eq(head.op, 126);
	ck_assert_int_eq(
		rsb_codec_head(BYTES(0x94, 0xce, 0xff, 0xff, 0xff, 0xff, 5, 0, 0x90), &head), 0);
	ck_assert_uint_eq(head.op, UINT32_MAX);
	/* It can be answered, but not asked. */
	ck_assert_int_eq(rsb_codec_reply(head.op, 5, -EOPNOTSUPP, NULL, 1, &out), 0);
	ck_assert_int_eq(rsb_codec_reply(head.op, 5, 0, NULL, 1, &out), -EINVAL);
	ck_assert_int_eq(rsb_codec_request(126, 5, 0, NULL, 1, &out), -EINVAL);
	ck_assert_int_eq(rsb_codec_request(UINT32_MAX, 5, 0, NULL, 1, &out), -EINVAL);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(sends_no_op_that_is_newer_than_the_version)
{
	struct rsb_buf out = { .max = 0 };

	ck_assert_int_eq(rsb_codec_request(RSB_OP_statfs, 5, 0, NULL, 0, &out), -EOPNOTSUPP);
	ck_assert_int_eq(rsb_codec_request(RSB_OP_statfs, 5, 0, NULL, 1, &out), 0);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(refuses_malformed_envelopes)
{
	const struct rsb_bytes cases[] = {
		BYTES(0x90),
		BYTES(0x01),
		BYTES(0x91, 1),
		BYTES(0x92, 1, 2),
		BYTES(0x93, 1, 2, 3),          /* request without its body */
		BYTES(0x93, 0, 2, 0),          /* reply of success without */
		BYTES(0x94, 1, 2, 3),          /* cut before the body */
		BYTES(0x94, 1, 0, 3, 0x90),    /* id 0 */
		BYTES(0x94, 0xff, 2, 3, 0x90), /* op -1 */
		BYTES(0x94, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 2, 3, 0x90), /* op over 32 bits */
		BYTES(0x94, 1, 0xa0, 3, 0x90),
		BYTES(0x94, 1, 2, 0xc0, 0x90),
		BYTES(0x93, 0, 2, 5, 0x90),       /* more than it counts */
		BYTES(0x95, 1, 2, 3, 0x90, 0xc1), /* no value in what is skipped */
		BYTES(0x95, 1, 2, 3, 0xc1, 0x90),
		BYTES(0x95, 1, 2, 3, 0x90, 0x90, 0x90),
	};
	struct rsb_call_head head = { .op = 77 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		ck_assert_msg(rsb_codec_head(cases[i], &head) == -EBADMSG, "case %zu", i);
		ck_assert_uint_eq(head.op, 77);
	}
}
END_TEST

START_TEST(skips_what_a_later_version_adds_to_the_envelope)
{
	struct rsb_call_head head;

	ck_assert_int_eq(rsb_codec_head(BYTES(0x95, 1, 2, 3, 0x91, 9, 0xa1, 'x'), &head), 0);
	ck_assert(bytes_equal(head.body, BYTES(0x91, 9)));
	/* What stands behind an error does not count. */
	ck_assert_int_eq(rsb_codec_head(BYTES(0x94, 0, 2, 5, 0x90), &head), 0);
	ck_assert_int_eq(head.error, -EIO);
	ck_assert_uint_eq(head.body.size, 0);
}
END_TEST

START_TEST(does_not_encode_a_call_without_id)
{
	struct rsb_buf out = { .max = 0 };

	ck_assert_int_eq(rsb_codec_request(RSB_OP_statfs, 0, 0, NULL, 1, &out), -EINVAL);
	ck_assert_int_eq(rsb_codec_reply(RSB_OP_statfs, 0, -EIO, NULL, 1, &out), -EINVAL);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
}
END_TEST

START_TEST(leaves_the_buffer_alone_when_an_envelope_does_not_fit)
{
	const struct rsb_fh_req req = { .fh = 300 };
	struct rsb_call_head head;
	size_t max;
	int r = -1;

	for (max = 1; r < 0; max++) {
		struct rsb_buf out = { .max = max };

		r = rsb_codec_request(RSB_OP_release, UINT64_MAX, 1000, &req, 1, &out);
		ck_assert(r == 0 || r == -EMSGSIZE);
		if (r < 0)
			ck_assert_uint_eq(rsb_buf_len(&out), 0);
		else
			ck_assert_int_eq(rsb_codec_head(rsb_buf_view(&out), &head), 0);
		rsb_buf_done(&out);
	}
	ck_assert_uint_gt(max, 10);
}
END_TEST

START_TEST(knows_how_long_a_reply_can_get)
{
	static uint8_t data[RSB_IO_MAX];
	const struct rsb_read_rep read = { .data = { data, sizeof(data) } };
	struct rsb_buf out = { .max = 0 };

	ck_assert_int_eq(rsb_codec_reply(RSB_OP_read, UINT64_MAX, 0, &read, 1, &out), 0);
	ck_assert_uint_le(rsb_buf_len(&out), rsb_codec_reply_max(RSB_OP_read));
	ck_assert_uint_le(rsb_codec_reply_max(RSB_OP_read), RSB_IO_MAX + 64);
	for (uint32_t op = 0; op <= RSB_OP_NUMBER_MAX + 1; op++) {
		size_t max = rsb_codec_reply_max(op);

		ck_assert_uint_le(max, RSB_MESSAGE_MAX);
		rsb_buf_clear(&out);
		ck_assert_int_eq(rsb_codec_reply(op, UINT64_MAX, -EHWPOISON, NULL, 1, &out), 0);
		ck_assert_uint_le(rsb_buf_len(&out), max);
	}
	rsb_buf_done(&out);
}
END_TEST

/* A readdir reply full of the longest entries. */
START_TEST(reserves_enough_for_the_longest_list)
{
	const struct rsb_time time = { INT64_MIN, UINT64_MAX, 0 };
	const uint64_t big = UINT64_MAX;
	const struct rsb_attr attr = { big, big, big, big, big, big, big, big, big, time, time,
		time, time, 0 };
	struct rsb_readdir_rep rep = { .done = big, .dir = attr };
	struct rsb_dirent e = { .ino = big, .type = big, .id = big, .attr = attr };
	struct rsb_buf list = { .max = 0 };
	struct rsb_buf out = { .max = 0 };
	uint8_t name[RSB_NAME_MAX];

	memset(name, 'n', sizeof(name));
	e.name = (struct rsb_bytes){ name, sizeof(name) };
	for (size_t i = 0; i < RSB_DIRENTS_MAX; i++)
		ck_assert_int_eq(rsb_seq_append(&rsb_desc_rsb_dirent, &e, 1, &list), 0);
	rep.entries = rsb_seq_of(&list, RSB_DIRENTS_MAX);
	ck_assert_int_eq(rsb_codec_reply(RSB_OP_readdir, big, 0, &rep, 1, &out), 0);
	ck_assert_uint_le(rsb_buf_len(&out), rsb_codec_reply_max(RSB_OP_readdir));
	rsb_buf_done(&list);
	rsb_buf_done(&out);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		brings_back_a_request,
		brings_back_a_reply_and_an_error,
		passes_through_an_op_that_it_does_not_know,
		sends_no_op_that_is_newer_than_the_version,
		refuses_malformed_envelopes,
		skips_what_a_later_version_adds_to_the_envelope,
		does_not_encode_a_call_without_id,
		leaves_the_buffer_alone_when_an_envelope_does_not_fit,
		knows_how_long_a_reply_can_get,
		reserves_enough_for_the_longest_list,
	};

	return unit_run("envelope", tests, RSB_ARRAY_SIZE(tests));
}
