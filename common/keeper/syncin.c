/* SPDX-License-Identifier: MIT */
#include "keeper/syncin.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/fartree.h"
#include "keeper/gitconfig.h"
#include "keeper/manifest.h"
#include "keeper/secretlike.h"
#include "keeper/syncfetch.h"
#include "util/cleanup.h"
#include "util/str.h"

#define REMOVED_MAX ((size_t)256 << 20)

/* ---- afterwards ---- */

/* The same as here, as far as a sync in can have made it. */
static bool
came_there(const struct rsb_merge_path *at)
{
	if (!at->here || !at->there || (at->here->mode & S_IFMT) != (at->there->mode & S_IFMT))
		return false;
	if (S_ISDIR(at->here->mode))
		return true;
	if (S_ISLNK(at->here->mode))
		return strcmp(at->here->target, at->there->target) == 0;
	/* Whose credentials were cut. */
	if (rsb_gitconfig_is_config(at->path))
		return true;
	return at->here->mode == at->there->mode && at->here->size == at->there->size &&
	       at->here->here.mtime_ns == at->there->there.mtime_ns;
}

struct note {
	int root_fd;
	struct rsb_tree next;
};

static int
note_one(void *arg, const struct rsb_merge_path *at)
{
	struct note *note = arg;
	struct rsb_tree_leaf leaf;

	if (!came_there(at))
		return at->base ? rsb_tree_add(&note->next, at->base) : 0;
	leaf = *at->here;
	leaf.there = at->there->there;
	if (at->base && at->base->hashed && S_ISREG(leaf.mode) &&
		rsb_stamp_is_same(&at->base->here, &leaf.here)) {
		memcpy(leaf.sha, at->base->sha, sizeof(leaf.sha));
		leaf.hashed = true;
	} else if (S_ISREG(leaf.mode)) {
		(void)rsb_tree_hash(note->root_fd, &leaf);
	}
	return rsb_tree_add(&note->next, &leaf);
}

int
rsb_sync_note(const struct rsb_syncout *out, const struct rsb_sync_far *far, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sides_done) struct rsb_sides sides = { 0 };
	struct note note = { 0 };
	int r;

	r = rsb_sides_open(&sides, out, far, diag);
	if (r < 0)
		return r;
	note.root_fd = sides.root_fd;
	r = rsb_merge_walk(&(struct rsb_merge_trees){ .here = &sides.plan.here,
				   .base = &sides.plan.base,
				   .there = &sides.plan.there },
		note_one, &note);
	if (r >= 0)
		r = rsb_manifest_save(out->state_dir, &note.next, sides.plan.had_base);
	rsb_tree_done(&note.next);
	return r < 0 ? rsb_diag_set(diag, r, "what was synced cannot be noted: %s", strerror(-r))
		     : 0;
}

/* ---- what goes in ---- */

struct in {
	const struct rsb_syncout *out;
	const struct rsb_sync *sync; /* the caller's */
	struct rsb_tree wanted;
	struct rsb_buf removed; /* paths, the deepest first */
	struct rsb_syncout_stats stats;
};

static void
in_done(struct in *in)
{
	rsb_tree_done(&in->wanted);
	rsb_buf_done(&in->removed);
}

static void
tell_path(struct in *in, enum rsb_syncout_item item, const char *path, const char *why)
{
	in->stats.items[item]++;
	if (in->out->item)
		in->out->item(in->sync->arg, item, path, why);
}

static void
tell(struct in *in, enum rsb_syncout_item item, const struct rsb_syncplan_job *job, const char *why)
{
	tell_path(in, item, job->at.path, why);
}

static int
choose(struct in *in, const struct rsb_syncplan_job *job)
{
	const bool open = job->at.base && job->at.base->conflict;
	const bool gives = job->act == RSB_MERGE_GIVE;
	char path[RSB_SYNCPLAN_PATH_SIZE];

	if (job->unit == RSB_SYNCPLAN_UNIT_FIRST)
		tell_path(in, RSB_SYNCOUT_CONFLICTS, rsb_syncplan_unit(job, path),
			RSB_SYNCPLAN_UNIT_WHY);
	if ((job->unit && !job->object) || job->inside)
		return 0;
	if (job->unknown && !job->held)
		tell(in, RSB_SYNCOUT_MISSED, job, "its directory cannot be read");
	else if (job->held && rsb_secretlike_stays(job->at.path))
		tell(in, RSB_SYNCOUT_HELD, job, job->held);
	else if (job->act == RSB_MERGE_CONFLICT && !job->held)
		tell(in, RSB_SYNCOUT_CONFLICTS, job, "changed on both sides");
	else if ((gives || job->act == RSB_MERGE_REMOVE) && open)
		tell(in, RSB_SYNCOUT_CONFLICTS, job, "not resolved yet");
	else if (gives && job->missed)
		tell(in, RSB_SYNCOUT_MISSED, job, job->held);
	else if (gives) {
		tell(in, RSB_SYNCOUT_COMES, job, NULL);
		return rsb_tree_add(&in->wanted, job->at.here);
	} else if (job->act == RSB_MERGE_REMOVE) {
		tell(in, RSB_SYNCOUT_GOES, job, NULL);
		return rsb_buf_append(&in->removed, job->at.path, strlen(job->at.path) + 1);
	} else if (job->act == RSB_MERGE_TAKE || job->act == RSB_MERGE_DROP) {
		tell(in, RSB_SYNCOUT_STAYS, job, NULL);
	}
	return 0;
}

