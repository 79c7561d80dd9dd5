/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "proto/errmap.h"
#include "proto/session.h"
#include "tests/unit/near.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/tar.h"

#define PROC 77

/* An archive in the making. */
struct pack {
	struct archive *archive;
	struct rsb_buf bytes;
};

static la_ssize_t
take(struct archive *archive rsb_unused, void *arg, const void *data, size_t size)
{
	struct pack *pack = arg;

	ck_assert_int_eq(rsb_buf_append(&pack->bytes, data, size), 0);
	return (la_ssize_t)size;
}

static void
pack_init(struct pack *pack)
{
	rsb_buf_init(&pack->bytes, (size_t)1 << 30);
	pack->archive = archive_write_new();
	ck_assert_int_eq(archive_write_set_format_pax(pack->archive), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_set_options(pack->archive, "hdrcharset=BINARY"), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_add_filter_zstd(pack->archive), ARCHIVE_OK);
	/* No zeros behind the compressed stream: they are no frame of it. */
	ck_assert_int_eq(archive_write_set_bytes_in_last_block(pack->archive, 1), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_open(pack->archive, pack, NULL, take, NULL), ARCHIVE_OK);
}

/* content: of a file; target: of a link. */
static void
put(struct pack *pack, mode_t mode, const char *name, const char *content, const char *target)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_pathname(entry, name);
	archive_entry_set_mode(entry, mode);
	archive_entry_set_mtime(entry, 1000000000, 123456789);
	archive_entry_set_uid(entry, 4711);
	if (S_ISLNK(mode))
		archive_entry_set_symlink(entry, target);
	else if (target)
		archive_entry_set_hardlink(entry, target);
	else if (content)
		archive_entry_set_size(entry, (la_int64_t)strlen(content));
	if (S_ISREG(mode) && !target)
		archive_entry_xattr_add_entry(entry, "user.colour", "red", 3);
	ck_assert_int_eq(archive_write_header(pack->archive, entry), ARCHIVE_OK);
	if (content)
		ck_assert_int_eq(archive_write_data(pack->archive, content, strlen(content)),
			(la_ssize_t)strlen(content));
	archive_entry_free(entry);
}

static void
pack_close(struct pack *pack)
{
	ck_assert_int_eq(archive_write_free(pack->archive), ARCHIVE_OK);
}

/* Sends size bytes of it; the errno of the reply. ret_rep views near's call. */
static int
send_in(struct near *near, struct pack *pack, size_t size, struct rsb_tar_in_rep *ret_rep)
{
	const struct rsb_tar_in_req req = { .proc = near->next_proc++ };
	uint64_t chan = RSB_CHAN_STDIN(req.proc);
	uint64_t call;

	(void)near_chan(near, chan);
	call = near_call(near, RSB_OP_tar_in, &req, 0);
	(void)near_send(near, chan, rsb_buf_head(&pack->bytes), size, true);
	rsb_buf_done(&pack->bytes);
	return near_reply(near, call, ret_rep);
}

static int
extract(struct near *near, struct pack *pack, struct rsb_tar_in_rep *ret_rep)
{
	pack_close(pack);
	return send_in(near, pack, rsb_buf_len(&pack->bytes), ret_rep);
}

static void
stat_in(struct near *near, const char *name, struct stat *ret_st)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", near->workspace, name);
	ck_assert_msg(lstat(path, ret_st) == 0, "%s: %s", name, strerror(errno));
}

static void
check_content(struct near *near, const char *name, const char *expected)
{
	char path[256];
	char *text;

	(void)snprintf(path, sizeof(path), "%s/%s", near->workspace, name);
	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	ck_assert_str_eq(text, expected);
	free(text);
}

static void
check_problem(const struct rsb_tar_in_rep *rep, const char *text)
{
	if (!text)
		ck_assert_msg(rep->problem.size == 0, "%.*s", (int)rep->problem.size,
			(const char *)rep->problem.data);
	else
		ck_assert_msg(
			memmem(rep->problem.data, rep->problem.size, text, strlen(text)) != NULL,
			"%.*s", (int)rep->problem.size, (const char *)rep->problem.data);
}

static void
check_error(const struct rsb_tar_in_rep *rep, int error)
{
	ck_assert_int_eq(rep->error ? rsb_errmap_from_wire(rep->error) : 0, error);
}

