/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/errmap.h"
#include "proto/frame.h"
#include "proto/handshake.h"
#include "proto/version.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* rsb_random() comes through here (--wrap), so that a test can let it fail. */
static bool no_random;

int __real_rsb_random(void *out, size_t size);
int __wrap_rsb_random(void *out, size_t size);

int
__wrap_rsb_random(void *out, size_t size)
{
	return no_random ? -EIO : __real_rsb_random(out, size);
}

static struct rsb_secret key;

/* Both ends after the upgrade, and what was sent last. */
struct pair {
	struct rsb_handshake host;
	struct rsb_handshake sidecar;
	struct rsb_buf wire;
	struct rsb_diag diag;
	struct rsb_bytes keep[8]; /* what decoded views point into */
	size_t n_keep;
};

static void
begin(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	if (key.size == 0)
		ck_assert_int_eq(rsb_secret_generate(&key, RSB_AUTH_KEY_SIZE), 0);
	memset(p->host.host_nonce, 'h', sizeof(p->host.host_nonce));
	memcpy(p->sidecar.host_nonce, p->host.host_nonce, sizeof(p->host.host_nonce));
}

static void
end(struct pair *p)
{
	rsb_buf_done(&p->wire);
	while (p->n_keep > 0)
		bytes_free(p->keep[--p->n_keep]);
}

/* Takes what is on the wire. */
static struct rsb_bytes
taken(struct pair *p)
{
	struct rsb_bytes frame = bytes_cut(rsb_buf_view(&p->wire), rsb_buf_len(&p->wire));

	ck_assert_uint_lt(p->n_keep, RSB_ARRAY_SIZE(p->keep));
	p->keep[p->n_keep++] = frame;
	rsb_buf_clear(&p->wire);
	return frame;
}

/* Puts a frame of our own making on the wire. */
static struct rsb_bytes
forged(struct pair *p, uint8_t type, const struct rsb_message_desc *desc, const void *msg)
{
	struct rsb_buf payload = { .max = 0 };
	struct rsb_frame frame = { .type = type };

	rsb_buf_clear(&p->wire);
	ck_assert_int_eq(rsb_codec_encode(desc, msg, RSB_PROTO_VERSION, &payload), 0);
	frame.payload = rsb_buf_view(&payload);
	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &p->wire), 0);
	rsb_buf_done(&payload);
	return taken(p);
}

static struct rsb_hello
my_hello(void)
{
	return (struct rsb_hello){
		.sandbox_id = rsb_bytes_str("sb-1"),
		.client_id = rsb_bytes_str("0123456789abcdef"),
		.session_id = rsb_bytes_str("fedcba9876543210"),
		.epoch = rsb_bytes_str("boot/1"),
		.received = 5,
		.acked = 4,
		.window = 1000,
	};
}

/* As a sidecar with this version would. */
static struct rsb_bytes
challenge(struct pair *p, uint64_t version, uint64_t features)
{
	uint8_t proof[RSB_SHA256_SIZE];
	struct rsb_challenge c = {
		.version = version,
		.features = features,
		.nonce = { p->sidecar.sidecar_nonce, RSB_AUTH_NONCE_SIZE },
		.proof = { proof, sizeof(proof) },
	};

	rsb_auth_sidecar_proof(&key, p->host.host_nonce, p->sidecar.sidecar_nonce, proof);
	return forged(p, RSB_FRAME_CHALLENGE, &rsb_desc_rsb_challenge, &c);
}

static int
answer(struct pair *p, struct rsb_bytes frame)
{
	struct rsb_hello hello = my_hello();

	return rsb_handshake_hello(&p->host, &key, frame, &hello, &p->wire, &p->diag);
}

