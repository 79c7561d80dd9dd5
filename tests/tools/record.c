/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/ws.h"
#include "util/map.h"

#define CONNS_MAX 1024

struct tap {
	struct rsb_ws ws;
	struct rsb_zip *zip;
	struct rsb_buf in;
	struct rsb_buf out; /* the recorder never answers */
	struct rsb_buf message;
	int upgraded;
	int broken;
	bool cut; /* at what comes next from the sidecar */
};

struct rsb_record {
	struct rsb_map taps; /* connection to struct tap */
	uint64_t counts[RSB_OP_NUMBER_MAX + 1];
	uint64_t cut_in; /* requests; 0: there is none to come */
	bool cut_answered;
};

static void
tap_free(struct tap *tap)
{
	if (!tap)
		return;
	rsb_ws_done(&tap->ws);
	rsb_zip_free(tap->zip);
	rsb_buf_done(&tap->in);
	rsb_buf_done(&tap->out);
	rsb_buf_done(&tap->message);
	free(tap);
}

static struct tap *
tap_of(struct rsb_record *record, uint64_t id)
{
	struct tap *tap = rsb_map_get(&record->taps, id);

	if (tap)
		return tap;
	tap = rsb_new(struct tap);
	if (!tap)
		return NULL;
	rsb_buf_init(&tap->message, RSB_MESSAGE_MAX);
	if (rsb_ws_init(&tap->ws, RSB_WS_SERVER) < 0 || rsb_zip_new(&tap->zip) < 0 ||
		rsb_map_put(&record->taps, id, tap) < 0) {
		tap_free(tap);
		return NULL;
	}
	return tap;
}

/* true: the link is cut before this request. */
static bool
count_request(struct rsb_record *record, struct tap *tap, unsigned int op)
{
	if (op <= RSB_OP_NUMBER_MAX)
		record->counts[op]++;
	if (record->cut_in == 0 || --record->cut_in)
		return false;
	tap->cut = record->cut_answered;
	return !record->cut_answered;
}

/* 1: the link is cut before this frame. */
static int
take_frame(struct rsb_record *record, struct tap *tap, struct rsb_bytes bytes)
{
	struct rsb_call_head head;
	struct rsb_frame frame;
	int r;

	r = rsb_frame_decode(bytes, tap->zip, &frame);
	if (r == -EOPNOTSUPP || (r >= 0 && frame.type != RSB_FRAME_MESSAGE))
		return 0;
	if (r < 0)
		return r;
	r = rsb_buf_append(&tap->message, frame.payload.data, frame.payload.size);
	if (r < 0 || frame.flags & RSB_FRAME_MORE)
		return r;
	r = rsb_codec_head(rsb_buf_view(&tap->message), &head);
	rsb_buf_clear(&tap->message);
	return r < 0 ? r : count_request(record, tap, head.op);
}

/* 1: the link is cut before what is left of the input. */
static int
walk(struct rsb_record *record, struct tap *tap)
{
	if (!tap->upgraded) {
		struct rsb_ws_upgrade upgrade;
		int n = rsb_ws_accept(rsb_buf_view(&tap->in), &upgrade);

		if (n <= 0)
			return n;
		rsb_buf_consume(&tap->in, (size_t)n);
		tap->upgraded = 1;
	}
	for (;;) {
		struct rsb_bytes msg;
		size_t used;
		int r = rsb_ws_input(&tap->ws, &tap->in, &tap->out, &msg, &used);

		rsb_buf_clear(&tap->out);
		if (r > 0)
			r = take_frame(record, tap, msg);
		else if (r == 0 && used == 0)
			return 0;
		if (r != 0)
			return r;
		rsb_buf_consume(&tap->in, used);
	}
}

int
rsb_record_new(struct rsb_record **ret_record)
{
	struct rsb_record *record = rsb_new(struct rsb_record);

	if (!record)
		return -ENOMEM;
	rsb_map_init(&record->taps, CONNS_MAX);
	*ret_record = record;
	return 0;
}

void
rsb_record_free(struct rsb_record *record)
{
	size_t cursor = 0;
	struct tap *tap;

	if (!record)
		return;
	while ((tap = rsb_map_next(&record->taps, &cursor, NULL)))
		tap_free(tap);
	rsb_map_done(&record->taps);
	free(record);
}

size_t
rsb_record_input(struct rsb_record *record, uint64_t id, struct rsb_bytes bytes)
{
	struct tap *tap;
	int r;

	if (bytes.size == 0) {
		tap_free(rsb_map_del(&record->taps, id));
		return 0;
	}
	tap = tap_of(record, id);
	if (!tap || tap->broken)
		return bytes.size;
	r = rsb_buf_append(&tap->in, bytes.data, bytes.size);
	if (r >= 0)
		r = walk(record, tap);
	tap->broken = r != 0;
	if (r <= 0)
		return bytes.size;
	/* Its beginning may have got through before: then it is cut in its midst. */
	return bytes.size - rsb_min(bytes.size, rsb_buf_len(&tap->in));
}

bool
rsb_record_output(struct rsb_record *record, uint64_t id)
{
	struct tap *tap = rsb_map_get(&record->taps, id);

	return !tap || !tap->cut;
}

void
rsb_record_cut(struct rsb_record *record, uint64_t n, bool answered)
{
	record->cut_in = n;
	record->cut_answered = answered;
}

bool
rsb_record_cuts(const struct rsb_record *record)
{
	return record->cut_in > 0;
}

int
rsb_record_report(struct rsb_record *record, struct rsb_buf *out)
{
	uint64_t mutations = 0;
	uint64_t requests = 0;
	int r;

	for (uint32_t op = 1; op <= RSB_OP_NUMBER_MAX; op++) {
		requests += record->counts[op];
		/*
		 * open and release change nothing by themselves; they are in the FIFO for its
		 * order.
		 */
		if (rsb_ops[op].flags & RSB_OP_WRITES && op != RSB_OP_open && op != RSB_OP_release)
			mutations += record->counts[op];
	}
	r = rsb_buf_printf(out, "mutations=%llu requests=%llu", (unsigned long long)mutations,
		(unsigned long long)requests);
	for (uint32_t op = 1; r >= 0 && op <= RSB_OP_NUMBER_MAX; op++)
		if (record->counts[op])
			r = rsb_buf_printf(out, " %s=%llu",
				rsb_ops[op].name ? rsb_ops[op].name : "unknown",
				(unsigned long long)record->counts[op]);
	memset(record->counts, 0, sizeof record->counts);
	return r;
}
