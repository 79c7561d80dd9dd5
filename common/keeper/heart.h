/* SPDX-License-Identifier: MIT */
#ifndef RSB_HEART_H
#define RSB_HEART_H

/*
 * What the keeper thread does from time to time to keep the sandbox alive, as keeper/life.h
 * decides. Private to the keeper, and on its thread.
 */

#include "keeper/steps.h"

/* When the next beat is due. left_ns: of the sandbox's time, where its host has a limit. */
uint64_t rsb_heart_next(const struct rsb_keeper *keeper, uint64_t left_ns);
/* Extends the sandbox's life and reads back what came of it. What the table is to be asked. */
enum rsb_recover_event rsb_heart_beat(struct rsb_keeper *keeper);
/* Nobody used the sandbox for keeper.idle_limit, as of now; said when it becomes so. */
bool rsb_heart_is_idle(struct rsb_keeper *keeper);

#endif
