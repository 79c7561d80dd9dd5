/* SPDX-License-Identifier: MIT */
#include "fuse/wrote.h"

#include <stdlib.h>
#include <string.h>

#include "fuse/gitplace.h"
#include "fuse/seen.h"
#include "keeper/gitnames.h"
#include "util/str.h"

struct rsb_wrote {
	struct rsb_list age;
	struct rsb_fs *fs;
	struct rsb_inode *inode;
	struct rsb_buf text;
	char *places[RSB_GITPLACES_MAX]; /* paths below the root at which it is the user's own */
	size_t n_place;
	enum rsb_writer writer;
	bool has_more; /* the file holds more than text, see fuse/giveback.h */
	uint64_t generation;
};

static size_t
size_of(const struct rsb_wrote *wrote)
{
	size_t size = rsb_buf_len(&wrote->text) + sizeof(*wrote);

	for (size_t i = 0; i < wrote->n_place; i++)
		size += strlen(wrote->places[i]);
	return size;
}

/* The others move up. */
static void
drop_place(struct rsb_wrote *wrote, size_t i)
{
	wrote->fs->wrote_size -= strlen(wrote->places[i]);
	free(wrote->places[i]);
	wrote->n_place--;
	memmove(&wrote->places[i], &wrote->places[i + 1],
		(wrote->n_place - i) * sizeof(wrote->places[0]));
}

static void
drop_places(struct rsb_wrote *wrote)
{
	while (wrote->n_place)
		drop_place(wrote, wrote->n_place - 1);
}

static void
drop_at(struct rsb_wrote *wrote, const char *path)
{
	for (size_t i = wrote->n_place; i-- > 0;) {
		if (strcmp(wrote->places[i], path) == 0)
			drop_place(wrote, i);
	}
}

/* Takes path; NULL: it is not known. */
static void
add_place(struct rsb_wrote *wrote, char *path)
{
	if (!path)
		return;
	if (wrote->n_place == RSB_GITPLACES_MAX)
		drop_place(wrote, 0);
	wrote->places[wrote->n_place++] = path;
	wrote->fs->wrote_size += strlen(path);
}

/* It is what lies there now. */
static void
take_place(struct rsb_wrote *wrote, char *path)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &wrote->fs->wrotes) {
		if (path)
			drop_at(rsb_list_entry(pos, struct rsb_wrote, age), path);
	}
	add_place(wrote, path);
}

static char *
place_of(const struct rsb_inode *inode)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { .max = RSB_PATH_MAX + 1 };
	const struct rsb_inode *dir = rsb_inode_by_nodeid(inode->set, inode->parent);

	if (!inode->name || !dir || !rsb_gitplace_is_sure(inode) ||
		rsb_seen_path(dir, inode->name, &path) < 0)
		return NULL;
	return strdup((const char *)rsb_buf_head(&path));
}

void
rsb_wrote_drop(struct rsb_inode *inode)
{
	struct rsb_wrote *wrote = rsb_steal(&inode->wrote);

	if (!wrote)
		return;
	drop_places(wrote);
	wrote->fs->wrote_size -= size_of(wrote);
	wrote->fs->n_wrote--;
	rsb_list_remove(&wrote->age);
	rsb_buf_done(&wrote->text);
	free(wrote);
}

/* After a change: the latest, and over the maximum the oldest go. */
static void
renew(struct rsb_fs *fs, struct rsb_wrote *wrote)
{
	/* Somebody else may have changed it in between: what it holds now was not all seen. */
	if (wrote->generation != fs->cache.generation)
		wrote->generation = 0;
	/* What it holds now was written at the one place where it is. */
	if (wrote->n_place > 1 || !rsb_gitplace_is_sure(wrote->inode)) {
		drop_places(wrote);
		add_place(wrote, place_of(wrote->inode));
	}
	rsb_list_remove(&wrote->age);
	rsb_list_append(&fs->wrotes, &wrote->age);
	while (fs->wrote_size > RSB_WROTE_BYTES_MAX || fs->n_wrote > RSB_WROTES_MAX)
		rsb_wrote_drop(rsb_list_entry(fs->wrotes.next, struct rsb_wrote, age)->inode);
}

