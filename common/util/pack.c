/* SPDX-License-Identifier: MIT */
#include "util/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "util/beneath.h"

#define BLOCK_SIZE 65536
#define TRIES 3u
#define XATTRS_SIZE 65536u

struct rsb_pack {
	int root_fd;
	int (*write)(void *arg, struct rsb_bytes data);
	void *arg;
	int write_r;
	struct archive *out;
	struct archive_entry_linkresolver *links;
	struct rsb_buf left_out;
	uint8_t block[BLOCK_SIZE];
};

static la_ssize_t
write_out(struct archive *archive, void *arg, const void *data, size_t size)
{
	struct rsb_pack *pack = arg;

	pack->write_r = pack->write(pack->arg, (struct rsb_bytes){ .data = data, .size = size });
	if (pack->write_r < 0) {
		archive_set_error(archive, -pack->write_r, "the stream ended");
		return -1;
	}
	return (la_ssize_t)size;
}

static int
error_of(const struct rsb_pack *pack)
{
	int error = archive_errno(pack->out);

	if (pack->write_r < 0)
		return pack->write_r;
	/* libarchive has numbers of its own below zero. */
	return error > 0 ? -error : -EIO;
}

int
rsb_pack_new(int root_fd, int (*write)(void *arg, struct rsb_bytes data), void *arg,
	struct rsb_pack **ret_pack)
{
	RSB_CLEANUP(rsb_pack_freep) struct rsb_pack *pack = rsb_new(struct rsb_pack);

