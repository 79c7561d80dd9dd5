/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITINDEX_H
#define RSB_GITINDEX_H

/*
 * Git's index (gitformat-index(5), versions 2 to 4): what is staged, beside a cache of what files
 * looked like on this machine, which 'git status' alone writes anew. Two that stage the same are
 * the same for a sync, so nothing staged is lost, and nobody's cache is a conflict. Pure but for
 * reading.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "util/hash.h"

#define RSB_GITINDEX_MAX ((size_t)64 << 20) /* bytes of a file; a longer one is none */

/* By its path in a tree; what it holds may be something else. */
bool rsb_gitindex_is(const char *path);

struct rsb_gitindex_entry {
	const char *path; /* borrowed during the call */
	uint32_t mode;
	struct rsb_bytes id; /* of the object */
	uint16_t flags;      /* stage, assume-valid */
	uint16_t more;       /* skip-worktree, intent-to-add */
};
/* Others than 0 end it and are returned. */
typedef int (*rsb_gitindex_fn)(void *arg, const struct rsb_gitindex_entry *entry);

/* -EBADMSG: it is none, or does not say everything itself (a split index); -ENOMEM. */
rsb_nodiscard int rsb_gitindex_parse(struct rsb_bytes data, rsb_gitindex_fn fn, void *arg);

/* It begins as one; git takes nothing from a file that does not. */
bool rsb_gitindex_is_one(struct rsb_bytes data);
/*
 * Of one that anybody may have made, in a repository whose objects have ids of id_size bytes: what
 * git reads of it, a split one too, are names of files in the working tree. -EACCES: they are not;
 * -EBADMSG: it is none that git would write, and might be read in another way.
 */
rsb_nodiscard int rsb_gitindex_check(struct rsb_bytes data, size_t id_size);

/* A number as git writes it. */
static inline uint32_t
rsb_gitindex_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
/* Cuts a number as git packs it off left; -EBADMSG: there is none, or it is over max. */
ssize_t rsb_gitindex_take_number(struct rsb_bytes *left, size_t max);
/* What a file or directory in the working tree may be called, as git's verify_path() has it. */
bool rsb_gitindex_is_component(const char *name, size_t size);

/* Of what is staged, from a file. Errors of rsb_gitindex_parse() and of read(2). */
rsb_nodiscard int rsb_gitindex_hash_fd(int fd, uint8_t out[static RSB_SHA256_SIZE]);

#endif
