/* SPDX-License-Identifier: MIT */
#ifndef RSB_OWN_H
#define RSB_OWN_H

/*
 * Who owns what is made. The thread takes the owner's file system ids for the call that makes it,
 * and keeps its capabilities: so the file has its owner from the first moment, directories with
 * set-group-ID and default ACLs work as everywhere, and nothing is changed owner by name, which the
 * sandbox could have replaced meanwhile.
 */

#include <stdbool.h>

#include "proto/op.h"
#include "sidecar/sess.h"

struct rsb_own {
	bool change;
	uid_t uid;
	gid_t gid;
};

/* -EINVAL: no such ids. */
rsb_nodiscard int rsb_own_init(
	struct rsb_own *own, const struct rsb_sidecar_config *config, const struct rsb_who *who);
/* -EPERM: not allowed to take those ids; then nothing has changed. Each thread has its own. */
rsb_nodiscard int rsb_own_begin(const struct rsb_own *own);
void rsb_own_end(const struct rsb_own *own); /* keeps errno */

#endif
