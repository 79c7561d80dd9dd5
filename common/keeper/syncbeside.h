/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCBESIDE_H
#define RSB_SYNCBESIDE_H

/*
 * A directory on one side and a file on the other, in conflict as one: whatever is in the directory
 * is neither brought nor given nor removed by itself. A directory of the sandbox, or what may come
 * of it, is put beside the file here, in a directory of our own. It is of one moment: when
 * something in it has changed there, all of it is put anew.
 */

#include "keeper/publish.h"
#include "keeper/syncplan.h"

/* Where theirs is put, of path. Caller frees; NULL: no memory. */
char *rsb_syncbeside_name(const char *path);
/* Where a job with beside is put. Caller frees; NULL: no memory. */
char *rsb_syncbeside_path(const struct rsb_syncplan_job *job);
/* When all jobs are made: finds such directories, and what is to be done about what is in them. */
void rsb_syncbeside_plan(struct rsb_syncplan *plan);
/*
 * Puts a job with beside in its place, a directory before what is in it; errors as of
 * rsb_publish_put(). A directory that cannot be put is missed, with all that is in it.
 */
rsb_nodiscard int rsb_syncbeside_put(
	const struct rsb_syncplan *plan, struct rsb_publish *publish, struct rsb_syncplan_job *job);

#endif
