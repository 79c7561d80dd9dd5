/* SPDX-License-Identifier: MIT */
#ifndef RSB_LEASH_H
#define RSB_LEASH_H

/*
 * A program that does not outlive who started it, however that one ends: a process in between waits
 * for the end of both.
 */

#include "util/macro.h"

/*
 * Child side, after fork: goes on in a child of this process, which is to begin a session and
 * becomes the program. This process has no part in its session; it ends when the program does, with
 * its status (128 + signal), and leaves alone what that left. When leash_fd is at its end, the read
 * end of a pipe whose other end who started it has and nobody else, it kills all of the session
 * first. All signals are blocked. Async-signal-safe. 0, or what went wrong.
 */
rsb_nodiscard int rsb_leash_enter(int leash_fd);

#endif
