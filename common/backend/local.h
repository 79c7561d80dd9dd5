/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOCAL_H
#define RSB_LOCAL_H

/*
 * Finds this user's rsb-local, or starts it, and says how to reach it. It is E2B-compatible:
 * the local backend is backend/e2b.h pointed at it. Life and end of the server are its own
 * business (it ends when idle).
 *
 * All about it is in one directory that is this user's alone, and outlives sessions: what is below
 * XDG_RUNTIME_DIR goes with the last login, and is another place for cron and su.
 *
 *	key		its API key
 *	log		what it said
 *	server/		its state directory: port.json, and the lock that says that it lives
 */

#include "util/diag.h"
#include "util/secret.h"

struct rsb_local {
	char url[128]; /* http://127.0.0.1:PORT */
	struct rsb_secret api_key;
};

/*
 * dir: that directory, absolute; made if it is absent. env: the environment to look into and to
 * start it with. RSB_LOCAL_URL there names a server that runs already and takes this user's key;
 * nothing is started then. May wait some seconds for a fresh server.
 */
rsb_nodiscard int rsb_local_open(
	const char *dir, char *const *env, struct rsb_local *ret_local, struct rsb_diag *diag);

/*
 * Only looks for one that runs. -ENOENT: none does, so that no sandbox of one lives, which all end
 * with their server; -ENOTCONN: one may, but does not answer, or it is the one of RSB_LOCAL_URL.
 */
rsb_nodiscard int rsb_local_find(
	const char *dir, char *const *env, struct rsb_local *ret_local, struct rsb_diag *diag);

#endif
