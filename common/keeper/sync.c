/* SPDX-License-Identifier: MIT */
#include "keeper/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "keeper/gitconfig.h"
#include "keeper/haul.h"
#include "keeper/secretlike.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/ignore.h"
#include "util/str.h"

#define IGNORE_FILE_MAX ((size_t)1 << 20)
#define GITCONFIG_MAX ((size_t)1 << 20)
#define SHOWN_MAX 128u
#define WRITE_SIZE ((int)64 << 10)

/* One run of rsb_sync_pack(). */
struct pack {
	const struct rsb_sync *sync;
	const struct rsb_sync_sink *sink;
	struct rsb_ignore *ignore;
	struct archive *disk;
	struct archive *out;
	struct archive_entry_linkresolver *links;
	struct rsb_sync_stats stats;
	struct rsb_secretlike secrets;
	size_t prefix; /* length of the directory's path with its slash */
	int sink_r;    /* what the sink said */
	bool told_credentials;
};

static void
notice(const struct pack *pack, const char *fmt, const char *path)
{
	rsb_autofree char *quoted = rsb_str_quote(path);
	rsb_autofree char *text = quoted ? rsb_str_printf("%s %s", quoted, fmt) : NULL;

	if (pack->sync->notice && text)
		pack->sync->notice(pack->sync->arg, text);
}

static void
progress(const struct pack *pack)
{
	if (pack->sync->progress)
		pack->sync->progress(pack->sync->arg, &pack->stats);
}

/* The entry's path below the directory; NULL for the directory itself. */
static const char *
relative(const struct pack *pack, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);

	return path && strlen(path) > pack->prefix ? path + pack->prefix : NULL;
}

struct patterns {
	struct rsb_buf *text;
	struct rsb_ignore *ignore;
	struct rsb_diag *diag;
};

static int
add_line(struct patterns *to, struct rsb_bytes line)
{
	int r = memchr(line.data, '\n', line.size) ? -EINVAL : rsb_ignore_add(to->ignore, line);
	char shown[SHOWN_MAX];

	if (r == -EINVAL) {
		rsb_str_escape(line, shown, sizeof(shown));
		return rsb_diag_set(to->diag, r,
			"'%s' is no pattern to leave files out by: it has a '[' without its end, a "
			"newline, more than %d times '**', or more than %d bytes",
			shown, RSB_IGNORE_DEEP_MAX, RSB_IGNORE_PATTERN_MAX);
	}
	if (r >= 0)
		r = rsb_buf_append(to->text, line.data, line.size);
	return r < 0 ? r : rsb_buf_append(to->text, "\n", 1);
}

static int
add_file(struct patterns *to, const char *text)
{
	int r = 0;

	for (size_t size; *text && r >= 0; text += size + (text[size] == '\n')) {
		size = strcspn(text, "\n");
		r = add_line(to, (struct rsb_bytes){ (const uint8_t *)text, size });
	}
	return r;
}

int
rsb_sync_patterns(const struct rsb_sync *sync, struct rsb_buf *text, struct rsb_ignore **ret_ignore,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	rsb_autofree char *own = NULL;
	rsb_autoclose int dir =
		sync->dir ? open(sync->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct patterns to = { .text = text, .diag = diag };
	int r;

	if (dir < 0 && sync->dir)
		return -errno;
	r = dir < 0 ? 0 : rsb_fd_read_file(dir, ".rsbignore", IGNORE_FILE_MAX, &own);
	if (r >= 0 || r == -ENOENT)
		r = rsb_ignore_new(&ignore);
	to.ignore = ignore;
	for (size_t i = 0; r >= 0 && sync->exclude && i < sync->exclude->n; i++)
		r = add_line(&to, rsb_bytes_str(sync->exclude->items[i]));
	if (r >= 0 && own)
		r = add_file(&to, own);
	for (const char *const *p = sync->more; r >= 0 && p && *p; p++)
		r = add_line(&to, rsb_bytes_str(*p));
	/* Ours alone, whatever the user's patterns take back. */
	if (r >= 0)
		r = add_line(&to, rsb_bytes_str("/.rsb"));
	if (r >= 0)
		*ret_ignore = rsb_steal(&ignore);
	return r;
}

static int
build_ignore(struct pack *pack, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_SYNC_PATTERNS_MAX };

	return rsb_sync_patterns(pack->sync, &text, &pack->ignore, diag);
}

