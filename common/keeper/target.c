/* SPDX-License-Identifier: MIT */
#include "keeper/target.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* path is dir or below it; the rest, without leading slashes, is *ret_rest. */
static bool
is_below(struct rsb_bytes path, const char *dir, struct rsb_bytes *ret_rest)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n <= 1 || path.size < n || memcmp(path.data, dir, n) != 0)
		return false;
	if (path.size > n && path.data[n] != '/')
		return false;
	while (n < path.size && path.data[n] == '/')
		n++;
	*ret_rest = (struct rsb_bytes){ .data = path.data + n, .size = path.size - n };
	return true;
}

/* The next component of path at *pos, empty at the end. */
static struct rsb_bytes
next_component(struct rsb_bytes path, size_t *pos)
{
	size_t start;

	while (*pos < path.size && path.data[*pos] == '/')
		(*pos)++;
	start = *pos;
	while (*pos < path.size && path.data[*pos] != '/')
		(*pos)++;
	return (struct rsb_bytes){ .data = path.data + start, .size = *pos - start };
}

static bool
is_dots(struct rsb_bytes component, size_t n)
{
	return component.size == n && memcmp(component.data, "..", n) == 0;
}

/* Cuts the last component off out. */
static void
cut_last(struct rsb_buf *out)
{
	while (out->size && out->data[out->size - 1] != '/')
		out->size--;
	while (out->size && out->data[out->size - 1] == '/')
		out->size--;
}

static int
append_component(struct rsb_buf *out, struct rsb_bytes component)
{
	int r = 0;

	if (out->size)
		r = rsb_buf_append(out, "/", 1);
	return r < 0 ? r : rsb_buf_append(out, component.data, component.size);
}

/*
 * Appends path, walked from depth directories below the root. ".." at its beginning is counted
 * against depth. ".." after a name takes the name away: if the name is a link itself, the kernel
 * would climb from where that link leads, which nobody has counted.
 */
static int
append_inside(struct rsb_bytes path, size_t depth, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf plain = { .max = PATH_MAX };
	struct rsb_bytes c;
	size_t n_name = 0;
	size_t pos = 0;
	bool cut = false;
	int r = 0;

	while (r >= 0 && (c = next_component(path, &pos)).size) {
		if (is_dots(c, 1))
			continue;
		if (!is_dots(c, 2)) {
			n_name++;
			r = append_component(&plain, c);
		} else if (n_name) {
			n_name--;
			cut = true;
			cut_last(&plain);
		} else if (depth) {
			depth--;
			r = append_component(&plain, c);
		} else {
			r = -EACCES;
		}
	}
	if (r < 0)
		return r;
	if (!cut)
		return rsb_buf_append(out, path.data, path.size);
	if (!plain.size)
		return rsb_buf_append(out, ".", 1);
	return rsb_buf_append(out, plain.data, plain.size);
}

int
rsb_target_map(const struct rsb_target_place *place, struct rsb_bytes target, char **ret_target)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = PATH_MAX };
	struct rsb_bytes rest;
	int r = 0;

	if (!target.size || memchr(target.data, 0, target.size))
		return -EACCES;
	if (target.data[0] != '/') {
		r = append_inside(target, place->depth, &out);
	} else if (is_below(target, place->mountpoint, &rest)) {
		r = rsb_buf_append(&out, target.data, (size_t)(rest.data - target.data));
		if (r >= 0)
			r = append_inside(rest, 0, &out);
	} else if (is_below(target, place->workspace, &rest)) {
		for (size_t i = 0; i < place->depth && r >= 0; i++)
			r = rsb_buf_append(&out, "../", 3);
		if (r >= 0 && !rest.size)
			r = rsb_buf_append(&out, ".", 1);
		if (r >= 0)
			r = append_inside(rest, 0, &out);
	} else {
		return -EACCES;
	}
	if (r < 0)
		return r == -EMSGSIZE ? -ENAMETOOLONG : r;
	*ret_target = rsb_buf_steal_str(&out);
	return *ret_target ? 0 : -ENOMEM;
}
