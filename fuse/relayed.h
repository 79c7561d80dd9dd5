/* SPDX-License-Identifier: MIT */
#ifndef RSB_RELAYED_H
#define RSB_RELAYED_H

/*
 * One command on its way through the daemon, and the table of all; private to fuse/relay.c. That it
 * is there stands in the shared mapping from before it is asked for until nothing of it lives, so
 * that the next daemon waits for it too.
 */

#include "fuse/relay.h"
#include "fuse/shared.h"

/*
 * Places for commands that may not leave anything running: what others left, however much, keeps
 * nobody from looking and from ending it.
 */
#define RSB_RELAY_SPARE 16u

struct rsb_relay {
	struct rsb_control *control;
	struct rsb_loop *loop;
	struct rsb_fs *fs;
	struct rsb_barrier *barrier;
	struct rsb_pipes *pipes;
	struct rsb_list procs;
	struct rsb_list orders;
	size_t n_proc;
	uint64_t grace_ms;
	uint64_t ends_ns;                    /* until then those that we ended are waited for */
	uint64_t cut_ns;                     /* the same without a link */
	uint64_t last_ns;                    /* when nothing of a command lived any more */
	void (*back)(struct rsb_task *task); /* of orders, with the reply */
	bool given_up;                       /* no sidecar comes any more */
	int closed;                          /* nothing more begins, and is told this; 0: it does */
};

struct rsb_relayed {
	struct rsb_relay *relay;
	struct rsb_shared_proc *shared;
	struct rsb_list all;
	struct rsb_list of_client;
	uint64_t client; /* serial; 0: gone */
	uint64_t near;
	uint64_t far;
	struct rsb_pipe *pipe;
	size_t n_order; /* that hold it */
	bool alive;     /* something of it may live: counted by the barrier */
	bool sent;      /* the request for it is on the link */
	bool started;
	bool freed;  /* nobody asks for it any more */
	bool cut;    /* it has lost its streams */
	bool spare;  /* one of the last RSB_RELAY_SPARE */
	bool before; /* of a daemon that died */
	bool ends;   /* with us, which its client is told instead of how it ended */
	bool over;   /* {fs->lock} its client's wait has its reply */
	bool gone;   /* {fs->lock} the sidecar has said that nothing of it lives */
};

/* Opens its streams (as of rsb_pipe_streams()). -EEXIST, -ENFILE over RSB_RELAY_PROCS_MAX. */
rsb_nodiscard int rsb_relayed_new(struct rsb_relay *relay, struct rsb_guest *client, uint64_t near,
	unsigned int streams, struct rsb_relayed **ret_proc);
/* One of a daemon that died, without client and streams. */
rsb_nodiscard int rsb_relayed_restore(
	struct rsb_relay *relay, struct rsb_shared_proc *shared, struct rsb_relayed **ret_proc);
void rsb_relayed_free(struct rsb_relayed *proc);
/* It runs: all its processes are ended, by SIGTERM first. */
void rsb_relayed_end(struct rsb_relayed *proc);
/* The far record goes when nobody asks for it, nothing of it lives and no request names it. */
void rsb_relayed_collect(struct rsb_relayed *proc);
/* Nothing of it lives any more; or nobody will ever say that. */
void rsb_relayed_leave(struct rsb_relayed *proc);
/* Its client is gone, or asks no more for it. */
void rsb_relayed_part(struct rsb_relayed *proc);
/* What it left running has no place: whether it is to be ended, which is noted then. */
bool rsb_relayed_leaves_too_much(struct rsb_relayed *proc);
/* Keeps what it runs, for people. */
void rsb_relayed_describe(struct rsb_relayed *proc, const struct rsb_spawn_req *spawn);
/* r: of its spawn, or of the wait for its end. Names it, if it ended with the sidecar's process. */
void rsb_relayed_note_end(struct rsb_relayed *proc, int r);
/* The one that client calls near. NULL: none such. */
struct rsb_relayed *rsb_relayed_find(struct rsb_guest *client, uint64_t near);

#endif
