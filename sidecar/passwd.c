/* SPDX-License-Identifier: MIT */
#include "sidecar/passwd.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

static FILE *
open_table(const char *etc, const char *name)
{
	rsb_autofree char *path = rsb_str_path(etc, name);

	return path ? fopen(path, "re") : NULL;
}

static int
copy_user(const struct passwd *pw, struct rsb_passwd *passwd)
{
	passwd->name = strdup(pw->pw_name);
	passwd->home = strdup(pw->pw_dir && pw->pw_dir[0] ? pw->pw_dir : "/");
	passwd->shell = strdup(pw->pw_shell && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh");
	passwd->uid = pw->pw_uid;
	passwd->gid = pw->pw_gid;
	return passwd->name && passwd->home && passwd->shell ? 0 : -ENOMEM;
}

static bool
is_member(const struct group *gr, const char *name)
{
	for (char **mem = gr->gr_mem; *mem; mem++)
		if (strcmp(*mem, name) == 0)
			return true;
	return false;
}

static int
read_groups(const char *etc, struct rsb_passwd *passwd)
{
	rsb_autofclose FILE *file = open_table(etc, "group");
	struct group *gr;

	passwd->groups = rsb_new_array(gid_t, RSB_PASSWD_GROUPS_MAX);
	if (!passwd->groups)
		return -ENOMEM;
	passwd->groups[passwd->n_group++] = passwd->gid;
	if (!file)
		return 0; /* a sandbox without the file has no more groups */
	while (passwd->n_group < RSB_PASSWD_GROUPS_MAX && (gr = fgetgrent(file)))
		if (gr->gr_gid != passwd->gid && is_member(gr, passwd->name))
			passwd->groups[passwd->n_group++] = gr->gr_gid;
	return 0;
}

int
rsb_passwd_read(
	const char *etc, const char *name, struct rsb_passwd *ret_passwd, struct rsb_diag *diag)
{
	rsb_autofclose FILE *file = open_table(etc, "passwd");
	struct rsb_passwd found = { .name = NULL };
	struct passwd *pw;
	int r;

	if (!file)
		return rsb_diag_set(
			diag, -errno, "cannot read %s/passwd: %s", etc, strerror(errno));
	do {
		pw = fgetpwent(file);
	} while (pw && strcmp(pw->pw_name, name) != 0);
	if (!pw)
		return rsb_diag_set(diag, -ENOENT, "there is no user '%s' in %s/passwd", name, etc);
	r = copy_user(pw, &found);
	if (r == 0)
		r = read_groups(etc, &found);
	if (r < 0) {
		rsb_passwd_done(&found);
		return rsb_diag_set(diag, r, "no memory");
	}
	*ret_passwd = found;
	return 0;
}

void
rsb_passwd_done(struct rsb_passwd *passwd)
{
	free(passwd->name);
	free(passwd->home);
	free(passwd->shell);
	free(passwd->groups);
	*passwd = (struct rsb_passwd){ .name = NULL };
}