START_TEST(makes_files_directories_and_links)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;
	struct stat st, other;
	char path[256], value[16];

	pack_init(&pack);
	put(&pack, S_IFDIR | 0555, "dir", NULL, NULL);
	put(&pack, S_IFREG | 06755, "dir/file", "hello", NULL);
	put(&pack, S_IFREG | 0644, "dir/file2", NULL, "dir/file");
	put(&pack, S_IFLNK | 0777, "dir/link", NULL, "/etc/passwd");
	put(&pack, S_IFREG | 0600, "./new//deep/er/\xff\xfe", "", NULL);
	ck_assert_int_eq(extract(near, &pack, &rep), 0);
	check_problem(&rep, NULL);
	ck_assert_uint_eq(rep.files, 5);
	ck_assert_uint_eq(rep.bytes, 5);

	check_content(near, "dir/file", "hello");
	stat_in(near, "dir/file", &st);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0755);
	ck_assert_uint_eq(st.st_uid, near->config.cmd_uid);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1000000000);
	ck_assert_int_eq(st.st_mtim.tv_nsec, 123456789);
	stat_in(near, "dir/file2", &other);
	ck_assert_uint_eq(st.st_ino, other.st_ino);
	stat_in(near, "dir/link", &st);
	ck_assert(S_ISLNK(st.st_mode));
	stat_in(near, "dir", &st);
	ck_assert_uint_eq(st.st_mode, S_IFDIR | 0555);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1000000000);
	stat_in(near, "new/deep/er/\xff\xfe", &st);
	(void)snprintf(path, sizeof(path), "%s/dir/file", near->workspace);
	ck_assert_int_eq(getxattr(path, "user.colour", value, sizeof(value)), 3);
	near_free(near);
}
END_TEST

START_TEST(replaces_what_is_there)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/file", near->workspace);
	ck_assert_int_eq(symlink("/tmp/rsb-must-not-appear", path), 0);
	(void)snprintf(path, sizeof(path), "%s/dir", near->workspace);
	ck_assert_int_eq(symlink("/tmp", path), 0);
	pack_init(&pack);
	put(&pack, S_IFREG | 0644, "file", "new", NULL);
	put(&pack, S_IFDIR | 0755, "dir", NULL, NULL);
	put(&pack, S_IFREG | 0644, "dir/rsb-must-not-appear", "new", NULL);
	ck_assert_int_eq(extract(near, &pack, &rep), 0);
	check_problem(&rep, NULL);
	check_content(near, "file", "new");
	check_content(near, "dir/rsb-must-not-appear", "new");
	stat_in(near, "dir", &st);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_int_ne(access("/tmp/rsb-must-not-appear", F_OK), 0);
	near_free(near);
}
END_TEST

static void
check_refused(const char *name, const char *link_to)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/out", near->workspace);
	ck_assert_int_eq(symlink("/tmp", path), 0);
	pack_init(&pack);
	put(&pack, S_IFREG | 0644, name, link_to ? NULL : "evil", link_to);
	put(&pack, S_IFREG | 0644, "good", "good", NULL);
	ck_assert_int_eq(extract(near, &pack, &rep), 0);
	ck_assert_uint_eq(rep.files, 1);
	check_problem(&rep, name);
	ck_assert_uint_ne(rep.error, 0);
	check_content(near, "good", "good");
	ck_assert_int_ne(access("/tmp/rsb-must-not-appear", F_OK), 0);
	near_free(near);
}

START_TEST(never_leaves_the_workspace)
{
	check_refused("../rsb-must-not-appear", NULL);
	check_refused("/tmp/rsb-must-not-appear", NULL);
	check_refused("a/../../rsb-must-not-appear", NULL);
	check_refused("out/rsb-must-not-appear", NULL);
	check_refused("stolen", "../../etc/passwd");
	check_refused("stolen", "out/../etc/passwd");
}
END_TEST

START_TEST(leaves_special_files_out)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;

	pack_init(&pack);
	put(&pack, S_IFIFO | 0644, "fifo", NULL, NULL);
	put(&pack, S_IFREG | 0644, "good", "good", NULL);
	ck_assert_int_eq(extract(near, &pack, &rep), 0);
	check_problem(&rep, "'fifo': special");
	check_error(&rep, 0);
	check_content(near, "good", "good");
	near_free(near);
}
END_TEST

START_TEST(refuses_a_cut_archive)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;

	pack_init(&pack);
	for (int i = 0; i < 100; i++) {
		char name[32], content[512];

		(void)snprintf(name, sizeof(name), "f%d", i);
		for (size_t j = 0; j < sizeof(content) - 1; j++)
			content[j] = (char)('a' + rand() % 26);
		content[sizeof(content) - 1] = 0;
		put(&pack, S_IFREG | 0644, name, content, NULL);
	}
	pack_close(&pack);
	ck_assert_int_eq(send_in(near, &pack, rsb_buf_len(&pack.bytes) / 2, &rep), 0);
	check_error(&rep, -EBADMSG);
	rsb_buf_init(&pack.bytes, 64);
	ck_assert_int_eq(rsb_buf_append(&pack.bytes, "this is no archive at all", 25), 0);
	ck_assert_int_eq(send_in(near, &pack, 25, &rep), 0);
	check_error(&rep, -EBADMSG);
	check_problem(&rep, "archive");
	near_free(near);
}
END_TEST

START_TEST(names_the_first_that_cannot_be_made)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;
	char name[300];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	pack_init(&pack);
	put(&pack, S_IFIFO | 0644, "fifo", NULL, NULL);
	put(&pack, S_IFREG | 0644, "file", "x", NULL);
	put(&pack, S_IFREG | 0644, "file/below", "x", NULL);
	put(&pack, S_IFREG | 0644, name, "x", NULL);
	put(&pack, S_IFREG | 0644, "good", "good", NULL);
	ck_assert_int_eq(extract(near, &pack, &rep), 0);
	check_error(&rep, -ENOTDIR);
	check_problem(&rep, "'file/below': a component");
	check_content(near, "good", "good");
	near_free(near);
}
END_TEST

