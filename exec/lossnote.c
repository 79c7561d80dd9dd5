/* SPDX-License-Identifier: MIT */
#include "exec/lossnote.h"

#include <stdio.h>

#include "util/cleanup.h"
#include "util/json.h"

void
rsb_lossnote_say(const char *program, struct rsb_bytes text)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	struct rsb_json *losses;
	int64_t n_more;

	if (rsb_json_parse(text, &json, NULL) < 0 || rsb_json_get(json, "losses", &losses) < 0)
		return;
	for (size_t i = 0; i < rsb_json_len(losses); i++) {
		const char *kind, *what;

		if (rsb_json_str(rsb_json_at(losses, i), "kind", &kind) == 0 &&
			rsb_json_str(rsb_json_at(losses, i), "text", &what) == 0)
			(void)fprintf(stderr, "%s: note: %s: %s\n", program, kind, what);
	}
	if (rsb_json_i64(json, "more", &n_more) == 0 && n_more > 0)
		(void)fprintf(stderr,
			"%s: note: %lld more that are lost or unknown are in the event log\n",
			program, (long long)n_more);
}
