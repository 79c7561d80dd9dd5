/* SPDX-License-Identifier: MIT */
#include "keeper/syncplan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "keeper/gitindex.h"
#include "keeper/gitout.h"
#include "keeper/secretlike.h"
#include "keeper/syncbeside.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "util/walk.h"

#define OURS ".rsb"

void
rsb_syncplan_done(struct rsb_syncplan *plan)
{
	rsb_tree_done(&plan->here);
	rsb_tree_done(&plan->base);
	rsb_tree_done(&plan->there);
	for (size_t i = 0; i < plan->n; i++)
		free(plan->jobs[i].said);
	free(plan->jobs);
	free(plan->closed);
	*plan = (struct rsb_syncplan){ 0 };
}

bool
rsb_syncplan_leads_out(const char *path, const char *target)
{
	size_t depth = 0;
	bool down = false;

	if (target[0] == '/')
		return true;
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	for (const char *p = target; *p;) {
		size_t size = strcspn(p, "/");

		/* Behind a name it may come out of another link. */
		if (size == 2 && p[0] == '.' && p[1] == '.') {
			if (down || depth-- == 0)
				return true;
		} else if (size > 0 && !(size == 1 && p[0] == '.')) {
			down = true;
		}
		p += size + (p[size] == '/');
	}
	return false;
}

static bool
is_plain(const struct rsb_tree_leaf *leaf)
{
	return S_ISREG(leaf->mode) || S_ISDIR(leaf->mode) || S_ISLNK(leaf->mode);
}

/* Two files that only their contents can tell apart; an index of any size may say the same. */
static bool
is_alike(const struct rsb_tree_leaf *a, const struct rsb_tree_leaf *b)
{
	return a && b && S_ISREG(a->mode) && a->mode == b->mode &&
	       (a->size == b->size || rsb_gitindex_is(a->path));
}

static bool
is_credentials(const struct rsb_merge_path *at)
{
	return rsb_secretlike_stays(at->path) &&
	       ((at->here && !S_ISDIR(at->here->mode)) || (at->there && !S_ISDIR(at->there->mode)));
}

static const char *
why_held(const struct rsb_syncplan *plan, const struct rsb_syncplan_job *job)
{
	const struct rsb_tree_leaf *leaf =
		job->act == RSB_MERGE_DROP ? job->at.here : job->at.there;

	if (job->act != RSB_MERGE_NOTHING && is_credentials(&job->at))
		return RSB_SECRETLIKE_STAYS;
	if (!leaf || (job->act != RSB_MERGE_TAKE && job->act != RSB_MERGE_DROP &&
			     job->act != RSB_MERGE_CONFLICT))
		return NULL;
	if (!is_plain(leaf))
		return "it is a FIFO, socket or device";
	if (job->act != RSB_MERGE_DROP && S_ISLNK(leaf->mode) &&
		rsb_syncplan_leads_out(leaf->path, leaf->target))
		return "it is a link that leads out";
	if (plan->trust_git || job->filtered)
		return NULL;
	return job->act == RSB_MERGE_CONFLICT && rsb_gitout_is_settings(leaf->path)
		       ? "it changed on both sides, and that of here stays"
		       : rsb_gitout_held(leaf, &plan->here, &plan->there);
}

static int
close_below(struct rsb_syncplan *plan, const char *path, const char *why)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	free(plan->closed);
	plan->closed = copy;
	plan->why_closed = why;
	return 0;
}

/* What was here and what is, as far as the stamp does not say it. */
static void
hash_here(const struct rsb_syncplan *plan, const struct rsb_merge_path *at)
{
	struct rsb_tree_leaf *here = at->here;
	bool old = is_alike(here, at->base) && !rsb_stamp_is_same(&at->base->here, &here->here);
	bool twin = is_alike(here, at->there) && !(at->base && at->base->mode);

	/* What cannot be read counts as changed. */
	if (here && (old || twin))
		(void)rsb_tree_hash(plan->root_fd, here);
}

/*
 * Whatever a sandbox deletes or writes over is not lost here, so its 'git gc' is no reason to ask;
 * and nobody's gc takes what the other side still needs.
 */
