/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITALLOW_H
#define RSB_GITALLOW_H

/*
 * What of a repository that a sandbox could write git on this machine may read: the one rule, for
 * the mount and for what comes back by sync. A file that makes git run a program, read another
 * file as its configuration, or work on files outside is not served; what is not known to be
 * harmless, or cannot be read, counts as such. Pure.
 */

#include <stdbool.h>

#include "keeper/target.h"
#include "util/buf.h"

#define RSB_GITALLOW_MAX ((size_t)256 << 10) /* bytes of a file; a longer one is never served */
#define RSB_GITALLOW_WHY_MAX 256u

enum rsb_git_kind {
	RSB_GIT_NONE,
	RSB_GIT_CONFIG,     /* config, config.worktree of a repository */
	RSB_GIT_ATTRIBUTES, /* info/attributes */
	RSB_GIT_GITFILE,    /* .git, when it is a file */
	RSB_GIT_COMMONDIR,  /* commondir of a worktree's directory */
	RSB_GIT_REMOTE,     /* a file in remotes or branches */
	RSB_GIT_HOOK,       /* a file in hooks */
	RSB_GIT_ALTERNATES, /* info/alternates of a directory of objects */
	RSB_GIT_GITDIR,     /* gitdir of a worktree's directory */
	RSB_GIT_RERERE,     /* MERGE_RR: files that git-rerere(1) reads and writes */
	RSB_GIT_TODO,       /* these five: keeper/gitsteps.h */
	RSB_GIT_OPTS,
	RSB_GIT_STRATEGY,
	RSB_GIT_OPTION,
	RSB_GIT_AUTHOR,
	RSB_GIT_INDEX, /* these three: keeper/gitnames.h */
	RSB_GIT_PACKS,
	RSB_GIT_TABLES,
	RSB_GIT_AWAY, /* read as .git, by a link: relative to where nobody knows */
};

enum rsb_gitallow_verdict {
	RSB_GITALLOW_AS_IS,
	RSB_GITALLOW_MAPPED,  /* the view says the same for this machine */
	RSB_GITALLOW_HELD,    /* the view is what to serve instead, and why says of what */
	RSB_GITALLOW_REFUSED, /* nothing is served, until it is trusted; why says of what */
	RSB_GITALLOW_DENIED,  /* nothing can be served instead; no trust helps */
};

struct rsb_gitallow {
	enum rsb_git_kind kind;
	struct rsb_bytes text;
	const struct rsb_bytes *trusted; /* its last trusted copy; NULL: there was none */
	struct rsb_target_place place;   /* the depth is that of the file's directory */
	const char *path;                /* of the file, below the root; NULL: not known */
	size_t id_size;                  /* for an index: see rsb_gitnames_id_size() */
};

/*
 * Appends to view unless the verdict is "as is": of a configuration what keeper/gitview.h says,
 * else the last trusted copy, if there was one, else what is harmless in the text. Of a hook that
 * is nothing: a program that copies the repository would write it as its own. why: the bytes of a
 * name may be in it. Returns a verdict; -ENOMEM.
 */
rsb_nodiscard int rsb_gitallow_judge(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX]);

/* kind is .git or commondir: *ret_path is what text leads to, and borrowed. false: nothing. */
bool rsb_gitallow_pointer(
	enum rsb_git_kind kind, struct rsb_bytes text, struct rsb_bytes *ret_path);

#endif
