/* SPDX-License-Identifier: MIT */
#include "keeper/snaparchive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/pack.h"
#include "util/str.h"
#include "util/tarscan.h"

/* What may come beyond the sizes that were listed: files that grow, and tries. */
#define SLACK ((uint64_t)256 << 20)
#define TRIES 4u

struct check {
	struct rsb_tree *tree;
	struct rsb_diag *diag;
};

static int
refuse(const struct check *check, const char *path, const char *what)
{
	char shown[RSB_DIAG_MAX / 2];

	rsb_str_escape(rsb_bytes_str(path), shown, sizeof(shown));
	return rsb_diag_set(check->diag, -EBADMSG, "the sandbox sent %s, %s", shown, what);
}

/* Both are names of one file. */
static int
take_link(const struct check *check, struct rsb_tree_leaf *leaf, const char *to)
{
	const struct rsb_tree_leaf *first = rsb_tree_find(check->tree, to);

	if (!first || !first->hashed || !S_ISREG(first->mode) || !S_ISREG(leaf->mode))
		return refuse(check, leaf->path, "a link to nothing");
	leaf->mode = first->mode;
	leaf->size = first->size;
	leaf->there.mtime_ns = first->there.mtime_ns;
	if (!first->there.ctime_ns)
		leaf->there.ctime_ns = 0;
	return 0;
}

static int
take_target(struct rsb_tree_leaf *leaf, const char *target)
{
	char *copy;

	if (strcmp(leaf->target, target) == 0)
		return 0;
	copy = strdup(target);
	if (!copy)
		return -ENOMEM;
	free(leaf->target);
	leaf->target = copy;
	leaf->there.ctime_ns = 0;
	return 0;
}

static int
take_itself(const struct check *check, struct rsb_tree_leaf *leaf,
	const struct rsb_tarscan_entry *entry)
{
	const struct rsb_tree_leaf old = *leaf;

	if ((entry->st.st_mode & S_IFMT) != (leaf->mode & S_IFMT))
		return refuse(check, entry->path, "which was something else in its list");
	leaf->mode = entry->st.st_mode & (S_IFMT | 01777);
	leaf->there.mtime_ns = rsb_tree_ns(entry->st.st_mtim.tv_sec, entry->st.st_mtim.tv_nsec);
	if (S_ISREG(leaf->mode))
		leaf->size = (uint64_t)entry->st.st_size;
	if (leaf->mode != old.mode || leaf->size != old.size ||
		leaf->there.mtime_ns != old.there.mtime_ns)
		leaf->there.ctime_ns = 0;
	return S_ISLNK(leaf->mode) ? take_target(leaf, entry->target ? entry->target : "") : 0;
}

static int
take(void *arg, const struct rsb_tarscan_entry *entry)
{
	const struct check *check = arg;
	struct rsb_tree_leaf *leaf = rsb_tree_find(check->tree, entry->path);

	if (strcmp(entry->path, RSB_PACK_LEFT_OUT) == 0)
		return 0;
	if (!leaf)
		return refuse(check, entry->path, "which nobody asked for");
	leaf->hashed = true;
	return entry->hardlink ? take_link(check, leaf, entry->hardlink)
			       : take_itself(check, leaf, entry);
}

static void
note_torn(struct rsb_tree *tree, const struct rsb_buf *text, bool *ret_torn)
{
	const char *all = (const char *)rsb_buf_head(text);

	for (size_t at = 0; at < rsb_buf_len(text); at += strlen(all + at) + 1) {
		struct rsb_tree_leaf *leaf = rsb_tree_find(tree, all + at);

		/* What cannot be read at all is not there. */
		if (!leaf || !leaf->hashed)
			continue;
		*ret_torn = true;
		leaf->there.ctime_ns = 0;
	}
}

int
rsb_snaparchive_check(int fd, struct rsb_tree *tree, bool *ret_torn, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf left = { .max = RSB_PACK_LEFT_OUT_MAX + 1 };
	struct check check = { .tree = tree, .diag = diag };
	struct rsb_tarscan scan = { .limits = { .files = 1, .size = SLACK },
		.entry = take,
		.arg = &check,
		.wanted = RSB_PACK_LEFT_OUT,
		.text = &left };
	int r;

	for (size_t i = 0; i < tree->n; i++) {
		tree->leaves[i].hashed = false;
		scan.limits.files += TRIES;
		scan.limits.size += TRIES * rsb_min(tree->leaves[i].size,
						    (UINT64_MAX / 2 - scan.limits.size) / TRIES);
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = rsb_tarscan(fd, &scan, diag);
	if (r == -EFBIG)
		return rsb_diag_set(diag, r, "the sandbox sent more than there was in its list");
	/* A list without an end would lead on into what is no memory of ours. */
	if (r >= 0)
		r = rsb_buf_append(&left, "", 1);
	if (r < 0)
		return r;
	note_torn(tree, &left, ret_torn);
	return 0;
}