static la_ssize_t
write_out(struct archive *archive, void *arg, const void *data, size_t size)
{
	struct pack *pack = arg;

	pack->sink_r = pack->sink->write(
		pack->sink->arg, (struct rsb_bytes){ .data = data, .size = size });
	if (pack->sink_r < 0) {
		archive_set_error(archive, -pack->sink_r, "the stream ended");
		return -1;
	}
	pack->stats.packed += size;
	return (la_ssize_t)size;
}

/* What goes in; what does not is counted and named where the user would not expect it. */
static bool
is_wanted(struct pack *pack, struct archive_entry *entry)
{
	const char *path = relative(pack, entry);
	mode_t type = archive_entry_filetype(entry);

	if (!path || rsb_ignore_match(pack->ignore, path, type == AE_IFDIR))
		return false;
	if (pack->sync->wanted && type != AE_IFDIR && !pack->sync->wanted(pack->sync->arg, path))
		return false;
	if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK) {
		pack->stats.skipped++;
		notice(pack, "is left out: a FIFO, socket or device", path);
		return false;
	}
	if (type == AE_IFREG && rsb_secretlike_stays(path)) {
		pack->stats.skipped++;
		notice(pack, "is left out: it holds credentials", path);
		return false;
	}
	if (type != AE_IFLNK)
		rsb_secretlike_look(&pack->secrets, path, type == AE_IFDIR);
	return true;
}

/* For libarchive: 0 leaves the entry out, and a directory is not gone into. */
static int
filter(struct archive *disk, void *arg, struct archive_entry *entry)
{
	struct pack *pack = arg;

	(void)disk;
	return !relative(pack, entry) || is_wanted(pack, entry);
}

static int
error_of(struct archive *archive)
{
	int error = archive_errno(archive);

	/* libarchive has numbers of its own below zero. */
	return error > 0 ? -error : -EIO;
}

/* A hole: the writer drops these zeros again, by the map of the file that it has. */
static int
write_zeros(struct pack *pack, la_int64_t size)
{
	static const char zeros[WRITE_SIZE];

	while (size > 0) {
		la_ssize_t n = archive_write_data(
			pack->out, zeros, (size_t)rsb_min(size, (la_int64_t)sizeof zeros));

		if (n <= 0)
			return n < 0 ? error_of(pack->out) : 0;
		size -= n;
	}
	return 0;
}

static int
write_contents(struct pack *pack)
{
	la_int64_t written = 0;
	const void *data;
	size_t size;
	la_int64_t offset;
	int r;

	while ((r = archive_read_data_block(pack->disk, &data, &size, &offset)) == ARCHIVE_OK) {
		int w = write_zeros(pack, offset - written);

		if (w < 0)
			return w;
		if (archive_write_data(pack->out, data, size) < 0)
			return error_of(pack->out);
		written = offset + (la_int64_t)size;
		pack->stats.bytes += size;
		progress(pack);
	}
	/* A file that shrank or cannot be read any more: the archive fills up what was promised. */
	if (r != ARCHIVE_EOF)
		pack->stats.skipped++;
	return 0;
}

/*
 * A repository's config without its credentials. 1: written; 0: not needed, send the file itself.
 */
