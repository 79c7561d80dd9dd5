/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITADOPT_H
#define RSB_GITADOPT_H

/*
 * A repository that is synced in is the user's own: its settings, attributes and hooks, and those
 * of its submodules, are trusted on the mount (keeper/gitcopy.h) as they go in, which is without
 * credentials.
 */

#include "util/macro.h"

/* dir: what was synced in; file: where the trusted copies are. Nothing to trust is fine. */
rsb_nodiscard int rsb_gitadopt(const char *dir, const char *file);

#endif
