/* SPDX-License-Identifier: MIT */
#ifndef RSB_EXTRACT_H
#define RSB_EXTRACT_H

/*
 * Makes entries of an archive below a directory descriptor. Every step is one component that is
 * never followed as a link, so neither a name in the archive nor a process that swaps directories
 * for links meanwhile leads out. What is made belongs to one user and gets no set-user-ID. An entry
 * replaces what is there, but a directory stays and is filled. One thread.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/diag.h"

struct rsb_extract;

struct rsb_extract_owner {
	bool set; /* false: what is made belongs to us already */
	uid_t uid;
	gid_t gid;
};

struct rsb_extract_meta {
	mode_t mode; /* 07777, of which 01777 count */
	struct timespec mtime;
};

/* root_fd is borrowed. */
rsb_nodiscard int rsb_extract_new(
	int root_fd, const struct rsb_extract_owner *owner, struct rsb_extract **ret_extract);
/* NULL is fine. */
void rsb_extract_free(struct rsb_extract *extract);
RSB_DEFINE_CLEANUP(struct rsb_extract *, rsb_extract_free)

/*
 * path: as in the archive, with '/' between components. -EINVAL: empty, absolute, with "..", or a
 * component over NAME_MAX; -ELOOP or -ENOTDIR: through a link or a file; else the errno of the call
 * that failed.
 */

/*
 * Its mode and times come at rsb_extract_finish(), when nothing is put into it any more. *ret_fd is
 * the caller's, for attributes.
 */
rsb_nodiscard int rsb_extract_dir(struct rsb_extract *extract, const char *path,
	const struct rsb_extract_meta *meta, int *ret_fd);
/*
 * A new empty file, open for writing: the caller fills it, then gives it to
 * rsb_extract_close_file().
 */
rsb_nodiscard int rsb_extract_open_file(struct rsb_extract *extract, const char *path, int *ret_fd);
/* Takes fd. size: of the whole file, for a hole at its end. */
rsb_nodiscard int rsb_extract_close_file(
	struct rsb_extract *extract, int fd, uint64_t size, const struct rsb_extract_meta *meta);
rsb_nodiscard int rsb_extract_symlink(struct rsb_extract *extract, const char *path,
	const char *target, const struct rsb_extract_meta *meta);
/* to: a path like path, of an entry made before. */
rsb_nodiscard int rsb_extract_link(struct rsb_extract *extract, const char *path, const char *to);

/* Modes and times of directories. The first errno; all are tried. */
rsb_nodiscard int rsb_extract_finish(struct rsb_extract *extract);

#endif
