/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCPLAN_H
#define RSB_SYNCPLAN_H

/*
 * What a sync has to do, name by name: the three trees (keeper/tree.h), what both sides did
 * (keeper/merge.h), and what may not come here whatever they did. Files here are read where only
 * their contents can tell; no link is needed.
 */

#include "keeper/merge.h"
#include "util/diag.h"
#include "util/walk.h"

struct rsb_syncplan_job {
	struct rsb_merge_path at;
	enum rsb_merge_act act;
	const char *held; /* why it is not done; NULL: it is */
	bool compared;    /* held for what git would do with it: not if it is what is here */
	bool missed;      /* and that is by no rule: it should have been, and could not */
	bool filtered;    /* settings of git, of which only some may come */
	bool listed;      /* it names files to git: by its contents (keeper/gitlists.h) */
	bool partly;      /* not all of them come: what it said */
	char *said;       /* about that; ours */
	/*
	 * Only its stamp says that it changed there, so its contents decide; or both sides may have
	 * made the same of it.
	 */
	bool unsure;
	bool unknown; /* nobody knows what it is: nothing is to be done */
	/*
	 * Of a repository's objects, which a sync only adds: each side keeps those that it has, in
	 * the form that it gave them.
	 */
	bool object;
	bool kept; /* such a one, about which nothing is done */
	/* In a repository that is in conflict, as one: nothing of it changes but its objects. */
	enum rsb_syncplan_unit {
		RSB_SYNCPLAN_NO_UNIT,
		RSB_SYNCPLAN_UNIT_FIRST,
		RSB_SYNCPLAN_UNIT
	} unit;
	size_t unit_root;                   /* bytes of the path: the repository's directory */
	size_t beside;                      /* the same, of one that is put beside a file here */
	bool inside;                        /* in a directory in conflict: keeper/syncbeside.h */
	const struct rsb_tree_leaf *staged; /* what came of it; NULL: nothing */
	bool done;                          /* here it is as there now */
};

struct rsb_syncplan {
	struct rsb_tree here;
	struct rsb_tree base;
	struct rsb_tree there;
	struct rsb_syncplan_job *jobs; /* in the order of a walk */
	size_t n;
	size_t cap;
	bool trust_git;
	bool had_base;
	int root_fd;
	char *closed;           /* what is below this is not known, or cannot be there */
	const char *why_closed; /* NULL: it is not known */
};

#define RSB_SYNCPLAN_UNIT_WHY                                                                 \
	"git changed it on both sides, and nothing of it is taken: commit in the mount, and " \
	"'git pull --no-rebase' this directory there; then 'rsb sync resolve --theirs' here"

static inline void
rsb_syncplan_miss(struct rsb_syncplan_job *job, const char *why)
{
	job->held = why;
	job->missed = true;
}

void rsb_syncplan_done(struct rsb_syncplan *plan);
/* From its trees. -EBADMSG: the list from there holds what it must not. */
rsb_nodiscard int rsb_syncplan_make(struct rsb_syncplan *plan, struct rsb_diag *diag);
/*
 * staged came: what is the same on both sides after all is no longer to be done; and of what is in
 * conflict after that, repositories are found.
 */
void rsb_syncplan_settle(struct rsb_syncplan *plan, const struct rsb_tree *staged);

/* What the rules say about a job whose act is known. */
void rsb_syncplan_judge(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job);
/* NULL: there is none. */
struct rsb_syncplan_job *rsb_syncplan_find(const struct rsb_syncplan *plan, const char *path);
/* A job that is left as it is, by a rule or with its repository. After rsb_syncplan_settle(). */
bool rsb_syncplan_stays(const struct rsb_syncplan_job *job);
/* The repository that a job with a unit is in, "." if it is all. */
#define RSB_SYNCPLAN_PATH_SIZE (RSB_WALK_PATH_MAX + 1)
const char *rsb_syncplan_unit(
	const struct rsb_syncplan_job *job, char path[static RSB_SYNCPLAN_PATH_SIZE]);
/* A job whose contents from there are needed. */
bool rsb_syncplan_wants(const struct rsb_syncplan_job *job);
/* Files that would go here, and all that there were; without objects of git, which do not go. */
void rsb_syncplan_count(const struct rsb_syncplan *plan, size_t *ret_drop, size_t *ret_all);
/* Whether a link, at path, leads out of the tree. */
bool rsb_syncplan_leads_out(const char *path, const char *target);

/*
 * The manifest after it: of a job that is done or the same on both sides what there is, of a
 * conflict what is there, of the others what was.
 */
rsb_nodiscard int rsb_syncplan_manifest(const struct rsb_syncplan *plan, struct rsb_tree *tree);

#endif