static bool
is_wanted(void *arg, const char *path)
{
	const struct in *in = arg;

	return rsb_tree_find(&in->wanted, path);
}

static void
pass_progress(void *arg, const struct rsb_sync_stats *stats)
{
	const struct in *in = arg;

	if (in->sync->progress)
		in->sync->progress(in->sync->arg, stats);
}

static void
pass_notice(void *arg, const char *text)
{
	const struct in *in = arg;

	if (in->sync->notice)
		in->sync->notice(in->sync->arg, text);
}

/* Both sides may have made the same of it. */
static bool
is_doubtful_conflict(const struct rsb_syncplan_job *job)
{
	return job->act == RSB_MERGE_CONFLICT && rsb_syncfetch_unsure(job);
}

/* What is no directory takes the place of one. */
static bool
is_swap(const struct rsb_syncplan_job *job)
{
	return job->act == RSB_MERGE_GIVE && !S_ISDIR(job->at.here->mode) &&
	       rsb_tree_leaf_is(job->at.there, S_IFDIR);
}

/* Whether all that is in the directory there goes. */
static bool
is_emptied(const struct rsb_syncplan *plan, size_t dir)
{
	const char *path = plan->jobs[dir].at.path;

	for (size_t i = dir + 1; i < plan->n; i++) {
		const struct rsb_syncplan_job *job = &plan->jobs[i];

		if (!rsb_str_is_below(job->at.path, path))
			return true;
		if (job->at.there && job->act != RSB_MERGE_REMOVE)
			return false;
	}
	return true;
}

/* From the last to the first, so that a directory goes after what is in it. */
static int
choose_removed(struct in *in, struct rsb_syncplan *plan)
{
	int r = 0;

	for (size_t i = plan->n; r >= 0 && i-- > 0;) {
		const struct rsb_syncplan_job *job = &plan->jobs[i];

		if (job->act == RSB_MERGE_REMOVE)
			r = choose(in, job);
		else if (is_swap(job) && rsb_tree_find(&in->wanted, job->at.path))
			r = rsb_buf_append(&in->removed, job->at.path, strlen(job->at.path) + 1);
	}
	return r;
}

static int
plan(struct in *in, const struct rsb_sync_far *far, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sides_done) struct rsb_sides sides = { 0 };
	RSB_CLEANUP(rsb_syncfetch_done)
	struct rsb_syncfetch fetch = {
		.out = in->out, .sides = &sides, .wanted = is_doubtful_conflict
	};
	int r;

	r = rsb_sides_open(&sides, in->out, far, diag);
	if (r >= 0)
		r = rsb_syncplan_make(&sides.plan, diag);
	if (r >= 0)
		r = rsb_syncfetch_run(&fetch, diag);
	for (size_t i = 0; r >= 0 && i < sides.plan.n; i++) {
		struct rsb_syncplan_job *job = &sides.plan.jobs[i];

		if (is_swap(job) && !is_emptied(&sides.plan, i))
			rsb_syncplan_miss(job, "a directory there holds something of its own");
		if (job->act != RSB_MERGE_REMOVE)
			r = choose(in, job);
	}
	if (r >= 0)
		r = choose_removed(in, &sides.plan);
	return r < 0 || in->out->dry_run
		       ? r
		       : rsb_fartree_remove(sides.haul, rsb_buf_view(&in->removed), diag);
}

int
rsb_sync_update(const struct rsb_syncout *out, const struct rsb_sync_far *far,
	struct rsb_syncout_stats *ret_stats, struct rsb_diag *diag)
{
	RSB_CLEANUP(in_done)
	struct in in = { .out = out, .sync = out->sync, .removed = { .max = REMOVED_MAX } };
	struct rsb_sync sync = *out->sync;
	struct rsb_sync_stats stats = { 0 };
	int r;

	r = plan(&in, far, diag);
	if (r < 0)
		return r;
	sync.wanted = is_wanted;
	sync.progress = pass_progress;
	sync.notice = pass_notice;
	sync.arg = &in;
	if (in.wanted.n && !out->dry_run)
		r = rsb_sync_in(&sync, far, &stats, diag);
	if (r >= 0 && !out->dry_run)
		r = rsb_sync_note(out, far, diag);
	if (r < 0)
		return r;
	in.stats.packed = stats.packed;
	*ret_stats = in.stats;
	return 0;
}
