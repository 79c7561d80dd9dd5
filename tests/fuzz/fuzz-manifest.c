/* SPDX-License-Identifier: MIT */
#include "keeper/manifest.h"
#include "tests/fuzz/fuzz.h"

/* What is read is written as the same bytes; the digest is made fit, or nothing would be read. */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsb_tree tree = { 0 };
	struct rsb_buf in = { 0 };
	struct rsb_buf out = { 0 };
	uint8_t sha[RSB_SHA256_SIZE];

	rsb_sha256((struct rsb_bytes){ .data = data, .size = size }, sha);
	FUZZ_CHECK(rsb_buf_append(&in, data, size) == 0);
	FUZZ_CHECK(rsb_buf_append(&in, sha, sizeof(sha)) == 0);
	if (rsb_manifest_read(rsb_buf_view(&in), &tree) == 0)
		FUZZ_CHECK(rsb_manifest_write(&tree, &out) == 0);
	else
		FUZZ_CHECK(tree.n == 0);
	rsb_tree_done(&tree);
	rsb_buf_done(&in);
	rsb_buf_done(&out);
	return 0;
}
