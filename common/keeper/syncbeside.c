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
	return job->at.here && !S_ISDIR(job->at.here->mode) &&
	       rsb_tree_leaf_is(job->at.there, S_IFDIR) && !job->held && !job->unknown &&
	       (job->act == RSB_MERGE_CONFLICT || job->act == RSB_MERGE_GIVE);
}

/* Of a directory that was in conflict already: whether it is as it was put beside then. */
static bool
is_news(const struct rsb_syncplan_job *job, bool open)
{
	const enum rsb_merge_did did = rsb_merge_did(job->at.base, job->at.there, RSB_MERGE_THERE);

	return did == RSB_MERGE_CHANGED || (open && did == RSB_MERGE_GONE);
}

static bool
is_in(const struct rsb_syncplan_job *job, const struct rsb_syncplan_job *top)
{
	size_t size = strlen(top->at.path);

	return strncmp(job->at.path, top->at.path, size) == 0 && job->at.path[size] == '/';
}

static void
plan_one(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job, bool anew)
{
	if (job->unknown)
		return;
	job->act = anew && job->at.there ? RSB_MERGE_TAKE : RSB_MERGE_NOTHING;
	/* As it was then. */
	job->kept = !anew;
	job->object = false;
	job->unsure = false;
	rsb_syncplan_judge(plan, job);
}

void
rsb_syncbeside_plan(struct rsb_syncplan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct rsb_syncplan_job *top = &plan->jobs[i];
		const bool open = top->at.base && top->at.base->conflict;
		bool anew = top->act == RSB_MERGE_CONFLICT;
		size_t end = i + 1;

		if (!may_clash(top))
			continue;
		for (; end < plan->n && is_in(&plan->jobs[end], top); end++)
			anew = anew || is_news(&plan->jobs[end], open);
		/* Nothing but the file is new. */
		if (!open && !anew)
			continue;
		if (anew)
			top->act = RSB_MERGE_CONFLICT;
		for (; i < end; i++) {
			plan->jobs[i].beside = strlen(top->at.path);
			if (&plan->jobs[i] != top)
				plan_one(plan, &plan->jobs[i], anew);
		}
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
	if (!rsb_syncbeside_is_inside(job))
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
