/* SPDX-License-Identifier: MIT */
#ifndef RSB_CHILDREN_H
#define RSB_CHILDREN_H

/*
 * The processes that envd started, as process.Process wants them. One thread (here: the loop's)
 * owns their pipes and timers; calls come from the connections' threads; exits come from the
 * reaper, which is pid 1's main thread. A process survives the client that started it.
 */

#include "util/json.h"

#include "sidecar/envd/fanout.h"
#include "sidecar/envd/launch.h"

#define RSB_CHILDREN_MAX 1024U /* running and remembered ones together */

struct rsb_children;

struct rsb_children_start {
	struct rsb_launch launch;
	struct rsb_json *config; /* for the list; taken, also on failure */
	const char *tag;         /* NULL: none */
	uint64_t deadline_ns;    /* after which it is killed; 0: none */
	uint64_t keepalive_ns;
};

/* Which process: by tag when there is one, else by pid. */
struct rsb_children_key {
	pid_t pid;
	const char *tag;
};

/* Starts the loop's thread. SIGCHLD is blocked in all threads. Lives as long as the program. */
rsb_nodiscard int rsb_children_new(struct rsb_children **ret_procs);

/* -EAGAIN over RSB_CHILDREN_MAX. The stream begins with the start event. */
rsb_nodiscard int rsb_children_start(struct rsb_children *children,
	struct rsb_children_start *start, struct rsb_watcher **ret_stream);
/* -ESRCH. A process that ended a moment ago gives its start and end. */
rsb_nodiscard int rsb_children_attach(struct rsb_children *children,
	const struct rsb_children_key *key, uint64_t keepalive_ns, struct rsb_watcher **ret_stream);
/*
 * Waits until all is written. -ESRCH no such process, -EPIPE no standard input, -ECANCELED when the
 * peer of client_fd closed meanwhile.
 */
rsb_nodiscard int rsb_children_input(struct rsb_children *children,
	const struct rsb_children_key *key, int client_fd, struct rsb_bytes data);
/* -ESRCH; closing twice is fine. */
rsb_nodiscard int rsb_children_close_stdin(
	struct rsb_children *children, const struct rsb_children_key *key);
/* To this one process. -ESRCH unknown, -ECHILD ended already. */
rsb_nodiscard int rsb_children_signal(
	struct rsb_children *children, const struct rsb_children_key *key, int sig);
/* Appends {"config","pid","tag"} of each running one to the array. */
rsb_nodiscard int rsb_children_list(struct rsb_children *children, struct rsb_json *array);

/* Waits for children for ever, orphans of the sandbox included. */
rsb_nodiscard int rsb_children_reap(struct rsb_children *children);

#endif
