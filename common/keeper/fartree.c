/* SPDX-License-Identifier: MIT */
#include "keeper/fartree.h"

#include <errno.h>

#include "keeper/treelist.h"
#include "util/cleanup.h"

#define LISTING_MAX ((size_t)8 << 20)

static int
ask(struct rsb_haul *haul, enum rsb_haul_what what, struct rsb_bytes input, struct rsb_diag *diag)
{
	int r = rsb_haul_begin(haul, what, diag);

	if (r < 0)
		return r;
	r = rsb_haul_write(haul, input);
	if (r >= 0)
		r = rsb_haul_end_writing(haul);
	if (r < 0)
		rsb_haul_explain(haul, r, diag);
	return r;
}

int
rsb_fartree_list(struct rsb_haul *haul, struct rsb_bytes patterns, struct rsb_tree *tree,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf block = { .max = LISTING_MAX };
	RSB_CLEANUP(rsb_treelist_done) struct rsb_treelist list;
	int r;

	rsb_treelist_init(&list, tree);
	r = ask(haul, RSB_HAUL_LIST, patterns, diag);
	if (r < 0)
		return r;
	while ((r = rsb_haul_read(haul, &block)) > 0) {
		r = rsb_treelist_feed(&list, rsb_buf_view(&block));
		if (r < 0)
			return rsb_diag_set(diag, r,
				r == -EBADMSG ? "the sandbox's list of files makes no sense"
					      : "the sandbox has more files than can be synced");
		rsb_buf_clear(&block);
	}
	if (r < 0) {
		rsb_haul_explain(haul, r, diag);
		return r;
	}
	r = rsb_haul_finish(haul, diag);
	if (r >= 0 && rsb_treelist_end(&list) < 0)
		return rsb_diag_set(diag, -EBADMSG, "the sandbox's list of files is cut off");
	return r;
}

int
rsb_fartree_remove(struct rsb_haul *haul, struct rsb_bytes paths, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf rest = { .max = 1 };
	int r;

	if (!paths.size)
		return 0;
	r = ask(haul, RSB_HAUL_REMOVE, paths, diag);
	if (r < 0)
		return r;
	while ((r = rsb_haul_read(haul, &rest)) > 0)
		;
	if (r < 0) {
		rsb_haul_explain(haul, r, diag);
		return r;
	}
	return rsb_haul_finish(haul, diag);
}
