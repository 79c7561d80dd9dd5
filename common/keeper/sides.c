/* SPDX-License-Identifier: MIT */
#include "keeper/sides.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/fartree.h"
#include "keeper/manifest.h"
#include "keeper/stage.h"
#include "keeper/syncbeside.h"
#include "util/cleanup.h"

void
rsb_sides_done(struct rsb_sides *sides)
{
	rsb_haul_free(sides->haul);
	rsb_syncplan_done(&sides->plan);
	if (sides->opened)
		(void)close(sides->root_fd);
	*sides = (struct rsb_sides){ 0 };
}

/* What a sync put beside a file that is in conflict is no part of the tree. */
static int
leave_copies(struct rsb_sides *sides)
{
	const struct rsb_tree *base = &sides->plan.base;

	for (size_t i = 0; i < base->n; i++) {
		rsb_autofree char *path = NULL;

		if (!base->leaves[i].conflict)
			continue;
		path = rsb_syncbeside_name(base->leaves[i].path);
		if (!path)
			return -ENOMEM;
		if (!rsb_tree_find(base, path))
			rsb_tree_drop(&sides->plan.here, path);
	}
	return 0;
}

int
rsb_sides_open(struct rsb_sides *sides, const struct rsb_syncout *out,
	const struct rsb_sync_far *far, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf patterns = { .max = RSB_SYNC_PATTERNS_MAX };
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	const char *dir = out->sync->dir;
	int r;

	sides->root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sides->root_fd < 0)
		return rsb_diag_set(diag, -errno, "%s: %s", dir, strerror(errno));
	sides->opened = true;
	rsb_stage_sweep(sides->root_fd);
	sides->plan.root_fd = sides->root_fd;
	sides->plan.trust_git = out->trust_git;
	r = rsb_sync_patterns(out->sync, &patterns, &ignore, diag);
	if (r >= 0)
		r = rsb_haul_open(far, &sides->haul, diag);
	if (r >= 0)
		r = rsb_fartree_list(
			sides->haul, rsb_buf_view(&patterns), &sides->plan.there, diag);
	if (r < 0)
		return r;
	r = rsb_tree_walk(&sides->plan.here, sides->root_fd, ignore);
	if (r < 0)
		return rsb_diag_set(diag, r, "%s cannot be listed: %s", dir, strerror(-r));
	r = rsb_manifest_load(out->state_dir, &sides->plan.base);
	sides->plan.had_base = r >= 0;
	if (r >= 0)
		r = leave_copies(sides);
	if (r == -EBADMSG && out->sync->notice)
		out->sync->notice(out->sync->arg,
			"the record of the last sync is damaged: contents are compared");
	return r == -EBADMSG || r == -ENOENT ? 0 : r;
}
