/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECONCILE_H
#define RSB_RECONCILE_H

/* Ends conflicts that a sync out has left, by the record of that sync. */

#include <stdbool.h>

#include "util/diag.h"

struct rsb_reconcile {
	const char *dir;       /* that was synced in */
	const char *state_dir; /* of the sandbox */
	const char *path;      /* as given, a file or all below a directory; NULL: all */
	bool theirs;           /* is kept, else ours */
};

struct rsb_reconciled {
	size_t n;     /* conflicts; a repository counts once */
	size_t later; /* of them those that the next sync brings to an end */
};

/* Under the session's lock. -ENOENT: there is no conflict. Each failure has a sentence. */
rsb_nodiscard int rsb_reconcile(const struct rsb_reconcile *what,
	struct rsb_reconciled *ret_resolved, struct rsb_diag *diag);

#endif
