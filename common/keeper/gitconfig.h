/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITCONFIG_H
#define RSB_GITCONFIG_H

/*
 * Cuts what carries credentials out of the text of a .git/config that goes into a sandbox: the user
 * and password in URLs, http.*.extraheader, and all of credential.*. Everything else stays byte for
 * byte.
 */

#include <stdbool.h>

#include "util/buf.h"

/* Appends the text that is left; *ret_cut: something was cut. -ENOMEM, -EMSGSIZE. */
rsb_nodiscard int rsb_gitconfig_strip(struct rsb_bytes text, struct rsb_buf *out, bool *ret_cut);

/* path, relative to the tree's root, is the config of a repository or of one of its submodules. */
bool rsb_gitconfig_is_config(const char *path);

#endif
