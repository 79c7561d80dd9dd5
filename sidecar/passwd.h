/* SPDX-License-Identifier: MIT */
#ifndef RSB_PASSWD_H
#define RSB_PASSWD_H

/*
 * The user that commands run as, read from /etc/passwd and /etc/group by fgetpwent(3) and
 * fgetgrent(3) alone: the name service switch loads libraries of the sandbox into a static program,
 * and crashes it.
 */

#include <stddef.h>
#include <sys/types.h>

#include "util/diag.h"

#define RSB_PASSWD_GROUPS_MAX 1024

struct rsb_passwd {
	char *name;
	char *home;
	char *shell;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* gid is the first */
	size_t n_group;
};

/* etc: "/etc", or a test's. -ENOENT with a sentence when the name is unknown. */
rsb_nodiscard int rsb_passwd_read(
	const char *etc, const char *name, struct rsb_passwd *ret_passwd, struct rsb_diag *diag);
void rsb_passwd_done(struct rsb_passwd *passwd);

#endif
