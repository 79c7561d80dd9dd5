/* SPDX-License-Identifier: MIT */
#include "sidecar/local/collection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

#include "sidecar/envd/refuse.h"
#include "sidecar/local/filter.h"
#include "sidecar/local/view.h"

static struct rsb_filter_query
list_query(const struct rsb_apicall *call)
{
	return (struct rsb_filter_query){
		.metadata = rsb_httpd_query(call->req, "metadata"),
		.state = call->v2 ? rsb_httpd_query(call->req, "state") : "running",
		.order = call->v2 ? rsb_httpd_query(call->req, "order") : NULL,
		.limit = call->v2 ? rsb_httpd_query(call->req, "limit") : NULL,
		.next_token = call->v2 ? rsb_httpd_query(call->req, "nextToken") : NULL,
	};
}

struct page {
	struct rsb_json *array;
	size_t n_running;
	const char *next; /* id of the last one when there are more */
};

/* The page of those that match, of sandboxes in the order that is asked for. */
static int
fill_page(const struct rsb_apicall *call, const struct rsb_filter *filter,
	struct rsb_sandbox *const *list, size_t n, struct page *page)
{
	bool in = !filter->after;
	const char *last = NULL;

	for (size_t i = 0; i < n; i++) {
		struct rsb_sandbox *sandbox = list[filter->ascending ? i : n - 1 - i];
		const bool paused = rsb_sandbox_is_paused(sandbox);
		struct rsb_json *view;

		if (!rsb_filter_match(filter, rsb_sandbox_metadata(sandbox), paused))
			continue;
		page->n_running += !paused;
		if (!in) {
			in = strcmp(rsb_sandbox_id(sandbox), filter->after) == 0;
			continue;
		}
		if (rsb_json_len(page->array) == filter->limit) {
			page->next = last;
			continue;
		}
		view = rsb_view_listed(sandbox, call->host->options, false);
		if (!view || rsb_json_set(page->array, NULL, view) < 0)
			return -ENOMEM;
		last = rsb_sandbox_id(sandbox);
	}
	return 0;
}

static int
answer_page(struct rsb_apicall *call, const struct rsb_filter *filter, const struct page *page)
{
	char total[24];
	int r = rsb_apicall_answer(call, 200, page->array);

	if (r < 0 || !call->v2)
		return r;
	(void)snprintf(total, sizeof(total), "%zu", page->n_running);
	if (filter->running)
		r = rsb_httpd_answer_header(call->req, "X-Total-Running", total);
	if (r == 0 && page->next)
		r = rsb_httpd_answer_header(call->req, "X-Next-Token", page->next);
	return r;
}

int
rsb_collection_run(struct rsb_apicall *call)
{
	RSB_CLEANUP(rsb_filter_done) struct rsb_filter filter = { 0 };
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_sandbox *all[RSB_SANDBOXES_MAX];
	struct rsb_filter_query query = list_query(call);
	struct page page = { .array = array };
	struct rsb_diag diag = { 0 };
	size_t n;
	int r;

	if (!array)
		return -ENOMEM;
	r = rsb_filter_read(&query, &filter, &diag);
	if (r < 0)
		return rsb_refuse(call->req, 400, "%s", rsb_diag_text(&diag, r));
	n = rsb_sandboxes_list(call->host->sandboxes, all);
	r = fill_page(call, &filter, all, n, &page);
	if (r == 0)
		r = answer_page(call, &filter, &page);
	for (size_t i = 0; i < n; i++)
		rsb_sandbox_unref(all[i]);
	return r;
}
