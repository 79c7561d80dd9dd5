/* SPDX-License-Identifier: MIT */
#include "keeper/gitindex.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "keeper/gituntracked.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/macro.h"

#define HEAD_SIZE 12u
#define STAT_SIZE 40u /* before the object's id: times, device, inode, mode at 24, ids, size */
#define MODE_AT 24u
#define FLAGS_NAME 0x0fffu
#define FLAGS_MORE 0x4000u
#define STAGED_MAX (2 * RSB_GITINDEX_MAX)
#define IEOT_VERSION 1u
#define NAMES_MAX ((size_t)256 << 20) /* bytes of names, of which version 4 repeats none */

bool
rsb_gitindex_is(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && strcmp(base, "/index") == 0 &&
	       (strncmp(path, ".git/", 5) == 0 || strstr(path, "/.git/"));
}

bool
rsb_gitindex_is_one(struct rsb_bytes data)
{
	return data.size >= 4 && memcmp(data.data, "DIRC", 4) == 0;
}

struct parse {
	struct rsb_bytes all;
	struct rsb_bytes left;
	size_t id_size; /* also of the checksum at the end */
	uint32_t version;
	uint32_t n_entry;
	char path[PATH_MAX]; /* in version 4 a name begins as that before it */
	size_t path_size;
	size_t path_kept; /* bytes of the one before in it */
	size_t names;     /* bytes of all */
	bool is_strict;   /* whatever git here may do with it */
	bool is_split;
	bool has_table;
	bool has_nameless; /* as only a split index has them */
};

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

ssize_t
rsb_gitindex_take_number(struct rsb_bytes *left, size_t max)
{
	size_t number = 0;
	uint8_t c = 0x80;

	for (size_t n = 0; c & 0x80; n++) {
		if (!left->size || number > max)
			return -EBADMSG;
		c = left->data[0];
		left->data++;
		left->size--;
		number = (n ? number + 1 : 0) << 7 | (c & 0x7f);
	}
	return number > max ? -EBADMSG : (ssize_t)number;
}

/* How much of the last name stays is in version 4 alone. */
static int
take_path(struct parse *parse)
{
	const ssize_t cut = parse->version == 4
				    ? rsb_gitindex_take_number(&parse->left, parse->path_size)
				    : (ssize_t)parse->path_size;
	const uint8_t *end = memchr(parse->left.data, 0, parse->left.size);
	size_t keep;
	size_t n;

	if (cut < 0 || !end)
		return -EBADMSG;
	keep = parse->path_size - (size_t)cut;
	n = (size_t)(end - parse->left.data);
	if (n >= sizeof(parse->path) - keep)
		return -EBADMSG;
	memcpy(parse->path + keep, parse->left.data, n + 1);
	parse->path_size = keep + n;
	parse->path_kept = keep;
	parse->has_nameless |= !parse->path_size;
	parse->names += parse->path_size;
	if (parse->names > NAMES_MAX)
		return -EBADMSG;
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
	size_t name_size;
	int r;

	if (parse->left.size < used + 2)
		return -EBADMSG;
	entry.mode = rsb_gitindex_be32(head + MODE_AT);
	entry.id = (struct rsb_bytes){ .data = head + STAT_SIZE, .size = parse->id_size };
	entry.flags = be16(head + size);
	if (entry.flags & FLAGS_MORE) {
		entry.more = be16(head + used);
		used += 2;
	}
	name_size = entry.flags & FLAGS_NAME;
	entry.flags &= (uint16_t) ~(FLAGS_NAME | FLAGS_MORE);
	skip(parse, used);
	r = take_path(parse);
	if (r < 0)
		return r;
	/* Git goes by this one where it does not say "longer". */
	if (name_size != rsb_min(parse->path_size, (size_t)FLAGS_NAME))
		return -EBADMSG;
	if (parse->version < 4) {
		/* NULs up to a multiple of 8, of which the name's end is the first. */
		size_t pad = 7 - (used + parse->path_size) % 8;

		if (parse->left.size < pad)
			return -EBADMSG;
		skip(parse, pad);
	}
	return fn(arg, &entry);
}

static int
nothing(void *arg, const struct rsb_gitindex_entry *entry)
{
	(void)arg;
	(void)entry;
	return 0;
}

static int
begin(struct parse *parse)
{
	const struct rsb_bytes data = parse->all;

	if (data.size < HEAD_SIZE + parse->id_size || !rsb_gitindex_is_one(data))
		return -EBADMSG;
	parse->version = rsb_gitindex_be32(data.data + 4);
	parse->n_entry = rsb_gitindex_be32(data.data + 8);
	parse->left = data;
	if (parse->version < 2 || parse->version > 4)
		return -EBADMSG;
	skip(parse, HEAD_SIZE);
	return 0;
}

static size_t
offset_of(const struct parse *parse)
{
	return (size_t)(parse->left.data - parse->all.data);
}

/*
 * The table by which git reads entries in several threads: it must say the same as reading them in
 * a row does.
 */
