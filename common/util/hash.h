/* SPDX-License-Identifier: MIT */
#ifndef RSB_HASH_H
#define RSB_HASH_H

/*
 * SHA-1 (RFC 6455 accept key, and what git has at the end of its files), SHA-256, HMAC-SHA-256 (RFC
 * 2104) and base64 (RFC 4648). The only home of nettle.
 */

#include "util/buf.h"

#define RSB_SHA1_SIZE 20
#define RSB_SHA256_SIZE 32

void rsb_sha1(struct rsb_bytes data, uint8_t out[static RSB_SHA1_SIZE]);
void rsb_sha256(struct rsb_bytes data, uint8_t out[static RSB_SHA256_SIZE]);
/* HMAC over the concatenation of n_part parts. */
void rsb_hmac_sha256(struct rsb_bytes key, const struct rsb_bytes *parts, size_t n_part,
	uint8_t out[static RSB_SHA256_SIZE]);

/* Digest of a whole file, streamed from offset 0. Negative errno of read(2). */
rsb_nodiscard int rsb_sha256_fd(int fd, uint8_t out[static RSB_SHA256_SIZE]);

/* Standard alphabet with padding, appended without a NUL. */
rsb_nodiscard int rsb_base64_encode(struct rsb_bytes data, struct rsb_buf *out);
/* Accepts the standard and the URL-safe alphabet, padded or not; no blanks. -EBADMSG. */
rsb_nodiscard int rsb_base64_decode(struct rsb_bytes text, struct rsb_buf *out);

#endif
