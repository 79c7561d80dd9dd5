/* SPDX-License-Identifier: MIT */
#ifndef RSB_LISTKEEP_H
#define RSB_LISTKEEP_H

/*
 * Lists of the workspace that were sent, kept in files without a name, so that the next one can be
 * told as what changed since. They end with the process; whoever names one that is not here any
 * more gets the whole list. Has a lock inside.
 */

#include "util/cleanup.h"

/* Of several hosts, and of tries that came to nothing; the one that was used longest ago goes. */
#define RSB_LISTKEEP_N 4u
#define RSB_LISTKEEP_MAX (256u << 20) /* bytes of one */

struct rsb_listkeep;

rsb_nodiscard int rsb_listkeep_new(struct rsb_listkeep **ret_keep);
void rsb_listkeep_free(struct rsb_listkeep *keep); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_listkeep *, rsb_listkeep_free)

/* A new file, for reading and writing; the caller's. Errors of open(2). */
rsb_nodiscard int rsb_listkeep_file(void);
/* Takes fd, also on failure. *ret_id: never 0, nor above INT64_MAX. */
rsb_nodiscard int rsb_listkeep_add(struct rsb_listkeep *keep, int fd, uint64_t *ret_id);
/* For pread(2); the caller's. -ENOENT. */
rsb_nodiscard int rsb_listkeep_get(struct rsb_listkeep *keep, uint64_t id);

#endif
