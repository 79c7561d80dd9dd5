/* SPDX-License-Identifier: MIT */
#include "exec/githeld.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exec/daemon.h"
#include "exec/gitlook.h"
#include "util/cleanup.h"
#include "util/str.h"

/* path without links but its last component, which may be one that is held back. */
static char *
resolve(const char *path)
{
	rsb_autofree char *for_dir = strdup(path);
	rsb_autofree char *for_base = strdup(path);
	rsb_autofree char *dir = NULL;
	const char *base;

	if (!for_dir || !for_base)
		return NULL;
	dir = realpath(dirname(for_dir), NULL);
	base = basename(for_base);
	if (!dir || strcmp(base, ".") == 0 || strcmp(base, "..") == 0 || strcmp(base, "/") == 0)
		return realpath(path, NULL);
	return rsb_str_printf("%s%s%s", dir, strcmp(dir, "/") == 0 ? "" : "/", base);
}

/*
 * 1: path lies on the mount of a sandbox, and is *ret_rest below it; without a path all of the
 * mount that we are in. 0: on no mount.
 */
static int
find(const char *path, char **env, struct rsb_where *where, char **ret_rest, struct rsb_diag *diag)
{
	rsb_autofree char *absolute = path ? resolve(path) : NULL;
	rsb_autofree char *root = NULL;
	struct rsb_state state;
	const char *rest;
	int r;

	if (path && !absolute)
		return rsb_diag_set(diag, -errno, "%s: %s", path, strerror(errno));
	r = path ? 0 : rsb_where_cwd(&absolute, diag);
	if (r < 0)
		return r;
	r = rsb_state_root(env, &root, diag);
	if (r < 0)
		return r;
	if (rsb_state_find(root, NULL, absolute, &state, NULL) < 0)
		return 0;
	rest = rsb_where_below(absolute, state.mountpoint);
	if (!rest)
		return 0;
	r = rsb_where_find(state.name, env, where, diag);
	if (r < 0)
		return r;
	*ret_rest = strdup(path ? rest : "");
	return *ret_rest ? 1 : -ENOMEM;
}

/* Looks at each as git would, so that what is accepted is what is there now. */
static int
look_again(const struct rsb_where *where, const char *rest, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	struct rsb_json *held = NULL;
	int r;

	r = rsb_daemon_status(where, &text, diag);
	if (r >= 0)
		r = rsb_json_parse(rsb_buf_view(&text), &json, diag);
	if (r < 0 || rsb_json_get(json, "held", &held) < 0)
		held = NULL;
	for (size_t i = 0; i <= rsb_json_len(held); i++) {
		const char *name = rest;

		if (i < rsb_json_len(held) && rsb_json_str(rsb_json_at(held, i), "path", &name) < 0)
			continue;
		rsb_gitlook(where->state.mountpoint, name);
	}
	return r;
}

int
rsb_githeld_accept(const char *path, char **env, struct rsb_json **ret_array, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	rsb_autofree char *rest = NULL;
	struct stat st;
	int r;

	r = find(path, env, &where, &rest, diag);
	if (r <= 0)
		return r;
	r = rsb_daemon_check(&where, true, diag);
	if (r >= 0)
		r = look_again(&where, rest, diag);
	if (r >= 0)
		r = rsb_daemon_trust(&where, rest, &out, diag);
	if (r == -ENOENT && path && lstat(path, &st) < 0)
		return rsb_diag_set(diag, -errno, "%s: %s", path, strerror(errno));
	if (r == -ENOENT)
		r = rsb_buf_append(&out, "[]", 2);
	if (r >= 0)
		r = rsb_json_parse(rsb_buf_view(&out), ret_array, diag);
	return r < 0 ? r : 1;
}
