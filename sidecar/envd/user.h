/* SPDX-License-Identifier: MIT */
#ifndef RSB_USER_H
#define RSB_USER_H

/* Users of the sandbox, read from its passwd and group files at each call, and their paths. */

#include <limits.h>
#include <sys/types.h>

#include "util/diag.h"

#define RSB_USER_NAME_MAX 32U
#define RSB_USER_GROUPS_MAX 64U

struct rsb_user {
	char name[RSB_USER_NAME_MAX + 1];
	char home[PATH_MAX];
	uid_t uid;
	gid_t gid;
	gid_t groups[RSB_USER_GROUPS_MAX];
	size_t n_group;
};

/* -ENOENT. */
rsb_nodiscard int rsb_user_find(const char *name, struct rsb_user *ret_user);

/*
 * A path as a client names it: empty is workdir (NULL: home), "~" and "~/x" are below home, a
 * relative one is below home too. -EINVAL for another user's "~", -ENAMETOOLONG.
 */
rsb_nodiscard int rsb_user_path(const struct rsb_user *user, const char *workdir, const char *path,
	char out[static PATH_MAX]);

/* Makes the missing parents of an absolute path, owned by the user. */
rsb_nodiscard int rsb_user_make_parents(const struct rsb_user *user, const char *path);

#endif
