/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOCALTIME_H
#define RSB_LOCALTIME_H

/*
 * Times as a person reads them, in the time zone of the environment. Beside util/clock.h, which the
 * sidecar carries as well, because time zones are heavy.
 */

#include "util/macro.h"

/*
 * "15:04" of wall_ns, with the date before it, "2026-08-21 15:04", unless that is the day of
 * now_ns. out has 24 bytes.
 */
#define RSB_LOCALTIME_SIZE 24
void rsb_localtime(uint64_t wall_ns, uint64_t now_ns, char out[static RSB_LOCALTIME_SIZE]);
/* "2026-08-21 15:04:05", whatever the day is: for lines that are sorted, or read on another day. */
void rsb_localtime_full(uint64_t wall_ns, char out[static RSB_LOCALTIME_SIZE]);

#endif
