/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOSSNOTE_H
#define RSB_LOSSNOTE_H

/* Tells on stderr, as program, what was lost that nobody was told of. text: JSON of ctl_losses. */

#include "util/buf.h"

void rsb_lossnote_say(const char *program, struct rsb_bytes text);

#endif
