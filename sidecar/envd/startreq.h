/* SPDX-License-Identifier: MIT */
#ifndef RSB_STARTREQ_H
#define RSB_STARTREQ_H

/* A Start message as what execve(2) wants. */

#include "util/json.h"

#include "sidecar/envd/user.h"

#define RSB_STARTREQ_WORDS_MAX 65536U /* arguments, or variables */
#define RSB_STARTREQ_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct rsb_startreq {
	char **argv; /* the strings are borrowed from the message */
	char **env;  /* owned, with its strings */
	char cwd[PATH_MAX];
	const char *tag; /* borrowed; NULL: none */
	bool with_stdin;
	struct rsb_json *config; /* "process" of the message; borrowed */
};

/*
 * env: default variables, may be NULL; they stand between those of the user and those of the
 * message. -EBADMSG or -EINVAL with a sentence.
 */
rsb_nodiscard int rsb_startreq_read(const struct rsb_json *json, const struct rsb_user *user,
	const struct rsb_json *env, const char *workdir, struct rsb_startreq *ret_start,
	struct rsb_diag *diag);
void rsb_startreq_done(struct rsb_startreq *start);

#endif
