/* SPDX-License-Identifier: MIT */
#include "keeper/snaprestore.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/fartree.h"
#include "keeper/snaptree.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/pack.h"
#include "util/str.h"

#define BLOCK_SIZE ((size_t)256 << 10)
#define PATHS_MAX ((size_t)256 << 20)
#define OURS "/.rsb\n"

int
rsb_snaprestore_check(const struct rsb_snapstore *store, size_t i, struct rsb_diag *diag)
{
	struct rsb_diag why = { 0 };
	int r = 0;

	for (size_t n = rsb_snapstore_base(store, i); n <= i && r >= 0; n++)
		r = rsb_snapstore_verify(store, n, &why);
	if (r < 0 && rsb_snapstore_base(store, i) != i)
		return rsb_diag_set(diag, r, "snapshot %" PRIu64 " stands on others: %s",
			rsb_snapstore_at(store, i)->number, why.text);
	return r < 0 ? rsb_diag_set(diag, r, "%s", why.text) : 0;
}

int
rsb_snaprestore_newest(const struct rsb_snapstore *store, void (*told)(void *arg, const char *text),
	void *arg, struct rsb_diag *diag)
{
	for (size_t i = rsb_snapstore_count(store); i-- > 0;) {
		struct rsb_diag why = { 0 };

		if (rsb_snaprestore_check(store, i, &why) >= 0)
			return (int)i;
		if (told)
			told(arg, why.text);
	}
	return rsb_diag_set(diag, -ENOENT,
		rsb_snapstore_count(store) ? "none of its snapshots is whole"
					   : "there is no snapshot of it");
}

struct run {
	const struct rsb_snaprestore *restore;
	struct rsb_haul *haul;
	struct rsb_tree there; /* what is by now */
	struct rsb_tree other; /* what was there, and no snapshot has */
	uint64_t sent;
};

static void
run_done(struct run *run)
{
	rsb_tree_done(&run->there);
	rsb_tree_done(&run->other);
}

/* ---- before ---- */

/* A template may have files, of which some were removed; what is left out stays. */
static int
sort(struct run *run, const struct rsb_tree *found, struct rsb_tree *goes)
{
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	const char *out = NULL;
	int r = rsb_ignore_new(&ignore);

	if (r >= 0)
		r = rsb_ignore_add_text(ignore, run->restore->patterns);
	for (size_t i = 0; i < found->n && r >= 0; i++) {
		const struct rsb_tree_leaf *leaf = &found->leaves[i];
		bool ignored = (out && rsb_str_is_below(leaf->path, out)) ||
			       rsb_ignore_match(ignore, leaf->path, S_ISDIR(leaf->mode));

		if (ignored && S_ISDIR(leaf->mode) && !(out && rsb_str_is_below(leaf->path, out)))
			out = leaf->path;
		r = rsb_tree_add(ignored ? &run->other : goes, leaf);
	}
	return r;
}

static int
empty(struct run *run, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree found = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree goes = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf paths = { .max = PATHS_MAX };
	int r;

	r = rsb_fartree_list(run->haul, rsb_bytes_str(OURS), &found, diag);
	if (r >= 0)
		r = sort(run, &found, &goes);
	for (size_t i = goes.n; i-- > 0 && r >= 0;)
		r = rsb_buf_append(&paths, goes.leaves[i].path, strlen(goes.leaves[i].path) + 1);
	return r < 0 ? r : rsb_fartree_remove(run->haul, rsb_buf_view(&paths), diag);
}

/* ---- one of the chain ---- */

static int
send_file(struct run *run, int fd)
{
	rsb_autofree uint8_t *block = malloc(BLOCK_SIZE);
	const struct rsb_snaprestore *restore = run->restore;
	size_t size;
	int r;

	if (!block)
		return -ENOMEM;
	for (;;) {
		r = rsb_fd_read_full(fd, block, BLOCK_SIZE, &size);
		if (r < 0 || !size)
			break;
		r = rsb_haul_write(run->haul, (struct rsb_bytes){ .data = block, .size = size });
		if (r < 0)
			break;
		run->sent += size;
		if (restore->progress)
			restore->progress(restore->arg, run->sent);
	}
	return r < 0 ? r : rsb_haul_end_writing(run->haul);
}

static int
send_archive(struct run *run, size_t i, struct rsb_diag *diag)
{
	const struct rsb_snaprestore *restore = run->restore;
	rsb_autoclose int fd = rsb_snapstore_archive(restore->store, i);
	int r;

	if (fd < 0)
		return rsb_diag_set(diag, fd, "the snapshot cannot be read: %s", strerror(-fd));
	r = rsb_haul_begin(run->haul, RSB_HAUL_IN, diag);
	if (r < 0)
		return r;
	r = send_file(run, fd);
	if (r < 0) {
		rsb_haul_explain(run->haul, r, diag);
		return r;
	}
	r = rsb_haul_finish(run->haul, diag);
	if (r >= 0 && restore->notice && rsb_haul_remark(run->haul)[0])
		restore->notice(restore->arg, rsb_haul_remark(run->haul));
	return r;
}

static int
apply(struct run *run, size_t i, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf paths = { .max = PATHS_MAX };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree delta = { 0 };
	int r;

	r = rsb_snapstore_tree(run->restore->store, i, &delta, diag);
	if (r >= 0)
		r = rsb_snaptree_obstacles(&run->there, &delta, &paths);
	if (r >= 0)
		r = rsb_fartree_remove(run->haul, rsb_buf_view(&paths), diag);
	if (r >= 0 && rsb_snapstore_at(run->restore->store, i)->archive_size)
		r = send_archive(run, i, diag);
	return r < 0 ? r : rsb_snaptree_overlay(&run->there, &delta, true);
}

/* ---- afterwards ---- */

static int
verify(struct run *run, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree got = { 0 };
	char shown[RSB_DIAG_MAX / 2];
	const char *path;
	int r = rsb_fartree_list(run->haul, rsb_bytes_str(OURS), &got, diag);

	if (r < 0)
		return r;
	path = rsb_snaptree_difference(&run->there, &run->other, &got);
	if (!path)
		return 0;
	rsb_str_escape(rsb_bytes_str(path), shown, sizeof(shown));
	return rsb_diag_set(
		diag, -EBADMSG, "what came back is not what the snapshot says, first at %s", shown);
}

/* Archives may tell of files that changed while they were read; that is no file of the user's. */
static int
tidy(struct run *run, struct rsb_diag *diag)
{
	static const char paths[] = RSB_PACK_LEFT_OUT "\0.rsb";

	return rsb_fartree_remove(run->haul,
		(struct rsb_bytes){ .data = (const uint8_t *)paths, .size = sizeof(paths) }, diag);
}

int
rsb_snaprestore_run(const struct rsb_snaprestore *restore, struct rsb_haul *haul,
	uint64_t *ret_files, struct rsb_diag *diag)
{
	RSB_CLEANUP(run_done) struct run run = { .restore = restore, .haul = haul };
	int r = empty(&run, diag);

	for (size_t i = rsb_snapstore_base(restore->store, restore->at); i <= restore->at && r >= 0;
		i++)
		r = apply(&run, i, diag);
	if (r >= 0)
		r = tidy(&run, diag);
	if (r >= 0)
		r = verify(&run, diag);
	if (r >= 0)
		*ret_files = run.there.n;
	return r;
}
