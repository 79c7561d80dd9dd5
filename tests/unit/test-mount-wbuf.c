/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "fuse/wbuf.h"
#include "tests/unit/unit.h"

#define FILE_MAX 5000

static void
put(struct rsb_wbuf *w, uint64_t offset, const char *text)
{
	ck_assert_int_eq(rsb_wbuf_put(w, offset, rsb_bytes_str(text)), (int)__builtin_strlen(text));
}

/* Takes the next piece and compares it. */
static void
take(struct rsb_wbuf *w, uint64_t offset, const char *text)
{
	struct rsb_bytes data;
	uint64_t got;

	ck_assert_int_eq(rsb_wbuf_next(w, &got, &data), 1);
	ck_assert_uint_eq(got, offset);
	ck_assert_uint_eq(data.size, strlen(text));
	ck_assert_mem_eq(data.data, text, data.size);
	rsb_wbuf_sent(w, data.size);
}

static void
is_empty(struct rsb_wbuf *w)
{
	struct rsb_bytes data;
	uint64_t offset;

	ck_assert_int_eq(rsb_wbuf_next(w, &offset, &data), 0);
	ck_assert_uint_eq(w->size, 0);
	rsb_wbuf_done(w);
}

START_TEST(joins_what_follows)
{
	struct rsb_wbuf w;

	rsb_wbuf_init(&w, false);
	put(&w, 10, "hello");
	put(&w, 15, " world");
	take(&w, 10, "hello world");
	is_empty(&w);
}
END_TEST

START_TEST(later_bytes_win)
{
	struct rsb_wbuf w;

	rsb_wbuf_init(&w, false);
	put(&w, 0, "aaaaaaaa");
	put(&w, 2, "bb");
	put(&w, 6, "cccc");
	take(&w, 0, "aabbaacccc");
	is_empty(&w);
}
END_TEST

START_TEST(one_write_swallows_several)
{
	struct rsb_wbuf w;

	rsb_wbuf_init(&w, false);
	put(&w, 0, "aa");
	put(&w, 4, "bb");
	put(&w, 8, "ccXY");
	put(&w, 1, "123456789");
	take(&w, 0, "a123456789XY");
	is_empty(&w);
}
END_TEST

START_TEST(keeps_apart_what_does_not_touch)
{
	struct rsb_wbuf w;

	rsb_wbuf_init(&w, false);
	put(&w, 100, "later");
	put(&w, 0, "first");
	take(&w, 0, "first");
	take(&w, 100, "later");
	is_empty(&w);
}
END_TEST

START_TEST(is_bounded)
{
	static char big[RSB_WBUF_MAX + 100];
	struct rsb_bytes data = { .data = (uint8_t *)big, .size = sizeof(big) };
	struct rsb_wbuf w;

	rsb_wbuf_init(&w, false);
	ck_assert_int_eq(rsb_wbuf_put(&w, 5, data), (int)RSB_WBUF_MAX);
	ck_assert(rsb_wbuf_full(&w));
	ck_assert_int_eq(rsb_wbuf_put(&w, 0, data), 0);
	rsb_wbuf_done(&w);

	for (uint64_t i = 0; i < RSB_WBUF_EXTENTS_MAX; i++)
		put(&w, i * 10, "x");
	ck_assert_int_eq(rsb_wbuf_put(&w, 10000, rsb_bytes_str("x")), 0);
	put(&w, 1, "y");
	rsb_wbuf_done(&w);
}
END_TEST

START_TEST(an_append_stays_in_one_piece)
{
	static char record[RSB_IO_MAX - 10];
	struct rsb_bytes data = { .data = (uint8_t *)record, .size = sizeof(record) };
	struct rsb_wbuf w;
	uint64_t offset;

	rsb_wbuf_init(&w, true);
	ck_assert_int_eq(rsb_wbuf_put(&w, 77, data), (int)sizeof(record));
	ck_assert_int_eq(rsb_wbuf_put(&w, 0, rsb_bytes_str("twelve bytes")), 0);
	ck_assert_int_eq(rsb_wbuf_put(&w, 0, rsb_bytes_str("ten bytes.")), 10);
	ck_assert_int_eq(rsb_wbuf_next(&w, &offset, &data), 1);
	ck_assert_uint_eq(offset, 77);
	ck_assert_uint_eq(data.size, RSB_IO_MAX);
	rsb_wbuf_done(&w);
}
END_TEST

/* Random writes and sends against a plain array. */
START_TEST(agrees_with_a_file)
{
	uint8_t want[FILE_MAX + 64] = { 0 };
	uint8_t got[FILE_MAX + 64] = { 0 };
	uint8_t bytes[64];
	struct rsb_bytes data;
	struct rsb_wbuf w;
	uint64_t offset;

	rsb_wbuf_init(&w, false);
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		size_t size = 1 + (size_t)random() % sizeof(bytes);
		int n;

		offset = (uint64_t)random() % FILE_MAX;
		memset(bytes, (int)random(), size);
		n = rsb_wbuf_put(&w, offset, (struct rsb_bytes){ .data = bytes, .size = size });
		ck_assert_int_ge(n, 0);
		memcpy(want + offset, bytes, (size_t)n);
		while ((n == 0 || random() % 50 == 0) && rsb_wbuf_next(&w, &offset, &data)) {
			memcpy(got + offset, data.data, data.size);
			rsb_wbuf_sent(&w, data.size);
		}
	}
	while (rsb_wbuf_next(&w, &offset, &data)) {
		memcpy(got + offset, data.data, data.size);
		rsb_wbuf_sent(&w, data.size);
	}
	ck_assert_mem_eq(got, want, sizeof(want));
	is_empty(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		joins_what_follows,
		later_bytes_win,
		one_write_swallows_several,
		keeps_apart_what_does_not_touch,
		is_bounded,
		an_append_stays_in_one_piece,
		agrees_with_a_file,
	};

	return unit_run("mount-wbuf", tests, RSB_ARRAY_SIZE(tests));
}
