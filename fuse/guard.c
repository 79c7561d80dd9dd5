/* SPDX-License-Identifier: MIT */
#include "fuse/guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/gitplace.h"
#include "fuse/guardopen.h"
#include "fuse/judge.h"
#include "fuse/notify.h"
#include "fuse/writer.h"
#include "keeper/gitnames.h"
#include "keeper/gitpath.h"
#include "keeper/gitsteps.h"

struct rsb_guard_file {
	struct rsb_guard *guard;
	struct rsb_inode *inode;
	struct rsb_list age;
	struct rsb_guard_view *view;
};

struct rsb_guard {
	bool off;
	struct rsb_list files; /* those with a view, the oldest first */
	size_t size;
	size_t loading;
	const struct rsb_inode *fresh;
};

int
rsb_guard_new(bool off, struct rsb_guard **ret_guard)
{
	struct rsb_guard *guard = rsb_new(struct rsb_guard);

	if (!guard)
		return -ENOMEM;
	rsb_list_init(&guard->files);
	guard->off = off;
	*ret_guard = guard;
	return 0;
}

void
rsb_guard_view_unref(struct rsb_guard_view *view)
{
	if (view && --view->n_ref == 0)
		free(view);
}

static void
drop_view(struct rsb_guard_file *file)
{
	if (!file->view)
		return;
	file->guard->size -= file->view->size;
	rsb_guard_view_unref(rsb_steal(&file->view));
	rsb_list_remove(&file->age);
}

static void
drop_all_views(struct rsb_guard *guard)
{
	while (!rsb_list_empty(&guard->files))
		drop_view(rsb_list_entry(guard->files.next, struct rsb_guard_file, age));
}

void
rsb_guard_free(struct rsb_guard *guard)
{
	if (!guard)
		return;
	drop_all_views(guard);
	free(guard);
}

void
rsb_guard_file_free(struct rsb_guard_file *file)
{
	if (!file)
		return;
	drop_view(file);
	free(file);
}

/* ---- reading ---- */

/* Read as it is, or not at all. */
static bool
is_whole(enum rsb_git_kind kind)
{
	return rsb_gitnames_holds(kind) || rsb_gitsteps_holds(kind);
}

/* Wherever it matters. */
static bool
is_all_whole(const struct rsb_inode *inode)
{
	struct rsb_gitplace place;
	size_t cursor = 0;

	while (rsb_gitplace_next(inode, &cursor, &place)) {
		if (!is_whole(place.kind))
			return false;
	}
	return true;
}

size_t
rsb_guard_limit(const struct rsb_inode *inode)
{
	return is_all_whole(inode) ? RSB_GITNAMES_MAX : RSB_GITALLOW_MAX;
}

int
rsb_guard_take_room(struct rsb_fs *fs, size_t size)
{
	if (size > RSB_GUARD_LOADING_MAX - fs->guard->loading)
		return -ENOMEM;
	fs->guard->loading += size;
	return 0;
}

void
rsb_guard_give_room(struct rsb_fs *fs, size_t size)
{
	fs->guard->loading -= size;
}

/* ---- views ---- */

bool
rsb_guard_watches(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	return !fs->guard->off && rsb_gitplace_matters(inode);
}

bool
rsb_guard_has_lost(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	return !fs->guard->off && rsb_gitplace_is_lost(inode);
}

static struct rsb_guard_view *
good_view(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	struct rsb_guard_view *view = inode->guard ? inode->guard->view : NULL;

	if (!view)
		return NULL;
	return fs->guard->fresh == inode || rsb_fs_unchanged(fs, inode, view->since) ? view : NULL;
}

bool
rsb_guard_readable(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	return !rsb_guard_watches(fs, inode) || good_view(fs, inode);
}

bool
rsb_guard_ready(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	return rsb_guard_readable(fs, inode) || is_all_whole(inode);
}

void
rsb_guard_set_fresh(struct rsb_fs *fs, const struct rsb_inode *inode)
{
	fs->guard->fresh = inode;
}

struct rsb_guard_view *
rsb_guard_view(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	struct rsb_guard_view *view = NULL;

	if (rsb_guard_watches(fs, inode))
		view = good_view(fs, inode);
	if (view)
		view->n_ref++;
	return view;
}

void
rsb_guard_stat(const struct rsb_fs *fs, const struct rsb_inode *inode, struct stat *st)
{
	const struct rsb_guard_view *view, *shown;
	struct rsb_gitplace place;
	size_t cursor = 0;

	if (!rsb_guard_watches(fs, inode))
		return;
	view = good_view(fs, inode);
	shown = rsb_guardopen_shown(inode);
	if (!shown && view && view->changed)
		shown = view;
	if (shown) {
		st->st_size = (off_t)shown->size;
		st->st_blocks = (blkcnt_t)((shown->size + 511) / 512);
	}
	if (view && view->no_exec)
		st->st_mode &= (mode_t)~0111;
	/* One that was not read yet is as good as one that may not run. */
	while (!view && rsb_gitplace_next(inode, &cursor, &place)) {
		if (place.kind == RSB_GIT_HOOK || !place.dir)
			st->st_mode &= (mode_t)~0111;
	}
}

