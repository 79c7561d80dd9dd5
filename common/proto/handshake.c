/* SPDX-License-Identifier: MIT */
#include "proto/handshake.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/errmap.h"
#include "proto/frame.h"
#include "proto/version.h"
#include "util/log.h"
#include "util/str.h"

#define RSB_LOG_MODULE "handshake"

static int
send_frame(uint8_t type, const struct rsb_message_desc *desc, const void *msg, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf payload = { .max = RSB_FRAME_PAYLOAD_MAX };
	struct rsb_frame frame = { .type = type };
	int r;

	r = rsb_codec_encode(desc, msg, RSB_PROTO_VERSION, &payload);
	if (r < 0)
		return r;
	frame.payload = rsb_buf_view(&payload);
	return rsb_frame_encode(&frame, NULL, out);
}

static int
refused(struct rsb_bytes payload, struct rsb_diag *diag)
{
	struct rsb_refuse refuse;
	char text[RSB_DIAG_MAX];
	int r;

	r = rsb_codec_decode(&rsb_desc_rsb_refuse, payload, &refuse);
	if (r < 0)
		return rsb_diag_set(diag, -EBADMSG, "the sidecar refused, and garbled why");
	/* The peer is not trusted with the terminal of whoever reads this. */
	rsb_str_escape(refuse.text, text, sizeof(text));
	r = rsb_errmap_from_wire(refuse.error);
	return rsb_diag_set(diag, r, "the sidecar refused: %s", text);
}

/* Frames of the handshake are never compressed. */
static int
take_frame(struct rsb_bytes in, uint8_t type, const struct rsb_message_desc *desc, void *ret_msg,
	struct rsb_diag *diag)
{
	struct rsb_frame frame;
	int r;

	r = rsb_frame_decode(in, NULL, &frame);
	if (r < 0)
		return rsb_diag_set(diag, -EBADMSG, "the peer does not speak this protocol");
	if (frame.type == RSB_FRAME_REFUSE && type != RSB_FRAME_HELLO)
		return refused(frame.payload, diag);
	if (frame.type != type)
		return rsb_diag_set(
			diag, -EBADMSG, "frame of type %u during the handshake", frame.type);
	r = rsb_codec_decode(desc, frame.payload, ret_msg);
	if (r < 0)
		return rsb_diag_set(diag, -EBADMSG, "malformed %s", desc->name);
	return 0;
}

/* Both sides say the newest version that they know and take the lesser one. */
static int
agree(struct rsb_handshake *hs, uint64_t version, uint64_t features, struct rsb_diag *diag)
{
	if (version < RSB_PROTO_VERSION_MIN)
		return rsb_diag_set(diag, -EPROTONOSUPPORT,
			"the peer speaks protocol version %" PRIu64
			", the oldest one known here is %u",
			version, RSB_PROTO_VERSION_MIN);
	hs->version = (uint32_t)rsb_min(version, (uint64_t)RSB_PROTO_VERSION);
	hs->features = features & RSB_FEATURES;
	return 0;
}

int
rsb_handshake_challenge(struct rsb_handshake *hs, const struct rsb_secret *key, struct rsb_buf *out)
{
	uint8_t proof[RSB_SHA256_SIZE];
	struct rsb_challenge challenge = {
		.version = RSB_PROTO_VERSION,
		.features = RSB_FEATURES,
		.nonce = { hs->sidecar_nonce, sizeof(hs->sidecar_nonce) },
		.proof = { proof, sizeof(proof) },
	};
	int r;

	r = rsb_random(hs->sidecar_nonce, sizeof(hs->sidecar_nonce));
	if (r < 0)
		return r;
	rsb_auth_sidecar_proof(key, hs->host_nonce, hs->sidecar_nonce, proof);
	return send_frame(RSB_FRAME_CHALLENGE, &rsb_desc_rsb_challenge, &challenge, out);
}

static void
host_proof(const struct rsb_handshake *hs, const struct rsb_secret *key,
	const struct rsb_hello *hello, uint8_t out[static RSB_SHA256_SIZE])
{
	const struct rsb_auth_ids ids = {
		.sandbox = hello->sandbox_id,
		.client = hello->client_id,
		.session = hello->session_id,
	};

	rsb_auth_host_proof(key, hs->host_nonce, hs->sidecar_nonce, &ids, out);
}

