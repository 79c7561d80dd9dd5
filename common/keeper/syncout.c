/* SPDX-License-Identifier: MIT */
#include "keeper/syncout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/manifest.h"
#include "keeper/publish.h"
#include "keeper/syncbeside.h"
#include "keeper/syncfetch.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"

struct run {
	const struct rsb_syncout *out;
	struct rsb_sides sides;
	struct rsb_syncplan *plan; /* of sides */
	struct rsb_syncfetch fetch;
	struct rsb_publish *publish;
	uint64_t n_due; /* names that change here */
	uint64_t n_done;
	struct rsb_syncout_stats stats;
};

static void
run_done(struct run *run)
{
	rsb_publish_free(run->publish);
	rsb_syncfetch_done(&run->fetch);
	rsb_sides_done(&run->sides);
}

/* ---- what is done ---- */

static void
tell_path(struct run *run, enum rsb_syncout_item item, const char *path, const char *why)
{
	run->stats.items[item]++;
	if (run->out->item)
		run->out->item(run->out->sync->arg, item, path, why);
}

static void
tell(struct run *run, enum rsb_syncout_item item, const struct rsb_syncplan_job *job,
	const char *why)
{
	tell_path(run, item, job->at.path, why);
}

static bool
is_swap_of_kinds(const struct rsb_syncplan_job *job)
{
	return job->at.here && S_ISDIR(job->at.here->mode) != S_ISDIR(job->at.there->mode);
}

/* Away with what is gone, and with what something of another kind takes the place of. */
static int
clear(struct run *run, struct rsb_syncplan_job *job)
{
	const bool goes = job->act == RSB_MERGE_DROP;
	int r;

	if (rsb_syncplan_stays(job) ||
		!(goes || (job->act == RSB_MERGE_TAKE && is_swap_of_kinds(job))))
		return 0;
	if (S_ISDIR(job->at.here->mode))
		r = rsb_publish_remove_dir(run->publish, job->at.path);
	else
		r = rsb_publish_remove(run->publish, job->at.path, &job->at.here->here);
	job->done = goes && r >= 0;
	/* Something in it stays, so it does. */
	if (r == -ENOTEMPTY || r == -EEXIST) {
		if (goes)
			job->act = RSB_MERGE_NOTHING;
		else
			rsb_syncplan_miss(job, "a directory here holds something of its own");
		return 0;
	}
	if (r == -EAGAIN)
		rsb_syncplan_miss(job, "it changes here meanwhile");
	return r == -EAGAIN || r == -ENOENT ? 0 : r;
}

static int
put_beside(struct run *run, struct rsb_syncplan_job *job)
{
	rsb_autofree char *path = rsb_syncbeside_name(job->at.path);
	const char *name;
	rsb_autoclose int dir =
		path ? rsb_beneath_parent(run->sides.root_fd, path, &name) : -ENOMEM;
	struct rsb_stamp old;
	struct stat st;
	bool there;

	if (dir < 0)
		return dir;
	if (rsb_syncplan_find(run->plan, path)) {
		rsb_syncplan_miss(
			job, "changed on both sides, and there is a file of the name for theirs");
		return 0;
	}
	there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	/* Theirs was a directory. */
	if (there && S_ISDIR(st.st_mode) && job->at.base && job->at.base->conflict) {
		int r = rsb_publish_away(run->publish, path);

		if (r < 0)
			return r;
		there = false;
	}
	if (there)
		old = (struct rsb_stamp){ .ino = st.st_ino,
			.mtime_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)RSB_NSEC_PER_SEC +
				    st.st_mtim.tv_nsec };
	return rsb_publish_put(run->publish, path, job->at.path, there ? &old : NULL);
}

/* An object whose directory a gc took away here. */
static int
make_parent(struct run *run, const char *path)
{
	rsb_autofree char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return rsb_publish_dir(run->publish, dir);
}

static int
put(struct run *run, const struct rsb_syncplan_job *job)
{
	const struct rsb_merge_path *at = &job->at;
	const struct rsb_stamp *old = at->here && !is_swap_of_kinds(job) ? &at->here->here : NULL;
	int r = rsb_publish_put(run->publish, at->path, at->path, old);

	if (r != -ENOENT || !job->object)
		return r;
	r = make_parent(run, at->path);
	return r < 0 ? r : rsb_publish_put(run->publish, at->path, at->path, old);
}