/* As a host would that says this. */
static struct rsb_bytes
hello_of(struct pair *p, struct rsb_hello hello)
{
	const struct rsb_auth_ids ids = { hello.sandbox_id, hello.client_id, hello.session_id };
	uint8_t proof[RSB_SHA256_SIZE];

	rsb_auth_host_proof(&key, p->sidecar.host_nonce, p->sidecar.sidecar_nonce, &ids, proof);
	hello.proof = (struct rsb_bytes){ proof, sizeof(proof) };
	return forged(p, RSB_FRAME_HELLO, &rsb_desc_rsb_hello, &hello);
}

static int
check_hello(struct pair *p, struct rsb_bytes frame)
{
	struct rsb_hello hello;

	return rsb_handshake_check_hello(&p->sidecar, &key, frame, &hello, &p->diag);
}

static int
check_welcome(struct pair *p, struct rsb_bytes frame)
{
	struct rsb_welcome welcome;

	return rsb_handshake_check_welcome(&p->host, frame, &welcome, &p->diag);
}

static void
until_hello(struct pair *p)
{
	struct rsb_bytes frame;

	begin(p);
	ck_assert_int_eq(rsb_handshake_challenge(&p->sidecar, &key, &p->wire), 0);
	frame = taken(p);
	ck_assert_int_eq(answer(p, frame), 0);
}

static void
until_welcome(struct pair *p)
{
	until_hello(p);
	ck_assert_int_eq(check_hello(p, taken(p)), 0);
}

START_TEST(agrees_when_both_have_the_key)
{
	struct rsb_welcome welcome = {
		.epoch = rsb_bytes_str("boot/2"), .resumed = 1, .received = 9
	};
	struct rsb_welcome got;
	struct rsb_hello hello;
	struct pair p;

	until_hello(&p);
	ck_assert_int_eq(
		rsb_handshake_check_hello(&p.sidecar, &key, taken(&p), &hello, &p.diag), 0);
	ck_assert(bytes_equal(hello.sandbox_id, rsb_bytes_str("sb-1")));
	ck_assert(bytes_equal(hello.epoch, rsb_bytes_str("boot/1")));
	ck_assert_uint_eq(hello.received, 5);
	ck_assert_uint_eq(hello.table_hash, rsb_op_table_hash());
	ck_assert_int_eq(rsb_handshake_welcome(&p.sidecar, &welcome, &p.wire), 0);
	ck_assert_int_eq(rsb_handshake_check_welcome(&p.host, taken(&p), &got, &p.diag), 0);
	ck_assert(bytes_equal(got.epoch, rsb_bytes_str("boot/2")));
	ck_assert_uint_eq(got.received, 9);
	ck_assert_uint_eq(p.host.version, RSB_PROTO_VERSION);
	ck_assert_uint_eq(p.sidecar.version, RSB_PROTO_VERSION);
	ck_assert_uint_eq(p.host.features, RSB_FEATURES);
	end(&p);
}
END_TEST

START_TEST(refuses_a_sidecar_without_the_key)
{
	struct rsb_secret other = { .size = 0 };
	struct pair p;

	begin(&p);
	ck_assert_int_eq(rsb_secret_generate(&other, RSB_AUTH_KEY_SIZE), 0);
	ck_assert_int_eq(rsb_handshake_challenge(&p.sidecar, &other, &p.wire), 0);
	ck_assert_int_eq(answer(&p, taken(&p)), -EACCES);
	ck_assert_str_ne(p.diag.text, "");
	ck_assert_uint_eq(rsb_buf_len(&p.wire), 0);
	end(&p);
}
END_TEST

START_TEST(refuses_a_host_without_the_key)
{
	struct rsb_hello hello = my_hello();
	struct pair p;

	begin(&p);
	hello.version = RSB_PROTO_VERSION;
	hello.proof = rsb_bytes_str("01234567890123456789012345678901");
	ck_assert_int_eq(
		check_hello(&p, forged(&p, RSB_FRAME_HELLO, &rsb_desc_rsb_hello, &hello)), -EACCES);
	end(&p);
}
END_TEST

