/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOUSE_H
#define RSB_HOUSE_H

#include "sidecar/registry.h"
#include "tests/unit/unit.h"
#include "util/clock.h"

/* A registry, and hosts of which only the hello matters. */
struct house {
	struct rsb_sidecar_config config;
	struct rsb_loop *loop;
	struct rsb_workers *pool;
	struct rsb_registry *registry;
	uint64_t now_ns;
	struct rsb_clock clock;
	bool idle;
};

struct guest {
	struct rsb_carrier carrier;
	struct rsb_sess *sess;
	bool resumed;
	bool anew;
	unsigned int n_lost;
	uint64_t calls; /* in hello; 0: it cannot go on anew */
	uint64_t fifo;  /* the same */
	char epoch[65]; /* what welcome told it */
};

/* journal: its path; NULL: none. The clock stands still. */
void house_init(struct house *house, const char *journal);
void house_done(struct house *house);

int house_join(struct house *house, const struct rsb_join *join, struct guest *guest);
/* id: of the session, one character. */
int house_come(struct house *house, struct guest *guest, const char *sandbox, const char *id);
/* The session 1, of another process of the host, which made 7 mutations. */
int house_come_again(
	struct house *house, struct guest *guest, uint64_t incarnation, uint64_t fifo_done);
void house_leave(struct guest *guest);

#endif
