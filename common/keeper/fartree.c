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

static int
say_bad(int r, struct rsb_diag *diag)
{
	return rsb_diag_set(diag, r,
		r == -EBADMSG ? "the sandbox's list of files makes no sense"
			      : "the sandbox has more files than can be synced");
}

static int
read_list(struct rsb_haul *haul, enum rsb_haul_what what, struct rsb_bytes patterns,
	struct rsb_treelist *list, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf block = { .max = LISTING_MAX };
	int r;

	r = ask(haul, what, patterns, diag);
	if (r < 0)
		return r;
	while ((r = rsb_haul_read(haul, &block)) > 0) {
		r = rsb_treelist_feed(list, rsb_buf_view(&block));
		if (r < 0)
			return say_bad(r, diag);
		rsb_buf_clear(&block);
	}
	if (r < 0) {
		rsb_haul_explain(haul, r, diag);
		return r;
	}
	r = rsb_haul_finish(haul, diag);
	if (r >= 0 && rsb_treelist_end(list) < 0)
		return rsb_diag_set(diag, -EBADMSG, "the sandbox's list of files is cut off");
	return r;
}

int
rsb_fartree_list(struct rsb_haul *haul, struct rsb_bytes patterns, struct rsb_tree *tree,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_treelist_done) struct rsb_treelist list;

	rsb_treelist_init(&list, tree);
	return read_list(haul, RSB_HAUL_LIST, patterns, &list, diag);
}

int
rsb_fartree_changes(struct rsb_haul *haul, struct rsb_bytes patterns, uint64_t since,
	struct rsb_tree *tree, struct rsb_haul_said *ret_said, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_treelist_done) struct rsb_treelist list;
	int r;

	rsb_treelist_init(&list, tree);
	list.partial = true;
	rsb_haul_set_since(haul, since);
	r = read_list(haul, RSB_HAUL_CHANGES, patterns, &list, diag);
	if (r < 0)
		return r;
	rsb_haul_said(haul, ret_said);
	if (!ret_said->since)
		r = rsb_treelist_check_whole(&list);
	else if (ret_said->since != since)
		r = -EBADMSG;
	return r < 0 ? say_bad(r, diag) : 0;
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
