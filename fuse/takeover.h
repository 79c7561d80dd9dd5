/* SPDX-License-Identifier: MIT */
#ifndef RSB_TAKEOVER_H
#define RSB_TAKEOVER_H

/*
 * How a process of a running mount becomes one of another build: it executes that program with its
 * own arguments and, in front of them, the numbers of the descriptors and processes that it goes on
 * with. How these are written belongs to RSB_SHARED_MAGIC, as what the three processes say to
 * each other does: for a moment they are of different builds.
 */

#include <sys/types.h>

#include "util/macro.h"

enum rsb_takeover_role { RSB_TAKEOVER_NONE, RSB_TAKEOVER_DAEMON, RSB_TAKEOVER_SUPERVISOR };

struct rsb_takeover {
	enum rsb_takeover_role role;
	int shared_fd;
	int lock_fd;     /* of the sandbox's daemon; -1: there is none */
	int sock;        /* this one's end of that between daemon and supervisor */
	int notify_sock; /* the daemon's */
	int fuse_fd;     /* the supervisor's, as the next two */
	pid_t daemon;
	pid_t notifier;
};

/* The first word of the arguments, with what rsb_takeover_parse() is given behind it. */
#define RSB_TAKEOVER_OPTION "--take-over="

/* The descriptors are close-on-exec afterwards. -EINVAL. */
rsb_nodiscard int rsb_takeover_parse(const char *text, struct rsb_takeover *ret_takeover);
/*
 * Executes program with args (NULL-terminated, args[0] its name). Returns only on failure, and then
 * descriptors may not be close-on-exec any more. Between fork and exec: nothing is freed.
 */
int rsb_takeover_exec(const struct rsb_takeover *takeover, int program, char *const *args);

#endif