static void
keep_object(struct rsb_syncplan_job *job)
{
	const struct rsb_merge_path *at = &job->at;

	job->object = true;
	if (at->here && at->there && S_ISDIR(at->here->mode) != S_ISDIR(at->there->mode))
		return;
	if (!at->here && job->act == RSB_MERGE_CONFLICT)
		job->act = RSB_MERGE_TAKE;
	else if ((at->here && at->there) ||
		 job->act != (at->here ? RSB_MERGE_GIVE : RSB_MERGE_TAKE))
		job->kept = true;
	if (job->kept)
		job->act = RSB_MERGE_NOTHING;
}

static void
decide_in_repository(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job)
{
	struct rsb_gitout_place place;

	if (job->act == RSB_MERGE_NOTHING ||
		(job->act != RSB_MERGE_CONFLICT && !strcasestr(job->at.path, "objects")) ||
		!rsb_gitout_find(job->at.path, &plan->here, &plan->there, &place))
		return;
	if (place.part == RSB_GITOUT_OBJECT)
		keep_object(job);
	else if (place.part == RSB_GITOUT_SCRATCH && job->act == RSB_MERGE_CONFLICT)
		job->act = RSB_MERGE_NOTHING;
}

void
rsb_syncplan_judge(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job)
{
	const struct rsb_merge_path *at = &job->at;
	const bool comes = job->act == RSB_MERGE_TAKE && rsb_tree_leaf_is(at->there, S_IFREG);

	job->filtered = comes && rsb_gitout_is_settings(at->path);
	job->listed = comes && rsb_gitout_list(at->path) != RSB_GIT_NONE;
	job->unsure = job->unsure || job->filtered || job->listed;
	job->held = why_held(plan, job);
	job->compared = job->held && job->unsure && rsb_tree_leaf_is(at->there, S_IFREG) &&
			job->act != RSB_MERGE_DROP && !is_credentials(at);
}

static void
decide(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job)
{
	struct rsb_merge_path *at = &job->at;
	const enum rsb_merge_did there = rsb_merge_did(at->base, at->there, RSB_MERGE_THERE);

	hash_here(plan, at);
	job->act = rsb_merge_decide(rsb_merge_did(at->base, at->here, RSB_MERGE_HERE), there);
	/* Directories have nothing to be kept twice; but one may be new where a file was. */
	if (job->act == RSB_MERGE_CONFLICT && (!at->here || S_ISDIR(at->here->mode)) &&
		(!at->there || S_ISDIR(at->there->mode)))
		job->act = rsb_tree_leaf_is(at->base, S_IFDIR) || (at->here && at->there)
				   ? RSB_MERGE_NOTHING
			   : at->here ? RSB_MERGE_GIVE
				      : RSB_MERGE_TAKE;
	/* Both made the same. */
	if (job->act == RSB_MERGE_CONFLICT && at->here && at->there &&
		rsb_tree_is_same(at->here, at->there))
		job->act = RSB_MERGE_NOTHING;
	if (job->act == RSB_MERGE_CONFLICT && at->here && at->there && !at->here->hashed &&
		is_alike(at->here, at->there))
		(void)rsb_tree_hash(plan->root_fd, at->here);
	job->unsure = there == RSB_MERGE_CHANGED &&
		      (is_alike(at->there, at->base) || is_alike(at->there, at->here));
	decide_in_repository(plan, job);
	rsb_syncplan_judge(plan, job);
}

static int
add_job(void *arg, const struct rsb_merge_path *at)
{
	static const char stays[] = "its directory is left as it was";
	struct rsb_syncplan *plan = arg;
	struct rsb_syncplan_job *job;

	if (strncasecmp(at->path, OURS, strlen(OURS)) == 0 &&
		(at->path[strlen(OURS)] == '/' || !at->path[strlen(OURS)]))
		return -EBADMSG;
	if (plan->n == plan->cap) {
		size_t cap = plan->cap ? 2 * plan->cap : 256;
		struct rsb_syncplan_job *jobs = reallocarray(plan->jobs, cap, sizeof(*jobs));

		if (!jobs)
			return -ENOMEM;
		plan->jobs = jobs;
		plan->cap = cap;
	}
	job = &plan->jobs[plan->n++];
	*job = (struct rsb_syncplan_job){ .at = *at };
	if (plan->closed && rsb_str_is_below(at->path, plan->closed)) {
		job->unknown = true;
		job->held = plan->why_closed;
		return 0;
	}
	decide(plan, job);
	if ((at->here && at->here->blind) || (at->there && at->there->blind)) {
		job->act = RSB_MERGE_NOTHING;
		job->unknown = true;
		return close_below(plan, at->path, NULL);
	}
	/* What is in a directory that cannot be here stays there. */
	return job->held && rsb_tree_leaf_is(at->there, S_IFDIR) &&
			       (!at->here || !S_ISDIR(at->here->mode))
		       ? close_below(plan, at->path, stays)
		       : 0;
}

