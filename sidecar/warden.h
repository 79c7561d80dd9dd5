/* SPDX-License-Identifier: MIT */
#ifndef RSB_WARDEN_H
#define RSB_WARDEN_H

/*
 * The process that stands above one command where there are no cgroups: a subreaper (prctl(2)), so
 * that every descendant, setsid(2) or not, ends as its child; "no child is left" is then the proof
 * that the tree is empty. It comes from a fork of a program with threads and never execs, so it
 * makes async-signal-safe calls only.
 *
 * It talks with the sidecar over a SOCK_SEQPACKET socket, one struct rsb_warden_msg at a time. When
 * the sidecar is gone it kills the tree: nobody is left who could see or end it.
 */

#include "sidecar/proc-spawn.h"

enum rsb_warden_type {
	RSB_WARDEN_STARTED = 1,    /* a: pid */
	RSB_WARDEN_FAILED = 2,     /* a: stage, b: errno */
	RSB_WARDEN_EXITED = 3,     /* a: si_code, b: si_status of waitid(2) */
	RSB_WARDEN_EMPTY = 4,      /* the last one */
	RSB_WARDEN_UNKILLABLE = 5, /* a: number of processes */
	RSB_WARDEN_SIGNAL = 6,     /* to it; a: signal, b: enum rsb_signal_to */
	RSB_WARDEN_KILL = 7,       /* to it; a: grace in ms */
};

struct rsb_warden_msg {
	int32_t type;
	int32_t a;
	int32_t b;
};

/*
 * In the child of the fork, with all signals blocked: starts exec and stays until its tree is
 * empty.
 */
rsb_noreturn void rsb_warden_run(const struct rsb_exec *exec, int sock);

#endif
