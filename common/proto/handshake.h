/* SPDX-License-Identifier: MIT */
#ifndef RSB_HANDSHAKE_H
#define RSB_HANDSHAKE_H

/*
 * From the upgrade to the first numbered message: CHALLENGE, HELLO, WELCOME or REFUSE. The upgrade
 * request proved the key once (proto/auth.h); here both sides prove it over fresh nonces. Pure
 * functions over payloads, for each end; every answer of the peer is checked here and nowhere else.
 *
 *	host				sidecar
 *	GET, X-Rsb-Auth		->
 *				<-	101, CHALLENGE(nonce, proof of the host's nonce)
 *	HELLO(proof, session)	->
 *				<-	WELCOME(epoch, facts) or REFUSE(error, text)
 */

#include "proto/auth.h"
#include "proto/op.h"
#include "util/diag.h"

struct rsb_handshake {
	uint8_t host_nonce[RSB_AUTH_NONCE_SIZE];
	uint8_t sidecar_nonce[RSB_AUTH_NONCE_SIZE];
	uint32_t version;  /* agreed on */
	uint64_t features; /* agreed on */
};

/* Sidecar: appends the CHALLENGE frame. hs->host_nonce is set. */
rsb_nodiscard int rsb_handshake_challenge(
	struct rsb_handshake *hs, const struct rsb_secret *key, struct rsb_buf *out);
/*
 * Host: takes the peer's frame, appends HELLO. hello comes with everything but version, features,
 * table_hash and proof. -EACCES (the peer does not have the key), -EPROTONOSUPPORT (version),
 * -EBADMSG.
 */
rsb_nodiscard int rsb_handshake_hello(struct rsb_handshake *hs, const struct rsb_secret *key,
	struct rsb_bytes frame, struct rsb_hello *hello, struct rsb_buf *out,
	struct rsb_diag *diag);
/*
 * Sidecar: takes HELLO. Views into frame. Errors as above; answer them with rsb_handshake_refuse().
 */
rsb_nodiscard int rsb_handshake_check_hello(struct rsb_handshake *hs, const struct rsb_secret *key,
	struct rsb_bytes frame, struct rsb_hello *ret_hello, struct rsb_diag *diag);
/* Sidecar: welcome comes with everything but version and features. */
rsb_nodiscard int rsb_handshake_welcome(
	const struct rsb_handshake *hs, struct rsb_welcome *welcome, struct rsb_buf *out);
rsb_nodiscard int rsb_handshake_refuse(int r, const char *text, struct rsb_buf *out);
/*
 * Host: WELCOME, or the errno and sentence of REFUSE (escaped: the peer is not trusted). Views into
 * frame.
 */
rsb_nodiscard int rsb_handshake_check_welcome(struct rsb_handshake *hs, struct rsb_bytes frame,
	struct rsb_welcome *ret_welcome, struct rsb_diag *diag);

#endif
