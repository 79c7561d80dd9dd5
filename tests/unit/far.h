/* SPDX-License-Identifier: MIT */
#ifndef RSB_FAR_H
#define RSB_FAR_H

/*
 * A sidecar in a process of its own, with the whole of its server, and a host that knows how to go
 * on with another one: it keeps nodes, open files and calls, and tells them anew. The sidecar is
 * killed by SIGKILL wherever a test likes, and the next one starts on the same workspace and
 * journal.
 */

#include <sys/types.h>

#include "link/wire.h"
#include "proto/codec.h"
#include "proto/session.h"
#include "sidecar/sess.h"
#include "tests/unit/unit.h"
#include "util/clock.h"

#define FAR_CALLS_MAX 4096
#define FAR_NODES_MAX 1024
#define FAR_WAIT_NS (100 * RSB_NSEC_PER_SEC)

struct far_call {
	bool done;
	int error;
	uint32_t op;
	uint64_t fifo;        /* 0: no mutation */
	struct rsb_buf first; /* encoded, as it was called */
	struct rsb_buf again; /* the same with the number before its own */
	uint64_t parent;      /* of a name that it makes; 0: none */
	char name[32];        /* the same */
	uint64_t fh;          /* that it opens or releases */
	uint64_t node;        /* the node it opens */
	uint64_t flags;
	struct rsb_msg *msg;
	struct rsb_bytes body;
};

/* What the host knows. */
struct far_node {
	struct rsb_adopt_one one;
	char name[32];
	uint64_t fh; /* 0: not open */
	uint64_t flags;
};

struct far {
	char workspace[64];
	char journal[96];
	struct rsb_sidecar_config config;
	struct rsb_secret key;
	int stall_fds[2]; /* the sidecar writes a byte into it when it stalls */
	pid_t pid;
	uint16_t port;
	struct rsb_loop *loop;
	struct rsb_wire *wire;
	bool closed;
	struct rsb_session *host;
	bool welcomed;
	char epoch[65];
	uint64_t incarnation;
	uint64_t fifo;
	uint64_t fifo_done;
	struct far_call calls[FAR_CALLS_MAX]; /* by id */
	uint64_t n_call;
	struct far_node nodes[FAR_NODES_MAX];
	size_t n_node;
	uint64_t wait_for;   /* the last call by which it tells a sidecar what it knows; 0: none */
	uint64_t fifo_anew;  /* what welcome said then */
	bool adopting;       /* that call is not answered */
	bool crashed;        /* and not connected since */
	uint64_t kill_after; /* frames until the sidecar is killed, 0: never */
	int kill_delay_ms;   /* after that frame */
	bool kill_now;
	unsigned int n_anew;
	unsigned int n_kill;
	unsigned int n_lost; /* sessions that could not go on */
	uint64_t lock_losses;
};

/* far-box.c: the process. */
void far_box_start(struct far *far);
void far_box_end(struct far *far);
/* far-call.c: what the reply to a call that succeeded means. */
void far_learn(struct far *far, const struct far_call *call);

struct far *far_new(bool with_journal);
void far_free(struct far *far);

/* The sidecar dies, and another one starts. */
void far_kill(struct far *far);
/* The connection is cut. */
void far_cut(struct far *far);
/* The host's process dies: another one goes on with what this one had. */
void far_crash(struct far *far);
/* Connected, with all that is to be sent sent; runs the loop once. */
void far_step(struct far *far, int timeout_ms);
#define far_until(far, condition)                                                            \
	do {                                                                                 \
		uint64_t deadline_ns_ = rsb_now_ns() + FAR_WAIT_NS;                          \
		while (!(condition)) {                                                       \
			ck_assert_msg(rsb_now_ns() < deadline_ns_, "too late: " #condition); \
			far_step((far), 10);                                                 \
		}                                                                            \
	} while (0)
/* Sends what there is to send, and hears nothing. */
void far_send(struct far *far);
/* Until the sidecar stalls, see far-box.c. */
void far_until_stalled(struct far *far);
/* The same, and hears nothing meanwhile. */
void far_wait_stalled(struct far *far);

/* What a call makes, for the host to know it afterwards; zero where it does not matter. */
struct far_effect {
	uint64_t parent;
	const char *name;
	uint64_t node;
	uint64_t fh;
	uint64_t flags;
};
uint64_t far_call(struct far *far, uint32_t op, const void *req, const struct far_effect *effect);
/* Waits for the reply: its error. */
int far_reply(struct far *far, uint64_t call, void *ret_rep);

/* The calls that tests make most, below the root. */
uint64_t far_create(struct far *far, const char *name, uint64_t id);
uint64_t far_append(struct far *far, uint64_t fh, const char *text);
uint64_t far_release(struct far *far, uint64_t fh);
uint64_t far_mkdir(struct far *far, const char *name, uint64_t id);
uint64_t far_rename(struct far *far, const char *name, const char *newname);
struct far_node *far_node(struct far *far, uint64_t id);
/* Contents below the workspace, to be freed; NULL: not there. */
char *far_read(struct far *far, const char *name);

#endif
