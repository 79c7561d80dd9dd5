/* SPDX-License-Identifier: MIT */
#include "fuse/heard.h"

#include "fuse/limbo.h"
#include "fuse/losses.h"
#include "fuse/relay.h"
#include "fuse/revive.h"

/* ---- main thread ---- */

static void
on_epoch(struct rsb_task *task)
{
	rsb_barrier_reset(rsb_container_of(task, struct rsb_heard, epoch)->barrier);
}

static void
on_anew(struct rsb_task *task)
{
	struct rsb_heard *heard = rsb_container_of(task, struct rsb_heard, anew);

	if (heard->control)
		rsb_relay_anew(rsb_control_relay(heard->control));
	/* Nobody knows what happened meanwhile. */
	rsb_barrier_reset(heard->barrier);
}

/* {keeper} Who comes next is to be told. */
static void
on_restored(void *arg, const char *text)
{
	struct rsb_fs *fs = arg;

	rsb_mutex_lock(&fs->lock);
	rsb_losses_add(fs->shared, RSB_LOSS_RESTORED, text, false);
	rsb_mutex_unlock(&fs->lock);
}

void
rsb_heard_init(struct rsb_heard *heard, struct rsb_loop *loop, struct rsb_fs *fs,
	struct rsb_barrier *barrier, struct rsb_uplink *uplink)
{
	*heard = (struct rsb_heard){
		.loop = loop,
		.fs = fs,
		.barrier = barrier,
		.uplink = uplink,
		.epoch = { .fn = on_epoch },
		.anew = { .fn = on_anew },
	};
	rsb_uplink_on_restored(uplink, on_restored, fs);
}

static const char *
next_loss(struct rsb_fs *fs, char *text, size_t size)
{
	const char *kind;

	rsb_mutex_lock(&fs->lock);
	kind = rsb_losses_say(fs->shared, text, size);
	rsb_mutex_unlock(&fs->lock);
	return kind;
}

/* It has failed all calls. The link is down, so no stream brings anything behind this. */
static void
look_at_keeper(struct rsb_heard *heard)
{
	if (heard->given_up || !heard->control || !rsb_uplink_is_lost(heard->uplink))
		return;
	heard->given_up = true;
	rsb_relay_give_up(rsb_control_relay(heard->control));
}

void
rsb_heard_tick(struct rsb_heard *heard)
{
	char text[RSB_SHARED_LOSS_MAX];
	const char *kind;

	look_at_keeper(heard);
	while ((kind = next_loss(heard->fs, text, sizeof(text))))
		rsb_uplink_say(heard->uplink, kind, text);
	if (rsb_revive_say(heard->fs, text, sizeof(text)))
		rsb_uplink_say(heard->uplink, "restarted", text);
}

/* ---- {io} ---- */

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct rsb_heard *heard = arg;

	rsb_mutex_lock(&heard->fs->lock);
	rsb_fs_link_state_locked(heard->fs, state, new_epoch);
	rsb_mutex_unlock(&heard->fs->lock);
	if (new_epoch)
		rsb_loop_post(heard->loop, &heard->epoch);
	rsb_uplink_link_state(heard->uplink, state, reason, new_epoch);
}

static void
on_link_anew(void *arg, uint64_t fifo)
{
	struct rsb_heard *heard = arg;

	rsb_mutex_lock(&heard->fs->lock);
	rsb_revive_begin(heard->fs->revive, fifo);
	rsb_mutex_unlock(&heard->fs->lock);
	rsb_loop_post(heard->loop, &heard->anew);
}

static uint32_t
on_early(void *arg, const struct rsb_call_head *head)
{
	struct rsb_heard *heard = arg;
	uint32_t op;

	rsb_mutex_lock(&heard->fs->lock);
	op = rsb_limbo_answer(heard->fs->send, head);
	rsb_mutex_unlock(&heard->fs->lock);
	return op;
}

static void
on_locks_lost(void *arg)
{
	struct rsb_heard *heard = arg;

	rsb_mutex_lock(&heard->fs->lock);
	rsb_revive_lose_locks(heard->fs);
	rsb_mutex_unlock(&heard->fs->lock);
}

static void
on_chan_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct rsb_heard *heard = arg;

	if (heard->control)
		rsb_control_chan_data(heard->control, chan, data, fin);
}

static void
on_chan_writable(void *arg, uint64_t chan)
{
	const struct rsb_heard *heard = arg;

	if (heard->control)
		rsb_control_chan_writable(heard->control, chan);
}

static void
on_chan_reset(void *arg, uint64_t chan, int r)
{
	struct rsb_heard *heard = arg;

	if (heard->control)
		rsb_control_chan_reset(heard->control, chan, r);
}

const struct rsb_link_ops rsb_heard_ops = {
	.state = on_state,
	.anew = on_link_anew,
	.early = on_early,
	.locks_lost = on_locks_lost,
	.chan_data = on_chan_data,
	.chan_writable = on_chan_writable,
	.chan_reset = on_chan_reset,
};
