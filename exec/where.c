/* SPDX-License-Identifier: MIT */
#include "exec/where.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/config.h"
#include "util/cleanup.h"
#include "util/str.h"

const char *
rsb_where_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 0 || strncmp(path, dir, n) != 0)
		return NULL;
	if (path[n] == '/')
		return path + n + 1;
	return path[n] == '\0' ? path + n : NULL;
}

static int
map_cwd(struct rsb_where *where, const char *cwd, bool named)
{
	const char *rest = rsb_where_below(cwd, where->state.mountpoint);

	if (!rest) {
		rest = rsb_where_below(cwd, where->state.local_dir);
		where->beside = rest != NULL;
	} else {
		where->by_mount = !named;
	}
	where->cwd = strdup(rest ? rest : "");
	return where->cwd ? 0 : -ENOMEM;
}

int
rsb_where_cwd(char **ret_cwd, struct rsb_diag *diag)
{
	char *cwd = getcwd(NULL, 0);
	const int r = -errno;

	if (cwd) {
		*ret_cwd = cwd;
		return 0;
	}
	if (r == -ENOTCONN || r == -ENOENT || r == -ESTALE)
		return rsb_diag_set(diag, r,
			"the current directory was removed, or its mount was taken away: cd out of it, "
			"or to its path anew");
	return rsb_diag_set(
		diag, r, "the current directory cannot be read: %s", rsb_diag_text(NULL, r));
}

int
rsb_where_find(
	const char *name, char *const *env, struct rsb_where *ret_where, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;
	rsb_autofree char *cwd = NULL;
	int r;

	if (!name)
		name = rsb_config_getenv(env, "RSB_SANDBOX");
	/* Who names it does so from anywhere. */
	r = rsb_where_cwd(&cwd, diag);
	if (r < 0 && !name)
		return r;
	r = rsb_state_root(env, &where.root, diag);
	if (r < 0)
		return r;
	r = rsb_state_find(where.root, name, cwd, &where.state, diag);
	if (r < 0)
		return r;
	r = rsb_state_open(where.root, where.state.name, false, &dir, diag);
	if (r >= 0)
		r = rsb_state_socket(dir, &where.socket, diag);
	if (r >= 0)
		r = map_cwd(&where, cwd ? cwd : "", name != NULL);
	if (r < 0)
		return r;
	*ret_where = where;
	where = (struct rsb_where){ 0 };
	return 0;
}

bool
rsb_where_first_beside(const struct rsb_where *where)
{
	rsb_autofree char *path = rsb_str_printf("%s/%s/beside", where->root, where->state.name);
	rsb_autoclose int fd = -1;

	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd >= 0;
}

void
rsb_where_done(struct rsb_where *where)
{
	free(where->root);
	free(where->socket);
	free(where->cwd);
	*where = (struct rsb_where){ 0 };
}
