/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOSTOPT_H
#define RSB_HOSTOPT_H

/* The command line of rsb-local. */

#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "util/diag.h"
#include "util/secret.h"

#define RSB_HOSTOPT_SANDBOXES 16U /* default of --max */

struct rsb_hostopt {
	struct sockaddr_in listen;
	char state_dir[PATH_MAX];
	char envd[PATH_MAX];
	const char *port_file; /* NULL: none; borrowed from argv */
	uint64_t disk_size;    /* 0: no limit of ours */
	uint64_t idle_ns;      /* 0: never ends by itself */
	uint64_t cap_ns; /* longest life between two pauses; 0: RSB_APICALL_TIMEOUT_MAX_SEC alone */
	size_t max;
	struct rsb_secret api_key; /* size 0: every key will do */
	bool no_idmap;             /* a test switch */
	bool verbose;
	bool help;
	bool version;
};

/* -EINVAL with a sentence. */
rsb_nodiscard int rsb_hostopt_read(
	int argc, char *argv[], struct rsb_hostopt *ret_options, struct rsb_diag *diag);
void rsb_hostopt_done(struct rsb_hostopt *options);

extern const char rsb_hostopt_usage[];

#endif
