/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOCAL_H
#define RSB_LOCAL_H

/*
 * Finds this user's rsb-local, or starts it, and says how to reach it. It is E2B-compatible:
 * the local backend is backend/e2b.h pointed at it. Life and end of the server are its own
 * business (it ends when idle).
 */

#include "util/diag.h"
#include "util/secret.h"

struct rsb_local {
	char url[128]; /* http://127.0.0.1:PORT */
	struct rsb_secret api_key;
};

/*
 * env: the environment to look into and to start it with. RSB_LOCAL_URL there names a server that
 * runs already and takes this user's key; nothing is started then. May wait some seconds for a
 * fresh server.
 */
rsb_nodiscard int rsb_local_open(
	char *const *env, struct rsb_local *ret_local, struct rsb_diag *diag);

/*
 * Only looks for one that runs. -ENOENT: none does, so that no sandbox of one lives, which all end
 * with their server; -ENOTCONN: one may, but does not answer, or it is the one of RSB_LOCAL_URL.
 */
rsb_nodiscard int rsb_local_find(
	char *const *env, struct rsb_local *ret_local, struct rsb_diag *diag);

#endif
