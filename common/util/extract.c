/* SPDX-License-Identifier: MIT */
#include "util/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/str.h"

/* Directories of which mode and time are to be set at the end, as records in one buffer. */
#define LATER_MAX ((size_t)256 << 20)
#define DIR_OPEN (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MODE_MASK 01777

/*
 * The parent that was used last is kept: an archive names the entries of a directory one after the
 * other.
 */
struct rsb_extract {
	int root_fd;
	struct rsb_extract_owner owner;
	char *parent; /* NULL: none is kept */
	int parent_fd;
	struct rsb_buf later;
};

struct later {
	struct rsb_extract_meta meta;
	uint32_t size; /* of the record, its path with a NUL included */
};

int
rsb_extract_new(
	int root_fd, const struct rsb_extract_owner *owner, struct rsb_extract **ret_extract)
{
	struct rsb_extract *extract = rsb_new(struct rsb_extract);

	if (!extract)
		return -ENOMEM;
	extract->root_fd = root_fd;
	extract->owner = *owner;
	extract->parent_fd = -1;
	rsb_buf_init(&extract->later, LATER_MAX);
	*ret_extract = extract;
	return 0;
}

void
rsb_extract_free(struct rsb_extract *extract)
{
	if (!extract)
		return;
	free(extract->parent);
	rsb_cleanup_close(&extract->parent_fd);
	rsb_buf_done(&extract->later);
	free(extract);
}

static int
own(struct rsb_extract *extract, int fd)
{
	if (!extract->owner.set)
		return 0;
	return fchown(fd, extract->owner.uid, extract->owner.gid) < 0 ? -errno : 0;
}

/* ---- ways ---- */

/*
 * Writes path to out (as large as path) without empty and "." components: "./a//b/" is "a/b", and
 * "" the root.
 */
static int
clean_path(const char *path, char *out)
{
	size_t n = 0;

	if (path[0] == '/' || !path[0])
		return -EINVAL;
	for (const char *p = path; *p;) {
		size_t size = strcspn(p, "/");
		const struct rsb_bytes name = { .data = (const uint8_t *)p, .size = size };

		if (size > 0 && !(size == 1 && p[0] == '.')) {
			if (!rsb_str_is_component(name))
				return -EINVAL;
			if (n > 0)
				out[n++] = '/';
			memcpy(out + n, p, size);
			n += size;
		}
		p += size + (p[size] == '/');
	}
	out[n] = 0;
	return 0;
}

/* Opens a directory below, made if it is not there. */
static int
enter(struct rsb_extract *extract, int dir_fd, const char *name)
{
	rsb_autoclose int fd = openat(dir_fd, name, DIR_OPEN);
	int r;

	if (fd >= 0)
		return rsb_steal_fd(&fd);
	if (errno != ENOENT)
		return -errno;
	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir_fd, name, DIR_OPEN);
	if (fd < 0)
		return -errno;
	r = own(extract, fd);
	return r < 0 ? r : rsb_steal_fd(&fd);
}