/* What was heard on one connection is worth nothing on the next, which has another nonce. */
START_TEST(refuses_a_hello_that_was_heard_before)
{
	struct rsb_bytes old;
	struct pair p;

	until_hello(&p);
	old = taken(&p);
	ck_assert_int_eq(check_hello(&p, old), 0);
	ck_assert_int_eq(rsb_handshake_challenge(&p.sidecar, &key, &p.wire), 0);
	ck_assert_int_eq(check_hello(&p, old), -EACCES);
	end(&p);
}
END_TEST

START_TEST(talks_down_to_an_older_peer_and_not_below_the_minimum)
{
	struct rsb_hello hello = my_hello();
	struct pair p;

	begin(&p);
	ck_assert_int_eq(answer(&p, challenge(&p, RSB_PROTO_VERSION + 5, ~UINT64_C(0))), 0);
	ck_assert_uint_eq(p.host.version, RSB_PROTO_VERSION);
	ck_assert_uint_eq(p.host.features, RSB_FEATURES);
	ck_assert_int_eq(answer(&p, challenge(&p, UINT64_MAX, 0)), 0);
	ck_assert_uint_eq(p.host.version, RSB_PROTO_VERSION);
	ck_assert_uint_eq(p.host.features, 0);
	ck_assert_int_eq(answer(&p, challenge(&p, RSB_PROTO_VERSION_MIN - 1, 0)), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(p.diag.text, "version 0"));

	rsb_buf_clear(&p.wire);
	hello.version = RSB_PROTO_VERSION_MIN - 1;
	ck_assert_int_eq(check_hello(&p, hello_of(&p, hello)), -EPROTONOSUPPORT);
	hello.version = RSB_PROTO_VERSION + 1;
	ck_assert_int_eq(check_hello(&p, hello_of(&p, hello)), 0);
	ck_assert_uint_eq(p.sidecar.version, RSB_PROTO_VERSION);
	ck_assert_uint_eq(p.sidecar.features, 0);
	end(&p);
}
END_TEST

START_TEST(takes_another_table_but_no_hello_without_session)
{
	struct rsb_hello hello = my_hello();
	struct pair p;

	begin(&p);
	hello.version = RSB_PROTO_VERSION;
	hello.table_hash = rsb_op_table_hash();
	ck_assert_int_eq(check_hello(&p, hello_of(&p, hello)), 0);
	hello.table_hash++;
	ck_assert_int_eq(check_hello(&p, hello_of(&p, hello)), 0);
	hello.session_id.size = 0;
	ck_assert_int_eq(check_hello(&p, hello_of(&p, hello)), -EBADMSG);
	end(&p);
}
END_TEST

START_TEST(refuses_a_short_nonce)
{
	struct rsb_challenge c = { .version = RSB_PROTO_VERSION,
		.nonce = rsb_bytes_str("short"),
		.proof = rsb_bytes_str("01234567890123456789012345678901") };
	struct pair p;

	begin(&p);
	ck_assert_int_eq(
		answer(&p, forged(&p, RSB_FRAME_CHALLENGE, &rsb_desc_rsb_challenge, &c)), -EBADMSG);
	end(&p);
}
END_TEST

START_TEST(refuses_a_welcome_that_changes_the_agreement)
{
	struct rsb_welcome w = {
		.version = RSB_PROTO_VERSION, .features = RSB_FEATURES, .epoch = rsb_bytes_str("e")
	};
	const struct rsb_message_desc *desc = &rsb_desc_rsb_welcome;
	struct pair p;

	until_welcome(&p);
	w.version++;
	ck_assert_int_eq(check_welcome(&p, forged(&p, RSB_FRAME_WELCOME, desc, &w)), -EBADMSG);
	w.version--;
	w.features |= 1 << 9;
	ck_assert_int_eq(check_welcome(&p, forged(&p, RSB_FRAME_WELCOME, desc, &w)), -EBADMSG);
	w.features = 0;
	w.resumed = 2;
	ck_assert_int_eq(check_welcome(&p, forged(&p, RSB_FRAME_WELCOME, desc, &w)), -EBADMSG);
	w.resumed = 0;
	w.epoch.size = 0;
	ck_assert_int_eq(check_welcome(&p, forged(&p, RSB_FRAME_WELCOME, desc, &w)), -EBADMSG);
	w.epoch.size = 1;
	ck_assert_int_eq(check_welcome(&p, forged(&p, RSB_FRAME_WELCOME, desc, &w)), 0);
	ck_assert_uint_eq(p.host.features, 0);
	end(&p);
}
END_TEST