static int
bring(struct run *run, struct rsb_syncplan_job *job)
{
	const struct rsb_merge_path *at = &job->at;
	int r;

	if (rsb_syncplan_stays(job))
		return 0;
	if (job->beside) {
		r = rsb_syncbeside_put(run->plan, run->publish, job);
	} else if (job->act == RSB_MERGE_CONFLICT) {
		r = job->staged ? put_beside(run, job) : 0;
		job->done = r >= 0 && !job->held && (job->staged || !at->there);
	} else if (job->act != RSB_MERGE_TAKE || (!job->staged && !S_ISDIR(at->there->mode))) {
		return 0;
	} else {
		r = S_ISDIR(at->there->mode) ? rsb_publish_dir(run->publish, at->path)
					     : put(run, job);
		job->done = r >= 0;
	}
	if (r == -EAGAIN)
		rsb_syncplan_miss(job, "it changes here meanwhile");
	else if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		rsb_syncplan_miss(job, "its directory is not here");
	return job->held ? 0 : r;
}

/* Modes at the end, when nothing is put into directories any more; and what files are now. */
static void
finish(struct run *run)
{
	for (size_t i = run->plan->n; i-- > 0;) {
		const struct rsb_syncplan_job *job = &run->plan->jobs[i];
		rsb_autofree char *beside = NULL;
		rsb_autoclose int fd = -1;

		if (!job->done || job->act != RSB_MERGE_TAKE || !S_ISDIR(job->at.there->mode))
			continue;
		beside = job->beside ? rsb_syncbeside_path(job) : NULL;
		fd = rsb_beneath_open(
			run->sides.root_fd, beside ? beside : job->at.path, O_RDONLY | O_DIRECTORY);
		if (fd >= 0)
			(void)fchmod(fd, job->at.there->mode & 01777);
	}
}

/* Which of the two passes is for it; neither: nothing changes. */
static bool
is_due(const struct rsb_syncplan_job *job, bool goes)
{
	if (rsb_syncplan_stays(job))
		return false;
	if (job->act == RSB_MERGE_DROP)
		return goes;
	return !goes &&
	       (job->act == RSB_MERGE_TAKE || (job->act == RSB_MERGE_CONFLICT && job->staged));
}

static void
count(struct run *run, bool due)
{
	run->n_done += due;
	if (due && run->out->publishes)
		run->out->publishes(run->out->sync->arg, run->n_done, run->n_due);
}

static int
publish(struct run *run, struct rsb_diag *diag)
{
	struct rsb_syncplan_job *jobs = run->plan->jobs;
	const char *path = "";
	int r = 0;

	for (size_t i = 0; i < run->plan->n; i++)
		run->n_due += is_due(&jobs[i], true) || is_due(&jobs[i], false);
	if (run->out->publishes)
		run->out->publishes(run->out->sync->arg, 0, run->n_due);
	for (size_t i = run->plan->n; i-- > 0 && r >= 0;) {
		const bool due = is_due(&jobs[i], true);

		path = jobs[i].at.path;
		r = clear(run, &jobs[i]);
		count(run, due);
	}
	for (size_t i = 0; i < run->plan->n && r >= 0; i++) {
		const bool due = is_due(&jobs[i], false);

		path = jobs[i].at.path;
		r = bring(run, &jobs[i]);
		count(run, due);
	}
	if (r < 0) {
		rsb_autofree char *quoted = rsb_str_quote(path);

		rsb_publish_undo(run->publish);
		return rsb_diag_set(diag, r, "%s cannot be brought here, so nothing was: %s",
			quoted ? quoted : "?", strerror(-r));
	}
	finish(run);
	return 0;
}

/* ---- the whole ---- */

static const char *
why_conflict(const struct rsb_syncplan_job *job)
{
	if (job->act != RSB_MERGE_CONFLICT)
		return "not resolved yet";
	if (!job->at.there)
		return "changed here, gone there";
	if (!job->at.here)
		return "gone here, changed there";
	if (S_ISDIR(job->at.there->mode))
		return "a file here, a directory there";
	return S_ISDIR(job->at.here->mode) ? "a directory here, a file there"
					   : "changed on both sides";
}

static void
tell_job(struct run *run, const struct rsb_syncplan_job *job)
{
	const bool does = job->done || run->out->dry_run;
	const bool open = job->at.base && job->at.base->conflict;

	if (job->unknown && !job->held)
		tell(run, RSB_SYNCOUT_MISSED, job, "its directory cannot be read");
	else if (job->held)
		tell(run, job->missed ? RSB_SYNCOUT_MISSED : RSB_SYNCOUT_HELD, job, job->held);
	else if (rsb_syncplan_stays(job) || job->act == RSB_MERGE_NOTHING || job->inside)
		return; /* or told with its repository, or the directory */
	else if (job->act == RSB_MERGE_TAKE && does)
		tell(run, job->partly ? RSB_SYNCOUT_PARTLY : RSB_SYNCOUT_COMES, job, job->said);
	else if (job->act == RSB_MERGE_DROP && does)
		tell(run, RSB_SYNCOUT_GOES, job, NULL);
	else if (job->act == RSB_MERGE_CONFLICT || open)
		tell(run, RSB_SYNCOUT_CONFLICTS, job, why_conflict(job));
	else if (job->act == RSB_MERGE_GIVE || job->act == RSB_MERGE_REMOVE)
		tell(run, RSB_SYNCOUT_STAYS, job, NULL);
}

