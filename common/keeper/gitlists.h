/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITLISTS_H
#define RSB_GITLISTS_H

/*
 * The index of a repository, and whatever else names files to git (keeper/gitnames.h), on its way
 * here: it comes as it is or not at all, as on the mount. No trust brings it.
 */

#include "keeper/stage.h"
#include "keeper/syncplan.h"

/* Of a job that is listed, when it came: it is held, if it may not. Errors of reading here. */
rsb_nodiscard int rsb_gitlists_look(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job,
	const struct rsb_stage *stage);

#endif
