/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/secret.h"

START_TEST(holds_up_to_its_maximum)
{
	uint8_t data[RSB_SECRET_MAX + 1] = { 1, 2, 3 };
	struct rsb_secret secret = { 0 };

	ck_assert_int_eq(rsb_secret_set(&secret, data, sizeof(data)), -EMSGSIZE);
	ck_assert_uint_eq(secret.size, 0);
	ck_assert_int_eq(rsb_secret_set(&secret, data, RSB_SECRET_MAX), 0);
	ck_assert_mem_eq(secret.data, data, RSB_SECRET_MAX);
	ck_assert_int_eq(rsb_secret_generate(&secret, sizeof(data)), -EMSGSIZE);
	ck_assert_int_eq(rsb_secret_set(&secret, NULL, 0), 0);
	ck_assert_uint_eq(secret.size, 0);
}
END_TEST

START_TEST(leaves_nothing_behind)
{
	static const struct rsb_secret zero;
	struct rsb_secret secret = { 0 };

	ck_assert_int_eq(rsb_secret_set(&secret, "longer than the next", 20), 0);
	ck_assert_int_eq(rsb_secret_set(&secret, "short", 5), 0);
	ck_assert_mem_eq(secret.data + 5, zero.data, 15);
	rsb_secret_done(&secret);
	ck_assert_mem_eq(&secret, &zero, sizeof(zero));
	rsb_secret_done(NULL);
}
END_TEST

START_TEST(tells_equal_from_not)
{
	ck_assert_int_eq(rsb_secret_equal("abc", 3, "abc", 3), 1);
	ck_assert_int_eq(rsb_secret_equal("abc", 3, "abd", 3), 0);
	ck_assert_int_eq(rsb_secret_equal("abc", 3, "abc", 4), 0);
	ck_assert_int_eq(rsb_secret_equal(NULL, 0, NULL, 0), 1);
}
END_TEST

START_TEST(generates_another_each_time)
{
	struct rsb_secret a = { 0 };
	struct rsb_secret b = { 0 };
	uint64_t x = 0;
	uint64_t y = 0;

	ck_assert_int_eq(rsb_secret_generate(&a, 32), 0);
	ck_assert_int_eq(rsb_secret_generate(&b, 32), 0);
	ck_assert_uint_eq(a.size, 32);
	ck_assert_int_eq(rsb_secret_equal(a.data, a.size, b.data, b.size), 0);
	ck_assert_int_eq(rsb_random(&x, sizeof(x)), 0);
	ck_assert_int_eq(rsb_random(&y, sizeof(y)), 0);
	ck_assert_uint_ne(x, y);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		holds_up_to_its_maximum,
		leaves_nothing_behind,
		tells_equal_from_not,
		generates_another_each_time,
	};

	return unit_run("secret", tests, RSB_ARRAY_SIZE(tests));
}
