/* SPDX-License-Identifier: MIT */
#include "exec/reach.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "exec/daemon.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define LOOK_NS (200 * 1000 * 1000L)

int
rsb_reach_wait(const struct rsb_reach *reach, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const uint64_t end_ns = rsb_now_ns() + reach->wait_ns;
	struct rsb_daemon_look look = { .cut_off = true };
	bool said = reach->quiet;
	int r;

	r = rsb_where_find(reach->name, reach->env, &where, diag);
	while (r >= 0) {
		r = rsb_daemon_look(&where, &look, diag);
		if (r < 0 || (look.running && !look.cut_off))
			return r;
		if (!look.running || look.lost)
			return rsb_diag_set(diag, -ENOTCONN,
				"the %s of %s is gone; 'rsb up' brings back what can be",
				look.running ? "sandbox" : "daemon", reach->name);
		if (rsb_now_ns() >= end_ns)
			return rsb_diag_set(diag, -ETIMEDOUT,
				"%s is up, but its sandbox has not been reached for %llu s (%s); its "
				"daemon goes on trying, 'rsb down --force %s' ends it",
				reach->name, (unsigned long long)look.down_s, look.state,
				reach->name);
		if (!said)
			(void)fprintf(stderr,
				"rsb up: %s is up, but its sandbox has not been reached for %llu s "
				"(%s): waiting up to %llu s\n",
				reach->name, (unsigned long long)look.down_s, look.state,
				(unsigned long long)(reach->wait_ns / RSB_NSEC_PER_SEC));
		said = true;
		(void)nanosleep(&pause, NULL); /* an early end is fine */
	}
	return r;
}
