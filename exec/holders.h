/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOLDERS_H
#define RSB_HOLDERS_H

/* Who keeps a mount busy. */

#include <stdbool.h>

#include "util/buf.h"
#include "util/macro.h"

#define RSB_HOLDERS_MAX 5u

/*
 * Appends "PID (PROGRAM), ..." of at most RSB_HOLDERS_MAX processes that have something below path
 * open, mapped, or as a directory of theirs, as far as we may see that; nothing when there is none.
 * Only looks at links below /proc, so that it never waits for the mount.
 */
rsb_nodiscard int rsb_holders_of(const char *path, struct rsb_buf *out);
/* We are below path ourselves, and so, as a rule, is the shell that started us. */
bool rsb_holders_is_here(const char *path);

#endif