bool
rsb_guard_lags(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	const struct rsb_guard_view *shown = rsb_guardopen_shown(inode);

	return shown && shown != good_view(fs, inode);
}

static int
set_view(struct rsb_fs *fs, struct rsb_inode *inode, struct rsb_bytes text, uint64_t since)
{
	struct rsb_guard *guard = fs->guard;
	struct rsb_guard_view *view = calloc(1, sizeof(*view) + text.size);

	if (view && !inode->guard) {
		inode->guard = rsb_new(struct rsb_guard_file);
		if (inode->guard) {
			inode->guard->guard = guard;
			inode->guard->inode = inode;
			rsb_list_init(&inode->guard->age);
		}
	}
	if (!view || !inode->guard) {
		free(view);
		return -ENOMEM;
	}
	view->n_ref = 1;
	view->since = since;
	view->size = text.size;
	if (text.size)
		memcpy(view->data, text.data, text.size);
	drop_view(inode->guard);
	inode->guard->view = view;
	guard->size += view->size;
	rsb_list_append(&guard->files, &inode->guard->age);
	while (guard->size > RSB_GUARD_BYTES_MAX && guard->files.next != &inode->guard->age)
		drop_view(rsb_list_entry(guard->files.next, struct rsb_guard_file, age));
	return 0;
}

static int
set_denied(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t since)
{
	int r = set_view(fs, inode, (struct rsb_bytes){ 0 }, since);

	if (r < 0)
		return r;
	inode->guard->view->denied = true;
	inode->guard->view->no_exec = true;
	return 0;
}

int
rsb_guard_judge(struct rsb_fs *fs, struct rsb_inode *inode, struct rsb_bytes text, uint64_t since)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { .max = 2 * RSB_GITALLOW_MAX };
	const unsigned int formats = rsb_gitplace_formats(fs->inodes);
	struct rsb_verdict verdict;
	int r;

	if (text.size > rsb_guard_limit(inode))
		return rsb_guard_refuse_long(fs, inode, since);
	r = rsb_judge_text(fs, inode, text, &view, &verdict);
	if (r < 0)
		return r;
	/* An index was found to be sound as one of the other format. */
	if (formats != rsb_gitplace_formats(fs->inodes))
		drop_all_views(fs->guard);
	if (verdict.denied)
		return set_denied(fs, inode, since);
	r = set_view(fs, inode, verdict.changed ? rsb_buf_view(&view) : text, since);
	if (r < 0)
		return r;
	inode->guard->view->changed = verdict.changed;
	inode->guard->view->no_exec = verdict.no_exec;
	return 0;
}

int
rsb_guard_refuse(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t since, const char *why)
{
	struct rsb_gitplace place;
	size_t cursor = 0;
	int r;

	rsb_judge_refuse(fs, inode, why);
	while (rsb_gitplace_next(inode, &cursor, &place)) {
		if (is_whole(place.kind))
			return set_denied(fs, inode, since);
	}
	r = set_view(fs, inode, (struct rsb_bytes){ 0 }, since);
	if (r < 0)
		return r;
	inode->guard->view->changed = true;
	inode->guard->view->no_exec = true;
	return 0;
}

int
rsb_guard_refuse_long(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t since)
{
	return rsb_guard_refuse(fs, inode, since, "it is too long");
}

bool
rsb_guard_bars_link(struct rsb_fs *fs, const struct rsb_inode *inode)
{
	if (fs->guard->off || !rsb_gitplace_is_link(inode))
		return false;
	rsb_judge_refuse(fs, inode, "a symbolic link in a repository");
	return true;
}

/* Called so now, and never before or elsewhere, but by local programs. */
static bool
is_dot_git(const struct rsb_inode *link)
{
	return link->name && strcmp(link->name, ".git") == 0 && rsb_gitplace_is_sure(link);
}

bool
rsb_guard_bars_way(struct rsb_fs *fs, const struct rsb_inode *inode, const char *target, pid_t pid)
{
	const size_t n_root = strlen(fs->config.mountpoint);

	if (strncmp(target, fs->config.mountpoint, n_root) == 0)
		target += n_root;
	if (fs->guard->off || !rsb_gitpath_has_git(rsb_bytes_str(target)) || is_dot_git(inode) ||
		!rsb_writer_is_git(pid))
		return false;
	rsb_judge_refuse(fs, inode, "a symbolic link into a repository");
	return true;
}

void
rsb_guard_renamed(struct rsb_fs *fs)
{
	rsb_gitplace_renamed(fs->inodes);
	drop_all_views(fs->guard);
}

void
rsb_guard_forget(struct rsb_fs *fs)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &fs->guard->files) {
		const struct rsb_guard_file *file = rsb_list_entry(pos, struct rsb_guard_file, age);

		if (fs->notify)
			(void)rsb_notify_inode(fs->notify, file->inode->nodeid, true);
	}
	drop_all_views(fs->guard);
}
