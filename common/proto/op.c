/* SPDX-License-Identifier: MIT */
#include "proto/op.h"

/* clang-format off */
#define KIND_u64	RSB_FIELD_U64
#define KIND_i64	RSB_FIELD_I64
#define KIND_bytes	RSB_FIELD_BYTES
#define KIND_name	RSB_FIELD_NAME

/* The first row is a filler: a message without fields must not make an empty array. */
#define MESSAGE(owner) static const struct rsb_field_desc owner##_fields[] = { { .name = NULL },
#define FIELD(owner, k, n, s, l) \
	{ .name = #n, .kind = KIND_##k, .offset = offsetof(struct owner, n), .since = s, .limit = l },
#define REC(owner, t, n, s) \
	{ .name = #n, .kind = RSB_FIELD_REC, .offset = offsetof(struct owner, n), .since = s, \
	  .type = &rsb_desc_##t },
#define SEQ(owner, t, n, s, l) \
	{ .name = #n, .kind = RSB_FIELD_SEQ, .offset = offsetof(struct owner, n), .since = s, \
	  .limit = l, .type = &rsb_desc_##t },
#define STRS(owner, n, s, l, e) \
	{ .name = #n, .kind = RSB_FIELD_STRS, .offset = offsetof(struct owner, n), .since = s, \
	  .limit = l, .each = e },
#define END(owner) }; \
	const struct rsb_message_desc rsb_desc_##owner = { .name = #owner, \
		.size = sizeof(struct owner), .n_field = RSB_ARRAY_SIZE(owner##_fields) - 1, \
		.fields = owner##_fields + 1 };
#include "proto/structs.def"

#define OP(o, number, rq, rp, s, f) \
	[number] = { .name = #o, .req = &rsb_desc_##rq, .rep = &rsb_desc_##rp, .since = s, .flags = f },
const struct rsb_op rsb_ops[RSB_OP_NUMBER_MAX + 1] = {
#include "proto/ops.def"
};

#define MESSAGE(owner) &rsb_desc_##owner,
const struct rsb_message_desc *const rsb_messages[] = {
#include "proto/structs.def"
	NULL
};
/* clang-format on */

static void
hash_str(uint64_t *h, const char *s)
{
	/* The terminator is hashed too, so that "ab","c" differs from "a","bc". */
	do {
		*h = (*h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	} while (*s++);
}

static void
hash_u32(uint64_t *h, uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		*h = (*h ^ (v & 0xff)) * UINT64_C(0x100000001b3);
}

uint64_t
rsb_op_table_hash(void)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t m = 0; rsb_messages[m]; m++) {
		hash_str(&h, rsb_messages[m]->name);
		for (uint32_t i = 0; i < rsb_messages[m]->n_field; i++) {
			const struct rsb_field_desc *f = &rsb_messages[m]->fields[i];

			hash_str(&h, f->name);
			hash_u32(&h, f->kind);
			hash_u32(&h, f->limit);
			hash_u32(&h, f->each);
			hash_str(&h, f->type ? f->type->name : "");
		}
	}
	for (uint32_t n = 0; n <= RSB_OP_NUMBER_MAX; n++) {
		if (!rsb_ops[n].name)
			continue;
		hash_u32(&h, n);
		hash_str(&h, rsb_ops[n].name);
		hash_str(&h, rsb_ops[n].req->name);
		hash_str(&h, rsb_ops[n].rep->name);
		hash_u32(&h, rsb_ops[n].flags);
	}
	return h;
}