static int
check_table(const struct parse *outer, struct rsb_bytes table)
{
	struct parse parse = { .all = outer->all, .id_size = outer->id_size };
	int r = begin(&parse);

	if (r < 0 || table.size < 4 || (table.size - 4) % 8 ||
		rsb_gitindex_be32(table.data) != IEOT_VERSION)
		return -EBADMSG;
	for (size_t at = 4; at < table.size; at += 8) {
		const uint32_t n = rsb_gitindex_be32(table.data + at + 4);

		if (rsb_gitindex_be32(table.data + at) != offset_of(&parse) || n > parse.n_entry)
			return -EBADMSG;
		parse.n_entry -= n;
		for (uint32_t i = 0; i < n && r == 0; i++) {
			r = take_entry(&parse, nothing, NULL);
			/* The one before it is another thread's. */
			if (i == 0 && parse.path_kept)
				r = -EBADMSG;
		}
		if (r < 0)
			return r;
	}
	return parse.n_entry ? -EBADMSG : 0;
}

/*
 * Where git finds extensions by an offset instead, which is in the last one, it finds the same. It
 * looks for that before the end of the file as stat(2) has it, which may have changed meanwhile: so
 * nothing else looks like it.
 */
static bool
is_end_right(const struct parse *parse)
{
	const uint8_t head[] = { 'E', 'O', 'I', 'E', 0, 0, 0, (uint8_t)(4 + parse->id_size) };
	const size_t size = sizeof(head) + 4 + 2 * parse->id_size;
	const struct rsb_bytes all = parse->all;
	const uint8_t *end = memmem(all.data, all.size, head, sizeof(head));

	return !end || ((size_t)(end - all.data) == all.size - size &&
			       rsb_gitindex_be32(end + sizeof(head)) == offset_of(parse));
}

/* What git must understand has a small first letter; of these sparse directories are known. */
static bool
is_extension_known(struct parse *parse, const uint8_t *head)
{
	const bool is_link = memcmp(head, "link", 4) == 0;

	if (is_link)
		parse->is_split = true;
	return (head[0] >= 'A' && head[0] <= 'Z') || memcmp(head, "sdir", 4) == 0 ||
	       (is_link && parse->is_strict);
}

static int
check_extensions(struct parse *parse)
{
	if (!is_end_right(parse))
		return -EBADMSG;
	while (parse->left.size > parse->id_size) {
		const uint8_t *head = parse->left.data;
		size_t size;

		if (parse->left.size < 8 + parse->id_size)
			return -EBADMSG;
		size = rsb_gitindex_be32(head + 4);
		if (size > parse->left.size - parse->id_size - 8 ||
			!is_extension_known(parse, head))
			return -EBADMSG;
		if (memcmp(head, "IEOT", 4) == 0) {
			if (parse->has_table ||
				check_table(parse, (struct rsb_bytes){ head + 8, size }) < 0)
				return -EBADMSG;
			parse->has_table = true;
		}
		if (memcmp(head, "UNTR", 4) == 0 && parse->is_strict) {
			int r = rsb_gituntracked_check(
				(struct rsb_bytes){ head + 8, size }, parse->id_size);

			if (r < 0)
				return r;
		}
		skip(parse, 8 + size);
	}
	if (parse->has_nameless && !parse->is_split)
		return -EBADMSG;
	return parse->left.size == parse->id_size ? 0 : -EBADMSG;
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
parse_all(struct parse *parse, rsb_gitindex_fn fn, void *arg)
{
	int r = begin(parse);

	for (uint32_t i = 0; i < parse->n_entry && r == 0; i++)
		r = take_entry(parse, fn, arg);
	return r ? r : check_extensions(parse);
}

int
rsb_gitindex_parse(struct rsb_bytes data, rsb_gitindex_fn fn, void *arg)
{
	static const size_t sizes[] = { RSB_SHA1_SIZE,
		RSB_SHA256_SIZE }; /* it does not say which */

	/* Nobody hears of one that is not whole. */
	for (size_t i = 0; i < RSB_ARRAY_SIZE(sizes); i++) {
		struct parse parse = { .all = data, .id_size = sizes[i] };

		if (parse_all(&parse, nothing, NULL) < 0 || !has_checksum(data, sizes[i]))
			continue;
		parse = (struct parse){ .all = data, .id_size = sizes[i] };
		return parse_all(&parse, fn, arg);
	}
	return -EBADMSG;
}

bool
rsb_gitindex_is_component(const char *name, size_t size)
{
	return size && !(size == 1 && name[0] == '.') &&
	       !(size == 2 && name[0] == '.' && name[1] == '.') &&
	       !(size == 4 && strncasecmp(name, ".git", size) == 0);
}

static int
check_path(void *arg, const struct rsb_gitindex_entry *entry)
{
	const char *p = entry->path;
	size_t size = strcspn(p, "/");

	(void)arg;
	if (!*p)
		return 0; /* of a split index, see check_extensions() */
	while (rsb_gitindex_is_component(p, size)) {
		p += size;
		/* Of a sparse index a whole directory. */
		if (!*p || (strcmp(p, "/") == 0 && (entry->mode & S_IFMT) == S_IFDIR))
			return 0;
		size = strcspn(++p, "/");
	}
	return -EACCES;
}

int
rsb_gitindex_check(struct rsb_bytes data, size_t id_size)
{
	struct parse parse = { .all = data, .id_size = id_size, .is_strict = true };

	return parse_all(&parse, check_path, NULL);
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