START_TEST(hands_on_why_it_was_refused_with_controls_escaped)
{
	struct pair p;

	until_welcome(&p);
	ck_assert_int_eq(rsb_handshake_refuse(-EUSERS, "no \x1b[2Jroom\\ \xff", &p.wire), 0);
	ck_assert_int_eq(check_welcome(&p, taken(&p)), -EUSERS);
	ck_assert_str_eq(p.diag.text, "the sidecar refused: no \\x1b[2Jroom\\x5c \\xff");
	/* It may come before the challenge, too. */
	ck_assert_int_eq(rsb_handshake_refuse(-EACCES, "no", &p.wire), 0);
	ck_assert_int_eq(answer(&p, taken(&p)), -EACCES);
	end(&p);
}
END_TEST

START_TEST(cuts_a_long_refusal)
{
	char text[2000];
	struct pair p;

	until_welcome(&p);
	memset(text, '\n', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(rsb_handshake_refuse(-EIO, text, &p.wire), 0);
	ck_assert_int_eq(check_welcome(&p, taken(&p)), -EIO);
	ck_assert_uint_lt(strlen(p.diag.text), RSB_DIAG_MAX);
	end(&p);
}
END_TEST

START_TEST(takes_a_refusal_that_is_garbled_for_broken)
{
	const struct rsb_frame frame = { .type = RSB_FRAME_REFUSE, .payload = BYTES(0xc1) };
	struct pair p;

	until_welcome(&p);
	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &p.wire), 0);
	ck_assert_int_eq(check_welcome(&p, taken(&p)), -EBADMSG);
	end(&p);
}
END_TEST

/* Whose turn it is takes the frame. */
static int
take(struct pair *p, uint8_t turn, struct rsb_bytes frame)
{
	if (turn == RSB_FRAME_CHALLENGE)
		return answer(p, frame);
	if (turn == RSB_FRAME_HELLO)
		return check_hello(p, frame);
	return check_welcome(p, frame);
}

START_TEST(refuses_frames_out_of_turn)
{
	struct rsb_welcome welcome = { .version = RSB_PROTO_VERSION, .epoch = rsb_bytes_str("e") };
	struct rsb_challenge c = { .version = RSB_PROTO_VERSION };
	struct rsb_bytes payload, good[3];
	struct pair p;

	until_hello(&p);
	good[RSB_FRAME_HELLO - 1] = taken(&p);
	good[RSB_FRAME_CHALLENGE - 1] =
		forged(&p, RSB_FRAME_CHALLENGE, &rsb_desc_rsb_challenge, &c);
	good[RSB_FRAME_WELCOME - 1] =
		forged(&p, RSB_FRAME_WELCOME, &rsb_desc_rsb_welcome, &welcome);
	ck_assert_int_eq(check_hello(&p, good[RSB_FRAME_HELLO - 1]), 0);
	/* The right payload in a frame of another type. */
	for (uint8_t type = RSB_FRAME_CHALLENGE; type <= RSB_FRAME_MESSAGE; type++) {
		for (uint8_t turn = RSB_FRAME_CHALLENGE; turn <= RSB_FRAME_WELCOME; turn++) {
			struct rsb_frame frame = { .type = type };

			if (turn == type || type == RSB_FRAME_REFUSE)
				continue;
			payload = good[turn - 1];
			frame.payload = (struct rsb_bytes){ payload.data + RSB_FRAME_HEAD,
				payload.size - RSB_FRAME_HEAD };
			rsb_buf_clear(&p.wire);
			ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &p.wire), 0);
			ck_assert_int_eq(take(&p, turn, rsb_buf_view(&p.wire)), -EBADMSG);
		}
	}
	rsb_buf_clear(&p.wire);
	/* A host has no business refusing. */
	ck_assert_int_eq(rsb_handshake_refuse(-EACCES, "no", &p.wire), 0);
	ck_assert_int_eq(check_hello(&p, taken(&p)), -EBADMSG);
	end(&p);
}
END_TEST

