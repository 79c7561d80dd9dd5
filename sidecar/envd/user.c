/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"

#define LINE_SIZE 8192

/* fgetpwent_r(3) and not getpwnam(3): a name service module would be loaded from the sandbox. */
static int
find_passwd(const char *name, struct rsb_user *user)
{
	rsb_autofclose FILE *f = fopen("/etc/passwd", "re");
	char line[LINE_SIZE];
	struct passwd pw, *found;

	if (!f)
		return -errno;
	while (fgetpwent_r(f, &pw, line, sizeof(line), &found) == 0) {
		if (strcmp(pw.pw_name, name) != 0)
			continue;
		if (strlen(pw.pw_dir) >= sizeof(user->home))
			return -ENAMETOOLONG;
		(void)strcpy(user->name, pw.pw_name);
		(void)strcpy(user->home, pw.pw_dir);
		user->uid = pw.pw_uid;
		user->gid = pw.pw_gid;
		return 0;
	}
	return -ENOENT;
}

static bool
lists(char *const *members, const char *name)
{
	for (; *members; members++) {
		if (strcmp(*members, name) == 0)
			return true;
	}
	return false;
}

static void
find_groups(struct rsb_user *user)
{
	rsb_autofclose FILE *f = fopen("/etc/group", "re");
	char line[LINE_SIZE];
	struct group gr, *found;

	user->groups[0] = user->gid;
	user->n_group = 1;
	if (!f)
		return;
	while (user->n_group < RSB_USER_GROUPS_MAX &&
		fgetgrent_r(f, &gr, line, sizeof(line), &found) == 0) {
		if (gr.gr_gid != user->gid && lists(gr.gr_mem, user->name))
			user->groups[user->n_group++] = gr.gr_gid;
	}
}

int
rsb_user_find(const char *name, struct rsb_user *ret_user)
{
	int r;

	if (name[0] == '\0' || strlen(name) > RSB_USER_NAME_MAX)
		return -ENOENT;
	r = find_passwd(name, ret_user);
	if (r < 0)
		return r;
	find_groups(ret_user);
	return 0;
}

int
rsb_user_path(const struct rsb_user *user, const char *workdir, const char *path,
	char out[static PATH_MAX])
{
	const char *prefix = user->home;
	int n;

	if (path[0] == '\0' && workdir && workdir[0])
		return rsb_user_path(user, NULL, workdir, out);
	if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
		return -EINVAL;
	if (path[0] == '~')
		path += path[1] ? 2 : 1;
	else if (path[0] == '/')
		prefix = NULL;
	if (!prefix)
		n = snprintf(out, PATH_MAX, "%s", path);
	else
		n = snprintf(out, PATH_MAX, "%s%s%s", prefix, path[0] ? "/" : "", path);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int
rsb_user_make_parents(const struct rsb_user *user, const char *path)
{
	char part[PATH_MAX];
	char *slash;

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	(void)strcpy(part, path);
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) == 0) {
			if (lchown(part, user->uid, user->gid) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		*slash = '/';
	}
	return 0;
}
