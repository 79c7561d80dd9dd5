/* SPDX-License-Identifier: MIT */
#ifndef RSB_SESS_H
#define RSB_SESS_H

/*
 * What one host's session owns in the sidecar: node table, open files, locks, processes, and the protocol
 * session that carries it over connections. Everything a host can make grow hangs here and has its maximum in proto/limits.h.
 */

#include "proto/session.h"
#include "util/loop.h"
#include "util/thread.h"

#include <sys/types.h>

struct rsb_nodes;
struct rsb_fhs;
struct rsb_locks;
struct rsb_procs;

/* Facts of this sidecar, fixed at its start. */
struct rsb_sidecar_config {
	int root_fd;           /* O_PATH of the workspace */
	const char *workspace; /* its absolute path */
	uid_t cmd_uid;         /* commands run as; owner of what is made with idmap=user */
	gid_t cmd_gid;
	const gid_t *cmd_groups;
	size_t n_cmd_groups;
	const char *cmd_user; /* name, home and shell of cmd_uid, from fgetpwent(3) */
	const char *cmd_home;
	const char *cmd_shell;
	int is_root; /* the sidecar itself has uid 0: it can change ids */
};

struct rsb_sess {
	const struct rsb_sidecar_config *config; /* const */
	struct rsb_loop *loop;                   /* const; the io thread's */
	struct rsb_session *proto;               /* {io} */
	struct rsb_nodes *nodes;                 /* own lock inside */
	struct rsb_fhs *fhs;                     /* own lock inside */
	struct rsb_locks *locks;                 /* own lock inside */
	struct rsb_procs *procs;                 /* {io} */
	struct rsb_mutex lock;                   /* of the members of requests that say so */
};

/* node.h, fh.h, lock.h and proc.h have the life cycle of each: rsb_<x>_new(), rsb_<x>_free(). */

#endif
