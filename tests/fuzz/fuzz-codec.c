/* SPDX-License-Identifier: MIT */
#include "proto/codec.h"
#include "proto/version.h"
#include "tests/fuzz/fuzz.h"
#include "tests/prop/message.h"

/* The first byte says which message of the table the rest is; beyond the last one it is a call. */

static void
take_call(struct rsb_bytes in)
{
	struct rsb_buf out = { .max = 0 };
	struct rsb_call_head head, again;

	if (rsb_codec_head(in, &head) < 0)
		return;
	FUZZ_CHECK(head.id != 0);
	FUZZ_CHECK(head.error <= 0 && head.error > -512);
	FUZZ_CHECK(head.body.size <= in.size);
	if (head.op == 0) {
		if (head.error == 0)
			return;
		FUZZ_CHECK(rsb_codec_reply(0, head.id, head.error, NULL, 1, &out) == 0);
		FUZZ_CHECK(rsb_codec_head(rsb_buf_view(&out), &again) == 0);
		FUZZ_CHECK(again.id == head.id && again.error == head.error);
		rsb_buf_done(&out);
		return;
	}
	if (head.op <= RSB_OP_NUMBER_MAX && rsb_ops[head.op].name)
		(void)message_settles(rsb_ops[head.op].req, head.body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;

	if (size == 0)
		return 0;
	while (rsb_messages[n])
		n++;
	if (data[0] < n)
		(void)message_settles(
			rsb_messages[data[0]], (struct rsb_bytes){ data + 1, size - 1 });
	else
		take_call((struct rsb_bytes){ data + 1, size - 1 });
	return 0;
}
