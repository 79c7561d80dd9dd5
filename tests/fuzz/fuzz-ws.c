/* SPDX-License-Identifier: MIT */
#include "proto/limits.h"
#include "proto/ws.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte: role, and the size of the pieces in which the rest arrives. In pieces or whole,
 * the same messages, answers and end must come out.
 */

struct result {
	struct rsb_buf messages; /* each behind its length */
	struct rsb_buf answers;
	int r;
};

/* Takes messages until it wants more bytes. */
static int
drain(struct rsb_ws *ws, struct rsb_buf *in, struct result *result)
{
	struct rsb_bytes msg;
	size_t used;
	int r;

	do {
		r = rsb_ws_input(ws, in, &result->answers, &msg, &used);
		if (r < 0)
			return r;
		FUZZ_CHECK(used <= rsb_buf_len(in));
		if (r > 0) {
			FUZZ_CHECK(msg.size <= RSB_FRAME_MAX);
			FUZZ_CHECK(rsb_buf_append(&result->messages, &msg.size, sizeof(msg.size)) ==
				   0);
			FUZZ_CHECK(rsb_buf_append(&result->messages, msg.data, msg.size) == 0);
		}
		rsb_buf_consume(in, used);
	} while (r > 0);
	return 0;
}

static void
run(enum rsb_ws_role role, struct rsb_bytes data, size_t step, struct result *result)
{
	struct rsb_buf in = { .max = 0 };
	struct rsb_ws ws;

	memset(result, 0, sizeof(*result));
	FUZZ_CHECK(rsb_ws_init(&ws, role) == 0);
	for (size_t at = 0; at < data.size && result->r == 0; at += step) {
		const size_t n = rsb_min(step, data.size - at);

		FUZZ_CHECK(rsb_buf_append(&in, data.data + at, n) == 0);
		result->r = drain(&ws, &in, result);
		/* Never more than one frame waits for its end. */
		if (result->r == 0)
			FUZZ_CHECK(rsb_buf_len(&in) < 14 + RSB_FRAME_MAX);
	}
	rsb_buf_done(&in);
	rsb_ws_done(&ws);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result whole, pieces;
	struct rsb_bytes rest;
	enum rsb_ws_role role;

	if (size < 2)
		return 0;
	role = data[0] & 1 ? RSB_WS_CLIENT : RSB_WS_SERVER;
	rest = (struct rsb_bytes){ data + 1, size - 1 };
	run(role, rest, rest.size, &whole);
	run(role, rest, 1 + data[0] / 2, &pieces);
	FUZZ_CHECK(whole.r == pieces.r);
	FUZZ_CHECK(fuzz_equal(rsb_buf_view(&whole.messages), rsb_buf_view(&pieces.messages)));
	/* A client's answers have other masks each time. */
	if (role == RSB_WS_SERVER)
		FUZZ_CHECK(fuzz_equal(rsb_buf_view(&whole.answers), rsb_buf_view(&pieces.answers)));
	else
		FUZZ_CHECK(rsb_buf_len(&whole.answers) == rsb_buf_len(&pieces.answers));
	rsb_buf_done(&whole.messages);
	rsb_buf_done(&whole.answers);
	rsb_buf_done(&pieces.messages);
	rsb_buf_done(&pieces.answers);
	return 0;
}
