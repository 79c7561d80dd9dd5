/* SPDX-License-Identifier: MIT */
#ifndef RSB_FIXTURE_H
#define RSB_FIXTURE_H

/*
 * The real sidecar program as a child, a workspace of its own, and a real link to it: over a port,
 * over an inherited socket pair, or over a relay that cuts and freezes. $RSB_SIDECAR names the
 * program.
 *
 * Functions fail the test when something does not work. Those that wait do so for FIXTURE_WAIT_NS
 * at most.
 */

#include <sys/types.h>

#include <check.h>

#include "link/link.h"
#include "tests/e2e/relay.h"
#include "util/map.h"
#include "util/thread.h"

#define FIXTURE_WAIT_NS (30 * RSB_NSEC_PER_SEC)

enum fixture_way {
	FIXTURE_PORT,
	FIXTURE_FD,
	FIXTURE_RELAY, /* to the port, through fx->relay */
};

struct fixture {
	char workspace[64];
	char journal[80];
	struct rsb_secret key;
	enum fixture_way way;
	const char *user; /* NULL: who runs the test */
	bool no_cgroup;
	pid_t pid; /* of the sidecar; 0: not running */
	uint16_t port;
	int fd; /* our end of the socket pair */
	struct relay *relay;
	struct rsb_link *link;
	struct rsb_mutex lock;
	struct rsb_cond cond;
	enum rsb_link_state state; /* {lock} */
	int reason;                /* {lock} */
	unsigned int n_epoch;      /* {lock} */
	unsigned int n_live;       /* {lock} times that it became LIVE */
	unsigned int n_news;       /* {lock} times that a sender got room or was reset */
	bool reconnect;            /* {lock} a connection that broke is made again at once */
	struct rsb_map chans;      /* {lock} struct fixture_chan by number */
};

/* Makes workspace and key; what is to be set by the test may be set then. */
void fixture_init(struct fixture *fx);
/* Starts the program and makes the link, not yet connected. */
void fixture_start(struct fixture *fx, enum fixture_way way);
/* Until LIVE. */
void fixture_connect(struct fixture *fx);
/* All of it, with the program's end by SIGTERM if it still runs. */
void fixture_done(struct fixture *fx);
/* Ends the program by a signal; its exit status or 128 + signal. */
int fixture_stop(struct fixture *fx, int signal);
/* Runs the program with the arguments to its end, with size bytes of the key on descriptor 3. */
int fixture_run(
	struct fixture *fx, const char *const *argv, size_t size, char *text, size_t text_max);
/* A bare connection to the port. */
int fixture_dial(struct fixture *fx);

/* ---- commands ---- */

struct fixture_exec {
	uint64_t proc;
	struct rsb_spawn_rep spawn;
};
/*
 * Opens the streams, sends the request, waits for the start. stdin of size bytes goes behind it;
 * NULL: /dev/null.
 */
void fixture_spawn(struct fixture *fx, const char *const *argv, const void *input, size_t size,
	struct fixture_exec *ret_exec);
void fixture_wait(
	struct fixture *fx, uint64_t proc, enum rsb_wait_what what, struct rsb_wait_rep *ret_rep);
/* Output of a command that has ended, whole; to be freed. Frees the command, too. */
char *fixture_output(struct fixture *fx, uint64_t proc, const struct rsb_wait_rep *rep);
/* Runs sh -c script and compares output and exit code. */
void fixture_check(struct fixture *fx, const char *script, const char *expected, uint64_t code);

#endif
