/* SPDX-License-Identifier: MIT */
#include "fuse/held.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
rsb_held_init(struct rsb_held_set *set)
{
	*set = (struct rsb_held_set){ .n = 0 };
	rsb_list_init(&set->age);
}

static void
drop(struct rsb_held_set *set, struct rsb_held *held)
{
	rsb_list_remove(&held->age);
	set->n--;
	set->size -= held->size;
	free(held->path);
	free(held);
}

void
rsb_held_done(struct rsb_held_set *set)
{
	while (!rsb_list_empty(&set->age))
		drop(set, rsb_list_entry(set->age.next, struct rsb_held, age));
}

struct rsb_held *
rsb_held_find(const struct rsb_held_set *set, const char *path)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &set->age) {
		struct rsb_held *held = rsb_list_entry(pos, struct rsb_held, age);

		if (strcmp(held->path, path) == 0)
			return held;
	}
	return NULL;
}

bool
rsb_held_add(
	struct rsb_held_set *set, const char *path, const char *why, const struct rsb_bytes *text)
{
	struct rsb_held *old = rsb_held_find(set, path);
	const size_t size = text ? text->size : 0;
	bool is_new = !old || strcmp(old->why, why) != 0;
	struct rsb_held *held = calloc(1, sizeof(*held) + size);

	if (held)
		held->path = strdup(path);
	if (!held || !held->path) {
		free(held);
		return is_new;
	}
	(void)snprintf(held->why, sizeof(held->why), "%s", why);
	held->fixed = !text;
	held->size = size;
	if (size)
		memcpy(held->text, text->data, size);
	if (old)
		drop(set, old);
	rsb_list_prepend(&set->age, &held->age);
	set->n++;
	set->size += size;
	while (set->n > RSB_HELD_MAX || set->size > RSB_HELD_BYTES_MAX)
		drop(set, rsb_list_entry(set->age.prev, struct rsb_held, age));
	return is_new;
}

void
rsb_held_remove(struct rsb_held_set *set, const char *path)
{
	struct rsb_held *held = rsb_held_find(set, path);

	if (held)
		drop(set, held);
}

static bool
is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !n || (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

struct rsb_held *
rsb_held_next(const struct rsb_held_set *set, const char *path, struct rsb_list **cursor)
{
	struct rsb_list *pos = *cursor ? *cursor : set->age.next;

	for (; pos != &set->age; pos = pos->next) {
		struct rsb_held *held = rsb_list_entry(pos, struct rsb_held, age);

		if (!is_below(held->path, path))
			continue;
		*cursor = pos->next;
		return held;
	}
	return NULL;
}

/* Printable ASCII stays; JSON takes nothing but UTF-8, and a terminal may believe the rest. */
static int
set_text(struct rsb_json *object, const char *key, const char *text)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	int r = 0;

	for (; *text && r >= 0; text++) {
		const uint8_t c = (uint8_t)*text;

		if (rsb_buf_len(&out) >= RSB_HELD_TEXT_MAX) {
			r = rsb_buf_printf(&out, "...");
			break;
		}
		if (c >= ' ' && c < 0x7f && c != '\\')
			r = rsb_buf_append(&out, &c, 1);
		else
			r = rsb_buf_printf(&out, "\\x%02x", c);
	}
	if (r >= 0)
		r = rsb_buf_append(&out, "", 1);
	return r < 0 ? r : rsb_json_set_str(object, key, (const char *)rsb_buf_head(&out));
}

int
rsb_held_tell(const struct rsb_held *held, struct rsb_json *array)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *object = rsb_json_new_object();
	int r = object ? 0 : -ENOMEM;

	if (r >= 0)
		r = set_text(object, "path", held->path);
	if (r >= 0)
		r = set_text(object, "why", held->why);
	return r < 0 ? r : rsb_json_set(array, NULL, rsb_steal(&object));
}