static int
write_gitconfig(struct pack *pack, struct archive_entry *entry, const char *path)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = GITCONFIG_MAX };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf left = { .max = GITCONFIG_MAX };
	rsb_autoclose int fd =
		open(archive_entry_sourcepath(entry), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool cut = false;
	int r;

	r = fd < 0 ? -errno : rsb_fd_read_all(fd, &text);
	if (r >= 0)
		r = rsb_gitconfig_strip(rsb_buf_view(&text), &left, &cut);
	if (r < 0 || !cut)
		return r;
	archive_entry_set_size(entry, (la_int64_t)rsb_buf_len(&left));
	archive_entry_sparse_clear(entry);
	if (archive_write_header(pack->out, entry) < ARCHIVE_OK ||
		archive_write_data(pack->out, rsb_buf_head(&left), rsb_buf_len(&left)) < 0)
		return error_of(pack->out);
	pack->stats.bytes += rsb_buf_len(&left);
	if (!pack->told_credentials)
		notice(pack, "goes in without its credentials", path);
	pack->told_credentials = true;
	return 1;
}

static int
write_entry(struct pack *pack, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	bool has_data = archive_entry_filetype(entry) == AE_IFREG &&
			archive_entry_size(entry) > 0 && !archive_entry_hardlink(entry);
	int r;

	pack->stats.files += archive_entry_filetype(entry) != AE_IFDIR;
	if (has_data && rsb_gitconfig_is_config(path)) {
		r = write_gitconfig(pack, entry, path);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	if (archive_write_header(pack->out, entry) < ARCHIVE_OK)
		return error_of(pack->out);
	return has_data ? write_contents(pack) : 0;
}

/* Strips the directory from the names, also from that of a hard link's first name. */
static int
rename_entry(struct pack *pack, struct archive_entry *entry)
{
	rsb_autofree char *path = strdup(relative(pack, entry));

	if (!path)
		return -ENOMEM;
	archive_entry_copy_sourcepath(entry, archive_entry_pathname(entry));
	archive_entry_copy_pathname(entry, path);
	/* The owner over there is the sandbox's user; names of ours mean nothing. */
	archive_entry_set_uname(entry, NULL);
	archive_entry_set_gname(entry, NULL);
	archive_entry_set_perm(entry, archive_entry_perm(entry) & 01777);
	return 0;
}

static int
pack_one(struct pack *pack, struct archive_entry *entry)
{
	struct archive_entry *spare = NULL;
	int r;

	(void)archive_read_disk_descend(pack->disk);
	if (!relative(pack, entry) ||
		(pack->sync->wanted && !pack->sync->wanted(pack->sync->arg, relative(pack, entry))))
		return 0;
	r = rename_entry(pack, entry);
	if (r < 0)
		return r;
	/* For pax a later name of a file becomes a link to the first; nothing is held back. */
	archive_entry_linkify(pack->links, &entry, &spare);
	r = entry ? write_entry(pack, entry) : 0;
	progress(pack);
	return r;
}

static int
walk(struct pack *pack, struct rsb_diag *diag)
{
	for (;;) {
		struct archive_entry *entry = archive_entry_new();
		int a;
		int r;

		if (!entry)
			return -ENOMEM;
		a = archive_read_next_header2(pack->disk, entry);
		if (a == ARCHIVE_EOF || a == ARCHIVE_FATAL) {
			archive_entry_free(entry);
			return a == ARCHIVE_EOF ? 0
						: rsb_diag_set(diag, error_of(pack->disk), "%s",
							  archive_error_string(pack->disk));
		}
		if (a < ARCHIVE_WARN) {
			pack->stats.skipped++;
			notice(pack, "is left out: it cannot be read",
				archive_entry_pathname(entry) ? archive_entry_pathname(entry)
							      : "?");
			r = 0;
		} else {
			r = pack_one(pack, entry);
		}
		archive_entry_free(entry);
		if (r < 0)
			return r;
	}
}

static int
open_archives(struct pack *pack, struct rsb_diag *diag)
{
	pack->disk = archive_read_disk_new();
	pack->out = archive_write_new();
	pack->links = archive_entry_linkresolver_new();
	if (!pack->disk || !pack->out || !pack->links)
		return -ENOMEM;
	archive_entry_linkresolver_set_strategy(pack->links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
	(void)archive_read_disk_set_symlink_physical(pack->disk);
	(void)archive_read_disk_set_behavior(
		pack->disk, ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS |
				    ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS);
	(void)archive_read_disk_set_metadata_filter_callback(pack->disk, filter, pack);
	if (archive_write_set_format_pax(pack->out) < ARCHIVE_OK ||
		archive_write_set_options(pack->out, "pax:hdrcharset=BINARY") < ARCHIVE_OK ||
		archive_write_add_filter_zstd(pack->out) < ARCHIVE_WARN ||
		archive_write_set_options(pack->out, "zstd:compression-level=1") < ARCHIVE_WARN ||
		archive_write_set_bytes_per_block(pack->out, WRITE_SIZE) < ARCHIVE_OK ||
		archive_write_set_bytes_in_last_block(pack->out, 1) < ARCHIVE_OK ||
		archive_write_open(pack->out, pack, NULL, write_out, NULL) < ARCHIVE_OK)
		return rsb_diag_set(
			diag, error_of(pack->out), "%s", archive_error_string(pack->out));
	if (archive_read_disk_open(pack->disk, pack->sync->dir) < ARCHIVE_OK)
		return rsb_diag_set(diag, error_of(pack->disk), "%s: %s", pack->sync->dir,
			archive_error_string(pack->disk));
	return 0;
}

static void
pack_done(struct pack *pack)
{
	if (pack->disk)
		(void)archive_read_free(pack->disk);
	if (pack->out)
		(void)archive_write_free(pack->out);
	if (pack->links)
		archive_entry_linkresolver_free(pack->links);
	rsb_ignore_free(pack->ignore);
	rsb_secretlike_done(&pack->secrets);
}

static void
tell_secrets(const struct pack *pack)
{
	rsb_autofree char *text = rsb_secretlike_say(&pack->secrets);

	if (pack->sync->tells_secrets && pack->sync->notice && text)
		pack->sync->notice(pack->sync->arg, text);
}

int
rsb_sync_pack(const struct rsb_sync *sync, const struct rsb_sync_sink *sink,
	struct rsb_sync_stats *ret_stats, struct rsb_diag *diag)
{
	RSB_CLEANUP(pack_done) struct pack pack = { .sync = sync, .sink = sink };
	int r;

	pack.prefix = strlen(sync->dir) + 1;
	r = build_ignore(&pack, diag);
	if (r == -ENOTDIR || r == -ENOENT)
		return rsb_diag_set(diag, r, "%s: %s", sync->dir, strerror(-r));
	if (r >= 0)
		r = open_archives(&pack, diag);
	if (r >= 0)
		r = walk(&pack, diag);
	if (r >= 0 && archive_write_close(pack.out) < ARCHIVE_OK)
		r = error_of(pack.out);
	if (pack.sink_r < 0)
		return pack.sink_r;
	if (r < 0)
		return r;
	tell_secrets(&pack);
	*ret_stats = pack.stats;
	return 0;
}

static int
write_upload(void *arg, struct rsb_bytes data)
{
	return rsb_haul_write(arg, data);
}

int
rsb_sync_in(const struct rsb_sync *sync, const struct rsb_sync_far *far,
	struct rsb_sync_stats *ret_stats, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_haul_freep) struct rsb_haul *haul = NULL;
	struct rsb_sync_sink sink = { .write = write_upload };
	struct rsb_diag local = { 0 };
	int r;

	r = rsb_haul_open(far, &haul, diag);
	if (r >= 0)
		r = rsb_haul_begin(haul, RSB_HAUL_IN, diag);
	if (r < 0)
		return r;
	sink.arg = haul;
	r = rsb_sync_pack(sync, &sink, ret_stats, &local);
	if (r >= 0) {
		r = rsb_haul_end_writing(haul);
		if (r >= 0)
			r = rsb_haul_finish(haul, diag);
		if (r >= 0 && sync->notice && rsb_haul_remark(haul)[0])
			sync->notice(sync->arg, rsb_haul_remark(haul));
		return r;
	}
	if (local.text[0])
		return rsb_diag_set(diag, r, "%s", local.text);
	rsb_haul_explain(haul, r, diag);
	return r;
}
