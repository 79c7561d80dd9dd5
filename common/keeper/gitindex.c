/* SPDX-License-Identifier: MIT */
#include "keeper/gitindex.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/macro.h"

#define HEAD_SIZE 12u
#define STAT_SIZE 40u /* before the object's id: times, device, inode, mode at 24, ids, size */
#define MODE_AT 24u
#define FLAGS_NAME 0x0fffu
#define FLAGS_MORE 0x4000u
#define STAGED_MAX (2 * RSB_GITINDEX_MAX)

bool
rsb_gitindex_is(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && strcmp(base, "/index") == 0 &&
	       (strncmp(path, ".git/", 5) == 0 || strstr(path, "/.git/"));
}

struct parse {
	struct rsb_bytes left;
	size_t id_size; /* also of the checksum at the end */
	uint32_t version;
	char path[PATH_MAX]; /* in version 4 a name begins as that before it */
	size_t path_size;
};

static uint32_t
be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
skip(struct parse *parse, size_t n)
{
	parse->left.data += n;
	parse->left.size -= n;
}

/* git's own form of a number; -1: it is none. */
static ssize_t
take_number(struct parse *parse)
{
	size_t number = 0;
	uint8_t c = 0x80;

	for (size_t n = 0; c & 0x80; n++) {
		if (!parse->left.size || number > PATH_MAX)
			return -1;
		c = parse->left.data[0];
		skip(parse, 1);
		number = (n ? number + 1 : 0) << 7 | (c & 0x7f);
	}
	return (ssize_t)number;
}

/* How much of the last name stays is in version 4 alone. */
static int
take_path(struct parse *parse)
{
	const ssize_t cut = parse->version == 4 ? take_number(parse) : (ssize_t)parse->path_size;
	const uint8_t *end = memchr(parse->left.data, 0, parse->left.size);
	size_t keep;
	size_t n;

	if (cut < 0 || (size_t)cut > parse->path_size || !end)
		return -EBADMSG;
	keep = parse->path_size - (size_t)cut;
	n = (size_t)(end - parse->left.data);
	if (n >= sizeof(parse->path) - keep || keep + n == 0)
		return -EBADMSG;
	memcpy(parse->path + keep, parse->left.data, n + 1);
	parse->path_size = keep + n;
	skip(parse, n + 1);
	return 0;
}

static int
take_entry(struct parse *parse, rsb_gitindex_fn fn, void *arg)
{
	const uint8_t *head = parse->left.data;
	const size_t size = STAT_SIZE + parse->id_size;
	struct rsb_gitindex_entry entry = { .path = parse->path };
	size_t used = size + 2;
	int r;

	if (parse->left.size < used + 2)
		return -EBADMSG;
	entry.mode = be32(head + MODE_AT);
	entry.id = (struct rsb_bytes){ .data = head + STAT_SIZE, .size = parse->id_size };
	entry.flags = be16(head + size);
	if (entry.flags & FLAGS_MORE) {
		entry.more = be16(head + used);
		used += 2;
	}
	entry.flags &= (uint16_t) ~(FLAGS_NAME | FLAGS_MORE);
	skip(parse, used);
	r = take_path(parse);
	if (r < 0)
		return r;
	if (parse->version < 4) {
		/* NULs up to a multiple of 8, of which the name's end is the first. */
		size_t pad = 7 - (used + parse->path_size) % 8;

		if (parse->left.size < pad)
			return -EBADMSG;
		skip(parse, pad);
	}
	return fn(arg, &entry);
}

/* What git must understand has a small first letter; of these sparse directories are known. */
static int
check_extensions(struct parse *parse)
{
	while (parse->left.size > parse->id_size) {
		const uint8_t *head = parse->left.data;
		size_t size;

		if (parse->left.size < 8 + parse->id_size)
			return -EBADMSG;
		size = be32(head + 4);
		if (size > parse->left.size - parse->id_size - 8 ||
			((head[0] < 'A' || head[0] > 'Z') && memcmp(head, "sdir", 4) != 0))
			return -EBADMSG;
		skip(parse, 8 + size);
	}
	return parse->left.size == parse->id_size ? 0 : -EBADMSG;
}

static int
nothing(void *arg, const struct rsb_gitindex_entry *entry)
{
	(void)arg;
	(void)entry;
	return 0;
}

/* At its end, of all before; or zeros, which git writes where that is configured. */
static bool
has_checksum(struct rsb_bytes data, size_t size)
{
	const struct rsb_bytes body = { .data = data.data, .size = data.size - size };
	static const uint8_t zeros[RSB_SHA256_SIZE];
	uint8_t sum[RSB_SHA256_SIZE];

	if (size == RSB_SHA1_SIZE)
		rsb_sha1(body, sum);
	else
		rsb_sha256(body, sum);
	return memcmp(data.data + body.size, sum, size) == 0 ||
	       memcmp(data.data + body.size, zeros, size) == 0;
}

static int
parse_all(struct rsb_bytes data, size_t id_size, rsb_gitindex_fn fn, void *arg)
{
	struct parse parse = { .left = data, .id_size = id_size };
	uint32_t n;
	int r = 0;

	if (data.size < HEAD_SIZE + id_size || memcmp(data.data, "DIRC", 4) != 0)
		return -EBADMSG;
	parse.version = be32(data.data + 4);
	n = be32(data.data + 8);
	if (parse.version < 2 || parse.version > 4)
		return -EBADMSG;
	skip(&parse, HEAD_SIZE);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = take_entry(&parse, fn, arg);
	return r ? r : check_extensions(&parse);
}

int
rsb_gitindex_parse(struct rsb_bytes data, rsb_gitindex_fn fn, void *arg)
{
	static const size_t sizes[] = { RSB_SHA1_SIZE,
		RSB_SHA256_SIZE }; /* it does not say which */

	/* Nobody hears of one that is not whole. */
	for (size_t i = 0; i < RSB_ARRAY_SIZE(sizes); i++)
		if (parse_all(data, sizes[i], nothing, NULL) == 0 && has_checksum(data, sizes[i]))
			return parse_all(data, sizes[i], fn, arg);
	return -EBADMSG;
}

static int
write_entry(void *arg, const struct rsb_gitindex_entry *entry)
{
	const uint32_t numbers[] = { entry->mode, entry->flags, entry->more,
		(uint32_t)entry->id.size };
	struct rsb_buf *out = arg;
	int r;

	r = rsb_buf_append(out, numbers, sizeof(numbers));
	if (r >= 0)
		r = rsb_buf_append(out, entry->id.data, entry->id.size);
	return r < 0 ? r : rsb_buf_append(out, entry->path, strlen(entry->path) + 1);
}

int
rsb_gitindex_hash_fd(int fd, uint8_t out[static RSB_SHA256_SIZE])
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_GITINDEX_MAX };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf staged = { .max = STAGED_MAX };
	int r;

	r = rsb_fd_read_all(fd, &data);
	if (r >= 0)
		r = rsb_gitindex_parse(rsb_buf_view(&data), write_entry, &staged);
	if (r >= 0)
		rsb_sha256(rsb_buf_view(&staged), out);
	return r == -EMSGSIZE ? -EBADMSG : r;
}
