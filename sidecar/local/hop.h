/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOP_H
#define RSB_HOP_H

/* Headers that belong to one connection (RFC 9110, 7.6.1) and are made anew on the next. Pure. */

#include <stdbool.h>

/* Content-Length is one of them here: each side frames its body itself. */
bool rsb_hop_is(const char *name);

#endif
