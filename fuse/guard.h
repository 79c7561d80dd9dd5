/* SPDX-License-Identifier: MIT */
#ifndef RSB_GUARD_H
#define RSB_GUARD_H

/*
 * What git on this machine is given of a repository on the mount (keeper/gitallow.h says what may
 * be given, fuse/gitplace.h which files are meant, fuse/wrote.h which are the user's own).
 *
 * Such a file is read once, as a whole; it is judged, and the same bytes are served from memory to
 * whoever opens it, past the kernel's page cache: its view. Attributes and contents agree: the size
 * is the view's, a hook that may not run has no permission to be executed. Where nothing could be
 * served instead, it cannot be opened to be read. A view is good for as
 * long as the attributes are that it was read with; without the cache it is read anew for each
 * look-up, stat and open. An open file keeps its own to its end (fuse/guardopen.h).
 *
 * All under the lock of fuse/fs.h.
 */

#include "fuse/fs.h"

#define RSB_GUARD_BYTES_MAX ((size_t)64 << 20)    /* of all views but those of open files */
#define RSB_GUARD_LOADING_MAX ((size_t)256 << 20) /* of all that are read at one time */

struct rsb_guard_view {
	size_t n_ref;
	uint64_t since; /* the clock of fuse/fs.h when it was asked for */
	bool changed;   /* it is not the file itself */
	bool no_exec;
	bool denied; /* it may be written, and looked at from outside */
	size_t size;
	uint8_t data[];
};

struct rsb_guard_file; /* of an inode that was looked at */
struct rsb_guard;

/* off: nothing is guarded, for tests. */
rsb_nodiscard int rsb_guard_new(bool off, struct rsb_guard **ret_guard);
/* After the inodes. */
void rsb_guard_free(struct rsb_guard *guard);
RSB_DEFINE_CLEANUP(struct rsb_guard *, rsb_guard_free)
void rsb_guard_file_free(struct rsb_guard_file *file);
void rsb_guard_view_unref(struct rsb_guard_view *view); /* NULL is fine */

/* It is one of those files. */
bool rsb_guard_watches(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* Nobody knows whether it is one, until its name is looked up again. */
bool rsb_guard_has_lost(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* Bytes of the longest contents that are judged; longer ones are refused. */
size_t rsb_guard_limit(const struct rsb_inode *inode);
/* Room for so many bytes that are read; given back with the same number. -ENOMEM. */
rsb_nodiscard int rsb_guard_take_room(struct rsb_fs *fs, size_t size);
void rsb_guard_give_room(struct rsb_fs *fs, size_t size);
/* It is not, or has a view that is good: it may be read. */
bool rsb_guard_readable(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* The same, or stat(2) says of it what it says of the file itself: it may be told of. */
bool rsb_guard_ready(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* Judges text, what a read sent at since said of inode's contents. -ENOMEM. */
rsb_nodiscard int rsb_guard_judge(
	struct rsb_fs *fs, struct rsb_inode *inode, struct rsb_bytes text, uint64_t since);
/* It cannot be judged, as why says: it is empty, or denied. -ENOMEM. */
rsb_nodiscard int rsb_guard_refuse(
	struct rsb_fs *fs, struct rsb_inode *inode, uint64_t since, const char *why);
/* It is over its limit. -ENOMEM. */
rsb_nodiscard int rsb_guard_refuse_long(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t since);
/* inode is the one just judged: its view is good while the callback lasts. NULL: none is. */
void rsb_guard_set_fresh(struct rsb_fs *fs, const struct rsb_inode *inode);
/* Its view, with a reference that the caller owns; NULL: there is none that is good. */
struct rsb_guard_view *rsb_guard_view(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* st as the kernel is to see it. */
void rsb_guard_stat(const struct rsb_fs *fs, const struct rsb_inode *inode, struct stat *st);
/* Some of that is of what is open, and not of what it would be opened with now. */
bool rsb_guard_lags(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* A symbolic link that must not be followed. */
bool rsb_guard_bars_link(struct rsb_fs *fs, const struct rsb_inode *inode);
/*
 * One that must not be followed by git, as pid may be: it is not called .git and leads to or below
 * what is. No path in a commit does, so that git would write files of one into a repository by it.
 */
bool rsb_guard_bars_way(
	struct rsb_fs *fs, const struct rsb_inode *inode, const char *target, pid_t pid);
/* A directory was renamed: what a path in a file leads to may be another. */
void rsb_guard_renamed(struct rsb_fs *fs);

/* What is trusted has changed: all views, and what the kernel keeps of those files, are void. */
void rsb_guard_forget(struct rsb_fs *fs);

#endif