/* Or what becomes one, index.lock. */
static bool
is_index(const struct rsb_inode *inode)
{
	const struct rsb_bytes name = rsb_bytes_str(inode->name ? inode->name : "");

	return rsb_gitnames_kind(name) == RSB_GIT_INDEX || rsb_gitnames_is_scratch(name);
}

bool
rsb_wrote_concerns(const struct rsb_inode *inode)
{
	return inode->wrote || rsb_gitplace_is_near(inode) || rsb_gitplace_matters(inode);
}

void
rsb_wrote_begin(
	struct rsb_fs *fs, struct rsb_inode *inode, struct rsb_bytes text, enum rsb_writer writer)
{
	struct rsb_wrote *wrote;

	rsb_wrote_drop(inode);
	if (!rsb_wrote_concerns(inode))
		return;
	wrote = rsb_new(struct rsb_wrote);
	if (!wrote)
		return;
	wrote->fs = fs;
	wrote->inode = inode;
	wrote->generation = fs->cache.generation;
	rsb_list_init(&wrote->age);
	rsb_buf_init(&wrote->text, is_index(inode) ? RSB_WROTE_INDEX_MAX : RSB_GITALLOW_MAX);
	inode->wrote = wrote;
	fs->wrote_size += size_of(wrote);
	fs->n_wrote++;
	take_place(wrote, place_of(inode));
	rsb_wrote_put(fs, inode, 0, text, false, writer);
}

void
rsb_wrote_put(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t offset, struct rsb_bytes data,
	bool append, enum rsb_writer writer)
{
	struct rsb_wrote *wrote = inode->wrote;
	struct rsb_buf *text;
	size_t over;
	size_t at;

	if (!wrote)
		return;
	if (wrote->has_more) {
		rsb_wrote_drop(inode);
		return;
	}
	text = &wrote->text;
	at = (size_t)offset;
	if (offset > rsb_buf_len(text) || (append && offset != rsb_buf_len(text))) {
		rsb_wrote_drop(inode);
		return;
	}
	over = rsb_min(data.size, rsb_buf_len(text) - at);
	if (over)
		memcpy(text->data + text->off + at, data.data, over);
	if (data.size > over && rsb_buf_append(text, data.data + over, data.size - over) < 0) {
		rsb_wrote_drop(inode);
		return;
	}
	fs->wrote_size += data.size - over;
	wrote->writer = rsb_max(wrote->writer, writer);
	renew(fs, wrote);
}

void
rsb_wrote_cut(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t size, enum rsb_writer writer)
{
	struct rsb_wrote *wrote = inode->wrote;

	if (size == 0) {
		rsb_wrote_begin(fs, inode, (struct rsb_bytes){ 0 }, writer);
	} else if (wrote && !wrote->has_more && size <= rsb_buf_len(&wrote->text)) {
		fs->wrote_size -= rsb_buf_len(&wrote->text) - (size_t)size;
		wrote->text.size = wrote->text.off + (size_t)size;
		wrote->writer = rsb_max(wrote->writer, writer);
		renew(fs, wrote);
	} else {
		rsb_wrote_drop(inode);
	}
}

bool
rsb_wrote_get(const struct rsb_inode *inode, struct rsb_bytes *ret_text)
{
	if (!inode->wrote || inode->wrote->has_more)
		return false;
	*ret_text = rsb_buf_view(&inode->wrote->text);
	return true;
}

uint64_t
rsb_wrote_generation(const struct rsb_inode *inode)
{
	return inode->wrote ? inode->wrote->generation : 0;
}

