/* SPDX-License-Identifier: MIT */
#ifndef RSB_PACKET_H
#define RSB_PACKET_H

/* What daemon and supervisor say to each other on a SOCK_SEQPACKET pair, some with a descriptor. */

#include <stdint.h>

#include "util/diag.h"

enum rsb_packet_type {
	RSB_PACKET_MOUNT = 1, /* daemon: mount now */
	RSB_PACKET_MOUNTED,   /* supervisor: error 0 comes with the descriptor */
	RSB_PACKET_READY,     /* daemon: the mount answers; or error and text: it will not */
	RSB_PACKET_UNMOUNT,   /* daemon: take it away; error 1: whoever uses it */
	RSB_PACKET_UNMOUNTED, /* supervisor: done, or error */
	RSB_PACKET_STOP,      /* supervisor: end; a signal came */
	RSB_PACKET_NOTIFIER,  /* supervisor: comes with the socket of another notifier */
	RSB_PACKET_UPGRADE,   /* daemon: comes with the program that is to go on instead */
};

struct rsb_packet {
	uint32_t type;
	int32_t error; /* 0 or negative errno */
	char text[RSB_DIAG_MAX];
};

rsb_nodiscard int rsb_packet_send(int sock, uint32_t type, int error, const char *text);
rsb_nodiscard int rsb_packet_send_fd(int sock, uint32_t type, int fd);
/* 1 with a packet (and a descriptor or -1), 0: the other one is gone. */
rsb_nodiscard int rsb_packet_recv(int sock, struct rsb_packet *ret_packet, int *ret_fd);

#endif
