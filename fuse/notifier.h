/* SPDX-License-Identifier: MIT */
#ifndef RSB_NOTIFIER_H
#define RSB_NOTIFIER_H

/*
 * The notifier: a process of its own that tells the kernel what to forget. A notify may wait for
 * a request that the daemon has to answer, and for as long as that takes the caller cannot even be
 * killed; so no thread of the daemon ever makes one. It is forked before there are threads, gets
 * its copy of /dev/fuse when there is a mount, and ends with its socket. Orders come as packets of
 * a head and a body; fuse/notify.h is the other end.
 */

#include <stdint.h>

#define RSB_NOTIFIER_NODES_MAX 4096u /* in one packet */

enum rsb_notifier_order {
	RSB_NOTIFIER_ATTACH = 1, /* with a copy of /dev/fuse */
	RSB_NOTIFIER_INODES,
	RSB_NOTIFIER_SIZES,
	RSB_NOTIFIER_NAMES,
	RSB_NOTIFIER_EPOCH, /* answered, as the next: int32_t, 0 or negative errno */
	RSB_NOTIFIER_FENCE,
};

struct rsb_notifier_head {
	uint32_t type; /* enum rsb_notifier_order */
	uint32_t how;  /* INODES: not the attributes alone; NAMES: expire only */
};

/* Followed by the name and a NUL. */
struct rsb_notifier_name {
	uint64_t parent;
	uint64_t size; /* without the NUL */
};

struct rsb_notifier_size {
	uint64_t nodeid;
	uint64_t size;
};

#define RSB_NOTIFIER_PACKET_MAX \
	(sizeof(struct rsb_notifier_head) + RSB_NOTIFIER_NODES_MAX * sizeof(uint64_t))

/* Its own main: serves sock until its other end is closed, and closes it. */
void rsb_notifier_main(int sock);

#endif