	if (!pack)
		return -ENOMEM;
	pack->root_fd = root_fd;
	pack->write = write;
	pack->arg = arg;
	rsb_buf_init(&pack->left_out, RSB_PACK_LEFT_OUT_MAX);
	pack->out = archive_write_new();
	pack->links = archive_entry_linkresolver_new();
	if (!pack->out || !pack->links)
		return -ENOMEM;
	archive_entry_linkresolver_set_strategy(pack->links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
	if (archive_write_set_format_pax(pack->out) < ARCHIVE_OK ||
		archive_write_set_options(pack->out, "pax:hdrcharset=BINARY") < ARCHIVE_OK ||
		archive_write_add_filter_zstd(pack->out) < ARCHIVE_WARN ||
		archive_write_set_options(pack->out, "zstd:compression-level=1") < ARCHIVE_WARN ||
		archive_write_set_bytes_per_block(pack->out, BLOCK_SIZE) < ARCHIVE_OK ||
		archive_write_set_bytes_in_last_block(pack->out, 1) < ARCHIVE_OK ||
		archive_write_open(pack->out, pack, NULL, write_out, NULL) < ARCHIVE_OK)
		return error_of(pack);
	*ret_pack = rsb_steal(&pack);
	return 0;
}

void
rsb_pack_free(struct rsb_pack *pack)
{
	if (!pack)
		return;
	if (pack->out)
		(void)archive_write_free(pack->out);
	if (pack->links)
		archive_entry_linkresolver_free(pack->links);
	rsb_buf_done(&pack->left_out);
	free(pack);
}

static int
leave_out(struct rsb_pack *pack, const char *path)
{
	return rsb_buf_append(&pack->left_out, path, strlen(path) + 1);
}

/* ---- an entry ---- */

static void
add_xattrs(struct archive_entry *entry, int fd)
{
	rsb_autofree char *names = malloc(XATTRS_SIZE);
	rsb_autofree char *value = malloc(XATTRS_SIZE);
	ssize_t size = names && value ? flistxattr(fd, names, XATTRS_SIZE) : 0;

	for (const char *name = names; size > 0;) {
		size_t n = strlen(name) + 1;
		ssize_t got = strncmp(name, "user.", 5) == 0
				      ? fgetxattr(fd, name, value, XATTRS_SIZE)
				      : -1;

		if (got >= 0)
			archive_entry_xattr_add_entry(entry, name, value, (size_t)got);
		name += n;
		size -= (ssize_t)n;
	}
}

/* The parts that hold data, so that holes stay holes. */
static void
add_holes(struct archive_entry *entry, int fd, off_t size)
{
	off_t at = lseek(fd, 0, SEEK_DATA);

	while (at >= 0 && at < size) {
		off_t end = lseek(fd, at, SEEK_HOLE);

		if (end < 0 || (at == 0 && end >= size))
			break;
		archive_entry_sparse_add_entry(entry, at, rsb_min(end, size) - at);
		at = lseek(fd, end, SEEK_DATA);
	}
	/* All of it is a hole. */
	if (at < 0 && errno == ENXIO && archive_entry_sparse_count(entry) == 0)
		archive_entry_sparse_add_entry(entry, size, 0);
}

static void
fill_entry(struct archive_entry *entry, const char *path, const struct stat *st)
{
	archive_entry_copy_pathname(entry, path);
	archive_entry_set_mode(entry, st->st_mode & (S_IFMT | 01777));
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
	archive_entry_set_mtime(entry, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_dev(entry, st->st_dev);
	archive_entry_set_ino64(entry, (la_int64_t)st->st_ino);
	archive_entry_set_nlink(entry, S_ISREG(st->st_mode) ? (unsigned int)st->st_nlink : 1);
}

/* To size bytes; what is missing at the end the archive fills up. */
static int
write_contents(struct rsb_pack *pack, int fd, off_t size)
{
	for (off_t at = 0; at < size;) {
		ssize_t n = pread(fd, pack->block,
			(size_t)rsb_min(size - at, (off_t)sizeof(pack->block)), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if (archive_write_data(pack->out, pack->block, (size_t)n) < 0)
			return error_of(pack);
		at += n;
	}
	return 0;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void
free_entry(struct archive_entry **entry)
{
	archive_entry_free(*entry); /* NULL is fine */
}

/* 1: it changed meanwhile. */
static int
write_file(struct rsb_pack *pack, const char *path, int fd, bool again)
{
	RSB_CLEANUP(free_entry) struct archive_entry *entry = archive_entry_new();
	struct archive_entry *spare = NULL;
	struct stat before, after;
	int r = 0;

	if (!entry)
		return -ENOMEM;
	if (fstat(fd, &before) < 0)
		return -errno;
	fill_entry(entry, path, &before);
	add_xattrs(entry, fd);
	add_holes(entry, fd, before.st_size);
	/* For pax a later name of a file becomes a link to the first; nothing is held back. */
	if (!again && before.st_nlink > 1)
		archive_entry_linkify(pack->links, &entry, &spare);
	if (!entry)
		return -EIO;
	if (archive_write_header(pack->out, entry) < ARCHIVE_WARN)
		return error_of(pack);
	if (archive_entry_hardlink(entry))
		return 0;
	r = write_contents(pack, fd, before.st_size);
	if (r < 0)
		return pack->write_r < 0 ? r : 1;
	if (fstat(fd, &after) < 0)
		return -errno;
	return !is_same(&before, &after);
}

static int
add_file(struct rsb_pack *pack, const char *path)
{
	rsb_autoclose int fd = rsb_beneath_open(pack->root_fd, path, O_RDONLY | O_NONBLOCK);
	struct stat st;
	int r = 1;

	if (fd < 0)
		return fd == -ENOENT ? 0 : leave_out(pack, path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return leave_out(pack, path);
	for (unsigned int n = 0; n < TRIES && r > 0; n++)
		r = write_file(pack, path, fd, n > 0);
	return r > 0 ? leave_out(pack, path) : r;
}

static int
add_plain(struct rsb_pack *pack, const char *path, const struct stat *st, const char *target)
{
	RSB_CLEANUP(free_entry) struct archive_entry *entry = archive_entry_new();
	rsb_autoclose int fd = -1;

	if (!entry)
		return -ENOMEM;
	fill_entry(entry, path, st);
	if (target)
		archive_entry_copy_symlink(entry, target);
	else if ((fd = rsb_beneath_open(pack->root_fd, path, O_RDONLY | O_DIRECTORY)) >= 0)
		add_xattrs(entry, fd);
	return archive_write_header(pack->out, entry) < ARCHIVE_WARN ? error_of(pack) : 0;
}

int
rsb_pack_add(struct rsb_pack *pack, const char *path)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(pack->root_fd, path, &name);
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (dir == -EINVAL || dir == -ENOMEM)
		return dir;
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return add_file(pack, path);
	if (S_ISDIR(st.st_mode))
		return add_plain(pack, path, &st, NULL);
	if (!S_ISLNK(st.st_mode))
		return 0;
	n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	return add_plain(pack, path, &st, target);
}

static int
add_left_out(struct rsb_pack *pack)
{
	RSB_CLEANUP(free_entry) struct archive_entry *entry = archive_entry_new();
	const struct stat st = { .st_mode = S_IFREG | 0600,
		.st_size = (off_t)rsb_buf_len(&pack->left_out) };

	if (!entry)
		return -ENOMEM;
	fill_entry(entry, RSB_PACK_LEFT_OUT, &st);
	if (archive_write_header(pack->out, entry) < ARCHIVE_WARN ||
		archive_write_data(
			pack->out, rsb_buf_head(&pack->left_out), rsb_buf_len(&pack->left_out)) < 0)
		return error_of(pack);
	return 0;
}

int
rsb_pack_finish(struct rsb_pack *pack)
{
	int r = rsb_buf_len(&pack->left_out) ? add_left_out(pack) : 0;

	if (r < 0)
		return r;
	return archive_write_close(pack->out) < ARCHIVE_OK ? error_of(pack) : 0;
}
