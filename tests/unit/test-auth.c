/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "proto/auth.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"
#include "util/str.h"

#define WS_KEY "dGhlIHNhbXBsZSBub25jZQ=="

static struct rsb_secret key;
static uint8_t host_nonce[RSB_AUTH_NONCE_SIZE];
static uint8_t sidecar_nonce[RSB_AUTH_NONCE_SIZE];

static void
fill(void)
{
	uint8_t bytes[RSB_AUTH_KEY_SIZE];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	if (rsb_secret_set(&key, bytes, sizeof(bytes)) < 0)
		abort();
	memset(host_nonce, 1, sizeof(host_nonce));
	memset(sidecar_nonce, 2, sizeof(sidecar_nonce));
}

static void
ck_assert_proof(const uint8_t *proof, const char *expected)
{
	char hex[2 * RSB_SHA256_SIZE + 1];

	rsb_str_hex(proof, RSB_SHA256_SIZE, hex);
	ck_assert_str_eq(hex, expected);
}

/* Computed by another implementation of HMAC from the layout in PROTOCOL.md. */
START_TEST(proves_what_the_protocol_says)
{
	const struct rsb_auth_ids ids = { rsb_bytes_str("sb"), rsb_bytes_str("client"),
		rsb_bytes_str("session") };
	char header[RSB_AUTH_HEADER_SIZE + 1];
	uint8_t proof[RSB_SHA256_SIZE];

	rsb_auth_upgrade_header(&key, host_nonce, rsb_bytes_str(WS_KEY), header);
	ck_assert_str_eq(header,
		"1 0101010101010101010101010101010101010101010101010101010101010101 "
		"dc7aa6c18e975a18d965fc00fa4f059763267c99589df2a93f35565002f8af5c");
	rsb_auth_sidecar_proof(&key, host_nonce, sidecar_nonce, proof);
	ck_assert_proof(proof, "1af9d8b4d3592c324b319587dd9c3250bbef23a6cf72dcee85972bd82033f5c0");
	rsb_auth_host_proof(&key, host_nonce, sidecar_nonce, &ids, proof);
	ck_assert_proof(proof, "fe22273680997584219c5892009c0f1e6ab3f9c5972852dd8d6ca518ad871f90");
}
END_TEST

static int
check(const struct rsb_secret *with, const char *header, size_t size, const char *ws_key,
	uint8_t *ret_nonce)
{
	struct rsb_bytes value =
		bytes_cut((struct rsb_bytes){ (const uint8_t *)header, size }, size);
	int r = rsb_auth_upgrade_check(with, value, rsb_bytes_str(ws_key), ret_nonce);

	bytes_free(value);
	return r;
}

START_TEST(takes_its_own_header_and_gives_the_nonce)
{
	char header[RSB_AUTH_HEADER_SIZE + 1];
	uint8_t nonce[RSB_AUTH_NONCE_SIZE];

	rsb_auth_upgrade_header(&key, host_nonce, rsb_bytes_str(WS_KEY), header);
	ck_assert_int_eq(check(&key, header, RSB_AUTH_HEADER_SIZE, WS_KEY, nonce), 0);
	ck_assert_mem_eq(nonce, host_nonce, sizeof(nonce));
}
END_TEST

START_TEST(refuses_every_other_header)
{
	char header[RSB_AUTH_HEADER_SIZE + 2] = { 0 };
	uint8_t nonce[RSB_AUTH_NONCE_SIZE] = { 77 };

	rsb_auth_upgrade_header(&key, host_nonce, rsb_bytes_str(WS_KEY), header);
	for (size_t i = 0; i < RSB_AUTH_HEADER_SIZE; i++) {
		const char was = header[i];

		header[i] = was == '0' ? '1' : '0';
		ck_assert_int_eq(check(&key, header, RSB_AUTH_HEADER_SIZE, WS_KEY, nonce), -EACCES);
		header[i] = 'x';
		ck_assert_int_eq(check(&key, header, RSB_AUTH_HEADER_SIZE, WS_KEY, nonce), -EACCES);
		header[i] = was;
	}
	for (size_t size = 0; size < RSB_AUTH_HEADER_SIZE; size++)
		ck_assert_int_eq(check(&key, header, size, WS_KEY, nonce), -EACCES);
	ck_assert_int_eq(check(&key, header, RSB_AUTH_HEADER_SIZE + 1, WS_KEY, nonce), -EACCES);
	ck_assert_uint_eq(nonce[0], 77);
}
END_TEST

/* A header that was overheard proves nothing in another upgrade, nor with another key. */
START_TEST(binds_the_header_to_upgrade_and_key)
{
	struct rsb_secret other = { .size = 0 };
	char header[RSB_AUTH_HEADER_SIZE + 1];
	uint8_t nonce[RSB_AUTH_NONCE_SIZE];

	rsb_auth_upgrade_header(&key, host_nonce, rsb_bytes_str(WS_KEY), header);
	ck_assert_int_eq(
		check(&key, header, RSB_AUTH_HEADER_SIZE, "dGhlIHNhbXBsZSBub25jZA==", nonce),
		-EACCES);
	ck_assert_int_eq(rsb_secret_generate(&other, RSB_AUTH_KEY_SIZE), 0);
	ck_assert_int_eq(check(&other, header, RSB_AUTH_HEADER_SIZE, WS_KEY, nonce), -EACCES);
	rsb_secret_done(&other);
}
END_TEST

START_TEST(never_passes_without_a_key)
{
	const struct rsb_secret empty = { .size = 0 };
	char header[RSB_AUTH_HEADER_SIZE + 1];
	uint8_t nonce[RSB_AUTH_NONCE_SIZE];

	rsb_auth_upgrade_header(&key, host_nonce, rsb_bytes_str(WS_KEY), header);
	ck_assert_int_eq(check(&empty, header, RSB_AUTH_HEADER_SIZE, WS_KEY, nonce), -EACCES);
}
END_TEST

START_TEST(tells_the_parts_of_a_proof_apart)
{
	const struct rsb_auth_ids a = { rsb_bytes_str("ab"), rsb_bytes_str("c"),
		rsb_bytes_str("s") };
	const struct rsb_auth_ids b = { rsb_bytes_str("a"), rsb_bytes_str("bc"),
		rsb_bytes_str("s") };
	uint8_t proof[4][RSB_SHA256_SIZE];

	rsb_auth_host_proof(&key, host_nonce, sidecar_nonce, &a, proof[0]);
	rsb_auth_host_proof(&key, host_nonce, sidecar_nonce, &b, proof[1]);
	rsb_auth_host_proof(&key, sidecar_nonce, host_nonce, &a, proof[2]);
	rsb_auth_sidecar_proof(&key, host_nonce, sidecar_nonce, proof[3]);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert_mem_ne(proof[i], proof[j], RSB_SHA256_SIZE);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		proves_what_the_protocol_says,
		takes_its_own_header_and_gives_the_nonce,
		refuses_every_other_header,
		binds_the_header_to_upgrade_and_key,
		never_passes_without_a_key,
		tells_the_parts_of_a_proof_apart,
	};

	fill();
	return unit_run("auth", tests, RSB_ARRAY_SIZE(tests));
}