/* A clean path that is a directory; the descriptor is the caller's. path is changed. */
static int
walk(struct rsb_extract *extract, char *path)
{
	rsb_autoclose int fd = openat(extract->root_fd, ".", DIR_OPEN);
	char *save = NULL;

	if (fd < 0)
		return -errno;
	for (char *name = strtok_r(path, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		int next = enter(extract, fd, name);

		if (next < 0)
			return next;
		(void)close(fd);
		fd = next;
	}
	return rsb_steal_fd(&fd);
}

struct place {
	int dir_fd; /* kept by extract until the next place */
	char name[NAME_MAX + 1];
};

static int
find_place(struct rsb_extract *extract, const char *path, struct place *ret_place)
{
	rsb_autofree char *clean = malloc(strlen(path) + 1);
	rsb_autofree char *parent = NULL;
	char *slash;
	int r;

	if (!clean)
		return -ENOMEM;
	r = clean_path(path, clean);
	if (r < 0)
		return r;
	slash = strrchr(clean, '/');
	(void)strcpy(ret_place->name, slash ? slash + 1 : clean); /* a component: it fits */
	*(slash ? slash : clean) = 0;
	if (!extract->parent || strcmp(extract->parent, clean) != 0) {
		parent = strdup(clean);
		if (!parent)
			return -ENOMEM;
		r = walk(extract, clean);
		if (r < 0)
			return r;
		rsb_cleanup_close(&extract->parent_fd);
		extract->parent_fd = r;
		free(extract->parent);
		extract->parent = rsb_steal(&parent);
	}
	ret_place->dir_fd = extract->parent_fd;
	return 0;
}

/* Whatever is there makes place, but no directory. */
static int
clear_place(const struct place *place)
{
	if (!place->name[0])
		return -EISDIR;
	if (unlinkat(place->dir_fd, place->name, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* ---- entries ---- */

static int
remember(struct rsb_extract *extract, const char *path, const struct rsb_extract_meta *meta)
{
	size_t path_size = strlen(path) + 1;
	struct later later = { .meta = *meta, .size = (uint32_t)(sizeof(later) + path_size) };
	int r;

	r = rsb_buf_append(&extract->later, &later, sizeof(later));
	if (r < 0)
		return r;
	return rsb_buf_append(&extract->later, path, path_size);
}

/* The directory, made, or put in the place of something else. */
static int
enter_or_replace(struct rsb_extract *extract, const struct place *place)
{
	int fd, r;

	if (!place->name[0])
		return openat(extract->root_fd, ".", DIR_OPEN);
	fd = enter(extract, place->dir_fd, place->name);
	if (fd != -ELOOP && fd != -ENOTDIR)
		return fd;
	r = clear_place(place);
	return r < 0 ? r : enter(extract, place->dir_fd, place->name);
}

int
rsb_extract_dir(struct rsb_extract *extract, const char *path, const struct rsb_extract_meta *meta,
	int *ret_fd)
{
	rsb_autoclose int fd = -1;
	struct place place;
	int r;

	r = find_place(extract, path, &place);
	if (r < 0)
		return r;
	fd = enter_or_replace(extract, &place);
	if (fd < 0)
		return fd;
	/* Ours to fill, whatever mode it had or gets. */
	if (place.name[0])
		(void)fchmod(fd, 0755);
	r = remember(extract, path, meta);
	if (r == 0)
		*ret_fd = rsb_steal_fd(&fd);
	return r;
}

int
rsb_extract_open_file(struct rsb_extract *extract, const char *path, int *ret_fd)
{
	struct place place;
	int fd, r;

	r = find_place(extract, path, &place);
	if (r == 0)
		r = clear_place(&place);
	if (r < 0)
		return r;
	fd = openat(place.dir_fd, place.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int
set_meta(struct rsb_extract *extract, int fd, const struct rsb_extract_meta *meta)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, meta->mtime };
	int r;

	/* The owner first: a change of it takes mode bits away. */
	r = own(extract, fd);
	if (r < 0)
		return r;
	if (fchmod(fd, meta->mode & MODE_MASK) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

int
rsb_extract_close_file(
	struct rsb_extract *extract, int fd, uint64_t size, const struct rsb_extract_meta *meta)
{
	int r = ftruncate(fd, (off_t)size) < 0 ? -errno : 0;

	if (r == 0)
		r = set_meta(extract, fd, meta);
	/* Where space is taken late, this is the call that says there is none. */
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r;
}

int
rsb_extract_symlink(struct rsb_extract *extract, const char *path, const char *target,
	const struct rsb_extract_meta *meta)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, meta->mtime };
	struct place place;
	int r;

	r = find_place(extract, path, &place);
	if (r == 0)
		r = clear_place(&place);
	if (r < 0)
		return r;
	if (symlinkat(target, place.dir_fd, place.name) < 0)
		return -errno;
	if (extract->owner.set && fchownat(place.dir_fd, place.name, extract->owner.uid,
					  extract->owner.gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* Not every file system keeps times of links. */
	(void)utimensat(place.dir_fd, place.name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

int
rsb_extract_link(struct rsb_extract *extract, const char *path, const char *to)
{
	rsb_autoclose int from_fd = -1;
	struct place from, place;
	int r;

	r = find_place(extract, to, &from);
	if (r < 0)
		return r;
	from_fd = fcntl(from.dir_fd, F_DUPFD_CLOEXEC, 0);
	if (from_fd < 0)
		return -errno;
	r = find_place(extract, path, &place);
	if (r == 0)
		r = clear_place(&place);
	if (r < 0)
		return r;
	return linkat(from_fd, from.name, place.dir_fd, place.name, 0) < 0 ? -errno : 0;
}

static int
finish_dir(struct rsb_extract *extract, const char *path, const struct rsb_extract_meta *meta)
{
	rsb_autofree char *clean = malloc(strlen(path) + 1);
	rsb_autoclose int fd = -1;
	int r;

	if (!clean)
		return -ENOMEM;
	r = clean_path(path, clean);
	if (r < 0)
		return r;
	fd = walk(extract, clean);
	return fd < 0 ? fd : set_meta(extract, fd, meta);
}

/* From the last to the first, so that a directory is closed to us only after those below it. */
int
rsb_extract_finish(struct rsb_extract *extract)
{
	struct rsb_bytes all = rsb_buf_view(&extract->later);
	size_t n = 0;
	rsb_autofree size_t *starts = NULL;
	struct later later;
	int first = 0;
	int r;

	for (size_t at = 0; at < all.size; at += later.size, n++)
		memcpy(&later, all.data + at, sizeof(later));
	starts = rsb_new_array(size_t, n + 1);
	if (!starts)
		return -ENOMEM;
	n = 0;
	for (size_t at = 0; at < all.size; at += later.size) {
		memcpy(&later, all.data + at, sizeof(later));
		starts[n++] = at;
	}
	while (n > 0) {
		const uint8_t *record = all.data + starts[--n];

		memcpy(&later, record, sizeof(later));
		r = finish_dir(extract, (const char *)record + sizeof(later), &later.meta);
		if (r < 0 && first == 0)
			first = r;
	}
	rsb_buf_clear(&extract->later);
	return first;
}
