/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "util/gzip.h"

#define SIZE 300000u
#define OUT_MAX ((size_t)8 << 20)

static int
collect(void *arg, struct rsb_bytes data)
{
	return rsb_buf_append(arg, data.data, data.size);
}

/* SIZE bytes that are neither all alike nor noise, packed. */
static void
make(uint8_t *plain, struct rsb_buf *packed)
{
	int in = memfd_create("plain", MFD_CLOEXEC);
	int out = memfd_create("packed", MFD_CLOEXEC);
	uint32_t x = 1;
	uint8_t *tail;
	ssize_t n;

	for (size_t i = 0; i < SIZE; i++) {
		x = x * 1664525u + 1013904223u;
		plain[i] = (uint8_t)((x >> 24) & 15);
	}
	ck_assert_int_eq(write(in, plain, SIZE), SIZE);
	ck_assert_int_eq(rsb_gzip_fd(in, out), 0);
	rsb_buf_init(packed, OUT_MAX);
	ck_assert_int_eq(rsb_buf_reserve(packed, SIZE, &tail), 0);
	n = pread(out, tail, SIZE, 0);
	ck_assert_int_gt(n, 100);
	ck_assert_int_lt(n, SIZE * 2 / 3);
	rsb_buf_commit(packed, (size_t)n);
	close(in);
	close(out);
}

/* Feeds in steps; the first error, or that of the end. */
static int
unpack(struct rsb_bytes packed, size_t step, struct rsb_buf *out)
{
	struct rsb_gunzip *gunzip;
	int r = 0;

	rsb_buf_init(out, OUT_MAX);
	ck_assert_int_eq(rsb_gunzip_new(collect, out, &gunzip), 0);
	for (size_t at = 0; at < packed.size && r == 0; at += step)
		r = rsb_gunzip_feed(gunzip,
			(struct rsb_bytes){ packed.data + at, rsb_min(step, packed.size - at) });
	if (r == 0)
		r = rsb_gunzip_finish(gunzip);
	rsb_gunzip_free(gunzip);
	return r;
}

START_TEST(comes_back_over_any_cut)
{
	static const size_t steps[] = { 1, 7, 4096, SIZE };
	uint8_t *plain = malloc(SIZE);
	struct rsb_buf packed, out;

	make(plain, &packed);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(steps); i++) {
		ck_assert_int_eq(unpack(rsb_buf_view(&packed), steps[i], &out), 0);
		ck_assert_uint_eq(rsb_buf_len(&out), SIZE);
		ck_assert_mem_eq(rsb_buf_head(&out), plain, SIZE);
		rsb_buf_done(&out);
	}
	rsb_buf_done(&packed);
	free(plain);
}
END_TEST

START_TEST(takes_several_members)
{
	uint8_t *plain = malloc(SIZE);
	struct rsb_buf packed, out, both;

	make(plain, &packed);
	rsb_buf_init(&both, OUT_MAX);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			rsb_buf_append(&both, rsb_buf_head(&packed), rsb_buf_len(&packed)), 0);
	ck_assert_int_eq(unpack(rsb_buf_view(&both), 1000, &out), 0);
	ck_assert_uint_eq(rsb_buf_len(&out), 2 * SIZE);
	rsb_buf_done(&out);
	rsb_buf_done(&both);
	rsb_buf_done(&packed);
	free(plain);
}
END_TEST

START_TEST(refuses_what_is_broken)
{
	uint8_t *plain = malloc(SIZE);
	struct rsb_buf packed, out;
	struct rsb_bytes cut;

	make(plain, &packed);
	cut = rsb_buf_view(&packed);
	cut.size -= 3;
	ck_assert_int_eq(unpack(cut, 1000, &out), -EBADMSG);
	rsb_buf_done(&out);
	packed.data[packed.size / 2] ^= 1;
	ck_assert_int_eq(unpack(rsb_buf_view(&packed), 1000, &out), -EBADMSG);
	rsb_buf_done(&out);
	ck_assert_int_eq(unpack(rsb_bytes_str("plain text"), 3, &out), -EBADMSG);
	rsb_buf_done(&out);
	ck_assert_int_eq(unpack(rsb_bytes_str(""), 3, &out), -EBADMSG);
	rsb_buf_done(&out);
	rsb_buf_done(&packed);
	free(plain);
}
END_TEST

static int
refuse(void *arg, struct rsb_bytes data)
{
	(void)arg;
	(void)data;
	return -ENOSPC;
}

START_TEST(hands_on_what_the_taker_says)
{
	uint8_t *plain = malloc(SIZE);
	struct rsb_gunzip *gunzip;
	struct rsb_buf packed;

	make(plain, &packed);
	ck_assert_int_eq(rsb_gunzip_new(refuse, NULL, &gunzip), 0);
	ck_assert_int_eq(rsb_gunzip_feed(gunzip, rsb_buf_view(&packed)), -ENOSPC);
	rsb_gunzip_free(gunzip);
	rsb_buf_done(&packed);
	free(plain);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		comes_back_over_any_cut,
		takes_several_members,
		refuses_what_is_broken,
		hands_on_what_the_taker_says,
	};

	return unit_run("gzip", tests, RSB_ARRAY_SIZE(tests));
}
