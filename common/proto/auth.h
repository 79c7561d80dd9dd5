/* SPDX-License-Identifier: MIT */
#ifndef RSB_AUTH_H
#define RSB_AUTH_H

/*
 * Proofs that both sides hold the key; the key itself never crosses the link. HMAC-SHA-256 (RFC
 * 2104) over a label and the lengths and bytes of the parts:
 *	upgrade	"rsb upgrade 1", host nonce, Sec-WebSocket-Key
 *	sidecar	"rsb sidecar 1", host nonce, sidecar nonce
 *	host	"rsb host 1", host nonce, sidecar nonce, sandbox id, client id, session id
 * The host nonce (32 bytes) and the upgrade proof travel in the header
 *	X-Rsb-Auth: 1 <nonce, 64 hex digits> <proof, 64 hex digits>
 */

#include "util/buf.h"
#include "util/hash.h"
#include "util/secret.h"

#define RSB_AUTH_NONCE_SIZE 32
#define RSB_AUTH_HEADER "X-Rsb-Auth"
#define RSB_AUTH_HEADER_SIZE (2 + 64 + 1 + 64)
#define RSB_AUTH_KEY_SIZE 32

/* The value of the header; out has RSB_AUTH_HEADER_SIZE + 1 bytes. */
void rsb_auth_upgrade_header(const struct rsb_secret *key,
	const uint8_t nonce[static RSB_AUTH_NONCE_SIZE], struct rsb_bytes ws_key, char *out);
/* -EACCES, or 0 with the nonce. */
rsb_nodiscard int rsb_auth_upgrade_check(const struct rsb_secret *key, struct rsb_bytes value,
	struct rsb_bytes ws_key, uint8_t ret_nonce[static RSB_AUTH_NONCE_SIZE]);

void rsb_auth_sidecar_proof(const struct rsb_secret *key,
	const uint8_t host_nonce[static RSB_AUTH_NONCE_SIZE],
	const uint8_t sidecar_nonce[static RSB_AUTH_NONCE_SIZE],
	uint8_t out[static RSB_SHA256_SIZE]);
struct rsb_auth_ids {
	struct rsb_bytes sandbox;
	struct rsb_bytes client;
	struct rsb_bytes session;
};
void rsb_auth_host_proof(const struct rsb_secret *key,
	const uint8_t host_nonce[static RSB_AUTH_NONCE_SIZE],
	const uint8_t sidecar_nonce[static RSB_AUTH_NONCE_SIZE], const struct rsb_auth_ids *ids,
	uint8_t out[static RSB_SHA256_SIZE]);

#endif
