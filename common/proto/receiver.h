/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECEIVER_H
#define RSB_RECEIVER_H

/*
 * The receiving end of one byte stream (proto/chan.h): counts what came and what was consumed, and
 * decides what the sender is told. Keeps no bytes. Its owner reads the members, never writes them.
 */

#include <stdbool.h>

#include "proto/frame.h"

/* The peer is told at the latest after so many bytes, whatever the window. */
#define RSB_RECEIVER_STEP ((uint64_t)64 << 10)

struct rsb_receiver {
	size_t window;
	size_t window_max;
	uint64_t received;
	uint64_t consumed;
	uint64_t grown_at; /* consumed, when the window was chosen */
	uint64_t said_received;
	uint64_t said_limit;
	bool fin;
	bool due;    /* there is something to tell */
	bool urgent; /* the sender may be waiting for it */
};

void rsb_receiver_init(struct rsb_receiver *receiver, size_t window_max);
void rsb_receiver_attach(struct rsb_receiver *receiver);
/* A STREAM frame. 1: hand it up; 0: nothing in it; -EBADMSG. */
rsb_nodiscard int rsb_receiver_input(struct rsb_receiver *receiver, const struct rsb_frame *frame);
/* size: at most what was received and not yet consumed. */
void rsb_receiver_consume(struct rsb_receiver *receiver, size_t size);
static inline uint64_t
rsb_receiver_limit(const struct rsb_receiver *receiver)
{
	return receiver->consumed + receiver->window;
}

/* What CREDIT says was received: the end counts as one byte more. */
static inline uint64_t
rsb_receiver_received(const struct rsb_receiver *receiver)
{
	return receiver->received + (receiver->fin ? 1 : 0);
}

/* All there is to tell was told. */
void rsb_receiver_said(struct rsb_receiver *receiver);

#endif
