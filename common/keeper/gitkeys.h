/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITKEYS_H
#define RSB_GITKEYS_H

/*
 * The settings of git-config(1) that are harmless in whoever's hands: they run no program, name no
 * file to be read as configuration, and lead to nothing outside the mount. Where that depends on
 * the value, the value is looked at. Everything else, and whatever git will know one day, is not.
 */

#include "keeper/gitparse.h"
#include "keeper/target.h"

/* place: of the repository's directory. -ENOMEM counts as "not harmless". */
bool rsb_gitkeys_harmless(const struct rsb_git_entry *entry, const struct rsb_target_place *place);

#endif
