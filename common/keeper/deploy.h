/* SPDX-License-Identifier: MIT */
#ifndef RSB_DEPLOY_H
#define RSB_DEPLOY_H

/*
 * Brings the sidecar into a running sandbox and starts it: as root, under a name that carries
 * its digest, so that it is uploaded only where this very program is not there yet. The key
 * goes over its standard input, never through argv, environment or a file. A sidecar of ours
 * that still runs there is ended first.
 */

#include "backend/backend.h"

struct rsb_deploy {
	struct rsb_backend *backend;
	const struct rsb_sandbox *sandbox;
	const char *sidecar; /* path of the program here */
	const char *runtime_dir;
	const char *workspace;
	const char *user; /* that commands run as; empty: the sandbox's default */
	unsigned int port;
	const struct rsb_secret *key;
};

/*
 * 0: it listens. -EADDRINUSE: something else has the port; -ENOSPC; -ENOEXEC: it does not run
 * there; -EPROTO: it ended before it was ready; else as of the backend. Always with a
 * sentence.
 */
rsb_nodiscard int rsb_deploy(const struct rsb_deploy *deploy, struct rsb_diag *diag);

/*
 * The sidecar's program: $RSB_SIDECAR, else beside or below the running program's place.
 * Caller frees. -ENOENT; -ENOEXEC and
 * others when RSB_SIDECAR names what is no program.
 */
rsb_nodiscard int rsb_deploy_find(char *const *env, char **ret_path, struct rsb_diag *diag);

#endif
