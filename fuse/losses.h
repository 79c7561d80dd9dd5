/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_LOSSES_H
#define RSB_FUSE_LOSSES_H

/*
 * What was lost, or may have been done or not, in sentences for people: for the event log, for the
 * stderr of the next rsb-exec, and for `rsb status`. The latest are in the shared mapping, so that
 * a crash of the daemon takes none away before it was said.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/shared.h"
#include "util/json.h"

#define RSB_LOSSES_TOLD_MAX 16u /* of one status, or one rsb-exec */

enum rsb_loss {
	RSB_LOSS_LOST,
	RSB_LOSS_UNKNOWN,
	RSB_LOSS_RESTORED /* all that is not of the moment that came back */
};

/*
 * told: whoever waits for it is told by other means. text goes to terminals: printable ASCII. It is
 * cut where it is too long.
 */
void rsb_losses_add(struct rsb_shared *shared, enum rsb_loss kind, const char *text, bool told);
/*
 * The next one that the event log does not have, which has it from now on: its kind there. NULL:
 * there is none. size: of text.
 */
const char *rsb_losses_say(struct rsb_shared *shared, char *text, size_t size);
/*
 * Members "losses" (each with "time", "kind" and "text") and "more" (how many there were besides)
 * of those that were not told, which now are; nothing when there are none.
 */
rsb_nodiscard int rsb_losses_tell(struct rsb_shared *shared, struct rsb_json *object);
/* The latest, whether told or not, appended to array. */
rsb_nodiscard int rsb_losses_list(const struct rsb_shared *shared, struct rsb_json *array);

#endif
