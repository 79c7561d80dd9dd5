/* SPDX-License-Identifier: MIT */
/* The byte streams of link.h. */

#include <errno.h>

#include "link/core.h"

static int
chan_open(struct rsb_link *link, uint64_t chan, bool sender, size_t limit)
{
	int r;

	rsb_mutex_lock(&link->lock);
	r = link->stopped ? -ECANCELED : link->fail_r;
	if (r == 0)
		r = rsb_outbox_open(&link->outbox, chan, sender, limit);
	rsb_mutex_unlock(&link->lock);
	if (r == 0)
		rsb_loop_post(link->loop, &link->wake);
	return r;
}

int
rsb_link_chan_open_sender(struct rsb_link *link, uint64_t chan, size_t buffer_max)
{
	return chan_open(link, chan, true, buffer_max);
}

int
rsb_link_chan_open_receiver(struct rsb_link *link, uint64_t chan, size_t window_max)
{
	return chan_open(link, chan, false, window_max);
}

int
rsb_link_chan_write(struct rsb_link *link, uint64_t chan, struct rsb_bytes data)
{
	int r;

	rsb_mutex_lock(&link->lock);
	r = rsb_outbox_write(&link->outbox, chan, data);
	rsb_mutex_unlock(&link->lock);
	/* also after 0 bytes: the io thread looks for room then */
	if (r >= 0)
		rsb_loop_post(link->loop, &link->wake);
	return r;
}

int
rsb_link_chan_finish(struct rsb_link *link, uint64_t chan)
{
	int r;

	rsb_mutex_lock(&link->lock);
	r = rsb_outbox_finish(&link->outbox, chan);
	rsb_mutex_unlock(&link->lock);
	if (r == 0)
		rsb_loop_post(link->loop, &link->wake);
	return r;
}

void
rsb_link_chan_consume(struct rsb_link *link, uint64_t chan, size_t size)
{
	rsb_mutex_lock(&link->lock);
	rsb_outbox_consume(&link->outbox, chan, size);
	rsb_mutex_unlock(&link->lock);
	rsb_loop_post(link->loop, &link->wake);
}

static void
chan_close(struct rsb_link *link, uint64_t chan, int r)
{
	rsb_mutex_lock(&link->lock);
	rsb_outbox_close(&link->outbox, chan, r);
	rsb_mutex_unlock(&link->lock);
	rsb_loop_post(link->loop, &link->wake);
}

void
rsb_link_chan_reset(struct rsb_link *link, uint64_t chan, int r)
{
	chan_close(link, chan, r);
}

void
rsb_link_chan_close(struct rsb_link *link, uint64_t chan)
{
	chan_close(link, chan, 0);
}
