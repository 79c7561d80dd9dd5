/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPREPORT_H
#define RSB_SNAPREPORT_H

/* What is told of snapshots. */

#include "exec/report.h"
#include "keeper/snapstore.h"

/* Its numbers and moments, each as a member. */
void rsb_snapreport_point(struct rsb_report *report, const struct rsb_snappoint *point);
/* All of them on standard output: the report of a verb, or a table. */
rsb_nodiscard int rsb_snapreport_json(
	const struct rsb_snapstore *store, const struct rsb_state *state);
void rsb_snapreport_table(const struct rsb_snapstore *store, const struct rsb_state *state);

#endif
