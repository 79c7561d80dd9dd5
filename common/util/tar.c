/* SPDX-License-Identifier: MIT */
#include "util/tar.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "util/cleanup.h"
#include "util/str.h"

#define BLOCK_SIZE 65536u

struct job {
	struct archive *archive;
	struct rsb_extract *extract;
	struct rsb_tar_result *result;
	struct rsb_tar_limits limits;
	uint64_t promised; /* sizes of files, as their heads say */
};

static void
free_archive(struct archive **archive)
{
	(void)archive_read_free(*archive); /* NULL is fine; nothing can be lost in a reader */
}

/* path is the archive's, so it is quoted. */
static void
say(struct job *job, const char *path, const char *why)
{
	rsb_autofree char *quoted = rsb_str_quote(path ? path : "?");

	(void)rsb_diag_set(&job->result->problem, 0, "%.300s: %s", quoted ? quoted : "?", why);
}

/* What is less than asked for, but no failure. The first one is kept. */
static void
complain(struct job *job, const char *path, const char *why)
{
	if (!job->result->problem.text[0])
		say(job, path, why);
}

/* The first failure is kept, over any complaint. */
static void
fail(struct job *job, int r, const char *path, const char *why)
{
	if (job->result->error < 0)
		return;
	job->result->error = r;
	say(job, path, why);
}

/* Errors after which each further entry would fail, too. */
static bool
is_fatal(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EROFS || r == -EIO || r == -ENOMEM ||
	       r == -EBADMSG || r == -EFBIG;
}

static const char *
reason(int r)
{
	if (r == -EINVAL)
		return "the name leads out of the workspace, or is none";
	if (r == -EFBIG)
		return "more than there was";
	if (r == -ELOOP || r == -ENOTDIR)
		return "a component of the name is no directory";
	return strerror(-r);
}

/* ---- one entry ---- */

