/* SPDX-License-Identifier: MIT */
#include "proto/codec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <msgpack.h>

#include "proto/errmap.h"
#include "proto/mp.h"
#include "proto/version.h"
#include "util/str.h"

#define HEAD_MAX 5u /* of an array or of bytes */
#define INT_MAX_SIZE 9u
#define ENVELOPE_MAX (HEAD_MAX + 3 * INT_MAX_SIZE)

/* ---- encoder ---- */

static int
append(void *out, const char *data, size_t size)
{
	return rsb_buf_append(out, data, size);
}

static int
pack_bytes(msgpack_packer *pk, struct rsb_bytes bytes)
{
	int r;

	r = msgpack_pack_bin(pk, bytes.size);
	if (r < 0)
		return r;
	return msgpack_pack_bin_body(pk, bytes.data, bytes.size);
}

static int pack_message(
	msgpack_packer *pk, const struct rsb_message_desc *desc, const void *msg, uint32_t version);

static int
pack_list(msgpack_packer *pk, const struct rsb_field_desc *f, const struct rsb_seq *seq)
{
	int r;

	if (seq->n > f->limit)
		return -EINVAL;
	r = msgpack_pack_array(pk, (size_t)seq->n);
	if (r < 0)
		return r;
	return rsb_buf_append(pk->data, seq->raw.data, seq->raw.size);
}

static int
pack_field(
	msgpack_packer *pk, const struct rsb_field_desc *f, const uint8_t *value, uint32_t version)
{
	struct rsb_bytes bytes;
	struct rsb_seq seq;
	uint64_t u64;
	int64_t i64;

	switch (f->kind) {
	case RSB_FIELD_U64:
		memcpy(&u64, value, sizeof(u64));
		return msgpack_pack_uint64(pk, u64);
	case RSB_FIELD_I64:
		memcpy(&i64, value, sizeof(i64));
		return msgpack_pack_int64(pk, i64);
	case RSB_FIELD_BYTES:
	case RSB_FIELD_NAME:
		memcpy(&bytes, value, sizeof(bytes));
		if (bytes.size > f->limit)
			return -EINVAL;
		if (f->kind == RSB_FIELD_NAME && !rsb_str_is_component(bytes))
			return -EINVAL;
		return pack_bytes(pk, bytes);
	case RSB_FIELD_REC:
		return pack_message(pk, f->type, value, version);
	case RSB_FIELD_SEQ:
	case RSB_FIELD_STRS:
		break;
	}
	memcpy(&seq, value, sizeof(seq));
	return pack_list(pk, f, &seq);
}

static int
pack_message(
	msgpack_packer *pk, const struct rsb_message_desc *desc, const void *msg, uint32_t version)
{
	uint32_t n = 0;
	int r;

	while (n < desc->n_field && desc->fields[n].since <= version)
		n++;
	if (n > 0 && !msg)
		return -EINVAL;
	r = msgpack_pack_array(pk, n);
	for (uint32_t i = 0; r >= 0 && i < n; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];

		r = pack_field(pk, f, (const uint8_t *)msg + f->offset, version);
	}
	return r;
}

/* A failed call leaves out as it was. */
static int
done(struct rsb_buf *out, size_t len_before, int r)
{
	if (r >= 0)
		return 0;
	out->size = out->off + len_before;
	return r;
}

int
rsb_codec_encode(
	const struct rsb_message_desc *desc, const void *msg, uint32_t version, struct rsb_buf *out)
{
	size_t len = rsb_buf_len(out);
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, append);
	return done(out, len, pack_message(&pk, desc, msg, version));
}

int
rsb_seq_append(const struct rsb_message_desc *desc, const void *element, uint32_t version,
	struct rsb_buf *out)
{
	return rsb_codec_encode(desc, element, version, out);
}

int
rsb_seq_append_bytes(struct rsb_bytes element, struct rsb_buf *out)
{
	size_t len = rsb_buf_len(out);
	msgpack_packer pk;

	if (element.size > 0 && memchr(element.data, '\0', element.size))
		return -EINVAL;
	msgpack_packer_init(&pk, out, append);
	return done(out, len, pack_bytes(&pk, element));
}

/* ---- decoder; value is NULL where a message is only checked ---- */

static int unpack_message(struct rsb_mp *mp, const struct rsb_message_desc *desc, uint8_t *ret_msg);

static void
put(uint8_t *ret_value, const void *value, size_t size)
{
	if (ret_value)
		memcpy(ret_value, value, size);
}

static int
unpack_str(struct rsb_mp *mp, size_t max, struct rsb_bytes *ret_str)
{
	struct rsb_bytes str;
	int r;

	r = rsb_mp_bytes(mp, max, &str);
	if (r < 0)
		return r;
	if (memchr(str.data, '\0', str.size))
		return -EINVAL;
	*ret_str = str;
	return 0;
}

