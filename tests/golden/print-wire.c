/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/op.h"
#include "proto/version.h"
#include "util/macro.h"

/*
 * Prints the table of structs.def and ops.def: as text for wire.txt, or with --markdown its
 * operations for PROTOCOL.md.
 */

static const char *const kinds[] = {
	[RSB_FIELD_U64] = "u64",
	[RSB_FIELD_I64] = "i64",
	[RSB_FIELD_BYTES] = "bytes",
	[RSB_FIELD_NAME] = "name",
	[RSB_FIELD_REC] = "rec",
	[RSB_FIELD_SEQ] = "seq",
	[RSB_FIELD_STRS] = "strs",
};

static const struct {
	uint32_t flag;
	const char *name;
} flags[] = {
	{ RSB_OP_WRITES, "WRITES" },
	{ RSB_OP_SLOW, "SLOW" },
	{ RSB_OP_WAITS, "WAITS" },
	{ RSB_OP_LOCAL, "LOCAL" },
	{ RSB_OP_INLINE, "INLINE" },
	{ RSB_OP_ORDERED, "ORDERED" },
};

/* In the order of the bits; "-" for none. */
static const char *
flag_names(uint32_t value, char *out, size_t size)
{
	size_t n = 0;

	(void)snprintf(out, size, "-");
	for (size_t i = 0; i < RSB_ARRAY_SIZE(flags); i++)
		if (value & flags[i].flag)
			n += (size_t)snprintf(
				out + n, size - n, "%s%s", n > 0 ? " " : "", flags[i].name);
	return out;
}

static void
print_message(const struct rsb_message_desc *desc)
{
	printf("message %s\n", desc->name);
	for (uint32_t i = 0; i < desc->n_field; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];

		printf("\t%" PRIu32 " %s %s", i, kinds[f->kind], f->name);
		if (f->type)
			printf(" of %s", f->type->name);
		if (f->limit > 0)
			printf(" limit %" PRIu32, f->limit);
		if (f->each > 0)
			printf(" each %" PRIu32, f->each);
		printf(" since %" PRIu32 "\n", f->since);
	}
}

static void
print_text(void)
{
	char names[64];

	printf("version %u, speaks down to %u\n", RSB_PROTO_VERSION, RSB_PROTO_VERSION_MIN);
	for (size_t i = 0; rsb_messages[i]; i++)
		print_message(rsb_messages[i]);
	for (size_t i = 0; i <= RSB_OP_NUMBER_MAX; i++) {
		const struct rsb_op *op = &rsb_ops[i];

		if (op->name)
			printf("op %zu %s(%s) %s since %" PRIu32 " flags %s\n", i, op->name,
				op->req->name, op->rep->name, op->since,
				flag_names(op->flags, names, sizeof(names)));
	}
}

static void
print_markdown(void)
{
	char names[64];

	printf("| number | operation | request | reply | since | flags |\n");
	printf("|---|---|---|---|---|---|\n");
	for (size_t i = 0; i <= RSB_OP_NUMBER_MAX; i++) {
		const struct rsb_op *op = &rsb_ops[i];

		if (op->name)
			printf("| %zu | %s | %s | %s | %" PRIu32 " | %s |\n", i, op->name,
				op->req->name, op->rep->name, op->since,
				flag_names(op->flags, names, sizeof(names)));
	}
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--markdown") == 0)
		print_markdown();
	else
		print_text();
	return 0;
}
