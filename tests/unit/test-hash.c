/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/unit.h"
#include "util/fd.h"
#include "util/hash.h"
#include "util/str.h"

#define ABC_SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void
assert_hex(const uint8_t *data, size_t n, const char *expect)
{
	char hex[2 * RSB_SHA256_SIZE + 1];

	rsb_str_hex(data, n, hex);
	ck_assert_str_eq(hex, expect);
}

START_TEST(agrees_with_the_published_digests)
{
	uint8_t out[RSB_SHA256_SIZE];

	rsb_sha1(rsb_bytes_str("abc"), out);
	assert_hex(out, RSB_SHA1_SIZE, "a9993e364706816aba3e25717850c26c9cd0d89d");
	rsb_sha256(rsb_bytes_str("abc"), out);
	assert_hex(out, sizeof(out), ABC_SHA256);
	rsb_sha256((struct rsb_bytes){ 0 }, out);
	assert_hex(out, sizeof(out), EMPTY_SHA256);
}
END_TEST

/* RFC 4231, test cases 2 and 6. */
START_TEST(agrees_with_the_published_hmac)
{
	const struct rsb_bytes parts[] = {
		rsb_bytes_str("what do ya want "),
		rsb_bytes_str(""),
		rsb_bytes_str("for nothing?"),
	};
	const struct rsb_bytes text =
		rsb_bytes_str("Test Using Larger Than Block-Size Key - Hash Key First");
	uint8_t out[RSB_SHA256_SIZE];
	uint8_t key[131];

	rsb_hmac_sha256(rsb_bytes_str("Jefe"), parts, RSB_ARRAY_SIZE(parts), out);
	assert_hex(out, sizeof(out),
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	rsb_hmac_sha256((struct rsb_bytes){ key, sizeof(key) }, &text, 1, out);
	assert_hex(out, sizeof(out),
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
END_TEST

START_TEST(digests_a_file_from_its_start)
{
	rsb_autoclose int fd = memfd_create("hash", MFD_CLOEXEC);
	uint8_t block[100000] = { 0 };
	uint8_t expect[RSB_SHA256_SIZE];
	uint8_t out[RSB_SHA256_SIZE];

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rsb_fd_write_full(fd, block, sizeof(block)), 0);
	rsb_sha256((struct rsb_bytes){ block, sizeof(block) }, expect);
	ck_assert_int_eq(rsb_sha256_fd(fd, out), 0);
	ck_assert_mem_eq(out, expect, sizeof(out));
	ck_assert_int_eq(rsb_sha256_fd(-1, out), -EBADF);
}
END_TEST

/* Holes at the start, between and at the end are zeros, and the file's offset stays where it is. */
START_TEST(digests_holes_as_zeros)
{
	rsb_autoclose int fd = memfd_create("hash", MFD_CLOEXEC);
	rsb_autofree uint8_t *block = calloc(1, 3000000);
	uint8_t expect[RSB_SHA256_SIZE];
	uint8_t out[RSB_SHA256_SIZE];

	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_nonnull(block);
	ck_assert_int_eq(ftruncate(fd, 3000000), 0);
	for (int n = 0; n < 3; n++) {
		rsb_sha256((struct rsb_bytes){ block, 3000000 }, expect);
		ck_assert_int_eq(lseek(fd, 5, SEEK_SET), 5);
		ck_assert_int_eq(rsb_sha256_fd(fd, out), 0);
		ck_assert_mem_eq(out, expect, sizeof(out));
		ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 5);
		block[1000000 * n + 7] = 'x';
		ck_assert_int_eq(pwrite(fd, "x", 1, 1000000 * n + 7), 1);
	}
}
END_TEST

/* RFC 4648, section 10, and one value per digit that the alphabets spell apart. */
static const struct {
	const char *bytes;
	const char *text;
} pairs[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xef\xbe", "/+++" },
};

START_TEST(encodes_and_decodes_base64)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf bytes = { 0 };
	size_t n, i;

	for (i = 0; i < RSB_ARRAY_SIZE(pairs); i++) {
		rsb_buf_clear(&text);
		rsb_buf_clear(&bytes);
		ck_assert_int_eq(rsb_base64_encode(rsb_bytes_str(pairs[i].bytes), &text), 0);
		n = strlen(pairs[i].text);
		ck_assert_uint_eq(rsb_buf_len(&text), n);
		if (n > 0)
			ck_assert_mem_eq(rsb_buf_head(&text), pairs[i].text, n);
		ck_assert_int_eq(rsb_base64_decode(rsb_buf_view(&text), &bytes), 0);
		n = strlen(pairs[i].bytes);
		ck_assert_uint_eq(rsb_buf_len(&bytes), n);
		if (n > 0)
			ck_assert_mem_eq(rsb_buf_head(&bytes), pairs[i].bytes, n);
	}
}
END_TEST

START_TEST(decodes_without_padding_and_url_safe)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf bytes = { 0 };

	ck_assert_int_eq(rsb_base64_decode(rsb_bytes_str("Zm8"), &bytes), 0);
	ck_assert_int_eq(rsb_base64_decode(rsb_bytes_str("_--_"), &bytes), 0);
	ck_assert_uint_eq(rsb_buf_len(&bytes), 5);
	ck_assert_mem_eq(rsb_buf_head(&bytes), "fo\xff\xef\xbf", 5);
}
END_TEST

START_TEST(refuses_what_is_no_base64)
{
	static const char *const bad[] = { "Z", "Zg=", "Zg===", "=",
		"==", "====", "Zm9v=", "Zh==", "Zm9=", "Zm 9", "Zm9v\n", "Z=9v",
		"Zg==Zg==", "\xc3\xa4\xc3\xa4" };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf bytes = { 0 };
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++)
		if (rsb_base64_decode(rsb_bytes_str(bad[i]), &bytes) != -EBADMSG)
			ck_abort_msg("took '%s'", bad[i]);
	ck_assert_uint_eq(rsb_buf_len(&bytes), 0);
}
END_TEST

START_TEST(stops_at_the_maximum_of_the_buffer)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = 3 };

	ck_assert_int_eq(rsb_base64_encode(rsb_bytes_str("f"), &out), -EMSGSIZE);
	ck_assert_int_eq(rsb_base64_decode(rsb_bytes_str("Zm9v"), &out), 0);
	ck_assert_int_eq(rsb_base64_decode(rsb_bytes_str("Zg"), &out), -EMSGSIZE);
	ck_assert_uint_eq(rsb_buf_len(&out), 3);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		agrees_with_the_published_digests,
		agrees_with_the_published_hmac,
		digests_a_file_from_its_start,
		digests_holes_as_zeros,
		encodes_and_decodes_base64,
		decodes_without_padding_and_url_safe,
		refuses_what_is_no_base64,
		stops_at_the_maximum_of_the_buffer,
	};

	return unit_run("hash", tests, RSB_ARRAY_SIZE(tests));
}