int
rsb_handshake_hello(struct rsb_handshake *hs, const struct rsb_secret *key, struct rsb_bytes frame,
	struct rsb_hello *hello, struct rsb_buf *out, struct rsb_diag *diag)
{
	uint8_t proof[RSB_SHA256_SIZE];
	struct rsb_challenge c;
	int r;

	r = take_frame(frame, RSB_FRAME_CHALLENGE, &rsb_desc_rsb_challenge, &c, diag);
	if (r < 0)
		return r;
	if (c.nonce.size != sizeof(hs->sidecar_nonce))
		return rsb_diag_set(diag, -EBADMSG, "malformed rsb_challenge");
	memcpy(hs->sidecar_nonce, c.nonce.data, c.nonce.size);
	rsb_auth_sidecar_proof(key, hs->host_nonce, hs->sidecar_nonce, proof);
	if (!rsb_secret_equal(proof, sizeof(proof), c.proof.data, c.proof.size))
		return rsb_diag_set(diag, -EACCES, "the sidecar does not have the key");
	r = agree(hs, c.version, c.features, diag);
	if (r < 0)
		return r;

	hello->version = RSB_PROTO_VERSION;
	hello->features = RSB_FEATURES;
	hello->table_hash = rsb_op_table_hash();
	host_proof(hs, key, hello, proof);
	hello->proof = (struct rsb_bytes){ proof, sizeof(proof) };
	r = send_frame(RSB_FRAME_HELLO, &rsb_desc_rsb_hello, hello, out);
	hello->proof = (struct rsb_bytes){ .data = NULL };
	return r;
}

int
rsb_handshake_check_hello(struct rsb_handshake *hs, const struct rsb_secret *key,
	struct rsb_bytes frame, struct rsb_hello *ret_hello, struct rsb_diag *diag)
{
	uint8_t proof[RSB_SHA256_SIZE];
	struct rsb_hello hello;
	int r;

	r = take_frame(frame, RSB_FRAME_HELLO, &rsb_desc_rsb_hello, &hello, diag);
	if (r < 0)
		return r;
	host_proof(hs, key, &hello, proof);
	if (!rsb_secret_equal(proof, sizeof(proof), hello.proof.data, hello.proof.size))
		return rsb_diag_set(diag, -EACCES, "the host does not have the key");
	if (hello.session_id.size == 0)
		return rsb_diag_set(diag, -EBADMSG, "hello without a session id");
	r = agree(hs, hello.version, hello.features, diag);
	if (r < 0)
		return r;
	if (hello.version == RSB_PROTO_VERSION && hello.table_hash != rsb_op_table_hash())
		rsb_dbg("the host speaks another table of version %u", RSB_PROTO_VERSION);
	*ret_hello = hello;
	return 0;
}

int
rsb_handshake_welcome(
	const struct rsb_handshake *hs, struct rsb_welcome *welcome, struct rsb_buf *out)
{
	welcome->version = hs->version;
	welcome->features = hs->features;
	return send_frame(RSB_FRAME_WELCOME, &rsb_desc_rsb_welcome, welcome, out);
}

int
rsb_handshake_refuse(int r, const char *text, struct rsb_buf *out)
{
	struct rsb_refuse refuse = {
		.error = rsb_errmap_to_wire(r),
		.text = rsb_bytes_str(text),
	};

	refuse.text.size = rsb_min(refuse.text.size, (size_t)rsb_desc_rsb_refuse.fields[1].limit);
	return send_frame(RSB_FRAME_REFUSE, &rsb_desc_rsb_refuse, &refuse, out);
}

int
rsb_handshake_check_welcome(struct rsb_handshake *hs, struct rsb_bytes frame,
	struct rsb_welcome *ret_welcome, struct rsb_diag *diag)
{
	struct rsb_welcome welcome;
	int r;

	r = take_frame(frame, RSB_FRAME_WELCOME, &rsb_desc_rsb_welcome, &welcome, diag);
	if (r < 0)
		return r;
	if (welcome.version != hs->version || (welcome.features & ~hs->features) != 0)
		return rsb_diag_set(diag, -EBADMSG, "the sidecar changed what had been agreed on");
	if (welcome.epoch.size == 0 || welcome.resumed > 1)
		return rsb_diag_set(diag, -EBADMSG, "malformed rsb_welcome");
	hs->features = welcome.features;
	*ret_welcome = welcome;
	return 0;
}
