/* SPDX-License-Identifier: MIT */
#include "keeper/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/fartree.h"
#include "keeper/snaparchive.h"
#include "keeper/snaptree.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"

#define WANTED_MAX ((size_t)256 << 20)
#define BLOCK_MAX ((size_t)8 << 20)

int
rsb_snapshot_patterns(const struct rsb_config *config, const char *local_dir, struct rsb_buf *text,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	struct rsb_sync sync = { .dir = local_dir && local_dir[0] ? local_dir : NULL,
		.exclude = &config->sync.exclude };
	int r = rsb_sync_patterns(&sync, text, &ignore, diag);

	if (r != -ENOENT && r != -ENOTDIR)
		return r;
	sync.dir = NULL;
	return rsb_sync_patterns(&sync, text, &ignore, diag);
}

int
rsb_snapshot_tree(
	const struct rsb_snapstore *store, size_t i, struct rsb_tree *tree, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree sum = { 0 };
	size_t base = rsb_snapstore_base(store, i);
	int r = rsb_snapstore_tree(store, base, tree, diag);

	/* Deltas first, which are small, so that the base is gone through once. */
	for (size_t n = base + 1; n <= i && r >= 0; n++) {
		RSB_CLEANUP(rsb_tree_done) struct rsb_tree delta = { 0 };

		r = rsb_snapstore_tree(store, n, &delta, diag);
		if (r >= 0)
			r = rsb_snaptree_overlay(&sum, &delta, false);
	}
	return r < 0 ? r : rsb_snaptree_overlay(tree, &sum, true);
}

/* One that is taken. */
struct take {
	const struct rsb_snapshot *snapshot;
	struct rsb_haul *haul;
	struct rsb_tree known; /* of the chain that grows */
	struct rsb_tree now;   /* its list, or what is different in it */
	bool partial;          /* that */
	struct rsb_tree changed;
	struct rsb_tree removed;
	struct rsb_snappoint point;
};

static void
take_done(struct take *take)
{
	rsb_tree_done(&take->known);
	rsb_tree_done(&take->now);
	rsb_tree_done(&take->changed);
	rsb_tree_done(&take->removed);
}

/* ---- base or delta ---- */

/* Whether the newest chain takes one more. */
static bool
can_grow(const struct take *take)
{
	const struct rsb_snapstore *store = take->snapshot->store;
	const size_t n = rsb_snapstore_count(store);
	uint64_t deltas = 0;
	size_t base;

	if (!n || take->snapshot->whole)
		return false;
	base = rsb_snapstore_base(store, n - 1);
	for (size_t i = base; i < n; i++) {
		deltas += i > base ? rsb_snapstore_at(store, i)->archive_size : 0;
		/* What is not there is no ground to build on. */
		if (!rsb_snapstore_is_there(store, i))
			return false;
	}
	return n - 1 - base < RSB_SNAPSTORE_DELTAS_MAX &&
	       deltas <= rsb_max(rsb_snapstore_at(store, base)->archive_size, RSB_SNAPSHOT_SLACK) &&
	       strcmp(rsb_snapstore_at(store, base)->sandbox, take->snapshot->sandbox_id) == 0;
}

/* Of the chain that grows. */
static uint64_t
size_before(const struct take *take)
{
	const struct rsb_snapstore *store = take->snapshot->store;
	const size_t n = rsb_snapstore_count(store);
	uint64_t size = 0;

	for (size_t i = take->point.base ? n : rsb_snapstore_base(store, n - 1); i < n; i++)
		size += rsb_snapstore_at(store, i)->archive_size +
			rsb_snapstore_at(store, i)->tree_size;
	return size;
}

/* ---- what comes ---- */

static int
ask(struct take *take, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf wanted = { .max = WANTED_MAX };
	int r = 0;

	for (size_t i = 0; i < take->changed.n && r >= 0; i++)
		r = rsb_buf_append(&wanted, take->changed.leaves[i].path,
			strlen(take->changed.leaves[i].path) + 1);
	if (r < 0)
		return r;
	r = rsb_haul_begin(take->haul, RSB_HAUL_PACK, diag);
	if (r < 0)
		return r;
	r = rsb_haul_write(take->haul, rsb_buf_view(&wanted));
	if (r >= 0)
		r = rsb_haul_end_writing(take->haul);
	if (r < 0)
		rsb_haul_explain(take->haul, r, diag);
	return r;
}

