/* SPDX-License-Identifier: MIT */
#ifndef RSB_IGNORE_H
#define RSB_IGNORE_H

/*
 * Which paths a sync leaves out: patterns in the syntax of gitignore(5), the last that
 * matches decides, "!" takes back. Paths are bytes, relative to the root of the tree, without
 * a slash at either end. The caller asks about a directory before its contents and does not
 * go into one that is left out.
 */

#include <stdbool.h>

#include "util/buf.h"

#define RSB_IGNORE_PATTERNS_MAX 4096
#define RSB_IGNORE_PATTERN_MAX 4096
#define RSB_IGNORE_DEEP_MAX 4

struct rsb_ignore;

rsb_nodiscard int rsb_ignore_new(struct rsb_ignore **ret_ignore);
void rsb_ignore_free(struct rsb_ignore *ignore); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_ignore *, rsb_ignore_free)

/*
 * One pattern; empty ones and comments are skipped. -EINVAL: longer than RSB_IGNORE_PATTERN_MAX,
 * more than RSB_IGNORE_DEEP_MAX times "**", each of which multiplies the work by the depth of the
 * path, or a "[" without its end; -ENOSPC over RSB_IGNORE_PATTERNS_MAX.
 */
rsb_nodiscard int rsb_ignore_add(struct rsb_ignore *ignore, struct rsb_bytes pattern);
/* One pattern a line. */
rsb_nodiscard int rsb_ignore_add_text(struct rsb_ignore *ignore, struct rsb_bytes text);
bool rsb_ignore_match(const struct rsb_ignore *ignore, const char *path, bool is_dir);

#endif
