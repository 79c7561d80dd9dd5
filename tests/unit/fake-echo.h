/* SPDX-License-Identifier: MIT */
#ifndef RSB_FAKE_ECHO_H
#define RSB_FAKE_ECHO_H

/* What arrives on RSB_CHAN_STDIN(p) goes back on RSB_CHAN_STDOUT(p). arg: struct rsb_session **. */

#include "proto/chan.h"

extern const struct rsb_chan_ops fake_echo_ops;

#endif
