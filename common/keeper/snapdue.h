/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPDUE_H
#define RSB_SNAPDUE_H

/*
 * When the next snapshot is taken by itself: pure, the time is an argument. After sync.interval of
 * which something was not kept; sooner, after one that is fuzzy, when the last command has ended;
 * and not so often that more than a tenth of the time is spent on it, or if they take longer than
 * that interval, half of it.
 */

#include <stdbool.h>
#include <stdint.h>

#define RSB_SNAPDUE_REST 10u              /* times as long as the last one took */
#define RSB_SNAPDUE_QUIET_NS 5000000000UL /* after a command: at least so long, or interval */
#define RSB_SNAPDUE_FAILED_MAX_NS 600000000000UL /* between tries that fail */

struct rsb_snapdue_news {
	uint64_t change;   /* another number: something was written, or a command began or ended */
	uint64_t commands; /* that run */
	bool settled;      /* what was written has arrived */
	bool live;         /* the sandbox is reached */
};

struct rsb_snapdue {
	uint64_t interval_ns;
	struct rsb_snapdue_news news; /* the latest */
	uint64_t kept;                /* the change that the last one has; 0: nobody knows */
	uint64_t dirty_ns;            /* since when something is not kept; 0: all is */
	uint64_t ended_ns;            /* the last one, or try; 0: there was none */
	uint64_t took_ns;
	unsigned int failed; /* in a row */
	bool fuzzy;          /* the last one */
};

void rsb_snapdue_init(struct rsb_snapdue *due, uint64_t interval_ns);
void rsb_snapdue_tell(
	struct rsb_snapdue *due, const struct rsb_snapdue_news *news, uint64_t now_ns);
/* The moment from which on one is to be taken; 0: not before other news. */
uint64_t rsb_snapdue_at(const struct rsb_snapdue *due);
/*
 * One that began at begun_ns, with the news of then, has ended; r: negative if it failed. fuzzy:
 * commands ran.
 */
struct rsb_snapdue_end {
	struct rsb_snapdue_news then;
	uint64_t begun_ns;
	uint64_t now_ns;
	bool fuzzy;
	int r;
};
void rsb_snapdue_ended(struct rsb_snapdue *due, const struct rsb_snapdue_end *end);

#endif