static int
write_at(int fd, const uint8_t *data, size_t size, uint64_t offset)
{
	while (size > 0) {
		ssize_t n = pwrite(fd, data, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* Blocks with gaps between them: a sparse file keeps its holes. */
static int
copy_data(struct job *job, int fd)
{
	const void *data;
	size_t size;
	la_int64_t offset;
	int status, r;

	while ((status = archive_read_data_block(job->archive, &data, &size, &offset)) ==
		ARCHIVE_OK) {
		if (size > job->limits.size - job->result->size)
			return -EFBIG;
		r = write_at(fd, data, size, (uint64_t)offset);
		if (r < 0)
			return r;
		job->result->size += size;
	}
	return status == ARCHIVE_EOF ? 0 : -EBADMSG;
}

/* Only of the name space that is the user's own. */
static void
set_xattrs(struct job *job, struct archive_entry *entry, int fd)
{
	const char *name;
	const void *value;
	size_t size;

	(void)archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		if (strncmp(name, "user.", strlen("user.")) != 0)
			continue;
		if (fsetxattr(fd, name, value, size, 0) < 0)
			complain(job, archive_entry_pathname(entry),
				"an extended attribute was refused");
	}
}

static int
make_file(struct job *job, struct archive_entry *entry, const char *path,
	const struct rsb_extract_meta *meta)
{
	const uint64_t size = (uint64_t)rsb_max(archive_entry_size(entry), 0);
	int fd, r, r_close;

	/* A hole is long to read for whoever gets the file. */
	if (size > job->limits.size - job->promised)
		return -EFBIG;
	job->promised += size;
	r = rsb_extract_open_file(job->extract, path, &fd);
	if (r < 0)
		return r;
	r = copy_data(job, fd);
	set_xattrs(job, entry, fd);
	r_close = rsb_extract_close_file(job->extract, fd, size, meta);
	return r < 0 ? r : r_close;
}

static int
make_dir(struct job *job, struct archive_entry *entry, const char *path,
	const struct rsb_extract_meta *meta)
{
	int fd, r;

	r = rsb_extract_dir(job->extract, path, meta, &fd);
	if (r < 0)
		return r;
	set_xattrs(job, entry, fd);
	(void)close(fd);
	return 0;
}

static int
make_entry(struct job *job, struct archive_entry *entry, const char *path)
{
	const struct rsb_extract_meta meta = {
		.mode = archive_entry_perm(entry),
		.mtime = { .tv_sec = archive_entry_mtime(entry),
			.tv_nsec = archive_entry_mtime_nsec(entry) },
	};
	const char *link = archive_entry_hardlink(entry);
	const char *target = archive_entry_symlink(entry);

	if (link)
		return rsb_extract_link(job->extract, path, link);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return make_file(job, entry, path, &meta);
	case AE_IFDIR:
		return make_dir(job, entry, path, &meta);
	case AE_IFLNK:
		return target ? rsb_extract_symlink(job->extract, path, target, &meta) : -EBADMSG;
	default:
		return -EOPNOTSUPP;
	}
}

/* ---- all of them ---- */

static int
take_entry(struct job *job, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	int r;

	if (!path || strlen(path) >= PATH_MAX) {
		fail(job, -EILSEQ, NULL, "a name cannot be read");
		return 0;
	}
	r = job->result->n_file < job->limits.files ? make_entry(job, entry, path) : -EFBIG;
	if (r == 0) {
		job->result->n_file++;
		return 0;
	}
	if (r == -EOPNOTSUPP)
		complain(job, path, "special files are left out");
	else
		fail(job, r, path, reason(r));
	return is_fatal(r) ? r : 0;
}

/* 0: to the end; negative: not that far. */
static int
take_entries(struct job *job)
{
	struct archive_entry *entry;
	int status, r;

	for (;;) {
		status = archive_read_next_header(job->archive, &entry);
		if (status == ARCHIVE_EOF)
			return 0;
		if (status < ARCHIVE_WARN) {
			fail(job, -EBADMSG, "archive", archive_error_string(job->archive));
			return -EBADMSG;
		}
		if (status == ARCHIVE_WARN)
			complain(job, archive_entry_pathname(entry),
				archive_error_string(job->archive));
		r = take_entry(job, entry);
		if (r < 0)
			return r;
	}
}

/* Behind its end an archive may have padding: whoever sends it must not find the pipe closed. */
static void
read_rest(int fd)
{
	uint8_t data[4096];

	while (read(fd, data, sizeof(data)) > 0)
		;
}

static void
extract_all(struct job *job, int fd)
{
	int r, r_finish;

	if (archive_read_open_fd(job->archive, fd, BLOCK_SIZE) != ARCHIVE_OK) {
		fail(job, -EBADMSG, "archive", archive_error_string(job->archive));
		return;
	}
	r = take_entries(job);
	r_finish = rsb_extract_finish(job->extract);
	if (r_finish < 0)
		fail(job, r_finish, "directories", reason(r_finish));
	if (r == 0)
		read_rest(fd);
}

void
rsb_tar_extract(int fd, int root_fd, const struct rsb_extract_owner *owner,
	const struct rsb_tar_limits *limits, struct rsb_tar_result *ret_result)
{
	RSB_CLEANUP(free_archive) struct archive *archive = archive_read_new();
	RSB_CLEANUP(rsb_extract_freep) struct rsb_extract *extract = NULL;
	struct job job = { .archive = archive,
		.result = ret_result,
		.limits = { .files = UINT64_MAX, .size = UINT64_MAX } };

	if (limits)
		job.limits = *limits;

	*ret_result = (struct rsb_tar_result){ .n_file = 0 };
	if (!archive || rsb_extract_new(root_fd, owner, &extract) < 0 ||
		archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
		archive_read_support_format_tar(archive) != ARCHIVE_OK) {
		fail(&job, -ENOMEM, "archive", reason(-ENOMEM));
		return;
	}
	job.extract = extract;
	extract_all(&job, fd);
}
