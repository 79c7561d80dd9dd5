/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITPLACE_H
#define RSB_GITPLACE_H

/*
 * Which files git on this machine could take for a part of a repository. A FUSE open names an
 * inode, not a path, so this is told by the names under which inodes were given to the kernel, and
 * never forgotten as long as they live: git cannot take a directory for a repository unless the
 * kernel was given "objects" and "refs" in it, or "commondir", by us. Whatever the sandbox does
 * between git's look at them and its look at "config", the answer stays.
 *
 * That is the answer for one inode. Git goes by paths, and the sandbox may have put another one at
 * the path by then, or at that of a directory above it: so what makes a repository is kept of the
 * path as well (fuse/gitmarks.h). A directory of the kernel's has one path (rsb_seen_settle()).
 *
 * A crash of the daemon (fuse/recover.h) forgets the names, and with them the kernel's: it asks for
 * them again, but for the directory that git is in and in a walk that is under way. So what was
 * seen in directories is in the shared mapping, and a file in a repository has to be named before
 * it is opened.
 *
 * Nothing is decided when a name is given: an inode keeps where it was seen (its hint, and those
 * before it that may matter), and each question walks from there. So the order in which names are
 * looked up plays no part.
 *
 * All under the lock of fuse/fs.h.
 */

#include "fuse/gitplaces.h"
#include "keeper/gitallow.h"

/* One place of a file that matters to git. */
struct rsb_gitplace {
	enum rsb_git_kind kind;
	const struct rsb_inode *dir; /* NULL: not known which */
	const char *name;
};

/* inode is name in dir, as the kernel is told. */
void rsb_gitplace_seen(struct rsb_inode *inode, struct rsb_inode *dir, struct rsb_bytes name);
/* The kernel is about to be given inode as name in dir. */
void rsb_gitplace_given(
	struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name);
/* Local programs renamed a directory: where it and what lies below it are now. */
void rsb_gitplace_renamed(const struct rsb_inodes *inodes);
/* Where inode was seen could not be kept: it may be anything. */
void rsb_gitplace_lose(struct rsb_inode *inode);
/* A file of that name in dir may matter, now or when dir turns out to be a repository's. */
bool rsb_gitplace_could_be(const struct rsb_inode *dir, struct rsb_bytes name);
/*
 * The hint of inode is about to be another one. What cannot be kept any more makes inode one that
 * may be anything.
 */
void rsb_gitplace_keep(struct rsb_inode *inode);
/*
 * inode is about to be seen as name in dir, and it was not a local program that put it there. If
 * that is or was below .git, nobody can say any more by which name it is written to.
 */
void rsb_gitplace_stray(
	struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name);
/* Where it lies is as local programs see it: none of that ever happened to it or above it. */
bool rsb_gitplace_is_sure(const struct rsb_inode *inode);

/* Walks the places that matter; *cursor starts at 0. Borrowed. false: no more. */
bool rsb_gitplace_next(
	const struct rsb_inode *inode, size_t *cursor, struct rsb_gitplace *ret_place);
/* What a file is that is called name in dir now. */
enum rsb_git_kind rsb_gitplace_kind(const struct rsb_inode *dir, const char *name);
/* A file (a symbolic link: what it stands for) that git takes something from. */
bool rsb_gitplace_matters(const struct rsb_inode *inode);
/* It may be one that matters: its name went with a crash, and was not given to the kernel since. */
bool rsb_gitplace_is_lost(const struct rsb_inode *inode);
/* A symbolic link where git wants a file or directory of a repository's. */
bool rsb_gitplace_is_link(const struct rsb_inode *inode);
/* A link is about to be followed to target: if it is called .git, there is a repository. */
void rsb_gitplace_follow(
	const struct rsb_inode *link, const char *mountpoint, struct rsb_bytes target);
/* It may become one that matters by a rename, e.g. config.lock. */
bool rsb_gitplace_is_near(const struct rsb_inode *inode);
/* Sets bits of keeper/gitnames.h, of a configuration that local programs are about to be given. */
void rsb_gitplace_note_formats(struct rsb_inodes *inodes, unsigned int formats);
/* All that were ever set: who was given one may read an index by it much later. */
unsigned int rsb_gitplace_formats(const struct rsb_inodes *inodes);

#endif
