/* SPDX-License-Identifier: MIT */
#ifndef RSB_WHERE_H
#define RSB_WHERE_H

/* Which sandbox is meant, and what the current directory is called in it. */

#include <stdbool.h>

#include "keeper/state.h"
#include "util/diag.h"

struct rsb_where {
	struct rsb_state state;
	char *root;   /* of the state directories */
	char *socket; /* of the daemon, whether it runs or not */
	char *cwd;    /* relative to the workspace; "" when we are elsewhere */
	/*
	 * The current directory is in what was synced in, not in the mount: edits made here are not
	 * seen there.
	 */
	bool beside;
	bool by_mount; /* nobody named it: it is the one in whose mount point we are */
};

/*
 * name: the user's -s, or NULL for RSB_SANDBOX of env, else by the current directory. -ENOENT,
 * -EEXIST with a sentence.
 */
rsb_nodiscard int rsb_where_find(
	const char *name, char *const *env, struct rsb_where *ret_where, struct rsb_diag *diag);
/*
 * The current directory, absolute and without links; caller frees. A sentence also says what to do
 * in one whose mount was taken away, where the kernel has no name for it.
 */
rsb_nodiscard int rsb_where_cwd(char **ret_cwd, struct rsb_diag *diag);
/*
 * Whether beside is met for the first time since the sandbox was made; remembered in its state
 * directory.
 */
bool rsb_where_first_beside(const struct rsb_where *where);
void rsb_where_done(struct rsb_where *where);

/*
 * path below dir: the rest without a slash in front ("" for dir itself); else NULL. Both absolute.
 */
const char *rsb_where_below(const char *path, const char *dir);

#endif
