/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITSTEPS_H
#define RSB_GITSTEPS_H

/*
 * What git keeps of an operation that is half done (a rebase, a cherry-pick, a bisection) and goes
 * on by: commands, programs' names and options, some of which older versions give to a shell. A
 * file with only what is harmless is served; another, unless it was made here, is not at all, since
 * with a part of it, or nothing, git would go on and drop the rest. Pure.
 */

#include <stdbool.h>

#include "keeper/gitallow.h"

/* Their directories in that of a repository, up to NULL. */
extern const char *const rsb_gitsteps_dirs[];
/* Their files in that of a repository itself, up to one without a name. */
extern const struct rsb_gitsteps_file {
	const char *name;
	enum rsb_git_kind kind;
} rsb_gitsteps_files[];

/* Of a file called name in one of its directories; RSB_GIT_NONE: git takes no orders from it. */
enum rsb_git_kind rsb_gitsteps_kind(struct rsb_bytes name);
/* What rsb_gitsteps_judge() is for. */
bool rsb_gitsteps_holds(enum rsb_git_kind kind);
/* rsb_gitallow_judge() for one of them. */
rsb_nodiscard int rsb_gitsteps_judge(
	const struct rsb_gitallow *what, char why[static RSB_GITALLOW_WHY_MAX]);

#endif
