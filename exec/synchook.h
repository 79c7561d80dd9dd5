/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCHOOK_H
#define RSB_SYNCHOOK_H

/*
 * sync.in_command and sync.out_command: programs of the user that sync instead of us. They may call
 * rsb-exec and 'rsb sync --builtin'. That one comes while our lock of syncs is held: it is known by
 * a secret of this one run, which it has from its environment.
 */

#include <stdbool.h>

#include "keeper/config.h"
#include "keeper/state.h"

struct rsb_synchook {
	const struct rsb_config *config;
	const struct rsb_state *state;
	const char *state_dir;
	char **env;
	bool out; /* else in */
};

/* "sync.out_command"; NULL: none is set. */
const char *rsb_synchook_key(const struct rsb_config *config, bool out);
/*
 * Under the lock of syncs, and no other. Its status: 0, or 1 if conflicts remain. -EIO: another
 * one; those of rsb_hook_run(); each with a sentence. A signal that ends us ends it first. Main
 * thread.
 */
rsb_nodiscard int rsb_synchook_run(const struct rsb_synchook *hook, struct rsb_diag *diag);
/* Whether we are called by one that runs now, for the sandbox of state_dir. */
bool rsb_synchook_inside(const char *state_dir, char **env);

#endif
