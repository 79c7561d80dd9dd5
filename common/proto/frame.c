/* SPDX-License-Identifier: MIT */
#include "proto/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zstd.h>

#include "proto/limits.h"

#define ZSTD_LEVEL 1

/*
 * Contexts come with their first use: a sidecar that idles has none. A frame is compressed in one
 * go and says its size, so zstd cuts its tables down to 64 KiB of input, and there is no window to
 * keep.
 */
struct rsb_zip {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	uint8_t *scratch; /* of RSB_FRAME_MAX bytes */
};

/* What each type may carry. */
static const struct {
	uint8_t flags;
	bool known;
	bool payload;
} types[] = {
	[RSB_FRAME_CHALLENGE] = { .known = true, .payload = true },
	[RSB_FRAME_HELLO] = { .known = true, .payload = true },
	[RSB_FRAME_WELCOME] = { .known = true, .payload = true },
	[RSB_FRAME_REFUSE] = { .known = true, .payload = true },
	[RSB_FRAME_MESSAGE] = { RSB_FRAME_MORE | RSB_FRAME_ZSTD, true, true },
	[RSB_FRAME_ACK] = { .known = true },
	[RSB_FRAME_PING] = { .known = true },
	[RSB_FRAME_PONG] = { .known = true },
	[RSB_FRAME_STREAM] = { RSB_FRAME_FIN | RSB_FRAME_ZSTD, true, true },
	[RSB_FRAME_CREDIT] = { .known = true, .payload = true },
	[RSB_FRAME_RESET] = { .known = true },
	[RSB_FRAME_BYE] = { .known = true },
};

int
rsb_zip_new(struct rsb_zip **ret_zip)
{
	struct rsb_zip *zip = rsb_new(struct rsb_zip);

	if (!zip)
		return -ENOMEM;
	*ret_zip = zip;
	return 0;
}

void
rsb_zip_free(struct rsb_zip *zip)
{
	if (!zip)
		return;
	ZSTD_freeCCtx(zip->compressor);
	ZSTD_freeDCtx(zip->decompressor);
	free(zip->scratch);
	free(zip);
}

/*
 * Bytes written to out; 0 when it does not fit in size, or cannot be done: then it goes as it is.
 */
static size_t
compress(struct rsb_zip *zip, struct rsb_bytes in, uint8_t *out, size_t size)
{
	size_t n;

	if (!zip->compressor) {
		zip->compressor = ZSTD_createCCtx();
		if (!zip->compressor)
			return 0;
		n = ZSTD_CCtx_setParameter(zip->compressor, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		assert(!ZSTD_isError(n));
	}
	n = ZSTD_compress2(zip->compressor, out, size, in.data, in.size);
	return ZSTD_isError(n) ? 0 : n;
}

static int
prepare(struct rsb_zip *zip)
{
	if (!zip->scratch)
		zip->scratch = malloc(RSB_FRAME_MAX);
	if (!zip->decompressor)
		zip->decompressor = ZSTD_createDCtx();
	return zip->scratch && zip->decompressor ? 0 : -ENOMEM;
}

/* The size is believed only as a limit: zstd writes no further and must end there. */
static int
decompress(struct rsb_zip *zip, struct rsb_bytes *payload)
{
	unsigned long long size = ZSTD_getFrameContentSize(payload->data, payload->size);
	size_t n;
	int r;

	/* ZSTD_CONTENTSIZE_UNKNOWN and _ERROR are above any limit; 0 is a skippable frame. */
	if (size == 0 || size > RSB_FRAME_MAX)
		return -EBADMSG;
	/* Exactly one: zstd would go on with the next. */
	if (ZSTD_findFrameCompressedSize(payload->data, payload->size) != payload->size)
		return -EBADMSG;
	r = prepare(zip);
	if (r < 0)
		return r;
	n = ZSTD_decompressDCtx(
		zip->decompressor, zip->scratch, (size_t)size, payload->data, payload->size);
	if (ZSTD_isError(n) || n != size)
		return -EBADMSG;
	*payload = (struct rsb_bytes){ .data = zip->scratch, .size = n };
	return 0;
}

static void
put_u64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

static uint64_t
get_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

int
rsb_frame_encode(const struct rsb_frame *frame, struct rsb_zip *zip, struct rsb_buf *out)
{
	struct rsb_bytes payload = frame->payload;
	uint8_t flags = frame->flags;
	size_t n = 0;
	uint8_t *p;
	int r;

	assert(!(flags & RSB_FRAME_ZSTD));
	if (payload.size > RSB_FRAME_PAYLOAD_MAX)
		return -EMSGSIZE;
	r = rsb_buf_reserve(out, RSB_FRAME_HEAD + payload.size, &p);
	if (r < 0)
		return r;
	if (zip && payload.size >= RSB_ZSTD_MIN &&
		(frame->type == RSB_FRAME_MESSAGE || frame->type == RSB_FRAME_STREAM))
		n = compress(zip, payload, p + RSB_FRAME_HEAD, payload.size - payload.size / 8);
	if (n > 0) {
		flags |= RSB_FRAME_ZSTD;
	} else if (payload.size > 0) {
		n = payload.size;
		memcpy(p + RSB_FRAME_HEAD, payload.data, n);
	}
	p[0] = frame->type;
	p[1] = flags;
	put_u64(p + 2, frame->a);
	put_u64(p + 10, frame->b);
	rsb_buf_commit(out, RSB_FRAME_HEAD + n);
	return 0;
}

int
rsb_frame_decode(struct rsb_bytes in, struct rsb_zip *zip, struct rsb_frame *ret_frame)
{
	struct rsb_frame frame;
	int r;

	if (in.size < RSB_FRAME_HEAD || in.size > RSB_FRAME_MAX)
		return -EBADMSG;
	frame.type = in.data[0];
	frame.flags = in.data[1];
	frame.a = get_u64(in.data + 2);
	frame.b = get_u64(in.data + 10);
	frame.payload = (struct rsb_bytes){ in.data + RSB_FRAME_HEAD, in.size - RSB_FRAME_HEAD };
	if (frame.type >= RSB_ARRAY_SIZE(types) || !types[frame.type].known)
		return -EOPNOTSUPP;
	if ((frame.flags & ~types[frame.type].flags) != 0)
		return -EBADMSG;
	if (frame.payload.size > 0 && !types[frame.type].payload)
		return -EBADMSG;
	if (frame.flags & RSB_FRAME_ZSTD) {
		if (!zip)
			return -EBADMSG;
		r = decompress(zip, &frame.payload);
		if (r < 0)
			return r;
		frame.flags &= (uint8_t)~RSB_FRAME_ZSTD;
	}
	*ret_frame = frame;
	return 0;
}
