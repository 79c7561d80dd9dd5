/* SPDX-License-Identifier: MIT */
#include "exec/snapreport.h"

#include <inttypes.h>
#include <stdio.h>

#include "exec/progress.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/localtime.h"

void
rsb_snapreport_point(struct rsb_report *report, const struct rsb_snappoint *point)
{
	char taken[RSB_RFC3339_SIZE];

	rsb_clock_rfc3339(point->taken_ns, taken);
	rsb_report_number(report, "snapshot", point->number);
	rsb_report_str(report, "taken", taken);
	rsb_report_str(report, "why", point->why);
	rsb_report_bool(report, "base", point->base);
	rsb_report_bool(report, "fuzzy", point->fuzzy);
	rsb_report_number(report, "files", point->files);
	rsb_report_number(report, "changed", point->changed);
	rsb_report_number(report, "removed", point->removed);
	rsb_report_number(report, "moved", point->moved);
	rsb_report_number(report, "size", point->archive_size + point->tree_size);
}

int
rsb_snapreport_json(const struct rsb_snapstore *store, const struct rsb_state *state)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	struct rsb_json *array = rsb_json_new_array();

	rsb_report_init(&report);
	rsb_report_sandbox(&report, state);
	rsb_report_number(&report, "size", rsb_snapstore_size(store));
	for (size_t i = 0; i < rsb_snapstore_count(store) && array; i++) {
		RSB_CLEANUP(rsb_report_done) struct rsb_report one = { 0 };

		rsb_report_init(&one);
		rsb_snapreport_point(&one, rsb_snapstore_at(store, i));
		if (one.r < 0 || rsb_json_set(array, NULL, rsb_steal(&one.json)) < 0) {
			rsb_json_free(array);
			array = NULL;
		}
	}
	rsb_report_json(&report, "snapshots", array);
	return rsb_report_print(&report);
}

void
rsb_snapreport_table(const struct rsb_snapstore *store, const struct rsb_state *state)
{
	const uint64_t now_ns = rsb_wall_ns();

	if (!rsb_snapstore_count(store)) {
		(void)printf("there is no snapshot of %s\n", state->name);
		return;
	}
	(void)printf("%-8s %-17s %-6s %-9s %9s %9s %9s %11s\n", "SNAPSHOT", "TAKEN", "KIND", "WHY",
		"FILES", "CHANGED", "REMOVED", "SIZE");
	for (size_t i = 0; i < rsb_snapstore_count(store); i++) {
		const struct rsb_snappoint *point = rsb_snapstore_at(store, i);
		char taken[RSB_LOCALTIME_SIZE];
		char size[RSB_PROGRESS_SIZE];

		rsb_localtime(point->taken_ns, now_ns, taken);
		rsb_progress_bytes(point->archive_size + point->tree_size, size);
		(void)printf("%-8" PRIu64 " %-17s %-6s %-9s %9" PRIu64 " %9" PRIu64 " %9" PRIu64
			     " %11s%s\n",
			point->number, taken, point->base ? "base" : "delta", point->why,
			point->files, point->changed, point->removed, size,
			point->fuzzy ? "  fuzzy" : "");
	}
}