static int
unpack_list(struct rsb_mp *mp, const struct rsb_field_desc *f, uint8_t *ret_value)
{
	struct rsb_bytes str;
	struct rsb_seq seq;
	uint32_t n;
	int r;

	r = rsb_mp_array(mp, &n);
	if (r < 0)
		return r;
	if (n > f->limit)
		return -EMSGSIZE;
	seq.n = n;
	seq.raw.data = mp->pos;
	for (uint32_t i = 0; i < n; i++) {
		if (f->kind == RSB_FIELD_SEQ)
			r = unpack_message(mp, f->type, NULL);
		else
			r = unpack_str(mp, f->each, &str);
		if (r < 0)
			return r;
	}
	seq.raw.size = (size_t)(mp->pos - seq.raw.data);
	put(ret_value, &seq, sizeof(seq));
	return 0;
}

static int
unpack_field(struct rsb_mp *mp, const struct rsb_field_desc *f, uint8_t *ret_value)
{
	struct rsb_bytes bytes;
	uint64_t u64;
	int64_t i64;
	int r;

	switch (f->kind) {
	case RSB_FIELD_U64:
		r = rsb_mp_u64(mp, &u64);
		if (r >= 0)
			put(ret_value, &u64, sizeof(u64));
		return r;
	case RSB_FIELD_I64:
		r = rsb_mp_i64(mp, &i64);
		if (r >= 0)
			put(ret_value, &i64, sizeof(i64));
		return r;
	case RSB_FIELD_BYTES:
	case RSB_FIELD_NAME:
		r = rsb_mp_bytes(mp, f->limit, &bytes);
		if (r < 0)
			return r;
		if (f->kind == RSB_FIELD_NAME && !rsb_str_is_component(bytes))
			return -EINVAL;
		put(ret_value, &bytes, sizeof(bytes));
		return 0;
	case RSB_FIELD_REC:
		return unpack_message(mp, f->type, ret_value);
	case RSB_FIELD_SEQ:
	case RSB_FIELD_STRS:
		break;
	}
	return unpack_list(mp, f, ret_value);
}

/*
 * Zero is a fine value of everything but a name, and an empty name would reach a handler: a field
 * that every version has and that must not be empty has to be there.
 */
