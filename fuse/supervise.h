/* SPDX-License-Identifier: MIT */
#ifndef RSB_SUPERVISE_H
#define RSB_SUPERVISE_H

/*
 * The supervisor: the process that holds what a crash of the daemon must not take away, that is
 * the descriptor of /dev/fuse, the shared mapping and the mount itself. It forks the notifier and
 * the daemon, mounts when the daemon says that it can serve, and when the daemon is gone unmounts,
 * so that no dead mount stays. It has one thread, no link, no key.
 *
 * Packets between daemon and supervisor are struct rsb_supervise_msg on a SOCK_SEQPACKET pair.
 */

#include <sys/types.h>

#include "fuse/mount.h"
#include "fuse/shared.h"

enum rsb_supervise_type {
	RSB_SUPERVISE_MOUNT = 1, /* daemon: mount now */
	RSB_SUPERVISE_MOUNTED,   /* supervisor: error 0 comes with the descriptor */
	RSB_SUPERVISE_READY,     /* daemon: the mount answers; or error and text: it will not */
	RSB_SUPERVISE_UNMOUNT,   /* daemon: take it away; error 1: whoever uses it */
	RSB_SUPERVISE_UNMOUNTED, /* supervisor: done, or error */
	RSB_SUPERVISE_STOP,      /* supervisor: end; a signal came */
};

struct rsb_supervise_msg {
	uint32_t type;
	int32_t error; /* 0 or negative errno */
	char text[RSB_DIAG_MAX];
};

struct rsb_supervise {
	struct rsb_mount_opts mount;
	bool foreground;
	/*
	 * The daemon's main, in a process of its own. sock: to the supervisor; notify_sock: to
	 * the notifier. Its result is the exit status.
	 */
	int (*daemon)(void *arg, struct rsb_shared *shared, int sock, int notify_sock);
	void *arg;
};

/*
 * Forks all and returns in the caller's process when the mount answers (0) or cannot (negative
 * errno with a sentence); in the foreground: when it has ended, with the exit status.
 */
rsb_nodiscard int rsb_supervise(const struct rsb_supervise *supervise, struct rsb_diag *diag);

/* The daemon's end of the pair. */
rsb_nodiscard int rsb_supervise_send(int sock, uint32_t type, int error, const char *text);
/* The daemon's, before it reads packets: the supervisor mounts; *ret_fd is the device. */
rsb_nodiscard int rsb_supervise_ask_mount(int sock, int *ret_fd, struct rsb_diag *diag);
/* 1 with a packet (and a descriptor or -1), 0: the supervisor is gone. */
rsb_nodiscard int rsb_supervise_recv(int sock, struct rsb_supervise_msg *ret_msg, int *ret_fd);

#endif
