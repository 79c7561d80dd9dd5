/* SPDX-License-Identifier: MIT */
#include "keeper/snapindex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/str.h"

#define VERSION 1
#define HEX_SIZE (2 * RSB_SHA256_SIZE)

#define AT(member) offsetof(struct rsb_snappoint, member)

static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{ "number", AT(number) },
	{ "taken_ns", AT(taken_ns) },
	{ "base", AT(base) },
	{ "fuzzy", AT(fuzzy) },
	{ "files", AT(files) },
	{ "changed", AT(changed) },
	{ "removed", AT(removed) },
	{ "moved", AT(moved) },
	{ "list", AT(list) },
	{ "archive_size", AT(archive_size) },
	{ "tree_size", AT(tree_size) },
};

static const struct {
	const char *key;
	size_t offset;
	size_t size;
} texts[] = {
	{ "sandbox", AT(sandbox), sizeof(((struct rsb_snappoint *)0)->sandbox) },
	{ "why", AT(why), sizeof(((struct rsb_snappoint *)0)->why) },
};

static const struct {
	const char *key;
	size_t offset;
} digests[] = {
	{ "archive_sha256", AT(archive_sha) },
	{ "tree_sha256", AT(tree_sha) },
};

void
rsb_snapindex_done(struct rsb_snapindex *index)
{
	free(index->points);
	*index = (struct rsb_snapindex){ 0 };
}

int
rsb_snapindex_add(struct rsb_snapindex *index, const struct rsb_snappoint *point)
{
	struct rsb_snappoint *points;

	if (index->n == RSB_SNAPSTORE_POINTS_MAX)
		return -ENOSPC;
	points = reallocarray(index->points, index->n + 1, sizeof(*points));
	if (!points)
		return -ENOMEM;
	index->points = points;
	points[index->n++] = *point;
	return 0;
}

void
rsb_snapindex_drop(struct rsb_snapindex *index, size_t n)
{
	index->n -= n;
	if (index->n)
		memmove(index->points, index->points + n, index->n * sizeof(*index->points));
}

/* ---- from text ---- */

static int
read_point(const struct rsb_json *json, struct rsb_snappoint *point)
{
	char *base = (char *)point;
	const char *text;
	int64_t number;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(numbers); i++) {
		if (rsb_json_i64(json, numbers[i].key, &number) < 0 || number < 0)
			return -EBADMSG;
		*(uint64_t *)(void *)(base + numbers[i].offset) = (uint64_t)number;
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(texts); i++) {
		if (rsb_json_str(json, texts[i].key, &text) < 0 || strlen(text) >= texts[i].size)
			return -EBADMSG;
		(void)strcpy(base + texts[i].offset, text);
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(digests); i++)
		if (rsb_json_str(json, digests[i].key, &text) < 0 ||
			rsb_str_unhex(rsb_bytes_str(text), (uint8_t *)base + digests[i].offset,
				RSB_SHA256_SIZE) < 0)
			return -EBADMSG;
	return 0;
}

static int
read_points(const struct rsb_json *json, struct rsb_snapindex *index)
{
	struct rsb_json *list;
	int64_t version, next;
	int r = 0;

	if (rsb_json_i64(json, "version", &version) < 0 || version != VERSION ||
		rsb_json_i64(json, "next", &next) < 0 || next < 1 ||
		rsb_json_get(json, "snapshots", &list) < 0 || !rsb_json_is_array(list))
		return -EBADMSG;
	for (size_t i = 0; i < rsb_json_len(list) && r >= 0; i++) {
		struct rsb_snappoint point = { 0 };

		r = read_point(rsb_json_at(list, i), &point);
		/* The first stands alone, or nothing could be made of it. */
		if (r >= 0 && i == 0 && !point.base)
			r = -EBADMSG;
		if (r >= 0)
			r = rsb_snapindex_add(index, &point);
	}
	index->next = (uint64_t)next;
	return r == -ENOSPC ? -EBADMSG : r;
}

int
rsb_snapindex_read(struct rsb_bytes text, struct rsb_snapindex *index)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	const size_t tail = HEX_SIZE + 1; /* and its newline */
	uint8_t want[RSB_SHA256_SIZE];
	uint8_t got[RSB_SHA256_SIZE];
	struct rsb_bytes body = text;
	int r;

	if (text.size <= tail || text.data[text.size - 1] != '\n')
		return -EBADMSG;
	body.size -= tail;
	if (rsb_str_unhex((struct rsb_bytes){ .data = text.data + body.size, .size = HEX_SIZE },
		    want, sizeof(want)) < 0)
		return -EBADMSG;
	rsb_sha256(body, got);
	if (memcmp(want, got, sizeof(got)) != 0)
		return -EBADMSG;
	body.size -= body.data[body.size - 1] == '\n';
	r = rsb_json_parse(body, &json, NULL);
	if (r >= 0)
		r = read_points(json, index);
	if (r < 0) {
		rsb_snapindex_done(index);
		index->next = 1;
	}
	return r == -ENOMEM ? r : rsb_min(r < 0 ? -EBADMSG : 0, 0);
}

/* ---- to text ---- */

static int
write_point(struct rsb_json *list, const struct rsb_snappoint *point)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	const char *base = (const char *)point;
	int r = json ? 0 : -ENOMEM;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(numbers) && r >= 0; i++)
		r = rsb_json_set_i64(json, numbers[i].key,
			(int64_t) * (const uint64_t *)(const void *)(base + numbers[i].offset));
	for (size_t i = 0; i < RSB_ARRAY_SIZE(texts) && r >= 0; i++)
		r = rsb_json_set_str(json, texts[i].key, base + texts[i].offset);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(digests) && r >= 0; i++) {
		char hex[HEX_SIZE + 1];

		rsb_str_hex((const uint8_t *)base + digests[i].offset, RSB_SHA256_SIZE, hex);
		r = rsb_json_set_str(json, digests[i].key, hex);
	}
	return r < 0 ? r : rsb_json_set(list, NULL, rsb_steal(&json));
}

int
rsb_snapindex_write(const struct rsb_snapindex *index, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *list = rsb_json_new_array();
	uint8_t sha[RSB_SHA256_SIZE];
	char hex[HEX_SIZE + 2];
	int r = json && list ? 0 : -ENOMEM;

	for (size_t i = 0; i < index->n && r >= 0; i++)
		r = write_point(list, &index->points[i]);
	if (r >= 0)
		r = rsb_json_set_i64(json, "version", VERSION);
	if (r >= 0)
		r = rsb_json_set_i64(json, "next", (int64_t)index->next);
	if (r >= 0)
		r = rsb_json_set(json, "snapshots", rsb_steal(&list));
	if (r >= 0)
		r = rsb_json_write(json, false, out);
	if (r >= 0)
		r = rsb_buf_append(out, "\n", 1);
	if (r < 0)
		return r;
	rsb_sha256(rsb_buf_view(out), sha);
	rsb_str_hex(sha, sizeof(sha), hex);
	return rsb_buf_printf(out, "%s\n", hex);
}
