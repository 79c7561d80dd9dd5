/* SPDX-License-Identifier: MIT */
#include "keeper/gitnames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "keeper/gitparse.h"
#include "util/hash.h"

#define MIDX_HEAD_SIZE 12u  /* signature, versions, numbers of chunks at 6, of packs at 8 */
#define MIDX_CHUNK_SIZE 12u /* id, offset */

static bool
begins_with(struct rsb_bytes name, const char *begin)
{
	return name.size >= strlen(begin) &&
	       strncasecmp((const char *)name.data, begin, strlen(begin)) == 0;
}

static bool
is_name(struct rsb_bytes name, const char *other)
{
	return name.size == strlen(other) && begins_with(name, other);
}

enum rsb_git_kind
rsb_gitnames_kind(struct rsb_bytes name)
{
	/* Those of the layers of a chain are in a directory beside it. */
	if (is_name(name, "multi-pack-index") || begins_with(name, "multi-pack-index-"))
		return RSB_GIT_PACKS;
	return is_name(name, "index") || begins_with(name, "sharedindex.") ? RSB_GIT_INDEX
									   : RSB_GIT_NONE;
}

bool
rsb_gitnames_is_scratch(struct rsb_bytes name)
{
	return begins_with(name, "index.") || begins_with(name, "next-index-");
}

/* ---- formats ---- */

static int
note_format(void *arg, const struct rsb_git_entry *entry)
{
	unsigned int *formats = arg;

	if (strcmp(entry->name, "extensions.objectformat") == 0)
		*formats |= entry->value && strcmp(entry->value, "sha256") == 0
				    ? RSB_GITNAMES_SHA256
				    : RSB_GITNAMES_SHA1;
	return 0;
}

unsigned int
rsb_gitnames_formats(struct rsb_bytes config)
{
	unsigned int formats = 0;

	if (rsb_gitparse(config, note_format, &formats) < 0)
		return RSB_GITNAMES_SHA1 | RSB_GITNAMES_SHA256;
	return formats ? formats : RSB_GITNAMES_SHA1;
}

size_t
rsb_gitnames_id_size(unsigned int formats)
{
	if (formats == (RSB_GITNAMES_SHA1 | RSB_GITNAMES_SHA256))
		return 0;
	return formats == RSB_GITNAMES_SHA256 ? RSB_SHA256_SIZE : RSB_SHA1_SIZE;
}

/* ---- packs ---- */

static bool
is_bare_name(struct rsb_bytes name)
{
	return name.size && !memchr(name.data, '/', name.size) && name.data[0] != '.';
}

/* n names at the offset, each with a NUL. Git does not stop where their chunk ends. */
static bool
are_packs_ok(struct rsb_bytes text, uint64_t offset, uint32_t n)
{
	for (; n; n--) {
		struct rsb_bytes name;
		const uint8_t *end;

		if (offset >= text.size)
			return false;
		name = (struct rsb_bytes){ text.data + offset, text.size - (size_t)offset };
		end = memchr(name.data, 0, name.size);
		if (!end)
			return false;
		name.size = (size_t)(end - name.data);
		if (!is_bare_name(name))
			return false;
		offset += name.size + 1;
	}
	return true;
}

static bool
is_midx_ok(struct rsb_bytes text)
{
	const uint8_t *chunk = text.data + MIDX_HEAD_SIZE;
	size_t n_list = 0;
	size_t n_chunk;

	/* Git takes nothing from what is none. */
	if (text.size < MIDX_HEAD_SIZE || memcmp(text.data, "MIDX", 4) != 0)
		return true;
	n_chunk = text.data[6];
	if (text.size < MIDX_HEAD_SIZE + n_chunk * MIDX_CHUNK_SIZE)
		return false;
	for (; n_chunk; n_chunk--, chunk += MIDX_CHUNK_SIZE) {
		if (memcmp(chunk, "PNAM", 4) != 0)
			continue;
		n_list++;
		if (!are_packs_ok(text,
			    (uint64_t)rsb_gitindex_be32(chunk + 4) << 32 |
				    rsb_gitindex_be32(chunk + 8),
			    rsb_gitindex_be32(text.data + 8)))
			return false;
	}
	return n_list == 1;
}

/* ---- tables ---- */

static bool
are_lines_ok(struct rsb_bytes text)
{
	while (text.size) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		struct rsb_bytes line = text;

		line.size = end ? (size_t)(end - text.data) : text.size;
		if (line.size && (!is_bare_name(line) || memchr(line.data, 0, line.size)))
			return false;
		text.data += line.size + (end != NULL);
		text.size -= line.size + (end != NULL);
	}
	return true;
}

/* ---- all ---- */

static int
deny(char why[static RSB_GITALLOW_WHY_MAX], const char *text)
{
	(void)snprintf(why, RSB_GITALLOW_WHY_MAX, "%s", text);
	return RSB_GITALLOW_DENIED;
}

static int
judge_index(const struct rsb_gitallow *what, char why[static RSB_GITALLOW_WHY_MAX])
{
	int r;

	if (!rsb_gitindex_is_one(what->text))
		return RSB_GITALLOW_AS_IS;
	if (!what->id_size)
		return deny(why, "an index where objects have ids of two kinds");
	r = rsb_gitindex_check(what->text, what->id_size);
	if (r == -EACCES)
		return deny(why, "an index of files outside the working tree");
	return r < 0 ? deny(why, "an index that can be read in two ways") : RSB_GITALLOW_AS_IS;
}

bool
rsb_gitnames_holds(enum rsb_git_kind kind)
{
	return kind == RSB_GIT_INDEX || kind == RSB_GIT_PACKS || kind == RSB_GIT_TABLES;
}

int
rsb_gitnames_judge(const struct rsb_gitallow *what, char why[static RSB_GITALLOW_WHY_MAX])
{
	if (what->kind == RSB_GIT_INDEX)
		return judge_index(what, why);
	if (what->kind == RSB_GIT_PACKS)
		return is_midx_ok(what->text) ? RSB_GITALLOW_AS_IS
					      : deny(why, "packs outside the repository");
	return are_lines_ok(what->text) ? RSB_GITALLOW_AS_IS
					: deny(why, "tables outside the repository");
}
