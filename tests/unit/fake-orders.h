/* SPDX-License-Identifier: MIT */
#ifndef RSB_FAKE_ORDERS_H
#define RSB_FAKE_ORDERS_H

/* Inside of fake-sidecar.h: its thread does what fake-orders.c leaves for it under the lock. */

#include "proto/handshake.h"
#include "proto/session.h"
#include "proto/ws.h"
#include "tests/unit/fake-sidecar.h"
#include "util/thread.h"

#define PENDING 16

enum phase { NONE, UPGRADE, HELLO, OPEN };

struct fake_sidecar {
	struct rsb_secret key;
	pthread_t thread;
	struct rsb_mutex lock;
	int next_fd;                                /* {lock} to be served next; -1: none */
	bool cut;                                   /* {lock} */
	bool frozen;                                /* {lock} */
	bool forget;                                /* {lock} */
	bool anew;                                  /* {lock} */
	uint64_t fifo;                              /* {lock} */
	uint64_t lock_losses;                       /* {lock} */
	bool stop;                                  /* {lock} */
	unsigned int cut_after;                     /* {lock} */
	bool answer;                                /* {lock} answer_id counts */
	uint64_t answer_id;                         /* {lock} */
	unsigned int n_seen[RSB_OP_NUMBER_MAX + 1]; /* {lock} */

	int fd;
	enum phase phase;
	struct rsb_ws ws;
	struct rsb_handshake hs;
	struct rsb_buf in, out;
	struct rsb_zip *zip;
	struct rsb_session *session;
	bool known;
	bool goes_anew;
	uint64_t incarnation;
	uint8_t session_id[16];
	char epoch[9];
	uint64_t waiting[PENDING];
	size_t n_waiting;
};

#endif
