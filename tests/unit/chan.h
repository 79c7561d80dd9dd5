/* SPDX-License-Identifier: MIT */
#ifndef RSB_UNIT_CHAN_H
#define RSB_UNIT_CHAN_H

/* Two ends of proto/chan.h, host and sidecar, and the way of frames between them. */

#include <errno.h>
#include <stdlib.h>

#include <check.h>

#include "proto/chan.h"
#include "proto/limits.h"

#define UP RSB_CHAN_STDIN(7)    /* host to sidecar: no credit before the receiver is there */
#define DOWN RSB_CHAN_STDOUT(7) /* sidecar to host */
#define NO_MAX SIZE_MAX

/* One end, and what its application saw. */
struct end {
	struct rsb_chans *chans;
	struct rsb_buf got;
	size_t n_fin;
	size_t n_writable;
	size_t n_reset;
	int reset;
	bool consumes;
	bool closes_at_fin;
};

static inline void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct end *end = arg;

	ck_assert_int_eq(rsb_buf_append(&end->got, data.data, data.size), 0);
	end->n_fin += fin;
	if (end->consumes)
		rsb_chan_consume(end->chans, chan, data.size);
	if (fin && end->closes_at_fin)
		rsb_chan_close(end->chans, chan);
}

static inline void
on_writable(void *arg, rsb_unused uint64_t chan)
{
	struct end *end = arg;

	end->n_writable++;
}

static inline void
on_reset(void *arg, uint64_t chan, int r)
{
	struct end *end = arg;

	ck_assert_int_eq(rsb_chan_finish(end->chans, chan), -EPIPE);
	end->n_reset++;
	end->reset = r;
}

static const struct rsb_chan_ops ops = {
	.data = on_data,
	.writable = on_writable,
	.reset = on_reset,
};

static struct end host, sidecar;

static inline void
end_init(struct end *end)
{
	*end = (struct end){ .consumes = true };
	ck_assert_int_eq(rsb_chans_new(&ops, end, &end->chans), 0);
}

static inline void
setup(void)
{
	end_init(&host);
	end_init(&sidecar);
	rsb_chans_attach(host.chans);
	rsb_chans_attach(sidecar.chans);
}

static inline void
teardown(void)
{
	rsb_chans_free(host.chans);
	rsb_chans_free(sidecar.chans);
	rsb_buf_done(&host.got);
	rsb_buf_done(&sidecar.got);
	rsb_chans_free(NULL);
}

static inline void
cut(void)
{
	rsb_chans_detach(host.chans);
	rsb_chans_detach(sidecar.chans);
}

static inline void
reconnect(void)
{
	cut();
	rsb_chans_attach(host.chans);
	rsb_chans_attach(sidecar.chans);
}

/* At most n frames of that urge, or less; to may be NULL: they are lost. Returns how many. */
static inline size_t
carry_urge(struct end *from, struct end *to, enum rsb_chans_urge urge, size_t n)
{
	struct rsb_frame frame;
	size_t i;

	for (i = 0; i < n && rsb_chans_output(from->chans, urge, NO_MAX, &frame) > 0; i++)
		if (to)
			ck_assert_int_eq(rsb_chans_input(to->chans, &frame), 0);
	return i;
}

static inline size_t
carry(struct end *from, struct end *to, size_t n)
{
	return carry_urge(from, to, RSB_CHANS_STREAM, n);
}

/* Both ways, lazy credits too, until nobody has anything to say. */
static inline void
settle(void)
{
	while (carry(&host, &sidecar, 9999) + carry(&sidecar, &host, 9999) +
			carry_urge(&host, &sidecar, RSB_CHANS_CREDIT, 99) +
			carry_urge(&sidecar, &host, RSB_CHANS_CREDIT, 99) >
		0)
		;
}

static inline int
input(struct end *end, struct rsb_frame frame)
{
	return rsb_chans_input(end->chans, &frame);
}

static inline struct rsb_frame
credit(uint64_t chan, uint64_t received, uint64_t limit)
{
	static uint8_t payload[8];
	int i;

	for (i = 0; i < 8; i++)
		payload[i] = (uint8_t)(received >> (56 - 8 * i));
	return (struct rsb_frame){
		.type = RSB_FRAME_CREDIT,
		.a = chan,
		.b = limit,
		.payload = { .data = payload, .size = 8 },
	};
}

static inline struct rsb_frame
stream(uint64_t chan, uint64_t offset, const char *text, uint8_t flags)
{
	return (struct rsb_frame){
		.type = RSB_FRAME_STREAM,
		.flags = flags,
		.a = chan,
		.b = offset,
		.payload = rsb_bytes_str(text),
	};
}

/* size pattern bytes at the end of the stream; returns how many were taken. */
static inline size_t
write_pattern(struct end *end, uint64_t chan, size_t size)
{
	uint64_t offset = rsb_chan_offset(end->chans, chan);
	uint8_t *data = malloc(size);
	size_t i;
	int r;

	for (i = 0; i < size; i++)
		data[i] = (uint8_t)((offset + i) * 11 + (offset + i) / 251);
	r = rsb_chan_write(end->chans, chan, (struct rsb_bytes){ .data = data, .size = size });
	ck_assert_int_ge(r, 0);
	free(data);
	return (size_t)r;
}

static inline void
check_pattern(const struct end *end, size_t size)
{
	const uint8_t *got = rsb_buf_head(&end->got);
	size_t i;

	ck_assert_uint_eq(rsb_buf_len(&end->got), size);
	for (i = 0; i < size; i++)
		if (got[i] != (uint8_t)(i * 11 + i / 251))
			ck_abort_msg("byte %zu is wrong", i);
}

static inline void
open_down(size_t buffer_max, size_t window_max)
{
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN, window_max), 0);
	ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, DOWN, buffer_max), 0);
}

#endif
