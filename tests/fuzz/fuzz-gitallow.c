/* SPDX-License-Identifier: MIT */
#include "keeper/gitallow.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte says what kind of file the rest is, and whether it begins with a trusted copy, up
 * to a byte 0. Whatever is served instead of a file must itself pass, but for what was trusted.
 */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsb_gitallow what = {
		.place = { .workspace = "/home/user/workspace", .mountpoint = "/mnt", .depth = 2 },
		.path = "r/.git/x",
	};
	struct rsb_bytes trusted = { 0 };
	struct rsb_buf view = { 0 };
	struct rsb_buf again = { 0 };
	char why[RSB_GITALLOW_WHY_MAX];
	int r;

	if (!size)
		return 0;
	what.kind = (enum rsb_git_kind)((data[0] & 0x7f) % (RSB_GIT_AUTHOR + 1));
	what.text = (struct rsb_bytes){ .data = data + 1, .size = size - 1 };
	if (data[0] & 0x80) {
		const uint8_t *end = memchr(what.text.data, 0, what.text.size);

		trusted = what.text;
		trusted.size = end ? (size_t)(end - what.text.data) : trusted.size;
		what.text.data += trusted.size + (end ? 1 : 0);
		what.text.size -= trusted.size + (end ? 1 : 0);
		what.trusted = &trusted;
	}
	r = rsb_gitallow_judge(&what, &view, why);
	FUZZ_CHECK(r >= 0);
	FUZZ_CHECK(r != RSB_GITALLOW_AS_IS || rsb_buf_len(&view) == 0);
	FUZZ_CHECK((r == RSB_GITALLOW_HELD || r == RSB_GITALLOW_REFUSED) == (why[0] != '\0'));
	FUZZ_CHECK(r != RSB_GITALLOW_REFUSED || rsb_buf_len(&view) == 0);
	if (r == RSB_GITALLOW_HELD && what.trusted && what.kind != RSB_GIT_CONFIG)
		FUZZ_CHECK(fuzz_equal(rsb_buf_view(&view), trusted));
	if (r != RSB_GITALLOW_AS_IS && rsb_buf_len(&view)) {
		what.text = rsb_buf_view(&view);
		FUZZ_CHECK(rsb_gitallow_judge(&what, &again, why) == RSB_GITALLOW_AS_IS);
	}
	rsb_buf_done(&view);
	rsb_buf_done(&again);
	return 0;
}
