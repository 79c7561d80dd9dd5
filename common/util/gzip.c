/* SPDX-License-Identifier: MIT */
#include "util/gzip.h"

#include <errno.h>
#include <unistd.h>

#define ZLIB_CONST
#include <zlib.h>

#include "util/fd.h"

#define PIECE_SIZE 65536u
/* zlib.h, deflateInit2() and inflateInit2(): a gzip head and tail around the data. */
#define GZIP_WINDOW_BITS (MAX_WBITS + 16)
#define MEM_LEVEL 8

struct packing {
	z_stream z;
	uint8_t in[PIECE_SIZE];
	uint8_t out[PIECE_SIZE];
};

/* What is in z to out_fd; all of it when flush is Z_FINISH. */
static int
pack(struct packing *p, int flush, int out_fd)
{
	do {
		int r;

		p->z.next_out = p->out;
		p->z.avail_out = PIECE_SIZE;
		(void)deflate(&p->z, flush); /* fails only where its stream was damaged */
		r = rsb_fd_write_full(out_fd, p->out, PIECE_SIZE - p->z.avail_out);
		if (r < 0)
			return r;
	} while (p->z.avail_out == 0);
	return 0;
}

int
rsb_gzip_fd(int in_fd, int out_fd)
{
	rsb_autofree struct packing *p = rsb_new(struct packing);
	off_t offset = 0;
	ssize_t n;
	int r = 0;

	if (!p)
		return -ENOMEM;
	/* The best would save a 200th, and take more than twice as long. */
	if (deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, MEM_LEVEL,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		n = pread(in_fd, p->in, PIECE_SIZE, offset);
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : 0;
		if (r < 0)
			break;
		offset += n;
		p->z.next_in = p->in;
		p->z.avail_in = (unsigned int)n;
		r = pack(p, n == 0 ? Z_FINISH : Z_NO_FLUSH, out_fd);
	} while (r == 0 && n != 0);
	(void)deflateEnd(&p->z); /* frees, whatever it says */
	return r;
}

struct rsb_gunzip {
	z_stream z;
	rsb_gunzip_fn fn;
	void *arg;
	bool ended;
	uint8_t out[PIECE_SIZE];
};

int
rsb_gunzip_new(rsb_gunzip_fn fn, void *arg, struct rsb_gunzip **ret_gunzip)
{
	rsb_autofree struct rsb_gunzip *gunzip = rsb_new(struct rsb_gunzip);

	if (!gunzip || inflateInit2(&gunzip->z, GZIP_WINDOW_BITS) != Z_OK)
		return -ENOMEM;
	gunzip->fn = fn;
	gunzip->arg = arg;
	*ret_gunzip = rsb_steal(&gunzip);
	return 0;
}

void
rsb_gunzip_free(struct rsb_gunzip *gunzip)
{
	if (!gunzip)
		return;
	(void)inflateEnd(&gunzip->z); /* frees, whatever it says */
	free(gunzip);
}

static int
unpack(struct rsb_gunzip *gunzip)
{
	size_t size;
	int status;

	/* RFC 1952 2.2: a file may be several of these, one behind the other. */
	if (gunzip->ended && inflateReset(&gunzip->z) != Z_OK)
		return -EBADMSG;
	gunzip->z.next_out = gunzip->out;
	gunzip->z.avail_out = PIECE_SIZE;
	status = inflate(&gunzip->z, Z_NO_FLUSH);
	if (status == Z_MEM_ERROR)
		return -ENOMEM;
	if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
		return -EBADMSG;
	gunzip->ended = status == Z_STREAM_END;
	size = PIECE_SIZE - gunzip->z.avail_out;
	if (size == 0)
		return 0;
	return gunzip->fn(gunzip->arg, (struct rsb_bytes){ .data = gunzip->out, .size = size });
}

int
rsb_gunzip_feed(struct rsb_gunzip *gunzip, struct rsb_bytes data)
{
	int r;

	while (data.size > 0) {
		size_t size = rsb_min(data.size, (size_t)PIECE_SIZE);

		gunzip->z.next_in = data.data;
		gunzip->z.avail_in = (unsigned int)size;
		do {
			r = unpack(gunzip);
			if (r < 0)
				return r;
		} while (gunzip->z.avail_in > 0 || (gunzip->z.avail_out == 0 && !gunzip->ended));
		data.data += size;
		data.size -= size;
	}
	return 0;
}

int
rsb_gunzip_finish(const struct rsb_gunzip *gunzip)
{
	return gunzip->ended ? 0 : -EBADMSG;
}
