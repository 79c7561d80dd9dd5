/* SPDX-License-Identifier: MIT */
#ifndef RSB_REPORT_H
#define RSB_REPORT_H

/*
 * What a verb answers under --json: one object on a line of standard output. The first failure is
 * kept, so that a report is put together without looking at each step, and told by print.
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/state.h"
#include "util/json.h"

struct rsb_report {
	struct rsb_json *json;
	int r;
};

void rsb_report_init(struct rsb_report *report);
void rsb_report_done(struct rsb_report *report); /* also zeroed memory */

/* A text that is no UTF-8, which only a path can be, cannot be said in JSON: it is left out. */
void rsb_report_str(struct rsb_report *report, const char *key, const char *value);
void rsb_report_number(struct rsb_report *report, const char *key, uint64_t value);
void rsb_report_bool(struct rsb_report *report, const char *key, bool value);
/* value is taken; NULL is a failure. key NULL: report was given an array as its json. */
void rsb_report_json(struct rsb_report *report, const char *key, struct rsb_json *value);
/* "name" and "sandbox". */
void rsb_report_sandbox(struct rsb_report *report, const struct rsb_state *state);

rsb_nodiscard int rsb_report_print(const struct rsb_report *report);

#endif