static int
say_too_big(const struct rsb_snapshot *snapshot, struct rsb_diag *diag)
{
	return rsb_diag_set(diag, -EFBIG,
		"the snapshot would take more than %llu MiB (sync.snapshot_max)",
		(unsigned long long)(snapshot->max >> 20));
}

static int
receive(struct take *take, int fd, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf block = { .max = BLOCK_MAX };
	const struct rsb_snapshot *snapshot = take->snapshot;
	const uint64_t before = size_before(take);
	uint64_t size = 0;
	int r;

	while ((r = rsb_haul_read(take->haul, &block)) > 0) {
		size += rsb_buf_len(&block);
		if (size > snapshot->max || before > snapshot->max - size)
			return say_too_big(snapshot, diag);
		r = rsb_fd_write_full(fd, rsb_buf_head(&block), rsb_buf_len(&block));
		if (r < 0)
			return rsb_diag_set(
				diag, r, "the snapshot cannot be written: %s", strerror(-r));
		rsb_buf_clear(&block);
		if (snapshot->progress)
			snapshot->progress(snapshot->arg, size);
	}
	if (r < 0) {
		rsb_haul_explain(take->haul, r, diag);
		return r;
	}
	return rsb_haul_finish(take->haul, diag);
}

static bool
is_news(const struct take *take, const struct rsb_tree_leaf *leaf)
{
	const struct rsb_tree_leaf *known = rsb_tree_find(&take->known, leaf->path);

	return !known || !rsb_snaptree_is_unchanged(known, leaf);
}

/* What came and what went, in one tree. 1: there is no news in it. */
static int
finish_tree(struct take *take)
{
	struct rsb_tree *changed = &take->changed;
	bool news = take->removed.n > 0 || take->point.base;
	size_t n = 0;

	for (size_t i = 0; i < changed->n; i++) {
		struct rsb_tree_leaf *leaf = &changed->leaves[i];

		if (leaf->hashed) {
			leaf->hashed = false;
			news = news || is_news(take, leaf);
			changed->leaves[n++] = *leaf;
			continue;
		}
		/* It went, or cannot be read: as if nobody had asked, but it is asked again. */
		take->point.list = 0;
		free(leaf->path);
		free(leaf->target);
	}
	changed->n = n;
	news = news || (take->partial && n);
	take->point.changed = n;
	take->point.removed = take->removed.n;
	return news ? rsb_snaptree_overlay(changed, &take->removed, false) : 1;
}

static int
fetch(struct take *take, int fd, struct rsb_diag *diag)
{
	bool torn = false;
	int r;

	if (!take->changed.n)
		return 0;
	r = ask(take, diag);
	if (r >= 0)
		r = receive(take, fd, diag);
	if (r >= 0)
		r = rsb_snaparchive_check(fd, &take->changed, &torn, diag);
	take->point.fuzzy = take->point.fuzzy || torn;
	return r;
}

/* ---- the whole ---- */

/* The chain that is one too many, or all before this base. */
static int
drop_old(const struct rsb_snapshot *snapshot)
{
	struct rsb_snapstore *store = snapshot->store;
	const size_t last = rsb_snapstore_base(store, rsb_snapstore_count(store) - 1);
	size_t keep = last;

	for (size_t n = 1; keep > 0 && n < RSB_SNAPSTORE_CHAINS_MAX && !snapshot->whole; n++)
		keep = rsb_snapstore_base(store, keep - 1);
	return keep ? rsb_snapstore_drop(store, keep) : 0;
}

static void
ask_busy(struct take *take)
{
	const struct rsb_snapshot *snapshot = take->snapshot;

	if (snapshot->busy && snapshot->busy(snapshot->arg))
		take->point.fuzzy = 1;
}

