/* SPDX-License-Identifier: MIT */
#ifndef RSB_INLET_H
#define RSB_INLET_H

/*
 * Connections from clients into one sandbox. They end when it is paused: what stands still would
 * else look alive to both ends. Any thread.
 */

#include "util/macro.h"

struct rsb_inlets;
struct rsb_inlet;

/* control: the monitor's socket, borrowed until rsb_inlets_end(). */
rsb_nodiscard int rsb_inlets_new(int control, struct rsb_inlets **ret_inlets);
/* Ends all; no new ones. Goes when the last inlet is closed. NULL is fine. */
void rsb_inlets_end(struct rsb_inlets *inlets);
/* Ends all that there are, and none is opened until rsb_inlets_join(). */
void rsb_inlets_cut(struct rsb_inlets *inlets);
void rsb_inlets_join(struct rsb_inlets *inlets);

/* As rsb_ask_connect(). -ENOTCONN also while they are cut. */
rsb_nodiscard int rsb_inlet_open(
	struct rsb_inlets *inlets, unsigned int port, struct rsb_inlet **ret_inlet);
/* Borrowed; not to be closed. */
int rsb_inlet_fd(const struct rsb_inlet *inlet);
/* NULL is fine. */
void rsb_inlet_close(struct rsb_inlet *inlet);

#endif
