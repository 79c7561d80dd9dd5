/* SPDX-License-Identifier: MIT */
#ifndef RSB_SETTING_H
#define RSB_SETTING_H

/*
 * The table of settings: which there are, what they may be, and where they go in struct
 * rsb_config.
 */

#include "keeper/config.h"

struct rsb_setting {
	const char *section;
	const char *key;
	const char *value;
	int add;       /* to a list */
	int untrusted; /* from a project's file: only what can do no harm */
};

/* All to their built-in values. -ENOMEM. */
rsb_nodiscard int rsb_setting_defaults(struct rsb_config *config);
/*
 * -EINVAL (unknown, or a bad value), -EACCES (harmful in a project), -ENOSPC, -ENOMEM, with a
 * sentence. The first value of a list in one source replaces what weaker sources said, the
 * next ones add to it.
 */
rsb_nodiscard int rsb_setting_set(
	struct rsb_config *config, const struct rsb_setting *setting, struct rsb_diag *diag);
/* Another, stronger source begins. */
void rsb_setting_source(struct rsb_config *config);
/* Frees all values. */
void rsb_setting_done(struct rsb_config *config);

#endif
