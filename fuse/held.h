/* SPDX-License-Identifier: MIT */
#ifndef RSB_HELD_H
#define RSB_HELD_H

/*
 * What is held back from git here, by path, for rsb status and rsb trust: why, and the contents
 * that were refused, so that what is accepted is what was judged. At RSB_HELD_MAX entries or
 * RSB_HELD_BYTES_MAX the oldest give way; they come again when somebody looks at the file.
 *
 * All under the lock of fuse/fs.h.
 */

#include "keeper/gitallow.h"
#include "util/json.h"
#include "util/list.h"

#define RSB_HELD_MAX 256u
#define RSB_HELD_BYTES_MAX ((size_t)8 << 20)
#define RSB_HELD_TOLD_MAX 32u  /* entries of one status */
#define RSB_HELD_TEXT_MAX 480u /* bytes of a path or reason in it; a longer one is cut */

struct rsb_held {
	struct rsb_list age;
	char *path; /* below the root */
	char why[RSB_GITALLOW_WHY_MAX];
	bool fixed; /* it cannot be accepted: there are no contents that could be kept */
	size_t size;
	uint8_t text[];
};

struct rsb_held_set {
	struct rsb_list age; /* newest first */
	size_t n;
	size_t size;
};

void rsb_held_init(struct rsb_held_set *set);
void rsb_held_done(struct rsb_held_set *set);
/* true: the path was not held, or for another reason. text NULL: it cannot be accepted. */
bool rsb_held_add(
	struct rsb_held_set *set, const char *path, const char *why, const struct rsb_bytes *text);
void rsb_held_remove(struct rsb_held_set *set, const char *path);
/* NULL: it is not held. Borrowed. */
struct rsb_held *rsb_held_find(const struct rsb_held_set *set, const char *path);
/* The next of path or below it ("": all); *cursor starts at NULL. The one returned may go. */
struct rsb_held *rsb_held_next(
	const struct rsb_held_set *set, const char *path, struct rsb_list **cursor);
/* Appends {"path", "why"} to an array; other bytes than text as \xNN. */
rsb_nodiscard int rsb_held_tell(const struct rsb_held *held, struct rsb_json *array);

#endif
