/* SPDX-License-Identifier: MIT */
#ifndef RSB_TRUST_H
#define RSB_TRUST_H

/*
 * Which project files (.rsb/config) the user has accepted: a line with the digest of path and
 * contents for each, in the file .trusted beside the state directories, which no sandbox can be
 * called. A file that was changed, copied or moved is another file. Over RSB_TRUST_MAX the oldest
 * is forgotten.
 */

#include <stdbool.h>

#include "util/diag.h"

#define RSB_TRUST_MAX 1024u

/* root: of the state directories. text: the file's contents. */
rsb_nodiscard int rsb_trust_add(
	const char *root, const char *path, const char *text, struct rsb_diag *diag);
bool rsb_trust_has(const char *root, const char *path, const char *text);

#endif
