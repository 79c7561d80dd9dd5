/* SPDX-License-Identifier: MIT */
#ifndef RSB_REACH_H
#define RSB_REACH_H

/* What is up may be cut off; its daemon connects again, or hears that there is no hope. */

#include <stdbool.h>
#include <stdint.h>

#include "util/diag.h"

struct rsb_reach {
	const char *name; /* of the sandbox, which a daemon serves */
	char **env;
	uint64_t wait_ns;
	bool quiet; /* else what is waited for is told on stderr, once */
};

/* Waits until the sandbox is reached. -ENOTCONN, -ETIMEDOUT, with a sentence. */
rsb_nodiscard int rsb_reach_wait(const struct rsb_reach *reach, struct rsb_diag *diag);

#endif
