/* SPDX-License-Identifier: MIT */
#ifndef RSB_EXEC_DAEMON_H
#define RSB_EXEC_DAEMON_H

/*
 * The session daemon as seen by the programs that use it: whether it runs, starting and stopping
 * it.
 */

#include "exec/where.h"
#include "util/buf.h"

/* Whether one runs, maybe not for long. */
bool rsb_daemon_runs(const struct rsb_where *where);
/* Whether it runs, and mounted: has mounted. -ENOTCONN with a sentence on how to get that. */
rsb_nodiscard int rsb_daemon_check(
	const struct rsb_where *where, bool mounted, struct rsb_diag *diag);

/*
 * Runs rsb-mount, from beside our own program or PATH, and waits until the mount answers.
 * mountpoint NULL: none is made, the daemon only serves commands, for exec.linger after the last.
 * overrides: as -o of rsb.conf(5), NULL-terminated. The sentence is rsb-mount's own.
 */
rsb_nodiscard int rsb_daemon_start(const char *name, const char *mountpoint,
	const char *const *overrides, struct rsb_diag *diag);

struct rsb_daemon_end {
	const char *teller; /* tells on stderr what was lost and not told yet; NULL: nobody does */
	bool force;         /* also while files are open there, or an rsb-exec waits */
	bool can_force;     /* it can be asked for: that is advised */
};
/*
 * Drains, unmounts and ends it, and removes the mount point if we made it; 0 also when none
 * runs, and then the dead mount of one that was killed is gone. -EBUSY.
 */
rsb_nodiscard int rsb_daemon_stop(
	const struct rsb_where *where, const struct rsb_daemon_end *end, struct rsb_diag *diag);
/*
 * Lets the rsb-mount beside our own program, or of PATH, go on with the mount, in place of the
 * program that serves it. force: also while commands run, which are lost. The sentence is
 * rsb-mount's own.
 */
rsb_nodiscard int rsb_daemon_upgrade(
	const struct rsb_where *where, bool force, struct rsb_diag *diag);
/*
 * None runs: takes away the mount of one whose processes were all killed, so that nobody was left
 * to unmount. 0 also when there is none.
 */
rsb_nodiscard int rsb_daemon_bury(const struct rsb_where *where, struct rsb_diag *diag);

/* What it says of itself, JSON appended to out. */
rsb_nodiscard int rsb_daemon_status(
	const struct rsb_where *where, struct rsb_buf *out, struct rsb_diag *diag);

/* Accepts what is held back from git below the mount; tells what that was. -ENOENT: nothing. */
rsb_nodiscard int rsb_daemon_trust(const struct rsb_where *where, const char *path,
	struct rsb_buf *out, struct rsb_diag *diag);

struct rsb_daemon_look {
	bool running;
	bool mounted; /* at the place that the state names */
	bool lost;    /* its sandbox is gone, or refuses us */
	bool cut_off; /* it is not connected now */
	bool kept;    /* alive, by it */
	char state[24];
	uint64_t down_s;         /* so long already */
	uint64_t commands;       /* of which something may live */
	uint64_t attended;       /* for which an rsb-exec waits */
	char attended_what[320]; /* these, for people */
	uint64_t generation;     /* another one: some ran meanwhile */
};
/* How things stand; also when none runs. Waits for one that has only begun. */
rsb_nodiscard int rsb_daemon_look(
	const struct rsb_where *where, struct rsb_daemon_look *ret_look, struct rsb_diag *diag);

/* The sandbox name is kept alive by its daemon, which moves its end on: that of now is none. */
bool rsb_daemon_keeps(const char *name, char **env);

/*
 * After r of a connection to it: whether it may only just have begun, or be about to end, so that
 * one is to look again, which this waits for a moment for. n: counts, from 0.
 */
bool rsb_daemon_pause(int r, unsigned int *n);

#endif
