/* SPDX-License-Identifier: MIT */
#ifndef RSB_CLEANUP_H
#define RSB_CLEANUP_H

/*
 * Scope-bound ownership. A variable marked with one of these is released when its
 * scope ends, by whatever way; rsb_steal() and rsb_steal_fd() hand it on instead.
 * A function that has such a variable has no goto (clang refuses the bad jump).
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/macro.h"

#define RSB_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Moves the pointer out of *pp, which becomes NULL. */
#define rsb_steal(pp)                               \
	({                                          \
		__typeof__(*(pp)) steal_v_ = *(pp); \
		*(pp) = NULL;                       \
		steal_v_;                           \
	})

/* Moves the descriptor out of *fdp, which becomes -1. */
#define rsb_steal_fd(fdp)               \
	({                              \
		int steal_fd_ = *(fdp); \
		*(fdp) = -1;            \
		steal_fd_;              \
	})

/* Defines rsb_x_freep() for RSB_CLEANUP, from rsb_x_free(). */
#define RSB_DEFINE_CLEANUP(type, fn)       \
	static inline void fn##p(type *pp) \
	{                                  \
		if (*pp)                   \
			fn(*pp);           \
	}

static inline void
rsb_cleanup_free(void *pp)
{
	free(*(void **)pp);
}

static inline void
rsb_cleanup_close(const int *fdp)
{
	if (*fdp >= 0)
		(void)close(*fdp);
}

static inline void
rsb_cleanup_fclose(FILE **fp)
{
	if (*fp)
		(void)fclose(*fp);
}

static inline void
rsb_cleanup_closedir(DIR **dp)
{
	if (*dp)
		(void)closedir(*dp);
}

#define rsb_autofree RSB_CLEANUP(rsb_cleanup_free)
#define rsb_autoclose RSB_CLEANUP(rsb_cleanup_close)
#define rsb_autofclose RSB_CLEANUP(rsb_cleanup_fclose)
#define rsb_autoclosedir RSB_CLEANUP(rsb_cleanup_closedir)

/* calloc() by element, refusing overflow; NULL on failure. */
#define rsb_new(type) ((type *)calloc(1, sizeof(type)))
#define rsb_new_array(type, n) ((type *)calloc((n), sizeof(type)))

#endif
