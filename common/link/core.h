/* SPDX-License-Identifier: MIT */
#ifndef RSB_CORE_H
#define RSB_CORE_H

/*
 * The io thread of a link: it alone touches session and connection. Other threads leave
 * orders, messages and calls under the lock (link/link.c) and wake it; it carries them out in
 * rounds, and runs every callback, never with the lock held. Private to link/.
 *
 * A session ends (its state over there is gone, or was rolled back) by taking everything that
 * belongs to it out of the shared tables under the lock first; so a call is answered by its
 * reply, its deadline or that end, whichever takes it.
 */

#include "link/attempt.h"
#include "link/link.h"
#include "link/outbox.h"
#include "link/pending.h"
#include "link/wire.h"
#include "util/thread.h"

#define RSB_LINK_ID_SIZE 16 /* of client and session ids */

/* What other threads want; each is done once, in this order. */
struct rsb_link_orders {
	bool stop;
	bool aborted; /* the attempt was taken back before it began */
	bool reset;   /* new_key and new_id count */
	bool drop;    /* drop_reason counts */
	bool fail;    /* fail_r changed */
	bool recall;  /* some call has a wish */
	bool go_on;   /* the session that went on anew is LIVE */
	struct rsb_secret new_key;
	char new_id[129];
	int drop_reason;
	struct rsb_attempt *attempt; /* to be started; owned */
};

struct rsb_link {
	const struct rsb_link_ops *ops; /* const after new */
	void *arg;                      /* const after new */
	uint64_t ping_ns;               /* const after new */
	struct rsb_link_saved *saved;   /* const after new; NULL: none */
	uint64_t first_call;            /* const after new; calls before are of another process */
	struct rsb_loop *loop;          /* const after new */
	pthread_t thread;               /* const after new */
	struct rsb_task wake;

	struct rsb_mutex lock;
	struct rsb_link_orders orders; /* {lock} */
	enum rsb_link_state state;     /* {lock} without regard to fail_r */
	int fail_r;                    /* {lock} */
	bool stopped;                  /* {lock} */
	bool has_facts;                /* {lock} */
	struct rsb_link_facts facts;   /* {lock} */
	struct rsb_link_stats stats;   /* {lock} */
	uint64_t rtt_ns;               /* {lock} */
	struct rsb_diag why;           /* {lock} */
	uint64_t next_id;              /* {lock} */
	uint64_t next_call;            /* {lock} */
	uint64_t fifo;                 /* {lock} mutations queued in this session */
	uint64_t generation;           /* {lock} of the session */
	bool gated;                    /* {lock} from ops->anew to rsb_link_go_on() */
	struct rsb_pending pending;    /* {lock} */
	struct rsb_outbox outbox;      /* {lock} */

	struct rsb_secret key;                /* {io} */
	char sandbox_id[129];                 /* {io} */
	uint8_t client_id[RSB_LINK_ID_SIZE];  /* {io} */
	uint8_t session_id[RSB_LINK_ID_SIZE]; /* {io} */
	char epoch[65];                       /* {io} */
	size_t epoch_size;                    /* {io} */
	bool welcomed;                        /* {io} this session was attached once */
	struct rsb_session *session;          /* {io} */
	struct rsb_zip *zip;                  /* {io} */
	struct rsb_wire *wire;                /* {io} NULL: no connection */
	struct rsb_attempt *attempt;          /* {io} under way */
	struct rsb_timer *timer;              /* {io} */
	struct rsb_buf scratch;               /* {io} an encoded message of our own */
	void *reply;                          /* {io} room for any decoded reply */
	bool poisoned;                        /* {io} the session cannot go on */
	bool suspect;                         /* {io} told so */
	bool stopping;                        /* {io} */
};

/*
 * Before the thread runs. What is built is released by rsb_core_done(), also after a failure.
 */
rsb_nodiscard int rsb_core_init(struct rsb_link *link);
/* After the thread ended. */
void rsb_core_done(struct rsb_link *link);
/* The thread. */
void *rsb_core_run(void *arg);
/* Goes on where the process of before was, before anything is sent. */
void rsb_core_restore(struct rsb_link *link);
/* Io thread: moves everything on that can move. The last thing that a callback does. */
void rsb_core_pump(struct rsb_link *link);

#endif
