/* SPDX-License-Identifier: MIT */
#include "proto/auth.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/str.h"

#define PARTS_MAX 5
#define HEX(n) (2 * (n))

/*
 * Each part goes in behind its length, so that no two lists of parts give the same bytes. The proof
 * is not secret, the key is: who has none must not come here (an empty key would prove nothing).
 */
static void
prove(const struct rsb_secret *key, const char *label, const struct rsb_bytes *parts, size_t n,
	uint8_t out[static RSB_SHA256_SIZE])
{
	struct rsb_bytes all[1 + 2 * PARTS_MAX];
	uint32_t lengths[PARTS_MAX];

	assert(key->size > 0 && n <= PARTS_MAX);
	all[0] = rsb_bytes_str(label);
	for (size_t i = 0; i < n; i++) {
		lengths[i] = __builtin_bswap32((uint32_t)parts[i].size);
		all[1 + 2 * i] = (struct rsb_bytes){ (const uint8_t *)&lengths[i], 4 };
		all[2 + 2 * i] = parts[i];
	}
	rsb_hmac_sha256((struct rsb_bytes){ key->data, key->size }, all, 1 + 2 * n, out);
}

static void
upgrade_proof(const struct rsb_secret *key, const uint8_t *nonce, struct rsb_bytes ws_key,
	uint8_t out[static RSB_SHA256_SIZE])
{
	const struct rsb_bytes parts[] = { { nonce, RSB_AUTH_NONCE_SIZE }, ws_key };

	prove(key, "rsb upgrade 1", parts, RSB_ARRAY_SIZE(parts), out);
}

void
rsb_auth_upgrade_header(const struct rsb_secret *key,
	const uint8_t nonce[static RSB_AUTH_NONCE_SIZE], struct rsb_bytes ws_key, char *out)
{
	uint8_t proof[RSB_SHA256_SIZE];

	upgrade_proof(key, nonce, ws_key, proof);
	*out++ = '1';
	*out++ = ' ';
	rsb_str_hex(nonce, RSB_AUTH_NONCE_SIZE, out);
	out += HEX(RSB_AUTH_NONCE_SIZE);
	*out++ = ' ';
	rsb_str_hex(proof, sizeof(proof), out);
}

int
rsb_auth_upgrade_check(const struct rsb_secret *key, struct rsb_bytes value,
	struct rsb_bytes ws_key, uint8_t ret_nonce[static RSB_AUTH_NONCE_SIZE])
{
	const size_t second = 2 + HEX(RSB_AUTH_NONCE_SIZE) + 1;
	uint8_t nonce[RSB_AUTH_NONCE_SIZE];
	uint8_t theirs[RSB_SHA256_SIZE];
	uint8_t ours[RSB_SHA256_SIZE];

	if (key->size == 0 || value.size != RSB_AUTH_HEADER_SIZE)
		return -EACCES;
	if (value.data[0] != '1' || value.data[1] != ' ' || value.data[second - 1] != ' ')
		return -EACCES;
	if (rsb_str_unhex((struct rsb_bytes){ value.data + 2, HEX(sizeof(nonce)) }, nonce,
		    sizeof(nonce)) < 0)
		return -EACCES;
	if (rsb_str_unhex((struct rsb_bytes){ value.data + second, HEX(sizeof(theirs)) }, theirs,
		    sizeof(theirs)) < 0)
		return -EACCES;
	upgrade_proof(key, nonce, ws_key, ours);
	if (!rsb_secret_equal(ours, sizeof(ours), theirs, sizeof(theirs)))
		return -EACCES;
	memcpy(ret_nonce, nonce, sizeof(nonce));
	return 0;
}

void
rsb_auth_sidecar_proof(const struct rsb_secret *key,
	const uint8_t host_nonce[static RSB_AUTH_NONCE_SIZE],
	const uint8_t sidecar_nonce[static RSB_AUTH_NONCE_SIZE],
	uint8_t out[static RSB_SHA256_SIZE])
{
	const struct rsb_bytes parts[] = {
		{ host_nonce, RSB_AUTH_NONCE_SIZE },
		{ sidecar_nonce, RSB_AUTH_NONCE_SIZE },
	};

	prove(key, "rsb sidecar 1", parts, RSB_ARRAY_SIZE(parts), out);
}

void
rsb_auth_host_proof(const struct rsb_secret *key,
	const uint8_t host_nonce[static RSB_AUTH_NONCE_SIZE],
	const uint8_t sidecar_nonce[static RSB_AUTH_NONCE_SIZE], const struct rsb_auth_ids *ids,
	uint8_t out[static RSB_SHA256_SIZE])
{
	const struct rsb_bytes parts[PARTS_MAX] = {
		{ host_nonce, RSB_AUTH_NONCE_SIZE },
		{ sidecar_nonce, RSB_AUTH_NONCE_SIZE },
		ids->sandbox,
		ids->client,
		ids->session,
	};

	prove(key, "rsb host 1", parts, RSB_ARRAY_SIZE(parts), out);
}
