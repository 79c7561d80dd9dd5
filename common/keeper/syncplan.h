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

struct rsb_syncplan_job {
	struct rsb_merge_path at;
	enum rsb_merge_act act;
	const char *held; /* why it is not done; NULL: it is */
	bool missed;      /* and that is by no rule: it should have been, and could not */
	/*
	 * Only its stamp says that it changed there, so its contents decide; or both sides may have
	 * made the same of it.
	 */
	bool unsure;
	bool unknown;                       /* nobody knows what it is: nothing is to be done */
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

static inline void
rsb_syncplan_miss(struct rsb_syncplan_job *job, const char *why)
{
	job->held = why;
	job->missed = true;
}

void rsb_syncplan_done(struct rsb_syncplan *plan);
/* From its trees. -EBADMSG: the list from there holds what it must not. */
rsb_nodiscard int rsb_syncplan_make(struct rsb_syncplan *plan, struct rsb_diag *diag);
/* staged came: what is the same on both sides after all is no longer to be done. */
void rsb_syncplan_settle(struct rsb_syncplan *plan, const struct rsb_tree *staged);

/* NULL: there is none. */
struct rsb_syncplan_job *rsb_syncplan_find(const struct rsb_syncplan *plan, const char *path);
/* A job whose contents from there are needed. */
bool rsb_syncplan_wants(const struct rsb_syncplan_job *job);
/* Files that would go here, and all that there were. */
void rsb_syncplan_count(const struct rsb_syncplan *plan, size_t *ret_drop, size_t *ret_all);
/* Whether a link, at path, leads out of the tree. */
bool rsb_syncplan_leads_out(const char *path, const char *target);

/*
 * The manifest after it: of a job that is done or the same on both sides what there is, of a
 * conflict what is there, of the others what was.
 */
rsb_nodiscard int rsb_syncplan_manifest(const struct rsb_syncplan *plan, struct rsb_tree *tree);

#endif
