/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITPARSE_H
#define RSB_GITPARSE_H

/*
 * The grammar of git's configuration files, as git-config(1) and git's own reader have it: section
 * headers of both forms, quotes, escapes, continued lines, comments. A text that git would refuse,
 * or that could be read in more than one way (NUL bytes, stray carriage returns), is refused as a
 * whole. Pure; bounded by the text.
 */

#include <stdbool.h>

#include "util/buf.h"

#define RSB_GITPARSE_MAX ((size_t)256 << 10) /* bytes of a text */

struct rsb_git_entry {
	/*
	 * section.key or section.subsection.key: section and key in lower case, the subsection as
	 * it stands. The latter two point into it.
	 */
	const char *name;
	const char *sub; /* with its length, as it may hold dots; NULL: none */
	size_t sub_size;
	const char *key;
	const char *value; /* NULL: there is no "=" */
	size_t begin;      /* of the entry in the text, without its section's header */
	size_t end;        /* where its line ends, before the newline */
	size_t head_begin; /* its section's header, from the '[' */
	size_t head_end;   /* after the ']' */
};

/* Others than 0 end the parse and are returned. entry is valid during the call. */
typedef int (*rsb_gitparse_fn)(void *arg, const struct rsb_git_entry *entry);

/* -EBADMSG: not such a text; -EMSGSIZE: over RSB_GITPARSE_MAX; -ENOMEM. */
rsb_nodiscard int rsb_gitparse(struct rsb_bytes text, rsb_gitparse_fn fn, void *arg);

#endif
