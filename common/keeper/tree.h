/* SPDX-License-Identifier: MIT */
#ifndef RSB_KEEPER_TREE_H
#define RSB_KEEPER_TREE_H

/*
 * What is known of a directory tree: one leaf for each name, in the order of a walk
 * (util/walk.h). Three of them make a sync: what is here, what is there, and the manifest, which is
 * what both were after the last one. No locks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/hash.h"
#include "util/ignore.h"

/* What a sandbox can make grow. */
#define RSB_TREE_LEAVES_MAX ((size_t)1 << 22)
#define RSB_TREE_TEXT_MAX ((size_t)512 << 20) /* bytes of paths and targets */

/*
 * Of an inode, as lstat(2) had it; a file with the same one was not changed since. ctime_ns 0: it
 * was too young to tell, and nothing equals that.
 */
struct rsb_stamp {
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t ino;
};

/* Times from another world are cut to what can be reckoned with. */
int64_t rsb_tree_ns(int64_t sec, int64_t nsec);

struct rsb_tree_leaf {
	char *path;
	char *target;  /* of a link; else "" */
	uint32_t mode; /* type and 01777; 0: known not to be there (manifest) */
	uint64_t size;
	uint8_t sha[RSB_SHA256_SIZE]; /* of a file, if hashed */
	bool hashed;
	bool blind;    /* a directory whose contents are not known */
	bool conflict; /* manifest: not resolved; the leaf is what is there */
	struct rsb_stamp here;
	struct rsb_stamp there;
};

struct rsb_tree {
	struct rsb_tree_leaf *leaves;
	size_t n;
	size_t cap;
	size_t text; /* bytes */
};

void rsb_tree_done(struct rsb_tree *tree); /* zeroed memory is fine */

/* Copies leaf behind the last. -EBADMSG: out of order; -ENOSPC: over a maximum; -ENOMEM. */
rsb_nodiscard int rsb_tree_add(struct rsb_tree *tree, const struct rsb_tree_leaf *leaf);
/* Takes it out, if it is there, with all that is in it. */
void rsb_tree_drop(struct rsb_tree *tree, const char *path);
/* NULL: there is none. Borrowed until the next add. */
struct rsb_tree_leaf *rsb_tree_find(const struct rsb_tree *tree, const char *path);
bool rsb_tree_leaf_is(const struct rsb_tree_leaf *leaf, uint32_t type);

/* Adds what is below root_fd. Errors of rsb_walk() and rsb_tree_add(). */
rsb_nodiscard int rsb_tree_walk(
	struct rsb_tree *tree, int root_fd, const struct rsb_ignore *ignore);
/*
 * Fills sha of a file, from the file below root_fd: of its contents, or of what a git index stages
 * (keeper/gitindex.h). Errors of opening and reading it.
 */
rsb_nodiscard int rsb_tree_hash(int root_fd, struct rsb_tree_leaf *leaf);

bool rsb_stamp_is_same(const struct rsb_stamp *a, const struct rsb_stamp *b);
/* Type, permissions, contents. Two files of which one is not hashed are not. */
bool rsb_tree_is_same(const struct rsb_tree_leaf *a, const struct rsb_tree_leaf *b);

#endif
