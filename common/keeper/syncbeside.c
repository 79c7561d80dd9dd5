/* SPDX-License-Identifier: MIT */
#include "keeper/syncbeside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/sync.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/str.h"

char *
rsb_syncbeside_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash + 1 - path) : 0;
	size_t name = rsb_min(strlen(path + dir), NAME_MAX - strlen(RSB_SYNC_CONFLICT));

	return rsb_str_printf("%.*s%s", (int)(dir + name), path, RSB_SYNC_CONFLICT);
}

char *
rsb_syncbeside_path(const struct rsb_syncplan_job *job)
{
	rsb_autofree char *top = strndup(job->at.path, job->beside);
	rsb_autofree char *beside = top ? rsb_syncbeside_name(top) : NULL;

	return beside ? rsb_str_printf("%s%s", beside, job->at.path + job->beside) : NULL;
}

/* ---- what is to be done ---- */

static bool
may_clash(const struct rsb_syncplan_job *job)
{
	return job->at.here && job->at.there && !job->held && !job->unknown &&
	       S_ISDIR(job->at.here->mode) != S_ISDIR(job->at.there->mode);
}

/* Whether something in the directory has changed; open: since it was put beside. */
static bool
has_news(const struct rsb_syncplan_job *job, enum rsb_merge_side side, bool open)
{
	const struct rsb_tree_leaf *leaf = side == RSB_MERGE_THERE ? job->at.there : job->at.here;
	const enum rsb_merge_did did = rsb_merge_did(job->at.base, leaf, side);

	return did == RSB_MERGE_CHANGED || (open && did == RSB_MERGE_GONE);
}

static bool
is_conflict(const struct rsb_syncplan *plan, size_t top, size_t end, bool *ret_anew)
{
	const struct rsb_syncplan_job *jobs = plan->jobs;
	const struct rsb_merge_path *at = &jobs[top].at;
	const bool open = at->base && at->base->conflict;
	const bool theirs = S_ISDIR(at->there->mode);
	/* The other side did nothing but to make a file of the directory. */
	const bool may = jobs[top].act == (theirs ? RSB_MERGE_GIVE : RSB_MERGE_TAKE);

	*ret_anew = jobs[top].act == RSB_MERGE_CONFLICT;
	for (size_t i = top + 1; i < end && may && !*ret_anew; i++)
		*ret_anew = has_news(
			&jobs[i], theirs ? RSB_MERGE_THERE : RSB_MERGE_HERE, open && theirs);
	return open || *ret_anew;
}

static void
plan_one(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job, bool anew)
{
	job->inside = true;
	if (job->unknown)
		return;
	job->act = anew && job->beside && job->at.there ? RSB_MERGE_TAKE : RSB_MERGE_NOTHING;
	/* As it was then. */
	job->kept = job->beside && !anew;
	job->object = false;
	job->unsure = false;
	rsb_syncplan_judge(plan, job);
}

void
rsb_syncbeside_plan(struct rsb_syncplan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct rsb_syncplan_job *top = &plan->jobs[i];
		size_t end = i + 1;
		bool anew;

		if (!may_clash(top))
			continue;
		while (end < plan->n && rsb_str_is_below(plan->jobs[end].at.path, top->at.path))
			end++;
		if (!is_conflict(plan, i, end, &anew))
			continue;
		if (S_ISDIR(top->at.there->mode))
			for (size_t k = i; k < end; k++)
				plan->jobs[k].beside = strlen(top->at.path);
		if (anew) {
			top->act = RSB_MERGE_CONFLICT;
			rsb_syncplan_judge(plan, top);
		}
		while (++i < end)
			plan_one(plan, &plan->jobs[i], anew);
		i--;
	}
}

/* ---- doing it ---- */

static int
put_top(const struct rsb_syncplan *plan, struct rsb_publish *publish, struct rsb_syncplan_job *job,
	const char *path)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(plan->root_fd, path, &name);
	struct stat st;
	bool there;
	int r = 0;

	if (dir < 0)
		return dir;
	there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	/* One that is ours goes. */
	if (there && job->at.base && job->at.base->conflict && !rsb_syncplan_find(plan, path))
		r = rsb_publish_away(publish, path);
	else if (there)
		rsb_syncplan_miss(
			job, "changed on both sides, and there is a file of the name for theirs");
	if (r < 0 || job->held)
		return r;
	r = rsb_publish_dir(publish, path);
	job->done = r >= 0;
	return r;
}

int
rsb_syncbeside_put(
	const struct rsb_syncplan *plan, struct rsb_publish *publish, struct rsb_syncplan_job *job)
{
	rsb_autofree char *top = strndup(job->at.path, job->beside);
	rsb_autofree char *path = rsb_syncbeside_path(job);
	int r;

	if (!top || !path)
		return -ENOMEM;
	if (!job->inside)
		return job->act == RSB_MERGE_CONFLICT ? put_top(plan, publish, job, path) : 0;
	if (job->act != RSB_MERGE_TAKE || !rsb_syncplan_find(plan, top)->done)
		return 0;
	if (S_ISDIR(job->at.there->mode))
		r = rsb_publish_dir(publish, path);
	else if (job->staged)
		r = rsb_publish_put(publish, path, job->at.path, NULL);
	else
		return 0;
	job->done = r >= 0;
	return r;
}
