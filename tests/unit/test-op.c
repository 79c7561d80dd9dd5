/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "proto/op.h"
#include "proto/version.h"
#include "tests/unit/unit.h"

static int
is_listed(const struct rsb_message_desc *desc)
{
	for (size_t i = 0; rsb_messages[i]; i++)
		if (rsb_messages[i] == desc)
			return 1;
	return 0;
}

START_TEST(describes_each_field_inside_its_struct)
{
	for (size_t m = 0; rsb_messages[m]; m++) {
		const struct rsb_message_desc *desc = rsb_messages[m];
		uint32_t end = 0;

		for (uint32_t i = 0; i < desc->n_field; i++) {
			ck_assert_msg(desc->fields[i].offset >= end || i == 0, "%s.%s", desc->name,
				desc->fields[i].name);
			end = desc->fields[i].offset + 1;
		}
		ck_assert_uint_lt(end, desc->size + 1);
	}
}
END_TEST

START_TEST(limits_everything_that_a_peer_could_make_long)
{
	for (size_t m = 0; rsb_messages[m]; m++) {
		for (uint32_t i = 0; i < rsb_messages[m]->n_field; i++) {
			const struct rsb_field_desc *f = &rsb_messages[m]->fields[i];
			int is_long = f->kind != RSB_FIELD_U64 && f->kind != RSB_FIELD_I64 &&
				      f->kind != RSB_FIELD_REC;

			ck_assert_msg(
				(f->limit > 0) == is_long, "%s.%s", rsb_messages[m]->name, f->name);
			ck_assert((f->each > 0) == (f->kind == RSB_FIELD_STRS));
			ck_assert_uint_le(f->limit, RSB_MESSAGE_MAX);
			ck_assert((f->type != NULL) ==
				  (f->kind == RSB_FIELD_REC || f->kind == RSB_FIELD_SEQ));
			ck_assert(f->kind != RSB_FIELD_NAME || f->limit == RSB_NAME_MAX);
		}
	}
}
END_TEST

/* The encoder cuts a message at the first field that is too new: what follows must not be older. */
START_TEST(appends_new_fields_at_the_end)
{
	for (size_t m = 0; rsb_messages[m]; m++) {
		uint32_t since = 1;

		for (uint32_t i = 0; i < rsb_messages[m]->n_field; i++) {
			ck_assert_uint_ge(rsb_messages[m]->fields[i].since, since);
			since = rsb_messages[m]->fields[i].since;
		}
		ck_assert_uint_le(since, RSB_PROTO_VERSION);
	}
}
END_TEST

START_TEST(knows_an_op_by_its_number)
{
	size_t n = 0;

	ck_assert_str_eq(rsb_ops[RSB_OP_lookup].name, "lookup");
	ck_assert_ptr_eq(rsb_ops[RSB_OP_write].req, &rsb_desc_rsb_write_req);
	ck_assert_ptr_null(rsb_ops[0].name);
	for (size_t i = 0; i <= RSB_OP_NUMBER_MAX; i++) {
		if (!rsb_ops[i].name)
			continue;
		n++;
		ck_assert(is_listed(rsb_ops[i].req));
		ck_assert(is_listed(rsb_ops[i].rep));
		ck_assert_uint_ge(rsb_ops[i].since, 1);
		ck_assert_uint_le(rsb_ops[i].since, RSB_PROTO_VERSION);
	}
	ck_assert_uint_gt(n, 30);
}
END_TEST

/* What goes through the FIFO runs there; it can neither wait nor run on another thread. */
START_TEST(gives_each_op_one_place_to_run)
{
	for (size_t i = 0; i <= RSB_OP_NUMBER_MAX; i++) {
		uint32_t flags = rsb_ops[i].flags;

		ck_assert_uint_lt(flags, RSB_OP_ORDERED * 2);
		if (flags & RSB_OP_WRITES)
			ck_assert_uint_eq(flags, RSB_OP_WRITES);
		if (flags & RSB_OP_SLOW)
			ck_assert_uint_eq(flags, RSB_OP_SLOW);
	}
}
END_TEST

START_TEST(has_one_hash_for_one_table)
{
	ck_assert_uint_ne(rsb_op_table_hash(), 0);
	ck_assert_uint_eq(rsb_op_table_hash(), rsb_op_table_hash());
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		describes_each_field_inside_its_struct,
		limits_everything_that_a_peer_could_make_long,
		appends_new_fields_at_the_end,
		knows_an_op_by_its_number,
		gives_each_op_one_place_to_run,
		has_one_hash_for_one_table,
	};

	return unit_run("op", tests, RSB_ARRAY_SIZE(tests));
}
