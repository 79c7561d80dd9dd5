/* SPDX-License-Identifier: MIT */
#include "proto/handshake.h"
#include "proto/version.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte says whose turn it is, the rest is the peer's frame. Key and nonces are known, so
 * that the corpus can hold frames with good proofs.
 */

static void
take(uint8_t turn, struct rsb_bytes frame, const struct rsb_secret *key)
{
	struct rsb_handshake hs = { .version = RSB_PROTO_VERSION, .features = RSB_FEATURES };
	struct rsb_buf out = { .max = 0 };
	struct rsb_diag diag = { .text = "" };
	struct rsb_hello hello = { .session_id = rsb_bytes_str("session") };
	struct rsb_welcome welcome;
	int r;

	memset(hs.host_nonce, 1, sizeof(hs.host_nonce));
	memset(hs.sidecar_nonce, 2, sizeof(hs.sidecar_nonce));
	if (turn == 0) {
		r = rsb_handshake_hello(&hs, key, frame, &hello, &out, &diag);
		FUZZ_CHECK((r == 0) == (rsb_buf_len(&out) > 0));
	} else if (turn == 1) {
		r = rsb_handshake_check_hello(&hs, key, frame, &hello, &diag);
	} else {
		r = rsb_handshake_check_welcome(&hs, frame, &welcome, &diag);
	}
	FUZZ_CHECK(hs.version >= RSB_PROTO_VERSION_MIN && hs.version <= RSB_PROTO_VERSION);
	FUZZ_CHECK((hs.features & ~(uint64_t)RSB_FEATURES) == 0);
	/* A person reads the sentence: nothing of the peer's may steer the terminal. */
	FUZZ_CHECK((r < 0) == (diag.text[0] != '\0'));
	for (const char *p = diag.text; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p < 0x7f);
	rsb_buf_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsb_secret key;
	uint8_t bytes[RSB_AUTH_KEY_SIZE];

	if (size == 0)
		return 0;
	memset(bytes, 3, sizeof(bytes));
	FUZZ_CHECK(rsb_secret_set(&key, bytes, sizeof(bytes)) == 0);
	take(data[0] % 3, (struct rsb_bytes){ data + 1, size - 1 }, &key);
	rsb_secret_done(&key);
	return 0;
}
