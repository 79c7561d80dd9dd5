/* SPDX-License-Identifier: MIT */
#include "proto/ws-upgrade.h"
#include "tests/fuzz/fuzz.h"

/*
 * The same bytes as a request and as a response. What is accepted is not longer than what there
 * was.
 */

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

static void
inside(struct rsb_bytes view, const uint8_t *data, size_t size)
{
	if (view.data)
		FUZZ_CHECK(view.data >= data && view.data + view.size <= data + size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rsb_bytes in = { data, size };
	struct rsb_buf out = { .max = 0 };
	struct rsb_ws_upgrade upgrade;
	int status = 0;
	int r;

	r = rsb_ws_accept(in, &upgrade);
	if (r > 0) {
		FUZZ_CHECK((size_t)r <= size && r <= RSB_WS_HEADERS_MAX);
		inside(upgrade.path, data, (size_t)r);
		inside(upgrade.key, data, (size_t)r);
		inside(upgrade.auth, data, (size_t)r);
		FUZZ_CHECK(upgrade.path.size > 0 && upgrade.path.data[0] == '/');
		FUZZ_CHECK(rsb_ws_accept_reply(upgrade.key, &out) == 0);
	}
	r = rsb_ws_response(in, KEY, &status);
	FUZZ_CHECK(r <= 0 || ((size_t)r <= size && status == 101));
	FUZZ_CHECK(status >= 0 && status <= 999);
	rsb_buf_done(&out);
	return 0;
}
