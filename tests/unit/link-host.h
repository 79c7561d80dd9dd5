/* SPDX-License-Identifier: MIT */
#ifndef RSB_LINK_HOST_H
#define RSB_LINK_HOST_H

/* A link, its far end in a thread, and what its callbacks said. */

#include <check.h>

#include "link/link.h"
#include "tests/unit/fake-sidecar.h"
#include "util/clock.h"
#include "util/thread.h"

#define WAIT_NS (10 * RSB_NSEC_PER_SEC)

struct host {
	struct rsb_link *link;
	struct fake_sidecar *fake;
	struct rsb_secret key;
	struct rsb_mutex lock;
	struct rsb_cond cond;
	enum rsb_link_state state; /* {lock} */
	int reason;                /* {lock} */
	unsigned int n_epoch;      /* {lock} */
	unsigned int n_done;       /* {lock} calls that ended */
	unsigned int n_ok;         /* {lock} of them with 0 */
	int last_r;                /* {lock} */
	uint64_t last;             /* {lock} of the reply */
	bool disorder;             /* {lock} */
	bool writable;             /* {lock} */
	bool fin;                  /* {lock} */
	int reset;                 /* {lock} */
	uint64_t received;         /* {lock} */
	bool damaged;              /* {lock} */
	unsigned int n_anew;       /* {lock} */
	uint64_t fifo;             /* {lock} of the last one */
	unsigned int n_locks_lost; /* {lock} */
	uint64_t early_call;       /* {lock} a wait that was handed back */
	unsigned int n_early;      /* {lock} replies to it */
	int early_r;               /* {lock} */
};

/* Byte number i of the pattern that streams are checked against. */
uint8_t echo_byte(uint64_t i);

void host_init(struct host *host, uint64_t ping_ns);
/* With what outlives it. */
void host_init_saved(struct host *host, struct rsb_link_saved *saved);
/* Another process with what was saved, for the same far end. */
void host_replace(struct host *host, struct rsb_link_saved *saved);
void host_done(struct host *host);
/* Begins a connection to the far end; the second waits until it is live. */
void dial(struct host *host);
void dial_and_wait(struct host *host);

/* Waits with the lock held until cond; fails the test after WAIT_NS. */
#define WAIT_UNTIL(host, condition)                                                              \
	do {                                                                                     \
		uint64_t deadline_ns_ = rsb_now_ns() + WAIT_NS;                                  \
		rsb_mutex_lock(&(host)->lock);                                                   \
		while (!(condition))                                                             \
			ck_assert_int_eq(                                                        \
				rsb_cond_wait_until(&(host)->cond, &(host)->lock, deadline_ns_), \
				0);                                                              \
		rsb_mutex_unlock(&(host)->lock);                                                 \
	} while (0)

/* One member, read under the lock. */
#define PEEK(host, member)                                         \
	({                                                         \
		rsb_mutex_lock(&(host)->lock);                     \
		__typeof__((host)->member) peek_ = (host)->member; \
		rsb_mutex_unlock(&(host)->lock);                   \
		peek_;                                             \
	})

#endif
