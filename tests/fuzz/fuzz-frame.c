/* SPDX-License-Identifier: MIT */
#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"

/* A frame that is accepted means the same after another trip, compressed or not. */

static void
check_trip(const struct rsb_frame *frame, struct rsb_zip *encoder)
{
	struct rsb_buf out = { .max = 0 };
	struct rsb_zip *decoder;
	struct rsb_frame again;

	FUZZ_CHECK(rsb_zip_new(&decoder) == 0);
	if (frame->payload.size > RSB_FRAME_PAYLOAD_MAX) {
		/* What zstd can hold beyond the head's share. */
		FUZZ_CHECK(rsb_frame_encode(frame, encoder, &out) < 0);
	} else {
		FUZZ_CHECK(rsb_frame_encode(frame, encoder, &out) == 0);
		FUZZ_CHECK(rsb_frame_decode(rsb_buf_view(&out), decoder, &again) == 0);
		FUZZ_CHECK(again.type == frame->type && again.flags == frame->flags);
		FUZZ_CHECK(again.a == frame->a && again.b == frame->b);
		FUZZ_CHECK(fuzz_equal(again.payload, frame->payload));
	}
	rsb_buf_done(&out);
	rsb_zip_free(decoder);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsb_zip *zip, *other;
	struct rsb_frame frame;

	FUZZ_CHECK(rsb_zip_new(&zip) == 0);
	FUZZ_CHECK(rsb_zip_new(&other) == 0);
	if (rsb_frame_decode((struct rsb_bytes){ data, size }, zip, &frame) >= 0) {
		FUZZ_CHECK(frame.payload.size <= RSB_FRAME_MAX);
		FUZZ_CHECK((frame.flags & RSB_FRAME_ZSTD) == 0);
		check_trip(&frame, NULL);
		check_trip(&frame, other);
	}
	rsb_zip_free(zip);
	rsb_zip_free(other);
	return 0;
}
