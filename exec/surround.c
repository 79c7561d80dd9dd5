/* SPDX-License-Identifier: MIT */
#include "exec/surround.h"

#include <errno.h>
#include <string.h>

#include "exec/where.h"
#include "keeper/mountpoint.h"
#include "keeper/state.h"

struct look {
	const char *dir;
	bool named;
	bool known; /* one was made of this very directory, which may be made again */
	struct rsb_diag *diag;
	int r;
};

static int
say_outer(struct look *look, const struct rsb_state *state)
{
	return rsb_diag_set(look->diag, -EINVAL,
		"%s lies in %s, which is that of the sandbox %s: 'rsb up %s' brings that up, "
		"'rsb up .' makes another of this directory alone",
		look->dir, state->local_dir, state->name, state->local_dir);
}

static int
look_at(void *arg, const struct rsb_state *state)
{
	struct look *look = arg;
	const char *below = rsb_where_below(look->dir, state->local_dir);
	const bool in_mountpoint = rsb_where_below(look->dir, state->mountpoint) != NULL;

	look->known = look->known || (below && !*below);
	if (in_mountpoint && rsb_mountpoint_is_ours(state->mountpoint, state->name)) {
		look->r = rsb_diag_set(look->diag, -EINVAL,
			"%s is in the mount of a sandbox already, of %s; name the directory that was "
			"synced in",
			look->dir, state->name);
		return 1;
	}
	if (look->named)
		return 0;
	if (in_mountpoint)
		look->r = rsb_diag_set(look->diag, -EINVAL,
			"%s is where the sandbox %s is mounted, which it is not now: 'rsb mount %s' "
			"does that",
			look->dir, state->name, state->name);
	else if (below && *below)
		look->r = say_outer(look, state);
	return 0;
}

int
rsb_surround_check(const char *root, const char *dir, bool named, struct rsb_diag *diag)
{
	struct look look = { .dir = dir, .named = named, .diag = diag };
	int r = rsb_state_list(root, look_at, &look);

	if (r < 0)
		return r;
	return r == 0 && look.known ? 0 : look.r;
}
