/* SPDX-License-Identifier: MIT */
#include "util/tarscan.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "util/cleanup.h"
#include "util/str.h"

#define BLOCK_SIZE 65536u

static void
free_archive(struct archive **archive)
{
	(void)archive_read_free(*archive); /* NULL is fine; nothing can be lost in a reader */
}

static int
say_broken(struct archive *archive, struct rsb_diag *diag)
{
	char why[RSB_DIAG_MAX / 2];
	const char *text = archive_error_string(archive);

	/* It may quote the archive. */
	rsb_str_escape(rsb_bytes_str(text ? text : "?"), why, sizeof(why));
	return rsb_diag_set(diag, -EBADMSG, "no archive, or a damaged one: %s", why);
}

static int
read_contents(struct archive *archive, const struct rsb_tarscan *scan, struct rsb_buf *text,
	uint64_t *size, struct rsb_diag *diag)
{
	const void *data;
	size_t n;
	la_int64_t offset;
	int status;

	while ((status = archive_read_data_block(archive, &data, &n, &offset)) == ARCHIVE_OK) {
		int r = text ? rsb_buf_append(text, data, n) : 0;

		if (n > scan->limits.size - *size)
			return -EFBIG;
		if (r < 0)
			return r == -EMSGSIZE ? -EFBIG : r;
		*size += n;
	}
	return status == ARCHIVE_EOF ? 0 : say_broken(archive, diag);
}

/* An archive names a directory with a slash at its end. Caller frees; NULL: it cannot be read. */
static char *
path_of(struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	size_t size = path ? strlen(path) : 0;

	if (!size || size >= PATH_MAX)
		return NULL;
	size -= archive_entry_filetype(entry) == AE_IFDIR && path[size - 1] == '/';
	return strndup(path, size);
}

static int
take(struct archive *archive, struct archive_entry *entry, const struct rsb_tarscan *scan,
	uint64_t *size, struct rsb_diag *diag)
{
	rsb_autofree char *path = path_of(entry);
	struct rsb_tarscan_entry found = { .path = path,
		.hardlink = archive_entry_hardlink(entry),
		.target = archive_entry_symlink(entry) };
	bool wanted;
	int r;

	if (!path)
		return rsb_diag_set(diag, -EBADMSG, "a name in the archive cannot be read");
	found.st.st_mode = archive_entry_filetype(entry) | (archive_entry_perm(entry) & 07777);
	found.st.st_size = archive_entry_size(entry);
	found.st.st_mtim = (struct timespec){ .tv_sec = archive_entry_mtime(entry),
		.tv_nsec = archive_entry_mtime_nsec(entry) };
	wanted = scan->wanted && strcmp(path, scan->wanted) == 0;
	r = scan->entry(scan->arg, &found);
	return r ? r : read_contents(archive, scan, wanted ? scan->text : NULL, size, diag);
}

int
rsb_tarscan(int fd, const struct rsb_tarscan *scan, struct rsb_diag *diag)
{
	RSB_CLEANUP(free_archive) struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	uint64_t files = 0;
	uint64_t size = 0;
	int status;

	if (!archive || archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
		archive_read_support_format_tar(archive) != ARCHIVE_OK)
		return -ENOMEM;
	if (archive_read_open_fd(archive, fd, BLOCK_SIZE) != ARCHIVE_OK)
		return say_broken(archive, diag);
	while ((status = archive_read_next_header(archive, &entry)) != ARCHIVE_EOF) {
		int r;

		if (status < ARCHIVE_WARN)
			return say_broken(archive, diag);
		if (files++ == scan->limits.files)
			return -EFBIG;
		r = take(archive, entry, scan, &size, diag);
		if (r)
			return r;
	}
	return 0;
}
