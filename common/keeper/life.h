/* SPDX-License-Identifier: MIT */
#ifndef RSB_LIFE_H
#define RSB_LIFE_H

/*
 * For how long a sandbox is kept alive: decisions alone, on times and counts that the keeper gives.
 * One that nobody used for a while is left to its time; one whose host ends it at a limit of its
 * own, whatever is asked, starts that limit anew by a pause, at a moment when nobody waits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/macro.h"

/* How long before the host's limit something is done: at most, and as a part of all its time. */
#define RSB_LIFE_AHEAD_NS (600 * RSB_NSEC_PER_SEC)
#define RSB_LIFE_AHEAD_PART 4u

struct rsb_life {
	uint64_t idle_limit_ns; /* 0: none */
	uint64_t n_call;        /* of the link, when it was looked at */
	uint64_t used_ns;
	bool in_use;
	bool warned; /* of the limit that it has now */
};

/* now_ns: of a clock of the caller's, the same for all calls. */
void rsb_life_init(struct rsb_life *life, uint64_t idle_limit_ns, uint64_t now_ns);
/* n_call: calls that were made so far; n_wait: those without an answer. */
void rsb_life_use(struct rsb_life *life, uint64_t n_call, uint64_t n_wait, uint64_t now_ns);
bool rsb_life_is_idle(const struct rsb_life *life, uint64_t now_ns);

/* What a host says after it was asked for more. */
struct rsb_life_got {
	uint64_t wanted_ns; /* from now on */
	uint64_t left_ns;
	uint64_t session_ns; /* from its start to its end */
};

enum rsb_life_act {
	RSB_LIFE_GOES_ON,
	RSB_LIFE_WARN,  /* the limit is near, and it is in use; once */
	RSB_LIFE_RENEW, /* it is near, and nobody waits */
};
enum rsb_life_act rsb_life_look(struct rsb_life *life, const struct rsb_life_got *got);

#endif
