/* SPDX-License-Identifier: MIT */
#ifndef RSB_ROSTER_H
#define RSB_ROSTER_H

/*
 * The table of channels behind proto/chan.h: who is open, who is closed but still has a last frame
 * to get through, and who never was and has to be told so. The map holds all of them, so a number
 * that is not forgotten cannot be opened again, and a peer that goes on sending to it makes no
 * second RESET.
 */

#include "proto/receiver.h"
#include "proto/sender.h"
#include "util/list.h"
#include "util/map.h"

enum rsb_chan_kind {
	RSB_CHAN_SENDER,
	RSB_CHAN_RECEIVER,
	RSB_CHAN_PARTED,  /* closed; its last frame is not settled */
	RSB_CHAN_REFUSED, /* never ours; a RESET is to be sent */
};

/* The last frame of a channel that is closed. */
struct rsb_parting {
	enum rsb_frame_type type; /* RESET or CREDIT */
	uint64_t b;
	uint64_t received; /* of CREDIT */
	uint64_t mark;     /* when it was sent */
	bool early;        /* the peer may not know the channel yet */
};

struct rsb_chan {
	uint64_t id;
	enum rsb_chan_kind kind;
	struct rsb_list link; /* in one list at most; while open, of the owner's */
	union {
		struct rsb_sender sender;
		struct rsb_receiver receiver;
		struct rsb_parting parting;
	};
};

/* Early partings that are kept. What the oldest ones waited for would have come long ago. */
#define RSB_ROSTER_EARLY_MAX 256

struct rsb_roster {
	struct rsb_map map;
	size_t n_ours;   /* all but REFUSED and the early ones */
	size_t n_parted; /* PARTED, but for the early ones */
	size_t n_early;
	struct rsb_list partings; /* PARTED and REFUSED, to be sent on this connection */
	struct rsb_list parted;   /* PARTED, sent, in order of their marks */
	struct rsb_list early;    /* PARTED, sent, oldest first */
	uint64_t mark;            /* of the last one sent */
	uint8_t received[8];      /* payload of the CREDIT that was made last */
};

void rsb_roster_init(struct rsb_roster *roster);
void rsb_roster_done(struct rsb_roster *roster);

static inline bool
rsb_chan_is_open(const struct rsb_chan *chan)
{
	return chan->kind == RSB_CHAN_SENDER || chan->kind == RSB_CHAN_RECEIVER;
}

/* Zeroed but for id and kind: the caller initialises its half. -EMFILE, -EEXIST, -ENOMEM. */
rsb_nodiscard int rsb_roster_open(struct rsb_roster *roster, uint64_t id, enum rsb_chan_kind kind,
	struct rsb_chan **ret_chan);
void rsb_roster_forget(struct rsb_roster *roster, struct rsb_chan *chan);
/* Closes it but for its last frame. said: that was sent on this connection. */
void rsb_roster_part(struct rsb_roster *roster, struct rsb_chan *chan,
	const struct rsb_parting *parting, bool said);
/* The peer knows the channel of an early RESET now: once more, and then it can be settled. */
void rsb_roster_repeat(struct rsb_roster *roster, struct rsb_chan *chan);
/*
 * A RESET for a number that is not here. -EBADMSG: the peer provokes more than it reads; -ENOMEM.
 */
rsb_nodiscard int rsb_roster_refuse(struct rsb_roster *roster, uint64_t id);

/* The next last frame: 1, 0 none. */
rsb_nodiscard int rsb_roster_output(struct rsb_roster *roster, struct rsb_frame *ret_frame);
void rsb_roster_make_credit(struct rsb_roster *roster, uint64_t id, uint64_t limit,
	uint64_t received, struct rsb_frame *ret_frame);
/* What CREDIT says was received. -EBADMSG. */
rsb_nodiscard int rsb_roster_read_credit(const struct rsb_frame *frame, uint64_t *ret_received);
/* Those sent up to mark arrived. */
void rsb_roster_settle(struct rsb_roster *roster, uint64_t mark);
/* The connection is gone: what is not settled is to be sent again, what was refused is dropped. */
void rsb_roster_detach(struct rsb_roster *roster);

#endif