static int
check_absent(const struct rsb_field_desc *f)
{
	int r;

	if (f->since > RSB_PROTO_VERSION_MIN)
		return 0;
	if (f->kind == RSB_FIELD_NAME)
		return -EINVAL;
	if (f->kind != RSB_FIELD_REC)
		return 0;
	for (uint32_t i = 0; i < f->type->n_field; i++) {
		r = check_absent(&f->type->fields[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
unpack_message(struct rsb_mp *mp, const struct rsb_message_desc *desc, uint8_t *ret_msg)
{
	uint32_t i, n;
	int r;

	r = rsb_mp_array(mp, &n);
	for (i = 0; r >= 0 && i < n; i++) {
		const struct rsb_field_desc *f;

		if (i >= desc->n_field) {
			r = rsb_mp_skip(mp);
			continue;
		}
		f = &desc->fields[i];
		r = unpack_field(mp, f, ret_msg ? ret_msg + f->offset : NULL);
	}
	for (; r >= 0 && i < desc->n_field; i++)
		r = check_absent(&desc->fields[i]);
	return r;
}

int
rsb_codec_decode(const struct rsb_message_desc *desc, struct rsb_bytes in, void *ret_msg)
{
	struct rsb_mp mp;
	int r;

	rsb_mp_init(&mp, in);
	memset(ret_msg, 0, desc->size);
	r = unpack_message(&mp, desc, ret_msg);
	if (r >= 0 && rsb_mp_left(&mp) > 0)
		r = -EBADMSG;
	/* Nobody may act on half a message. */
	if (r < 0)
		memset(ret_msg, 0, desc->size);
	return r;
}

/* The element is behind mp; advances seq. */
static int
advance(struct rsb_seq *seq, const struct rsb_mp *mp)
{
	seq->n--;
	seq->raw = (struct rsb_bytes){ .data = mp->pos, .size = rsb_mp_left(mp) };
	return 1;
}

int
rsb_seq_next(struct rsb_seq *seq, const struct rsb_message_desc *desc, void *ret_element)
{
	struct rsb_mp mp;
	int r;

	if (seq->n == 0)
		return seq->raw.size > 0 ? -EBADMSG : 0;
	rsb_mp_init(&mp, seq->raw);
	memset(ret_element, 0, desc->size);
	r = unpack_message(&mp, desc, ret_element);
	if (r < 0)
		return r;
	return advance(seq, &mp);
}

int
rsb_seq_next_bytes(struct rsb_seq *seq, struct rsb_bytes *ret_element)
{
	struct rsb_mp mp;
	int r;

	if (seq->n == 0)
		return seq->raw.size > 0 ? -EBADMSG : 0;
	rsb_mp_init(&mp, seq->raw);
	r = unpack_str(&mp, RSB_MESSAGE_MAX, ret_element);
	if (r < 0)
		return r;
	return advance(seq, &mp);
}

/* ---- envelopes ---- */

static const struct rsb_op *
find_op(uint32_t op)
{
	return op <= RSB_OP_NUMBER_MAX && rsb_ops[op].name ? &rsb_ops[op] : NULL;
}

/* [op, id, third, body]; without desc no body. */
static int
pack_envelope(msgpack_packer *pk, uint32_t op, uint64_t id, uint64_t third, bool has_body)
{
	int r;

	if (id == 0)
		return -EINVAL;
	r = msgpack_pack_array(pk, has_body ? 4 : 3);
	if (r >= 0)
		r = msgpack_pack_uint32(pk, op);
	if (r >= 0)
		r = msgpack_pack_uint64(pk, id);
	if (r >= 0)
		r = msgpack_pack_uint64(pk, third);
	return r;
}

int
rsb_codec_request(uint32_t op, uint64_t id, uint64_t after, const void *req, uint32_t version,
	struct rsb_buf *out)
{
	const struct rsb_op *o = find_op(op);
	size_t len = rsb_buf_len(out);
	msgpack_packer pk;
	int r;

	if (!o)
		return -EINVAL;
	if (o->since > version)
		return -EOPNOTSUPP;
	msgpack_packer_init(&pk, out, append);
	r = pack_envelope(&pk, op, id, after, true);
	if (r >= 0)
		r = pack_message(&pk, o->req, req, version);
	return done(out, len, r);
}

int
rsb_codec_reply(
	uint32_t op, uint64_t id, int error, const void *rep, uint32_t version, struct rsb_buf *out)
{
	const struct rsb_op *o = find_op(op);
	size_t len = rsb_buf_len(out);
	msgpack_packer pk;
	int r;

	if (!o && error == 0)
		return -EINVAL;
	msgpack_packer_init(&pk, out, append);
	r = pack_envelope(&pk, 0, id, error == 0 ? 0 : rsb_errmap_to_wire(error), error == 0);
	if (r >= 0 && error == 0)
		r = pack_message(&pk, o->rep, rep, version);
	return done(out, len, r);
}

/* The rest of an envelope of n elements: the body, then what a later version may have added. */
static int
take_body(struct rsb_mp *mp, uint32_t n, struct rsb_bytes *ret_body)
{
	const uint8_t *start = mp->pos;
	int r = 0;

	/* The usual case: whoever decodes the body finds out whether it is one value. */
	if (n == 4) {
		*ret_body = (struct rsb_bytes){ .data = start, .size = rsb_mp_left(mp) };
		return ret_body->size > 0 ? 0 : -EBADMSG;
	}
	for (uint32_t i = 3; r >= 0 && i < n; i++) {
		r = rsb_mp_skip(mp);
		if (i == 3)
			*ret_body = (struct rsb_bytes){ start, (size_t)(mp->pos - start) };
	}
	if (r >= 0 && rsb_mp_left(mp) > 0)
		r = -EBADMSG;
	return r;
}

int
rsb_codec_head(struct rsb_bytes in, struct rsb_call_head *ret_head)
{
	struct rsb_call_head head = { .op = 0 };
	uint64_t op, third;
	struct rsb_mp mp;
	uint32_t n;
	int r;

	rsb_mp_init(&mp, in);
	r = rsb_mp_array(&mp, &n);
	if (r >= 0)
		r = rsb_mp_u64(&mp, &op);
	if (r >= 0)
		r = rsb_mp_u64(&mp, &head.id);
	if (r >= 0)
		r = rsb_mp_u64(&mp, &third);
	if (r >= 0)
		r = take_body(&mp, n, &head.body);
	if (r < 0)
		return r;
	if (n < 3 || op > UINT32_MAX || head.id == 0)
		return -EBADMSG;
	head.op = (uint32_t)op;
	if (op != 0)
		head.after = third;
	else if (third != 0)
		head.error = rsb_errmap_from_wire(third);
	if (head.error != 0)
		head.body = (struct rsb_bytes){ .data = NULL };
	else if (head.body.size == 0)
		return -EBADMSG;
	*ret_head = head;
	return 0;
}

static size_t
message_max(const struct rsb_message_desc *desc)
{
	size_t size = HEAD_MAX;

	for (uint32_t i = 0; i < desc->n_field; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];

		if (f->kind == RSB_FIELD_REC)
			size += message_max(f->type);
		else if (f->kind == RSB_FIELD_SEQ)
			size += HEAD_MAX + f->limit * message_max(f->type);
		else if (f->kind == RSB_FIELD_STRS)
			size += HEAD_MAX + (size_t)f->limit * (HEAD_MAX + f->each);
		else
			size += INT_MAX_SIZE + f->limit;
	}
	return size;
}

size_t
rsb_codec_reply_max(uint32_t op)
{
	const struct rsb_op *o = find_op(op);

	return rsb_min(ENVELOPE_MAX + (o ? message_max(o->rep) : 0), (size_t)RSB_MESSAGE_MAX);
}