static void
tell_all(struct run *run)
{
	char path[RSB_SYNCPLAN_PATH_SIZE];

	for (size_t i = 0; i < run->plan->n; i++) {
		const struct rsb_syncplan_job *job = &run->plan->jobs[i];

		if (job->unit == RSB_SYNCPLAN_UNIT_FIRST)
			tell_path(run, RSB_SYNCOUT_CONFLICTS, rsb_syncplan_unit(job, path),
				RSB_SYNCPLAN_UNIT_WHY);
		tell_job(run, job);
	}
}

static int
check_deletes(const struct run *run, struct rsb_diag *diag)
{
	size_t drop, all;

	rsb_syncplan_count(run->plan, &drop, &all);
	if (run->out->delete_many || run->out->dry_run || drop <= RSB_SYNCOUT_DELETES_MAX ||
		drop * 100 <= all * RSB_SYNCOUT_DELETES_PERCENT)
		return 0;
	return rsb_diag_set(diag, -EPERM,
		"%zu of %zu files are gone in the sandbox: nothing is changed here; "
		"'rsb sync out --delete-many' deletes them here too",
		drop, all);
}

/* The change time of what was renamed is new. */
static void
look_again(struct run *run)
{
	for (size_t i = 0; i < run->plan->n; i++) {
		struct rsb_syncplan_job *job = &run->plan->jobs[i];
		struct rsb_tree_leaf *leaf = (struct rsb_tree_leaf *)job->staged;
		const char *name;
		rsb_autoclose int dir = -1;
		struct stat st;

		if (!job->done || !leaf || job->act != RSB_MERGE_TAKE)
			continue;
		dir = rsb_beneath_parent(run->sides.root_fd, job->at.path, &name);
		if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			st.st_ino != leaf->here.ino)
			leaf->here = (struct rsb_stamp){ 0 };
		else
			leaf->here.ctime_ns =
				(int64_t)st.st_ctim.tv_sec * (int64_t)RSB_NSEC_PER_SEC +
				st.st_ctim.tv_nsec;
	}
}

static int
save(struct run *run, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree next = { 0 };
	int r;

	look_again(run);
	r = rsb_syncplan_manifest(run->plan, &next);
	if (r >= 0)
		r = rsb_manifest_save(run->out->state_dir, &next, run->plan->had_base);
	return r < 0 ? rsb_diag_set(diag, r, "what was synced cannot be noted: %s", strerror(-r))
		     : 0;
}

int
rsb_sync_out(const struct rsb_syncout *out, const struct rsb_sync_far *far,
	struct rsb_syncout_stats *ret_stats, struct rsb_diag *diag)
{
	RSB_CLEANUP(run_done) struct run run = { .out = out };
	int r;

	r = rsb_sides_open(&run.sides, out, far, diag);
	run.plan = &run.sides.plan;
	run.fetch = (struct rsb_syncfetch){ .out = out,
		.sides = &run.sides,
		/* A dry run asks only about what else nobody can tell. */
		.wanted = out->dry_run ? rsb_syncfetch_unsure : rsb_syncplan_wants,
		.publishes = !out->dry_run };
	if (r >= 0)
		r = rsb_syncplan_make(run.plan, diag);
	if (r >= 0)
		r = rsb_syncfetch_run(&run.fetch, diag);
	if (r >= 0)
		r = check_deletes(&run, diag);
	if (r >= 0 && !out->dry_run) {
		/* Without a stage there is nothing to put, but there may be something to remove. */
		if (!run.fetch.stage)
			r = rsb_stage_open(run.sides.root_fd, out->name, &run.fetch.stage, diag);
		if (r >= 0)
			r = rsb_publish_new(
				run.sides.root_fd, rsb_stage_fd(run.fetch.stage), &run.publish);
		if (r >= 0)
			r = publish(&run, diag);
		if (r >= 0)
			r = save(&run, diag);
	}
	if (r < 0)
		return r;
	tell_all(&run);
	run.stats.packed = run.fetch.packed;
	*ret_stats = run.stats;
	return 0;
}
