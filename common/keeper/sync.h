/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNC_H
#define RSB_SYNC_H

/*
 * Brings a directory of this machine into the workspace: one walk (links are taken as links,
 * never followed; sockets, FIFOs and devices are left out and named), one archive (pax with
 * binary names, compressed with zstd) as one stream of bytes. Left out by default:
 * sync.exclude, .rsb, and what .rsbignore at the root says. Of .git/config, what carries
 * credentials is cut from the copy; .git-credentials and .netrc stay here.
 */

#include <stdbool.h>

#include "keeper/config.h"
#include "link/link.h"
#include "util/ignore.h"

struct rsb_sync_stats {
	uint64_t files;   /* without directories */
	uint64_t bytes;   /* contents of files */
	uint64_t packed;  /* bytes of the stream */
	uint64_t skipped; /* special files and those that could not be read */
};

struct rsb_sync {
	const char *dir;
	const struct rsb_config_list *exclude; /* the configuration's; may be NULL */
	const char *const *more;               /* --exclude; NULL-terminated, may be NULL */
	/*
	 * May be NULL. progress: after every entry and every MiB. notice: what was left out
	 * or cut, one sentence.
	 */
	void (*progress)(void *arg, const struct rsb_sync_stats *stats);
	void (*notice)(void *arg, const char *text);
	bool tells_secrets; /* also by notice, once: names that go in and look like secrets */
	/* May be NULL: all. Which names go in; asked about a directory only for itself. */
	bool (*wanted)(void *arg, const char *path);
	void *arg;
};

#define RSB_SYNC_CONFLICT ".rsb-conflict" /* behind the name of the other side's version */
#define RSB_SYNC_PATTERNS_MAX ((size_t)4 << 20)
/*
 * What is left out, both ways: the caller's, and a pattern a line appended to text. Without a
 * directory: all but what a .rsbignore says. -EINVAL: one cannot be used, with a sentence; errors
 * of open(2) and read(2).
 */
rsb_nodiscard int rsb_sync_patterns(const struct rsb_sync *sync, struct rsb_buf *text,
	struct rsb_ignore **ret_ignore, struct rsb_diag *diag);

/* Where packed bytes go. Waits until it took all of them. Negative errno ends the walk. */
struct rsb_sync_sink {
	int (*write)(void *arg, struct rsb_bytes data);
	void *arg;
};

/* Packs the tree into sink. -ENOTDIR, -ENOENT, -EIO, with a sentence. */
rsb_nodiscard int rsb_sync_pack(const struct rsb_sync *sync, const struct rsb_sync_sink *sink,
	struct rsb_sync_stats *ret_stats, struct rsb_diag *diag);

/*
 * Packs the tree into the workspace over a link of its own, made and ended here. timeout_ns:
 * without any progress.
 */
struct rsb_sync_far {
	const struct rsb_link_target *target;
	const char *sandbox_id;
	const struct rsb_secret *key;
	uint64_t timeout_ns;
	uint64_t whole_ns; /* for all calls on one link together; 0: without end */
};
rsb_nodiscard int rsb_sync_in(const struct rsb_sync *sync, const struct rsb_sync_far *far,
	struct rsb_sync_stats *ret_stats, struct rsb_diag *diag);

#endif
