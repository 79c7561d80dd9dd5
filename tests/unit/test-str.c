/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/str.h"

#define S RSB_NSEC_PER_SEC

START_TEST(parses_whole_numbers_only)
{
	static const struct {
		const char *text;
		uint64_t max;
		int r;
		uint64_t value;
	} cases[] = {
		{ "0", 0, 0, 0 },
		{ "007", 7, 0, 7 },
		{ "18446744073709551615", UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999", UINT64_MAX, -ERANGE, 0 },
		{ "8", 7, -ERANGE, 0 },
		{ "", 7, -EINVAL, 0 },
		{ "+1", 7, -EINVAL, 0 },
		{ "-1", 7, -EINVAL, 0 },
		{ " 1", 7, -EINVAL, 0 },
		{ "1 ", 7, -EINVAL, 0 },
		{ "0x1", 7, -EINVAL, 0 },
		{ "99x", 7, -EINVAL, 0 },
	};
	uint64_t value;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		value = 0;
		ck_assert_int_eq(rsb_str_u64(cases[i].text, cases[i].max, &value), cases[i].r);
		ck_assert_uint_eq(value, cases[i].value);
	}
}
END_TEST

struct unit_case {
	const char *text;
	uint64_t value; /* 0: refused */
};

static void
check_units(const struct unit_case *cases, size_t n, int (*parse)(const char *, uint64_t *))
{
	uint64_t value;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		value = 0;
		r = parse(cases[i].text, &value);
		if (r != (cases[i].value ? 0 : -EINVAL) || value != cases[i].value)
			ck_abort_msg("'%s': %d", cases[i].text, r);
	}
}

START_TEST(parses_durations)
{
	static const struct unit_case cases[] = {
		{ "30", 30 * S },
		{ "30s", 30 * S },
		{ "250ms", S / 4 },
		{ "5min", 300 * S },
		{ "5m", 300 * S },
		{ "24h", 86400 * S },
		{ "1d", 86400 * S },
		{ "", 0 },
		{ "s", 0 },
		{ "1.5s", 0 },
		{ "-1s", 0 },
		{ "1 s", 0 },
		{ "1S", 0 },
		{ "1sx", 0 },
		{ "18446744074", 0 },
		{ "300000d", 0 },
	};

	check_units(cases, RSB_ARRAY_SIZE(cases), rsb_str_duration);
}
END_TEST

START_TEST(parses_sizes)
{
	static const struct unit_case cases[] = {
		{ "64", 64 },
		{ "64K", 65536 },
		{ "64M", UINT64_C(64) << 20 },
		{ "2G", UINT64_C(2) << 30 },
		{ "1T", UINT64_C(1) << 40 },
		{ "", 0 },
		{ "K", 0 },
		{ "64KB", 0 },
		{ "64k", 0 },
		{ "18446744073709551615K", 0 },
	};

	check_units(cases, RSB_ARRAY_SIZE(cases), rsb_str_size);
}
END_TEST

START_TEST(parses_the_words_for_true_and_false)
{
	static const char *const yes[] = { "true", "yes", "on", "1" };
	static const char *const no[] = { "false", "no", "off", "0" };
	static const char *const bad[] = { "", "True", "y", "10", "o" };
	bool value;
	size_t i;

	for (i = 0; i < 4; i++) {
		value = false;
		ck_assert_int_eq(rsb_str_bool(yes[i], &value), 0);
		ck_assert(value);
		ck_assert_int_eq(rsb_str_bool(no[i], &value), 0);
		ck_assert(!value);
	}
	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(rsb_str_bool(bad[i], &value), -EINVAL);
}
END_TEST

START_TEST(knows_a_component)
{
	static const char *const good[] = { "a", "...", ".a", "..a", "a b", "\xff", "-", "\n" };
	static const char *const bad[] = { "", ".", "..", "/", "a/b", "a/" };
	char longest[257];
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(good); i++)
		ck_assert(rsb_str_is_component(rsb_bytes_str(good[i])));
	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++)
		ck_assert(!rsb_str_is_component(rsb_bytes_str(bad[i])));
	ck_assert(!rsb_str_is_component((struct rsb_bytes){ (const uint8_t *)"a\0b", 3 }));
	memset(longest, 'x', sizeof(longest));
	longest[256] = '\0';
	ck_assert(!rsb_str_is_component(rsb_bytes_str(longest)));
	longest[255] = '\0';
	ck_assert(rsb_str_is_component(rsb_bytes_str(longest)));
}
END_TEST

START_TEST(finds_a_word)
{
	ck_assert(rsb_str_has_word(rsb_bytes_str("a"), " ba a "));
	ck_assert(rsb_str_has_word(rsb_bytes_str("ba"), " ba a "));
	ck_assert(!rsb_str_has_word(rsb_bytes_str("b"), " ba a "));
	ck_assert(!rsb_str_has_word(rsb_bytes_str("ba a"), " ba a "));
	ck_assert(!rsb_str_has_word(rsb_bytes_str(""), " ba a "));
}
END_TEST