enum rsb_writer
rsb_wrote_by(const struct rsb_inode *inode)
{
	return inode->wrote ? inode->wrote->writer : RSB_WRITER_GIT_FRESH;
}

void
rsb_wrote_adopt(struct rsb_inode *inode)
{
	if (inode->wrote)
		inode->wrote->writer = RSB_WRITER_PROGRAM;
}

/* ---- places ---- */

bool
rsb_wrote_at(const struct rsb_inode *inode, const char *path, struct rsb_bytes *ret_text)
{
	const struct rsb_wrote *wrote = inode->wrote;

	for (size_t i = 0; wrote && i < wrote->n_place; i++) {
		if (strcmp(wrote->places[i], path) == 0) {
			*ret_text = rsb_buf_view(&wrote->text);
			return true;
		}
	}
	return false;
}

struct rsb_inode *
rsb_wrote_find(const struct rsb_fs *fs, const char *path, struct rsb_bytes *ret_text)
{
	const struct rsb_list *pos;

	/* The newest first: it is what lies there. */
	for (pos = fs->wrotes.prev; pos != &fs->wrotes; pos = pos->prev) {
		struct rsb_inode *inode = rsb_list_entry(pos, struct rsb_wrote, age)->inode;

		if (rsb_wrote_at(inode, path, ret_text))
			return inode;
	}
	return NULL;
}

void
rsb_wrote_set_more(struct rsb_inode *inode)
{
	if (inode->wrote)
		inode->wrote->has_more = true;
}

void
rsb_wrote_linked(struct rsb_inode *inode, const char *path)
{
	if (inode->wrote && inode->wrote->n_place && rsb_gitplace_is_sure(inode))
		take_place(inode->wrote, strdup(path));
}

static bool
is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* What lies at from or below lies at to; an old place of its own stays, as the inode's do. */
static void
move_place(struct rsb_wrote *wrote, size_t i, const struct rsb_wrote_name *from,
	const struct rsb_wrote_name *to)
{
	const char *rest = wrote->places[i] + strlen(from->path);
	char *path = NULL;

	/* A file that somebody moved away keeps its note, and is not what was renamed. */
	if (rsb_gitplace_is_sure(wrote->inode) && rsb_gitplace_is_sure(to->dir) &&
		(*rest || rsb_seen_is(wrote->inode, from->dir, rsb_bytes_str(from->name))))
		path = rsb_str_printf("%s%s", to->path, rest);
	if (*rest || !path || wrote->n_place == RSB_GITPLACES_MAX)
		drop_place(wrote, i);
	add_place(wrote, path);
}

void
rsb_wrote_moved(struct rsb_fs *fs, const struct rsb_wrote_name *from,
	const struct rsb_wrote_name *to, bool swap)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &fs->wrotes) {
		struct rsb_wrote *wrote = rsb_list_entry(pos, struct rsb_wrote, age);

		/* Backwards: what is added is not looked at again. */
		for (size_t i = wrote->n_place; i-- > 0;) {
			if (is_below(wrote->places[i], to->path)) {
				if (swap)
					move_place(wrote, i, to, from);
				else
					drop_place(wrote, i);
			} else if (is_below(wrote->places[i], from->path)) {
				move_place(wrote, i, from, to);
			}
		}
	}
}

void
rsb_wrote_named(struct rsb_fs *fs, const struct rsb_inode *dir, struct rsb_bytes name,
	const struct rsb_inode *inode)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &fs->wrotes) {
		struct rsb_wrote *wrote = rsb_list_entry(pos, struct rsb_wrote, age);
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { .max = RSB_PATH_MAX + 1 };

		if (wrote->inode == inode || !rsb_seen_is(wrote->inode, dir, name))
			continue;
		if (rsb_seen_path(dir, wrote->inode->name, &path) < 0)
			drop_places(wrote);
		else
			drop_at(wrote, (const char *)rsb_buf_head(&path));
	}
}
