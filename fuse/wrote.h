/* SPDX-License-Identifier: MIT */
#ifndef RSB_WROTE_H
#define RSB_WROTE_H

/*
 * What local programs wrote into files that git may run programs from: the whole contents, from
 * the moment that a file is empty, or was served as it is, for as long as every change is seen.
 * A file whose contents in the sandbox are these is the user's own, at the place where
 * it was written and nowhere else: git here also writes what the sandbox made up (messages, files
 * of a commit), and the sandbox may link or move that to where it is run. The place is the path by
 * which the file was opened; what a local program renames or links goes along, since whoever puts a
 * file into a repository by its name means it. A place is one file's: the last that was written
 * or seen there. A crash of the daemon forgets all: then it is the
 * sandbox's, until it is written or accepted again.
 *
 * Only of files in and near repositories (fuse/gitplace.h), up to RSB_GITALLOW_MAX each (of an
 * index, which then is not asked for again, RSB_WROTE_INDEX_MAX), RSB_WROTES_MAX of them and
 * RSB_WROTE_BYTES_MAX together; the oldest give way. All under the lock of fuse/fs.h.
 */

#include "fuse/fs.h"
#include "fuse/writer.h"

#define RSB_WROTE_INDEX_MAX ((size_t)8 << 20)
#define RSB_WROTES_MAX 1024u /* each name that is given walks them */
#define RSB_WROTE_BYTES_MAX ((size_t)32 << 20)

struct rsb_wrote_name {
	const struct rsb_inode *dir;
	const char *name;
	const char *path; /* of it, below the root */
};

/* A file near a repository, of which all this is noted. */
bool rsb_wrote_concerns(const struct rsb_inode *inode);
/* It holds text and nothing else: {0}, when it was created or cut to nothing. */
void rsb_wrote_begin(
	struct rsb_fs *fs, struct rsb_inode *inode, struct rsb_bytes text, enum rsb_writer writer);
/* A write; append: wherever the end is, which the kernel takes to be offset. */
void rsb_wrote_put(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t offset,
	struct rsb_bytes data, bool append, enum rsb_writer writer);
void rsb_wrote_cut(
	struct rsb_fs *fs, struct rsb_inode *inode, uint64_t size, enum rsb_writer writer);
/* It was changed in a way that is not seen. */
void rsb_wrote_drop(struct rsb_inode *inode);
/* What it holds. false: not known. Borrowed until the next change. */
bool rsb_wrote_get(const struct rsb_inode *inode, struct rsb_bytes *ret_text);
/* false: not known, or not written at path. */
bool rsb_wrote_at(const struct rsb_inode *inode, const char *path, struct rsb_bytes *ret_text);
/* The inode that was written at path, borrowed; NULL: none such. */
struct rsb_inode *rsb_wrote_find(
	const struct rsb_fs *fs, const char *path, struct rsb_bytes *ret_text);
/* Something is appended that is not of local programs: only the places of text count yet. */
void rsb_wrote_set_more(struct rsb_inode *inode);
/* Of all who wrote what it holds, the one trusted least. */
enum rsb_writer rsb_wrote_by(const struct rsb_inode *inode);
/* A program other than git put it where it is: it means what it holds. */
void rsb_wrote_adopt(struct rsb_inode *inode);
/* A local program made path another name of it. */
void rsb_wrote_linked(struct rsb_inode *inode, const char *path);
/*
 * A local program renamed from to to, or swapped them, as nothing in the tables says yet. It meant
 * what lay there: of a file's notes only that of the inode that was seen last as from goes along.
 */
void rsb_wrote_moved(struct rsb_fs *fs, const struct rsb_wrote_name *from,
	const struct rsb_wrote_name *to, bool swap);
/* name in dir is inode, or is gone (NULL): what was written and seen there before is not there. */
void rsb_wrote_named(struct rsb_fs *fs, const struct rsb_inode *dir, struct rsb_bytes name,
	const struct rsb_inode *inode);
/* The generation of the cache in which all of it was noted; 0: it took several. */
uint64_t rsb_wrote_generation(const struct rsb_inode *inode);

#endif
