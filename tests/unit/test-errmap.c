/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "proto/errmap.h"
#include "tests/unit/unit.h"

#define WIRE_LAST 133
#define WIRE_ENOSYS 38

START_TEST(has_the_numbers_of_linux_on_the_wire)
{
	ck_assert_uint_eq(rsb_errmap_to_wire(-EPERM), 1);
	ck_assert_uint_eq(rsb_errmap_to_wire(-EAGAIN), 11);
	ck_assert_uint_eq(rsb_errmap_to_wire(-ENAMETOOLONG), 36);
	ck_assert_uint_eq(rsb_errmap_to_wire(-EOPNOTSUPP), 95);
	ck_assert_uint_eq(rsb_errmap_to_wire(-ESTALE), 116);
	ck_assert_uint_eq(rsb_errmap_to_wire(-EDQUOT), 122);
	ck_assert_uint_eq(rsb_errmap_to_wire(-EHWPOISON), WIRE_LAST);
}
END_TEST

START_TEST(brings_every_number_back_as_it_was)
{
	int n = 0;

	for (uint32_t wire = 1; wire <= WIRE_LAST; wire++) {
		/* 41 and 58 are unused; ENOSYS never arrives. */
		if (wire == 41 || wire == 58 || wire == WIRE_ENOSYS)
			continue;
		ck_assert_int_lt(rsb_errmap_from_wire(wire), 0);
		ck_assert_uint_eq(rsb_errmap_to_wire(rsb_errmap_from_wire(wire)), wire);
		n++;
	}
	ck_assert_int_eq(n, 130);
}
END_TEST

START_TEST(turns_what_it_does_not_know_into_eio)
{
	const uint64_t wires[] = { 0, 41, 58, WIRE_LAST + 1, 511, 512, 513, 516, 1000, UINT32_MAX,
		UINT64_C(1) << 32, UINT64_MAX };
	const int errors[] = { 0, 1, EPERM, -134, -512, -513, -1000, -4095, -4096, -0x7fffffff };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(wires); i++)
		ck_assert_int_eq(rsb_errmap_from_wire(wires[i]), -EIO);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(errors); i++)
		ck_assert_uint_eq(rsb_errmap_to_wire(errors[i]), 5);
}
END_TEST

START_TEST(never_lets_enosys_arrive)
{
	ck_assert_int_eq(rsb_errmap_from_wire(WIRE_ENOSYS), -EOPNOTSUPP);
	ck_assert_int_eq(rsb_errmap_from_wire(rsb_errmap_to_wire(-ENOSYS)), -EOPNOTSUPP);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		has_the_numbers_of_linux_on_the_wire,
		brings_every_number_back_as_it_was,
		turns_what_it_does_not_know_into_eio,
		never_lets_enosys_arrive,
	};

	return unit_run("errmap", tests, RSB_ARRAY_SIZE(tests));
}
