/* SPDX-License-Identifier: MIT */
#ifndef RSB_FILTER_H
#define RSB_FILTER_H

/* The query of the list of sandboxes. Pure but for the sandbox's own facts. */

#include "util/diag.h"
#include "util/json.h"

#define RSB_FILTER_PAIRS_MAX 64U
#define RSB_FILTER_LIMIT_MAX 100U

struct rsb_filter {
	struct rsb_json *metadata; /* pairs that a sandbox must have; NULL: none asked */
	bool running;              /* running ones are asked for */
	bool paused;               /* paused ones are */
	bool ascending;
	size_t limit;
	const char *after; /* id of the last sandbox of the page before; NULL: the first page */
};

/* Undecoded query parameters but for the server's own decoding; NULL where absent. */
struct rsb_filter_query {
	const char *metadata;
	const char *state;
	const char *order;
	const char *limit;
	const char *next_token;
};

/* -EINVAL with a sentence. Strings of the query are borrowed. */
rsb_nodiscard int rsb_filter_read(
	const struct rsb_filter_query *query, struct rsb_filter *ret_filter, struct rsb_diag *diag);
void rsb_filter_done(struct rsb_filter *filter);
/* metadata, of the sandbox, may be NULL. */
bool rsb_filter_match(
	const struct rsb_filter *filter, const struct rsb_json *metadata, bool paused);

#endif
