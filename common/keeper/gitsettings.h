/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITSETTINGS_H
#define RSB_GITSETTINGS_H

/*
 * The settings of a repository that a sandbox changed, on their way here: what of them git here may
 * be given is decided as on the mount (keeper/gitallow.h), with those here as the trusted copy.
 */

#include "keeper/stage.h"
#include "keeper/syncplan.h"

/*
 * Of a job that is filtered, when it came: its staged file is what may come, and the job says what
 * may not, or is held when nothing is left. Errors of reading and writing here.
 */
rsb_nodiscard int rsb_gitsettings_filter(const struct rsb_syncplan *plan,
	struct rsb_syncplan_job *job, const struct rsb_stage *stage);

#endif