/* In a mount name space of its own, so that nothing stays behind. */
START_TEST(says_that_the_disk_is_full)
{
	bool root = getuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	struct near *near = near_new(false);
	char *content = calloc(1, 1 << 20);
	struct rsb_tar_in_rep rep;
	struct pack pack;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/small", near->workspace);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	if (root && mount("none", path, "tmpfs", 0, "size=256k") == 0) {
		memset(content, 'x', (1 << 20) - 1);
		pack_init(&pack);
		put(&pack, S_IFREG | 0644, "small/large", content, NULL);
		put(&pack, S_IFREG | 0644, "after", "after", NULL);
		ck_assert_int_eq(extract(near, &pack, &rep), 0);
		check_error(&rep, -ENOSPC);
		check_problem(&rep, "'small/large': No space left on device");
		ck_assert_int_eq(umount(path), 0);
	}
	free(content);
	near_free(near);
}
END_TEST

START_TEST(ends_when_it_is_cancelled)
{
	struct near *near = near_new(false);
	const struct rsb_tar_in_req req = { .proc = PROC };
	struct rsb_cancel_req cancel;
	uint64_t call;

	(void)near_chan(near, RSB_CHAN_STDIN(PROC));
	call = near_call(near, RSB_OP_tar_in, &req, 0);
	cancel.call = call;
	ck_assert_int_eq(near_do(near, RSB_OP_cancel, &cancel, NULL), 0);
	ck_assert_int_eq(near_reply(near, call, NULL), -EINTR);
	/* And a session ends with one that waits for bytes. */
	(void)near_chan(near, RSB_CHAN_STDIN(PROC + 1));
	(void)near_call(near, RSB_OP_tar_in, &(struct rsb_tar_in_req){ .proc = PROC + 1 }, 0);
	near_step(near, 10);
	near_free(near);
}
END_TEST

/* A file of 64 MiB with four bytes. */
static void
put_sparse(struct pack *pack)
{
	struct archive_entry *entry = archive_entry_new();
	char *zeros = calloc(1, 1 << 20);

	archive_entry_set_pathname(entry, "sparse");
	archive_entry_set_mode(entry, S_IFREG | 0644);
	archive_entry_set_size(entry, 64 << 20);
	archive_entry_sparse_add_entry(entry, 32 << 20, 4);
	ck_assert_int_eq(archive_write_header(pack->archive, entry), ARCHIVE_OK);
	ck_assert_ptr_nonnull(zeros);
	for (int i = 0; i < 64; i++)
		ck_assert_int_eq(archive_write_data(pack->archive, zeros, 1 << 20), 1 << 20);
	free(zeros);
	archive_entry_free(entry);
}

START_TEST(keeps_holes)
{
	struct near *near = near_new(false);
	struct rsb_tar_in_rep rep;
	struct pack pack;
	struct stat st;

	pack_init(&pack);
	put_sparse(&pack);
	ck_assert_int_eq(extract(near, &pack, &rep), 0);
	check_problem(&rep, NULL);
	stat_in(near, "sparse", &st);
	ck_assert_int_eq(st.st_size, 64 << 20);
	ck_assert_int_lt(st.st_blocks, 2048);
	near_free(near);
}
END_TEST

START_TEST(counts_holes_towards_the_limit)
{
	struct near *near = near_new(false);
	struct rsb_tar_limits limits = { .files = 1, .size = (64 << 20) - 1 };
	rsb_autoclose int fd = memfd_create("archive", MFD_CLOEXEC);
	rsb_autoclose int root = open(near->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct rsb_tar_result result;
	struct pack pack;

	pack_init(&pack);
	put_sparse(&pack);
	pack_close(&pack);
	ck_assert_int_eq(
		rsb_fd_write_full(fd, rsb_buf_head(&pack.bytes), rsb_buf_len(&pack.bytes)), 0);
	rsb_buf_done(&pack.bytes);
	for (int over = 1; over >= 0; over--) {
		ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
		rsb_tar_extract(fd, root, &(struct rsb_extract_owner){ 0 }, &limits, &result);
		ck_assert_int_eq(result.error, over ? -EFBIG : 0);
		ck_assert_uint_eq(result.n_file, over ? 0 : 1);
		limits.size++;
	}
	near_free(near);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		makes_files_directories_and_links,
		replaces_what_is_there,
		never_leaves_the_workspace,
		leaves_special_files_out,
		refuses_a_cut_archive,
		names_the_first_that_cannot_be_made,
		says_that_the_disk_is_full,
		ends_when_it_is_cancelled,
		keeps_holes,
		counts_holes_towards_the_limit,
	};

	return unit_run("tar", tests, RSB_ARRAY_SIZE(tests));
}
