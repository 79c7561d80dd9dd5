/* SPDX-License-Identifier: MIT */
#ifndef RSB_ANEW_H
#define RSB_ANEW_H

/*
 * A session that goes on although one end's process is another one: what was under way is handed
 * back to who made it, to be made again, and nothing else is taken until that is done. Io thread.
 * Private to link/.
 */

#include "link/talk.h"

/* Whether welcome begins that. */
bool rsb_anew_begins(const struct rsb_link *link, const struct rsb_welcome *welcome);
/*
 * Before the connection is attached: a fresh stream; calls end with -ERESTART or -EOWNERDEAD, byte
 * streams are reset, new calls wait. -ENOMEM: nothing has changed.
 */
rsb_nodiscard int rsb_anew_cut(struct rsb_link *link);
/* After that: it is to be gone on with, also by a later process. Before that hears of the epoch. */
void rsb_anew_save(struct rsb_link *link, const struct rsb_welcome *welcome);
/* The owner's turn. */
void rsb_anew_tell(struct rsb_link *link);

#endif
