/* SPDX-License-Identifier: MIT */
#include "exec/report.h"

#include <errno.h>
#include <stdio.h>

#include "util/cleanup.h"

void
rsb_report_init(struct rsb_report *report)
{
	report->json = rsb_json_new_object();
	report->r = report->json ? 0 : -ENOMEM;
}

void
rsb_report_done(struct rsb_report *report)
{
	rsb_json_free(report->json);
	report->json = NULL;
}

void
rsb_report_str(struct rsb_report *report, const char *key, const char *value)
{
	int r = report->r < 0 ? 0 : rsb_json_set_str(report->json, key, value);

	if (r < 0 && r != -EINVAL)
		report->r = r;
}

void
rsb_report_number(struct rsb_report *report, const char *key, uint64_t value)
{
	if (report->r >= 0)
		report->r = rsb_json_set_i64(
			report->json, key, (int64_t)rsb_min(value, (uint64_t)INT64_MAX));
}

void
rsb_report_bool(struct rsb_report *report, const char *key, bool value)
{
	if (report->r >= 0)
		report->r = rsb_json_set_bool(report->json, key, value);
}

void
rsb_report_json(struct rsb_report *report, const char *key, struct rsb_json *value)
{
	if (report->r >= 0)
		report->r = value ? rsb_json_set(report->json, key, value) : -ENOMEM;
	else
		rsb_json_free(value);
}

void
rsb_report_sandbox(struct rsb_report *report, const struct rsb_state *state)
{
	rsb_report_str(report, "name", state->name);
	rsb_report_str(report, "sandbox", state->sandbox_id);
}

int
rsb_report_print(const struct rsb_report *report)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	int r = report->r;

	if (r >= 0)
		r = rsb_json_write(report->json, false, &out);
	if (r >= 0)
		r = rsb_buf_append(&out, "\n", 1);
	if (r < 0)
		return r;
	if (fwrite(rsb_buf_head(&out), 1, rsb_buf_len(&out), stdout) != rsb_buf_len(&out))
		return -EIO;
	return fflush(stdout) == 0 ? 0 : -EIO;
}
