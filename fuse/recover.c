/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "recover"

#include "fuse/recover.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/fop.h"
#include "fuse/ledger.h"
#include "fuse/resend.h"
#include "fuse/send.h"
#include "util/log.h"

static int
restore_files(struct rsb_fs *fs)
{
	struct rsb_handle *handle;
	size_t cursor = 0;
	int r;

	r = rsb_handles_restore(fs->handles, fs->inodes, &fs->listings);
	while ((handle = rsb_handle_next(fs->handles, &cursor)))
		fs->unsent += handle->wbuf.size;
	return r;
}

/* ---- requests ---- */

static void
fail(struct rsb_fs *fs, struct rsb_fuse_session *session, struct rsb_shared_flight *flight)
{
	rsb_err("a request of before cannot be handled again");
	rsb_fuse_session_refuse(session, flight->unique, EIO);
	rsb_ledger_end_flight(fs->ledger, flight);
}

/*
 * A write comes without its data, which is in the buffers already: there has to be memory where the
 * handler is told that it lies.
 */
static int
handle_flight(struct rsb_fs *fs, struct rsb_fuse_session *session, struct rsb_shared_flight *flight)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_SHARED_REQUEST_MAX };
	rsb_autofree uint8_t *request = NULL;
	struct fuse_in_header head;
	int r;

	r = rsb_arena_read(rsb_ledger_arena(fs->ledger), &flight->raw, &buf);
	if (r < 0 || rsb_buf_len(&buf) < sizeof(head))
		return r < 0 ? r : -EBADMSG;
	memcpy(&head, rsb_buf_head(&buf), sizeof(head));
	if (head.len > RSB_SHARED_REQUEST_MAX || head.len < rsb_buf_len(&buf))
		return -EBADMSG;
	request = calloc(1, head.len);
	if (!request)
		return -ENOMEM;
	memcpy(request, rsb_buf_head(&buf), rsb_buf_len(&buf));
	rsb_fuse_session_again(session, flight, request, head.len);
	return 0;
}

static void
handle_flights(struct rsb_fs *fs, struct rsb_fuse_session *session)
{
	struct rsb_shared *shared = fs->shared;
	/* Handling one may end it, and enters no others. */
	uint32_t n = shared->head.n_flight;

	for (uint32_t i = 0; i < n; i++) {
		struct rsb_shared_flight *flight = &shared->flights[i];

		if (flight->state && handle_flight(fs, session, flight) < 0)
			fail(fs, session, flight);
	}
}

/* What a handler that answered at once has entered goes with it: so whether one took it over. */
static void
end_unclaimed(struct rsb_fs *fs)
{
	struct rsb_shared *shared = fs->shared;

	for (uint32_t i = 0; i < shared->head.n_flight; i++) {
		struct rsb_shared_flight *flight = &shared->flights[i];
		struct rsb_list *pos;
		bool claimed = false;

		if (!flight->state)
			continue;
		rsb_list_for_each (pos, &fs->fops)
			claimed |= rsb_list_entry(pos, struct rsb_fop, all)->flight == flight;
		if (!claimed)
			rsb_ledger_end_flight(fs->ledger, flight);
	}
}

/* The request that was being handled, or was read and not yet begun. */
static void
handle_hand(struct rsb_fs *fs, struct rsb_fuse_session *session, uint64_t unique)
{
	struct rsb_shared *shared = fs->shared;
	struct rsb_shared_flight *hand = &shared->hand;
	struct fuse_in_header head;
	bool begun = hand->state && hand->unique == unique;

	memcpy(&head, shared->request, sizeof(head));
	if (!begun)
		*hand = (struct rsb_shared_flight){ .unique = unique };
	/* What the one before the last had said counts as well, when that one died in here. */
	if (hand->said)
		hand->said_before = hand->said;
	hand->said = RSB_SHARED_SILENT;
	/* Half of it may have been counted: forgotten twice a node would go while it is used. */
	if (begun && (head.opcode == FUSE_FORGET || head.opcode == FUSE_BATCH_FORGET))
		return;
	rsb_shared_publish(&hand->state, 1);
	rsb_fuse_session_again(session, hand, shared->request, head.len);
}

int
rsb_recover(struct rsb_fs *fs, struct rsb_fuse_session *session)
{
	bool lost = !fs->shared->link.welcomed;
	struct fuse_in_header head;
	bool in_flight, in_hand;
	int r;

	rsb_mutex_lock(&fs->lock);
	memcpy(&head, fs->shared->request, sizeof(head));
	in_flight = head.unique && rsb_ledger_flight_of(fs->ledger, head.unique);
	in_hand = head.unique && !in_flight && head.len <= RSB_SHARED_REQUEST_MAX;
	/* The next crash may find it answered, and no flight: it must not be handled for that. */
	if (in_flight)
		rsb_fuse_session_let_go(session);
	r = restore_files(fs);
	if (r >= 0)
		r = rsb_resend_calls(fs, lost);
	if (r >= 0) {
		rsb_handles_drop_closed(fs->handles);
		rsb_fuse_session_resume(session);
		handle_flights(fs, session);
		end_unclaimed(fs);
		if (in_hand)
			handle_hand(fs, session, head.unique);
		rsb_handles_sweep(fs->handles);
	}
	if (r >= 0 && lost) {
		rsb_send_end_lost(fs->send);
		rsb_fs_link_state_locked(fs, RSB_LINK_DOWN, true);
	}
	fs->recovering = true;
	rsb_mutex_unlock(&fs->lock);
	return r;
}

void
rsb_recover_tick(struct rsb_fs *fs)
{
	rsb_mutex_lock(&fs->lock);
	if (fs->recovering && !rsb_send_pending(fs->send)) {
		fs->recovering = false;
		rsb_inodes_sweep(fs->inodes);
	}
	rsb_mutex_unlock(&fs->lock);
}