START_TEST(makes_strings)
{
	rsb_autofree char *dup = rsb_str_dup((struct rsb_bytes){ (const uint8_t *)"abc", 2 });
	rsb_autofree char *empty = rsb_str_dup((struct rsb_bytes){ 0 });
	rsb_autofree char *text = rsb_str_printf("%s/%d", "a", 7);
	rsb_autofree char *path = rsb_str_path("/a", "b");
	rsb_autofree char *root = rsb_str_path("/", "b");

	ck_assert_str_eq(dup, "ab");
	ck_assert_str_eq(empty, "");
	ck_assert_str_eq(text, "a/7");
	ck_assert_str_eq(path, "/a/b");
	ck_assert_str_eq(root, "/b");
}
END_TEST

START_TEST(quotes_for_a_shell)
{
	static const struct {
		const char *plain;
		const char *quoted;
	} cases[] = {
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "$x`y`\"\\", "'$x`y`\"\\'" },
		{ "it's", "'it'\\''s'" },
		{ "''", "''\\'''\\'''" },
		{ "a\033[2Jb\n", "'a\\x1b[2Jb\\x0a'" },
	};
	char *quoted;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		quoted = rsb_str_quote(cases[i].plain);
		ck_assert_str_eq(quoted, cases[i].quoted);
		free(quoted);
	}
}
END_TEST

START_TEST(leaves_what_people_read)
{
	static const struct {
		const char *text;
		const char *clean; /* NULL: the same */
	} cases[] = {
		{ "", NULL },
		{ "/home/m\xc3\xbcller/\xe6\x97\xa5\xf0\x9f\x92\xa9 \\", NULL },
		{ "a\r\n\tb\x7f", "a\\x0d\\x0a\\x09b\\x7f" },
		/* CSI of C1, which NBSP is beside */
		{ "\xc2\x9b\xc2\xa0", "\\xc2\\x9b\xc2\xa0" },
		/* RLO, LRI */
		{ "\xe2\x80\xae\xe2\x81\xa6", "\\xe2\\x80\\xae\\xe2\\x81\\xa6" },
		{ "\xff\x80\xc3", "\\xff\\x80\\xc3" },
		/* overlong */
		{ "\xc0\x9b\xe0\x82\x9b", "\\xc0\\x9b\\xe0\\x82\\x9b" },
		{ "\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80" },
	};
	char out[64];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		rsb_str_clean(cases[i].text, out, sizeof(out));
		ck_assert_str_eq(out, cases[i].clean ? cases[i].clean : cases[i].text);
	}
	rsb_str_clean("abc", out, 3);
	ck_assert_str_eq(out, "ab");
	rsb_str_clean("a\xc3\xa9", out, 3);
	ck_assert_str_eq(out, "a");
	rsb_str_clean("ab\n", out, 6);
	ck_assert_str_eq(out, "ab");
}
END_TEST

START_TEST(leaves_nothing_that_a_terminal_obeys)
{
	char out[32];

	rsb_str_escape(rsb_bytes_str("a b\x1b[2J\n\xc3\xa9\\"), out, sizeof(out));
	ck_assert_str_eq(out, "a b\\x1b[2J\\x0a\\xc3\\xa9\\x5c");
	rsb_str_escape(rsb_bytes_str("0123456789"), out, 8);
	ck_assert_uint_lt(strlen(out), 8);
	ck_assert_int_eq(strncmp(out, "0123456789", strlen(out)), 0);
	rsb_str_escape(rsb_bytes_str(""), out, 1);
	ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(converts_hex_both_ways)
{
	const uint8_t data[] = { 0x00, 0x9a, 0xff };
	uint8_t back[3];
	char hex[7];

	rsb_str_hex(data, sizeof(data), hex);
	ck_assert_str_eq(hex, "009aff");
	ck_assert_int_eq(rsb_str_unhex(rsb_bytes_str("009AfF"), back, 3), 0);
	ck_assert_mem_eq(back, data, 3);
	ck_assert_int_eq(rsb_str_unhex(rsb_bytes_str("009af"), back, 3), -EINVAL);
	ck_assert_int_eq(rsb_str_unhex(rsb_bytes_str("009aff00"), back, 3), -EINVAL);
	ck_assert_int_eq(rsb_str_unhex(rsb_bytes_str("009aff0"), back, 3), -EINVAL);
	ck_assert_int_eq(rsb_str_unhex(rsb_bytes_str("009agf"), back, 3), -EINVAL);
	ck_assert_mem_eq(back, data, 3);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		parses_whole_numbers_only,
		parses_durations,
		parses_sizes,
		parses_the_words_for_true_and_false,
		knows_a_component,
		finds_a_word,
		makes_strings,
		quotes_for_a_shell,
		leaves_what_people_read,
		leaves_nothing_that_a_terminal_obeys,
		converts_hex_both_ways,
	};

	return unit_run("str", tests, RSB_ARRAY_SIZE(tests));
}
