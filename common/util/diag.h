/* SPDX-License-Identifier: MIT */
#ifndef RSB_DIAG_H
#define RSB_DIAG_H

/*
 * One sentence for a person, beside a negative errno. It never carries the decision:
 * the return value does. Passed as the last parameter, may be NULL.
 */

#include "util/macro.h"

#define RSB_DIAG_MAX 512

struct rsb_diag {
	char text[RSB_DIAG_MAX]; /* NUL-terminated; empty = nothing to say */
};

/*
 * Replaces the sentence, clean as by rsb_str_clean() whatever is in it, and returns r:
 * "return rsb_diag_set(d, -EINVAL, ...)" is one line.
 */
int rsb_diag_set(struct rsb_diag *diag, int r, const char *fmt, ...) RSB_PRINTF(3, 4);

/* The sentence if there is one, else the text of the negative errno r. */
const char *rsb_diag_text(const struct rsb_diag *diag, int r);

#endif
