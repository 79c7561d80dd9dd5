/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITPATH_H
#define RSB_GITPATH_H

/*
 * The files of a repository that hold paths which git takes from elsewhere than from where the file
 * lies: info/alternates of a directory of objects, which itself may have been reached by a link,
 * and gitdir of a worktree's directory, which git before 2.48 takes from where it runs. So what is
 * given is absolute below the mount point: it means the same wherever it is read from. Pure.
 */

#include <stdbool.h>

#include "keeper/gitallow.h"

/* rsb_gitallow_judge() for one: lines that lead out are left out. */
rsb_nodiscard int rsb_gitpath_alternates(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX]);

/*
 * The same for gitdir. What leads out is not shown as empty: "git gc" here would take the worktree
 * for a broken one and remove it at once, while one that is merely not found is left for months.
 */
rsb_nodiscard int rsb_gitpath_gitdir(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX]);

/*
 * Whether core.worktree, which stays inside, is no directory of a repository: git here would check
 * out into it what it runs.
 */
bool rsb_gitpath_is_worktree(const struct rsb_gitallow *what, const char *value);
/* It goes by what is called .git, or ends there. */
bool rsb_gitpath_has_git(struct rsb_bytes path);

#endif
