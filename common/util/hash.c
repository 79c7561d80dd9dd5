/* SPDX-License-Identifier: MIT */
#include "util/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/hmac.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

#define CHUNK ((size_t)65536)

void
rsb_sha1(struct rsb_bytes data, uint8_t out[static RSB_SHA1_SIZE])
{
	struct sha1_ctx ctx;

	sha1_init(&ctx);
	sha1_update(&ctx, data.size, data.data);
	sha1_digest(&ctx, RSB_SHA1_SIZE, out);
}

void
rsb_sha256(struct rsb_bytes data, uint8_t out[static RSB_SHA256_SIZE])
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, data.size, data.data);
	sha256_digest(&ctx, RSB_SHA256_SIZE, out);
}

void
rsb_hmac_sha256(struct rsb_bytes key, const struct rsb_bytes *parts, size_t n_part,
	uint8_t out[static RSB_SHA256_SIZE])
{
	struct hmac_sha256_ctx ctx;
	size_t i;

	hmac_sha256_set_key(&ctx, key.size, key.data);
	for (i = 0; i < n_part; i++)
		hmac_sha256_update(&ctx, parts[i].size, parts[i].data);
	hmac_sha256_digest(&ctx, RSB_SHA256_SIZE, out);
	explicit_bzero(&ctx, sizeof(ctx)); /* holds what the key became */
}

struct fd_hash {
	struct sha256_ctx ctx;
	int fd;
	uint8_t *chunk;
	uint64_t offset;
};

/* Zeros that nobody has to read: the file system says where data is. */
static void
hash_hole(struct fd_hash *hash)
{
	off_t data = lseek(hash->fd, (off_t)hash->offset, SEEK_DATA);
	struct stat st;

	if (data < 0 && errno == ENXIO && fstat(hash->fd, &st) == 0)
		data = st.st_size;
	if (data < 0 || (uint64_t)data <= hash->offset)
		return;
	memset(hash->chunk, 0, CHUNK);
	while (hash->offset < (uint64_t)data) {
		size_t n = (size_t)rsb_min((uint64_t)data - hash->offset, (uint64_t)CHUNK);

		sha256_update(&hash->ctx, n, hash->chunk);
		hash->offset += n;
	}
}

/* To the next hole. 0: to the end. */
static int
hash_data(struct fd_hash *hash)
{
	const off_t hole = lseek(hash->fd, (off_t)hash->offset, SEEK_HOLE);

	while (hole < 0 || hash->offset < (uint64_t)hole) {
		size_t most = CHUNK;
		ssize_t n;

		if (hole >= 0)
			most = (size_t)rsb_min((uint64_t)hole - hash->offset, (uint64_t)CHUNK);
		n = pread(hash->fd, hash->chunk, most, (off_t)hash->offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		sha256_update(&hash->ctx, (size_t)n, hash->chunk);
		hash->offset += (uint64_t)n;
	}
	return 1;
}

int
rsb_sha256_fd(int fd, uint8_t out[static RSB_SHA256_SIZE])
{
	struct fd_hash hash = { .fd = fd, .chunk = malloc(CHUNK) };
	const off_t was = lseek(fd, 0, SEEK_CUR);
	int r = hash.chunk ? 1 : -ENOMEM;

	sha256_init(&hash.ctx);
	while (r > 0) {
		hash_hole(&hash);
		r = hash_data(&hash);
	}
	if (was >= 0)
		(void)lseek(fd, was, SEEK_SET);
	free(hash.chunk);
	if (r < 0)
		return r;
	sha256_digest(&hash.ctx, RSB_SHA256_SIZE, out);
	return 0;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int
rsb_base64_encode(struct rsb_bytes data, struct rsb_buf *out)
{
	const uint8_t *p = data.data;
	size_t size, i;
	uint8_t *tail;
	uint32_t v;
	int r;

	if (data.size > SIZE_MAX / 2)
		return -EMSGSIZE;
	size = (data.size + 2) / 3 * 4;
	r = rsb_buf_reserve(out, size, &tail);
	if (r < 0)
		return r;
	for (i = 0; i < data.size; i += 3) {
		size_t left = data.size - i;

		v = (uint32_t)p[i] << 16;
		if (left > 1)
			v |= (uint32_t)p[i + 1] << 8;
		if (left > 2)
			v |= p[i + 2];
		*tail++ = (uint8_t)alphabet[v >> 18];
		*tail++ = (uint8_t)alphabet[v >> 12 & 63];
		*tail++ = (uint8_t)(left > 1 ? alphabet[v >> 6 & 63] : '=');
		*tail++ = (uint8_t)(left > 2 ? alphabet[v & 63] : '=');
	}
	rsb_buf_commit(out, size);
	return 0;
}

static int
digit(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	if (c == '/' || c == '_')
		return 63;
	return -1;
}

int
rsb_base64_decode(struct rsb_bytes text, struct rsb_buf *out)
{
	size_t n = text.size;
	size_t size = 0;
	uint32_t v = 0;
	uint8_t *tail;
	unsigned int n_bit = 0;
	size_t i;
	int d, r;

	if (n > 0 && n % 4 == 0 && text.data[n - 1] == '=')
		n -= text.data[n - 2] == '=' ? 2 : 1;
	if (n % 4 == 1)
		return -EBADMSG;
	r = rsb_buf_reserve(out, n / 4 * 3 + (n % 4 > 0 ? n % 4 - 1 : 0), &tail);
	if (r < 0)
		return r;
	for (i = 0; i < n; i++) {
		d = digit(text.data[i]);
		if (d < 0)
			return -EBADMSG;
		v = v << 6 | (uint32_t)d;
		n_bit += 6;
		if (n_bit >= 8) {
			n_bit -= 8;
			tail[size++] = (uint8_t)(v >> n_bit);
			v &= (1u << n_bit) - 1;
		}
	}
	/* RFC 4648 3.5: bits that are left over are zero, or one value had two spellings. */
	if (v != 0)
		return -EBADMSG;
	rsb_buf_commit(out, size);
	return 0;
}
