/* SPDX-License-Identifier: MIT */
#ifndef RSB_MACRO_H
#define RSB_MACRO_H

/* Small macros with no dependency of ours. Arguments are evaluated once. */

#include <stddef.h>
#include <stdint.h>

#define RSB_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define rsb_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define rsb_min(a, b)                              \
	({                                         \
		__typeof__(a) min_a_ = (a);        \
		__typeof__(b) min_b_ = (b);        \
		min_a_ < min_b_ ? min_a_ : min_b_; \
	})
#define rsb_max(a, b)                              \
	({                                         \
		__typeof__(a) max_a_ = (a);        \
		__typeof__(b) max_b_ = (b);        \
		max_a_ > max_b_ ? max_a_ : max_b_; \
	})

/*
 * First word of a declaration. A result is ignored by (void)f() with the reason beside it; gcc
 * would warn all the same about its older attribute.
 */
#if defined(__clang__)
#define rsb_nodiscard __attribute__((warn_unused_result))
#else
#define rsb_nodiscard [[nodiscard]]
#endif
#define rsb_unused __attribute__((unused))
#define rsb_noreturn __attribute__((noreturn))
#define RSB_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define RSB_NSEC_PER_SEC UINT64_C(1000000000)
#define RSB_NSEC_PER_MSEC UINT64_C(1000000)

#endif
