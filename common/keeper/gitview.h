/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITVIEW_H
#define RSB_GITVIEW_H

/*
 * What of a configuration git on this machine is given, and what of it must come back when git
 * writes that again. An entry that is not harmless and is not one of the trusted copy is held
 * back, with its whole line, and with its section's header where nothing else is left below that;
 * in its place is what the trusted copy says of the same name, unless the text says that too. All
 * else is given byte for byte, so what git writes from it differs from the text by what git
 * changed, and by what was held back: that is appended again, in sections of its own, which the
 * next view leaves out without a trace. Pure.
 */

#include "keeper/gitallow.h"

#define RSB_GITVIEW_KEPT_MAX 256u /* entries that come back; the others are lost */

/* rsb_gitallow_judge() for one. If it cannot be read its trusted copy is given, or nothing. */
rsb_nodiscard int rsb_gitview_config(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX]);

/*
 * Appends to out what is to be appended to ours, which git wrote from the view of what: what was
 * held back and is not in it. -EBADMSG: one of them cannot be read; -ENOMEM, -EMSGSIZE.
 */
rsb_nodiscard int rsb_gitview_kept(
	const struct rsb_gitallow *what, struct rsb_bytes ours, struct rsb_buf *out);

#endif