int
rsb_syncplan_make(struct rsb_syncplan *plan, struct rsb_diag *diag)
{
	const struct rsb_merge_trees trees = {
		.here = &plan->here, .base = &plan->base, .there = &plan->there
	};
	int r = rsb_merge_walk(&trees, add_job, plan);

	if (r >= 0)
		rsb_syncbeside_plan(plan);
	return r == -EBADMSG ? rsb_diag_set(diag, r,
				       "the sandbox's list holds what is never synced: " OURS)
			     : r;
}

struct rsb_syncplan_job *
rsb_syncplan_find(const struct rsb_syncplan *plan, const char *path)
{
	size_t low = 0;
	size_t high = plan->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = rsb_walk_compare(plan->jobs[mid].at.path, path);

		if (order == 0)
			return &plan->jobs[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

bool
rsb_syncplan_wants(const struct rsb_syncplan_job *job)
{
	return (!job->held || job->compared) && !job->unknown && job->at.there &&
	       !S_ISDIR(job->at.there->mode) &&
	       (job->act == RSB_MERGE_TAKE || job->act == RSB_MERGE_CONFLICT);
}

/* The stamp alone had changed, e.g. since the sandbox was made again of a snapshot. */
static void
settle_held(struct rsb_syncplan_job *job)
{
	if (job->act == RSB_MERGE_TAKE || job->act == RSB_MERGE_CONFLICT)
		job->staged = NULL;
	else
		job->held = NULL;
}

static void
settle(struct rsb_syncplan_job *job, const struct rsb_tree *staged)
{
	const struct rsb_merge_path *at = &job->at;

	job->staged = rsb_tree_find(staged, at->path);
	if (!job->staged)
		return;
	if (S_ISLNK(job->staged->mode) && rsb_syncplan_leads_out(at->path, job->staged->target)) {
		job->held = "it is a link that leads out";
		job->staged = NULL;
		return;
	}
	if (job->beside)
		return;
	if (at->here && rsb_tree_is_same(at->here, job->staged)) {
		job->act = RSB_MERGE_NOTHING;
	} else if (at->base && at->base->mode && rsb_tree_is_same(at->base, job->staged)) {
		/* Nothing happened there: what happened here goes there. */
		job->act = at->here ? rsb_merge_did(at->base, at->here, RSB_MERGE_HERE) ==
						      RSB_MERGE_SAME
					      ? RSB_MERGE_NOTHING
					      : RSB_MERGE_GIVE
				    : RSB_MERGE_REMOVE;
	}
	if (job->held)
		settle_held(job);
}

/* In conflict, now or since an earlier sync. */
static bool
is_open(const struct rsb_syncplan_job *job)
{
	if (job->held || job->unknown || job->object || job->unit)
		return false;
	return job->act == RSB_MERGE_CONFLICT ||
	       (job->act != RSB_MERGE_NOTHING && job->at.base && job->at.base->conflict);
}

static bool
is_of_root(const struct rsb_syncplan_job *job, const char *path, size_t root)
{
	const char *at = job->at.path;

	return strncmp(at, path, root) == 0 && (!root || !at[root] || at[root] == '/');
}

/* All of the repository, where job i is in conflict. */
static void
unite(struct rsb_syncplan *plan, size_t i, size_t root)
{
	const char *path = plan->jobs[i].at.path;
	size_t first = i;

	while (first > 0 && is_of_root(&plan->jobs[first - 1], path, root))
		first--;
	for (size_t k = first; k < plan->n && is_of_root(&plan->jobs[k], path, root); k++) {
		plan->jobs[k].unit_root = root;
		plan->jobs[k].unit = k == first ? RSB_SYNCPLAN_UNIT_FIRST : RSB_SYNCPLAN_UNIT;
	}
}

void
rsb_syncplan_settle(struct rsb_syncplan *plan, const struct rsb_tree *staged)
{
	struct rsb_gitout_place place;

	for (size_t i = 0; i < plan->n; i++)
		if (rsb_syncplan_wants(&plan->jobs[i]))
			settle(&plan->jobs[i], staged);
	for (size_t i = 0; i < plan->n; i++)
		if (is_open(&plan->jobs[i]) &&
			rsb_gitout_find(plan->jobs[i].at.path, &plan->here, &plan->there, &place))
			unite(plan, i, place.root);
}

const char *
rsb_syncplan_unit(const struct rsb_syncplan_job *job, char path[static RSB_SYNCPLAN_PATH_SIZE])
{
	(void)snprintf(path, RSB_SYNCPLAN_PATH_SIZE, "%.*s", (int)job->unit_root, job->at.path);
	return job->unit_root ? path : ".";
}

bool
rsb_syncplan_stays(const struct rsb_syncplan_job *job)
{
	return job->held || (job->unit && !job->object);
}

void
rsb_syncplan_count(const struct rsb_syncplan *plan, size_t *ret_drop, size_t *ret_all)
{
	*ret_drop = *ret_all = 0;
	for (size_t i = 0; i < plan->n; i++) {
		const struct rsb_syncplan_job *job = &plan->jobs[i];

		if (!job->at.base || !job->at.base->mode || S_ISDIR(job->at.base->mode) ||
			job->object)
			continue;
		++*ret_all;
		*ret_drop += job->act == RSB_MERGE_DROP && !rsb_syncplan_stays(job);
	}
}

/* ---- what was then ---- */

/* What both sides have now; contents: where they are known from. */
static int
add_both(struct rsb_tree *tree, const struct rsb_syncplan_job *job)
{
	const struct rsb_merge_path *at = &job->at;
	struct rsb_tree_leaf leaf = job->staged ? *job->staged : *at->here;

	/* Of two modes ours stays, and is what a sync in brings there. */
	if (S_ISDIR(leaf.mode))
		leaf = *at->there;

	if (!leaf.hashed && at->base && at->base->hashed && is_alike(at->base, &leaf)) {
		memcpy(leaf.sha, at->base->sha, sizeof(leaf.sha));
		leaf.hashed = true;
	}
	leaf.here = job->done && job->staged ? job->staged->here
		    : at->here               ? at->here->here
					     : leaf.here;
	leaf.there = at->there->there;
	return rsb_tree_add(tree, &leaf);
}

static int
add_conflict(struct rsb_tree *tree, const struct rsb_syncplan_job *job)
{
	struct rsb_tree_leaf leaf = { .path = (char *)job->at.path };

	if (job->staged)
		leaf = *job->staged;
	else if (rsb_tree_leaf_is(job->at.there, S_IFDIR))
		leaf = *job->at.there;
	leaf.conflict = true;
	leaf.here = (struct rsb_stamp){ 0 };
	if (job->at.there)
		leaf.there = job->at.there->there;
	return rsb_tree_add(tree, &leaf);
}

/* What happened there to a part of a repository: noted for who resolves all of it. */
static bool
is_in_united_conflict(const struct rsb_syncplan_job *job)
{
	return job->unit && !job->object && !job->held &&
	       (job->act == RSB_MERGE_CONFLICT || job->act == RSB_MERGE_TAKE ||
		       job->act == RSB_MERGE_DROP);
}

static int
add_next(struct rsb_tree *tree, const struct rsb_syncplan_job *job)
{
	const struct rsb_merge_path *at = &job->at;

	if ((job->act == RSB_MERGE_CONFLICT && job->done) || is_in_united_conflict(job))
		return add_conflict(tree, job);
	if (job->done && job->act == RSB_MERGE_DROP)
		return 0;
	if (job->done && at->there && S_ISDIR(at->there->mode))
		return rsb_tree_add(tree, at->there);
	if (job->done || (job->act == RSB_MERGE_NOTHING && !job->unknown && at->here && at->there))
		return add_both(tree, job);
	/* Gone on both sides. */
	if (!at->base || (job->act == RSB_MERGE_NOTHING && !job->unknown && !job->kept))
		return 0;
	return rsb_tree_add(tree, at->base);
}

int
rsb_syncplan_manifest(const struct rsb_syncplan *plan, struct rsb_tree *tree)
{
	int r = 0;

	for (size_t i = 0; i < plan->n && r >= 0; i++)
		r = add_next(tree, &plan->jobs[i]);
	return r;
}