/* The whole list: what changed shows beside what is known here. */
static int
compare_whole(struct take *take)
{
	const struct rsb_snapstore *store = take->snapshot->store;
	int r;

	/* What cannot be read is no ground to build on either. */
	if (!take->point.base &&
		rsb_snapshot_tree(store, rsb_snapstore_count(store) - 1, &take->known, NULL) < 0) {
		rsb_tree_done(&take->known);
		take->point.base = true;
	}
	r = rsb_snaptree_diff(&take->known, &take->now, &take->changed, &take->removed);
	for (size_t i = 0; i < take->now.n && r >= 0; i++)
		take->point.files += rsb_snaptree_holds(&take->now.leaves[i]);
	return r;
}

static int
compare(struct take *take, struct rsb_diag *diag)
{
	const struct rsb_snapstore *store = take->snapshot->store;
	const size_t n = rsb_snapstore_count(store);
	struct rsb_haul_said said;
	uint64_t since;
	int r;

	ask_busy(take);
	take->point.base = !can_grow(take);
	take->point.taken_ns = rsb_wall_ns();
	since = take->point.base ? 0 : rsb_snapstore_at(store, n - 1)->list;
	r = rsb_fartree_changes(
		take->haul, take->snapshot->patterns, since, &take->now, &said, diag);
	if (r < 0)
		return r;
	take->point.list = said.kept <= INT64_MAX ? said.kept : 0;
	if (!said.since)
		return compare_whole(take);
	take->partial = true;
	take->point.files = rsb_min(said.entries, (uint64_t)RSB_TREE_LEAVES_MAX);
	return rsb_snaptree_sort(&take->now, &take->changed, &take->removed);
}

static int
keep(struct take *take, struct rsb_diag *diag)
{
	struct rsb_snapstore *store = take->snapshot->store;
	rsb_autoclose int fd = rsb_snapstore_begin(store);
	int r;

	if (fd < 0)
		return rsb_diag_set(diag, fd, "the snapshot cannot be written: %s", strerror(-fd));
	r = fetch(take, fd, diag);
	if (r >= 0)
		r = finish_tree(take);
	if (r) {
		rsb_snapstore_give_up(store);
		return r;
	}
	ask_busy(take);
	take->point.moved = rsb_haul_bytes(take->haul);
	/* A new base makes room for itself, where the bound is for one chain. */
	r = rsb_snapstore_add(store, fd, &take->changed, &take->point);
	if (r >= 0)
		r = drop_old(take->snapshot);
	return r < 0 ? rsb_diag_set(diag, r, "the snapshot cannot be kept: %s", strerror(-r)) : 0;
}

/* Nothing changed since the last one; if nothing runs either, that is of one moment. */
static int
confirm(struct take *take, struct rsb_snappoint *ret_point)
{
	struct rsb_snapstore *store = take->snapshot->store;
	const size_t last = rsb_snapstore_count(store) - 1;
	int r = 0;

	ask_busy(take);
	if (!take->point.fuzzy && rsb_snapstore_at(store, last)->fuzzy)
		r = rsb_snapstore_clear(store);
	*ret_point = *rsb_snapstore_at(store, last);
	return r < 0 ? r : 1;
}

int
rsb_snapshot_take(const struct rsb_snapshot *snapshot, struct rsb_haul *haul,
	struct rsb_snappoint *ret_point, struct rsb_diag *diag)
{
	RSB_CLEANUP(take_done) struct take take = { .snapshot = snapshot, .haul = haul };
	int r;

	(void)snprintf(take.point.why, sizeof(take.point.why), "%s", snapshot->why);
	(void)snprintf(take.point.sandbox, sizeof(take.point.sandbox), "%s", snapshot->sandbox_id);
	r = compare(&take, diag);
	if (r < 0)
		return r;
	r = !take.point.base && !take.changed.n && !take.removed.n ? 1 : keep(&take, diag);
	/* It does not fit behind the others, but may instead of them. */
	if (r == -EFBIG && !take.point.base) {
		struct rsb_snapshot whole = *snapshot;

		whole.whole = true;
		return rsb_snapshot_take(&whole, haul, ret_point, diag);
	}
	if (r > 0)
		return confirm(&take, ret_point);
	if (r == 0)
		*ret_point = take.point;
	return r;
}
