/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>

#include "keeper/treelist.h"
#include "tests/fuzz/fuzz.h"
#include "util/walk.h"

/* Whatever a sidecar lists, what is taken is in order and leads nowhere. */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsb_tree tree = { 0 };
	struct rsb_treelist list;
	size_t half = size / 2;
	int r;

	rsb_treelist_init(&list, &tree);
	r = rsb_treelist_feed(&list, (struct rsb_bytes){ .data = data, .size = half });
	if (r == 0)
		r = rsb_treelist_feed(
			&list, (struct rsb_bytes){ .data = data + half, .size = size - half });
	for (size_t i = 0; i < tree.n; i++) {
		FUZZ_CHECK(tree.leaves[i].path[0] != '/' && tree.leaves[i].path[0] != '\0');
		FUZZ_CHECK(i == 0 ||
			   rsb_walk_compare(tree.leaves[i - 1].path, tree.leaves[i].path) < 0);
	}
	rsb_treelist_done(&list);
	rsb_tree_done(&tree);
	return 0;
}
