/* SPDX-License-Identifier: MIT */
#ifndef RSB_JUDGE_H
#define RSB_JUDGE_H

/*
 * Decides what git on this machine may read of a file on the mount: the rule of keeper/gitallow.h,
 * asked for each place that the file has (fuse/gitplace.h), with what was trusted there before.
 * Keeps the last trusted copies and what is held back, and learns trust from what local programs
 * write (fuse/wrote.h) below a directory .git: git itself checks nothing out there, so what is
 * written was meant.
 *
 * All under the lock of fuse/fs.h.
 */

#include "fuse/fs.h"
#include "fuse/held.h"

struct rsb_gitplace;
struct rsb_judge;

/* trust_file: loaded now, and where to save; NULL: nothing is saved. */
rsb_nodiscard int rsb_judge_new(const char *trust_file, struct rsb_judge **ret_judge);
void rsb_judge_free(struct rsb_judge *judge);
RSB_DEFINE_CLEANUP(struct rsb_judge *, rsb_judge_free)

struct rsb_verdict {
	bool changed; /* the view is to be served instead of the text */
	bool no_exec; /* it must not be run */
	bool denied;  /* it must not be read at all */
};
/* Judges text as the contents of inode. -ENOMEM. */
rsb_nodiscard int rsb_judge_text(struct rsb_fs *fs, const struct rsb_inode *inode,
	struct rsb_bytes text, struct rsb_buf *view, struct rsb_verdict *ret_verdict);
/* It is held back for what why says, and cannot be accepted. */
void rsb_judge_refuse(struct rsb_fs *fs, const struct rsb_inode *inode, const char *why);

/*
 * A local program closed it, having written, or moved it to where it was: what is known to be the
 * user's own there is trusted there (fuse/writer.h says of what git writes whether it is).
 */
void rsb_judge_placed(struct rsb_fs *fs, const struct rsb_inode *inode);
/* The same for what lies there by the notes of fuse/wrote.h. */
void rsb_judge_placed_at(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name);
/* A local program renamed what was called name in dir; swap: with what was called newname. */
void rsb_judge_moved(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	const struct rsb_inode *newdir, const char *newname, bool swap);
/* After it, and not by git: who puts a file into a repository by its name means it. */
void rsb_judge_meant(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	const struct rsb_inode *newdir, const char *newname);
/*
 * A local program is about to put inode, which holds ours, at place: appends to out what is to be
 * appended to it, since it was held back from whoever looked at that place last (keeper/gitview.h).
 */
rsb_nodiscard int rsb_judge_kept(struct rsb_fs *fs, const struct rsb_inode *inode,
	const struct rsb_gitplace *place, struct rsb_bytes ours, struct rsb_buf *out);
/* A local program called inode name in dir as well. */
void rsb_judge_linked(
	struct rsb_fs *fs, struct rsb_inode *inode, const struct rsb_inode *dir, const char *name);
/* name in dir is gone. */
void rsb_judge_gone(struct rsb_fs *fs, const struct rsb_inode *dir, struct rsb_bytes name);

/* Accepts what is held back at path and below ("": all); tells of each in array. -ENOENT: none. */
rsb_nodiscard int rsb_judge_trust(
	struct rsb_judge *judge, const char *path, struct rsb_json *array);
/* For status: what is held back, at most RSB_HELD_TOLD_MAX, and how many. */
rsb_nodiscard int rsb_judge_tell(
	const struct rsb_judge *judge, struct rsb_json *array, size_t *ret_n);
/* Without the lock: saves the trust that is not saved yet. */
void rsb_judge_save(struct rsb_fs *fs);

#endif
