/* SPDX-License-Identifier: MIT */
#include "tests/prop/message.h"

#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"

static void *
take(struct pool *pool, size_t size)
{
	void **chunks = realloc(pool->chunks, (pool->n + 1) * sizeof(*chunks));
	void *chunk = malloc(size > 0 ? size : 1);

	if (!chunks || !chunk)
		abort();
	pool->chunks = chunks;
	pool->chunks[pool->n++] = chunk;
	return chunk;
}

void
pool_done(struct pool *pool)
{
	for (size_t i = 0; i < pool->n; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	*pool = (struct pool){ .n = 0 };
}

static struct rsb_bytes
random_bytes(struct rng *rng, size_t max, struct pool *pool)
{
	const size_t size = rng_size(rng, max);
	uint8_t *data = take(pool, size);

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)rng_u64(rng);
	return (struct rsb_bytes){ data, size };
}

/* Without NUL and '/', not empty; "." and ".." are made longer. */
static struct rsb_bytes
random_name(struct rng *rng, struct pool *pool)
{
	const size_t size = 3 + rng_size(rng, RSB_NAME_MAX - 3);
	uint8_t *data = take(pool, size);

	for (size_t i = 0; i < size; i++) {
		data[i] = (uint8_t)rng_u64(rng);
		if (data[i] == '\0' || data[i] == '/')
			data[i] = '.';
	}
	return (struct rsb_bytes){ data, size };
}

static struct rsb_bytes
keep(struct rsb_bytes bytes, struct pool *pool)
{
	uint8_t *data = take(pool, bytes.size);

	if (bytes.size > 0)
		memcpy(data, bytes.data, bytes.size);
	return (struct rsb_bytes){ data, bytes.size };
}

static struct rsb_seq
random_list(const struct rsb_field_desc *f, struct rng *rng, bool long_lists, struct pool *pool)
{
	const size_t n = rng_size(rng, rsb_min((size_t)f->limit, long_lists ? 300ul : 3ul));
	struct rsb_buf raw = { .max = 0 };
	struct rsb_seq seq;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (f->kind == RSB_FIELD_SEQ) {
			void *element = take(pool, f->type->size);

			message_random(f->type, rng, long_lists, pool, element);
			r = rsb_seq_append(f->type, element, UINT32_MAX, &raw);
		} else {
			struct rsb_bytes str = random_bytes(rng, rsb_min(f->each, 200u), pool);

			for (size_t j = 0; j < str.size; j++)
				if (str.data[j] == '\0')
					str.size = j;
			r = rsb_seq_append_bytes(str, &raw);
		}
	}
	if (r < 0)
		abort();
	seq = rsb_seq_of(&raw, n);
	seq.raw = keep(seq.raw, pool);
	rsb_buf_done(&raw);
	return seq;
}

void
message_random(const struct rsb_message_desc *desc, struct rng *rng, bool long_lists,
	struct pool *pool, void *msg)
{
	memset(msg, 0, desc->size);
	for (uint32_t i = 0; i < desc->n_field; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];
		uint8_t *value = (uint8_t *)msg + f->offset;
		struct rsb_bytes bytes;
		struct rsb_seq seq;
		uint64_t u64;

		switch (f->kind) {
		case RSB_FIELD_U64:
		case RSB_FIELD_I64:
			u64 = rng_magnitude(rng);
			if (f->kind == RSB_FIELD_I64 && rng_below(rng, 2))
				u64 = -u64;
			memcpy(value, &u64, sizeof(u64));
			break;
		case RSB_FIELD_BYTES:
		case RSB_FIELD_NAME:
			bytes = f->kind == RSB_FIELD_NAME ? random_name(rng, pool)
							  : random_bytes(rng, f->limit, pool);
			memcpy(value, &bytes, sizeof(bytes));
			break;
		case RSB_FIELD_REC:
			message_random(f->type, rng, long_lists, pool, value);
			break;
		case RSB_FIELD_SEQ:
		case RSB_FIELD_STRS:
			seq = random_list(f, rng, long_lists, pool);
			memcpy(value, &seq, sizeof(seq));
			break;
		}
	}
}

static bool
bytes_equal(struct rsb_bytes a, struct rsb_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool
field_equal(const struct rsb_field_desc *f, const uint8_t *a, const uint8_t *b)
{
	struct rsb_bytes bytes_a, bytes_b;
	struct rsb_seq seq_a, seq_b;

	switch (f->kind) {
	case RSB_FIELD_U64:
	case RSB_FIELD_I64:
		return memcmp(a, b, sizeof(uint64_t)) == 0;
	case RSB_FIELD_BYTES:
	case RSB_FIELD_NAME:
		memcpy(&bytes_a, a, sizeof(bytes_a));
		memcpy(&bytes_b, b, sizeof(bytes_b));
		return bytes_equal(bytes_a, bytes_b);
	case RSB_FIELD_REC:
		return message_equal(f->type, a, b);
	case RSB_FIELD_SEQ:
	case RSB_FIELD_STRS:
		break;
	}
	memcpy(&seq_a, a, sizeof(seq_a));
	memcpy(&seq_b, b, sizeof(seq_b));
	return seq_a.n == seq_b.n && bytes_equal(seq_a.raw, seq_b.raw);
}

bool
message_equal(const struct rsb_message_desc *desc, const void *a, const void *b)
{
	for (uint32_t i = 0; i < desc->n_field; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];

		if (!field_equal(f, (const uint8_t *)a + f->offset, (const uint8_t *)b + f->offset))
			return false;
	}
	return true;
}

/* Every element of every list comes out of the walk, and nothing is left. */
static void
walk_lists(const struct rsb_message_desc *desc, const void *msg)
{
	for (uint32_t i = 0; i < desc->n_field; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];
		struct rsb_bytes str;
		struct rsb_seq seq;
		void *element;
		uint64_t n = 0;

		if (f->kind != RSB_FIELD_SEQ && f->kind != RSB_FIELD_STRS)
			continue;
		memcpy(&seq, (const uint8_t *)msg + f->offset, sizeof(seq));
		element = malloc(f->type ? f->type->size : 1);
		if (!element || seq.n > f->limit)
			abort();
		if (f->kind == RSB_FIELD_SEQ)
			while (rsb_seq_next(&seq, f->type, element) == 1)
				n++;
		else
			while (rsb_seq_next_bytes(&seq, &str) == 1)
				n++;
		free(element);
		memcpy(&seq, (const uint8_t *)msg + f->offset, sizeof(seq));
		if (n != seq.n)
			abort();
	}
}

bool
message_settles(const struct rsb_message_desc *desc, struct rsb_bytes in)
{
	struct rsb_buf out = { .max = 0 };
	void *first = malloc(desc->size);
	void *second = malloc(desc->size);
	bool accepted;

	if (!first || !second)
		abort();
	accepted = rsb_codec_decode(desc, in, first) >= 0;
	if (accepted) {
		walk_lists(desc, first);
		if (rsb_codec_encode(desc, first, UINT32_MAX, &out) < 0 ||
			rsb_codec_decode(desc, rsb_buf_view(&out), second) < 0 ||
			!message_equal(desc, first, second))
			abort();
	}
	rsb_buf_done(&out);
	free(first);
	free(second);
	return accepted;
}