START_TEST(refuses_every_truncation)
{
	struct rsb_welcome welcome = { .epoch = rsb_bytes_str("e") };
	struct rsb_bytes frames[3];
	struct pair p;

	begin(&p);
	ck_assert_int_eq(rsb_handshake_challenge(&p.sidecar, &key, &p.wire), 0);
	frames[0] = taken(&p);
	ck_assert_int_eq(answer(&p, frames[0]), 0);
	frames[1] = taken(&p);
	ck_assert_int_eq(check_hello(&p, frames[1]), 0);
	ck_assert_int_eq(rsb_handshake_welcome(&p.sidecar, &welcome, &p.wire), 0);
	frames[2] = taken(&p);
	for (size_t i = 0; i < 3; i++) {
		for (size_t size = 0; size < frames[i].size; size++) {
			struct rsb_bytes cut = bytes_cut(frames[i], size);

			for (uint8_t turn = RSB_FRAME_CHALLENGE; turn <= RSB_FRAME_WELCOME; turn++)
				ck_assert_int_eq(take(&p, turn, cut), -EBADMSG);
			bytes_free(cut);
		}
	}
	end(&p);
}
END_TEST

START_TEST(passes_on_that_something_is_missing)
{
	struct pair p;

	begin(&p);
	no_random = true;
	ck_assert_int_eq(rsb_handshake_challenge(&p.sidecar, &key, &p.wire), -EIO);
	no_random = false;
	ck_assert_uint_eq(rsb_buf_len(&p.wire), 0);

	p.wire.max = 5;
	ck_assert_int_eq(rsb_handshake_challenge(&p.sidecar, &key, &p.wire), -EMSGSIZE);
	end(&p);
}
END_TEST

START_TEST(does_not_send_an_id_over_its_limit)
{
	struct rsb_hello hello = my_hello();
	struct rsb_bytes frame;
	struct pair p;

	begin(&p);
	ck_assert_int_eq(rsb_handshake_challenge(&p.sidecar, &key, &p.wire), 0);
	frame = taken(&p);
	hello.client_id = rsb_bytes_str("longer than sixteen bytes");
	ck_assert_int_eq(
		rsb_handshake_hello(&p.host, &key, frame, &hello, &p.wire, &p.diag), -EINVAL);
	end(&p);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		agrees_when_both_have_the_key,
		refuses_a_sidecar_without_the_key,
		refuses_a_host_without_the_key,
		refuses_a_hello_that_was_heard_before,
		talks_down_to_an_older_peer_and_not_below_the_minimum,
		takes_another_table_but_no_hello_without_session,
		refuses_a_short_nonce,
		refuses_a_welcome_that_changes_the_agreement,
		hands_on_why_it_was_refused_with_controls_escaped,
		cuts_a_long_refusal,
		takes_a_refusal_that_is_garbled_for_broken,
		refuses_frames_out_of_turn,
		refuses_every_truncation,
		passes_on_that_something_is_missing,
		does_not_send_an_id_over_its_limit,
	};

	return unit_run("handshake", tests, RSB_ARRAY_SIZE(tests));
}
