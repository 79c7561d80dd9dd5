/* SPDX-License-Identifier: MIT */
#include "sidecar/local/filter.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

/* Form decoding in place; -EINVAL for a bad escape or a NUL. */
static int
decode(char *text)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		uint8_t byte;

		if (*in == '+') {
			*out++ = ' ';
		} else if (*in != '%') {
			*out++ = *in;
		} else {
			if (strlen(in) < 3 ||
				rsb_str_unhex((struct rsb_bytes){ (const uint8_t *)in + 1, 2 },
					&byte, 1) < 0 ||
				byte == 0)
				return -EINVAL;
			*out++ = (char)byte;
			in += 2;
		}
	}
	*out = '\0';
	return 0;
}

/* One "key=value", each side encoded once more. */
static int
add_pair(struct rsb_json *metadata, char *pair)
{
	char *value = strchr(pair, '=');

	if (!value || strchr(value + 1, '='))
		return -EINVAL;
	*value++ = '\0';
	if (decode(pair) < 0 || decode(value) < 0)
		return -EINVAL;
	return rsb_json_set_str(metadata, pair, value);
}

/* The whole is encoded once more around its pairs, besides the encoding of the parameter. */
static int
read_metadata(const char *text, struct rsb_json **ret_metadata)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *metadata = rsb_json_new_object();
	rsb_autofree char *copy = rsb_str_dup(rsb_bytes_str(text));
	char *save = NULL;
	size_t n = 0;

	if (!metadata || !copy)
		return -ENOMEM;
	if (decode(copy) < 0)
		return -EINVAL;
	for (char *pair = strtok_r(copy, "&", &save); pair; pair = strtok_r(NULL, "&", &save)) {
		if (++n > RSB_FILTER_PAIRS_MAX || add_pair(metadata, pair) < 0)
			return -EINVAL;
	}
	*ret_metadata = rsb_steal(&metadata);
	return 0;
}

static int
read_state(const char *text, struct rsb_filter *filter)
{
	rsb_autofree char *copy = rsb_str_dup(rsb_bytes_str(text));
	char *save = NULL;

	if (!copy)
		return -ENOMEM;
	filter->running = filter->paused = false;
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (strcmp(word, "running") == 0)
			filter->running = true;
		else if (strcmp(word, "paused") == 0)
			filter->paused = true;
		else
			return -EINVAL;
	}
	return 0;
}

int
rsb_filter_read(
	const struct rsb_filter_query *query, struct rsb_filter *ret_filter, struct rsb_diag *diag)
{
	struct rsb_filter filter = {
		.running = true, .paused = true, .limit = RSB_FILTER_LIMIT_MAX
	};
	uint64_t limit;

	if (query->state && read_state(query->state, &filter) < 0)
		return rsb_diag_set(diag, -EINVAL, "state is running or paused");
	if (query->order && strcmp(query->order, "asc") != 0 && strcmp(query->order, "desc") != 0)
		return rsb_diag_set(diag, -EINVAL, "order is asc or desc");
	filter.ascending = query->order && strcmp(query->order, "asc") == 0;
	if (query->limit) {
		if (rsb_str_u64(query->limit, RSB_FILTER_LIMIT_MAX, &limit) < 0 || limit == 0)
			return rsb_diag_set(
				diag, -EINVAL, "limit is 1 to %u", RSB_FILTER_LIMIT_MAX);
		filter.limit = (size_t)limit;
	}
	filter.after = query->next_token;
	if (query->metadata && read_metadata(query->metadata, &filter.metadata) < 0)
		return rsb_diag_set(diag, -EINVAL, "metadata is not a list of encoded pairs");
	*ret_filter = filter;
	return 0;
}

void
rsb_filter_done(struct rsb_filter *filter)
{
	rsb_json_free(filter->metadata);
	filter->metadata = NULL;
}

bool
rsb_filter_match(const struct rsb_filter *filter, const struct rsb_json *metadata, bool paused)
{
	struct rsb_json *want;
	void *cursor = NULL;
	const char *key;

	if (paused ? !filter->paused : !filter->running)
		return false;
	if (!filter->metadata)
		return true;
	while ((key = rsb_json_member(filter->metadata, &cursor, &want))) {
		struct rsb_json *value;
		void *inner = NULL;
		const char *name = NULL;

		/* Not by path: a key may hold dots. */
		while (metadata && (name = rsb_json_member(metadata, &inner, &value))) {
			if (strcmp(name, key) == 0)
				break;
		}
		if (!name || strcmp(rsb_json_as_str(value), rsb_json_as_str(want)) != 0)
			return false;
	}
	return true;
}
