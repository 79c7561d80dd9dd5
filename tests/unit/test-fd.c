/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/unit.h"
#include "util/fd.h"
#include "util/str.h"
#include "util/thread.h"

/* Made by open_dir(); each test removes what it put there, which proves that no more is in it. */
static char dir[] = "/tmp/rsb-test-fd.XXXXXX";

static int
open_dir(void)
{
	int fd;

	strcpy(strchr(dir, '.') + 1, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static bool
is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static void *
write_slowly(void *arg)
{
	int fd = *(int *)arg;
	int i;

	for (i = 0; i < 100; i++)
		ck_assert_int_eq(rsb_fd_write_full(fd, "abcdefghij", 10), 0);
	(void)close(fd);
	return NULL;
}

START_TEST(reads_whole_across_short_counts)
{
	char data[2000];
	pthread_t thread;
	size_t size = 0;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(rsb_thread_start("writer", write_slowly, &fds[1], &thread), 0);
	ck_assert_int_eq(rsb_fd_read_full(fds[0], data, 995, &size), 0);
	ck_assert_uint_eq(size, 995);
	ck_assert_int_eq(rsb_fd_read_full(fds[0], data, sizeof(data), &size), 0);
	ck_assert_uint_eq(size, 5);
	ck_assert_mem_eq(data, "fghij", 5);
	ck_assert_int_eq(rsb_fd_read_full(-1, data, 1, &size), -EBADF);
	ck_assert_int_eq(rsb_fd_write_full(-1, data, 1), -EBADF);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	(void)close(fds[0]);
}
END_TEST

START_TEST(reads_all_up_to_the_maximum)
{
	static uint8_t block[200000];
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = sizeof(block) };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf small = { .max = sizeof(block) - 1 };
	rsb_autoclose int fd = memfd_create("all", MFD_CLOEXEC);

	memset(block, 'x', sizeof(block));
	ck_assert_int_eq(rsb_fd_write_full(fd, block, sizeof(block)), 0);
	ck_assert_int_eq((int)lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(rsb_fd_read_all(fd, &buf), 0);
	ck_assert_uint_eq(rsb_buf_len(&buf), sizeof(block));
	ck_assert_mem_eq(rsb_buf_head(&buf), block, sizeof(block));
	ck_assert_int_eq((int)lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(rsb_fd_read_all(fd, &small), -EMSGSIZE);
}
END_TEST

START_TEST(replaces_a_file_whole_and_reads_it_back)
{
	rsb_autoclose int dir_fd = open_dir();
	rsb_autofree char *text = NULL;
	struct stat st;
	char *again = NULL;

	ck_assert_int_eq(rsb_fd_replace_file(dir_fd, "f", rsb_bytes_str("one"), 0644), 0);
	ck_assert_int_eq(rsb_fd_replace_file(dir_fd, "f", rsb_bytes_str("three"), 0666), 0);
	ck_assert_int_eq(rsb_fd_read_file(dir_fd, "f", 5, &text), 0);
	ck_assert_str_eq(text, "three");
	ck_assert_int_eq(fstatat(dir_fd, "f", &st, 0), 0);
	ck_assert_int_eq((int)(st.st_mode & 07777), 0666);
	ck_assert_int_eq(rsb_fd_read_file(dir_fd, "f", 4, &again), -EMSGSIZE);
	ck_assert_int_eq(rsb_fd_read_file(dir_fd, "none", 5, &again), -ENOENT);
	ck_assert_int_eq(rsb_fd_replace_file(
				 dir_fd, "f", (struct rsb_bytes){ (const uint8_t *)"\0", 1 }, 0600),
		0);
	ck_assert_int_eq(rsb_fd_read_file(dir_fd, "f", 5, &again), -EBADMSG);
	ck_assert_ptr_null(again);
	/* No temporary file is left. */
	ck_assert_int_eq(unlinkat(dir_fd, "f", 0), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(leaves_nothing_of_a_replacement_that_failed)
{
	rsb_autoclose int dir_fd = open_dir();

	ck_assert_int_eq(mkdirat(dir_fd, "d", 0700), 0);
	ck_assert_int_eq(rsb_fd_replace_file(dir_fd, "d", rsb_bytes_str("x"), 0600), -EISDIR);
	ck_assert_int_eq(rsb_fd_replace_file(dir_fd, "e/f", rsb_bytes_str("x"), 0600), -ENOENT);
	ck_assert_int_eq(unlinkat(dir_fd, "d", AT_REMOVEDIR), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(does_not_wait_for_a_fifo)
{
	rsb_autoclose int dir_fd = open_dir();
	rsb_autofree char *text = NULL;

	ck_assert_int_eq(mkfifoat(dir_fd, "p", 0600), 0);
	ck_assert_int_eq(rsb_fd_read_file(dir_fd, "p", 5, &text), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(unlinkat(dir_fd, "p", 0), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(sets_and_clears_flags)
{
	rsb_autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(rsb_fd_nonblock(fd, true), 0);
	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ck_assert_int_eq(rsb_fd_nonblock(fd, false), 0);
	ck_assert(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	ck_assert_int_eq(rsb_fd_cloexec(fd, false), 0);
	ck_assert(!is_cloexec(fd));
	ck_assert_int_eq(rsb_fd_cloexec(fd, true), 0);
	ck_assert(is_cloexec(fd));
	ck_assert_int_eq(rsb_fd_cloexec(-1, true), -EBADF);
}
END_TEST

START_TEST(passes_descriptors)
{
	int fds[RSB_FD_PASS_MAX + 1];
	int got[RSB_FD_PASS_MAX];
	size_t n_got = RSB_FD_PASS_MAX;
	char data[16];
	int pair[2];
	size_t i;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (i = 0; i < RSB_ARRAY_SIZE(fds); i++)
		fds[i] = pair[0];
	ck_assert_int_eq(rsb_fd_send(pair[0], "abc", 3, fds, RSB_FD_PASS_MAX + 1), -EINVAL);
	ck_assert_int_eq(rsb_fd_send(pair[0], "", 0, fds, 1), -EINVAL);
	ck_assert_int_eq(rsb_fd_send(pair[0], "abc", 3, fds, RSB_FD_PASS_MAX), 3);
	ck_assert_int_eq(rsb_fd_recv(pair[1], data, sizeof(data), got, &n_got), 3);
	ck_assert_uint_eq(n_got, RSB_FD_PASS_MAX);
	for (i = 0; i < n_got; i++) {
		ck_assert(is_cloexec(got[i]));
		(void)close(got[i]);
	}
	ck_assert_int_eq(rsb_fd_send(pair[0], "d", 1, NULL, 0), 1);
	ck_assert_int_eq(rsb_fd_recv(pair[1], data, sizeof(data), got, &n_got), 1);
	ck_assert_uint_eq(n_got, 0);
	(void)close(pair[0]);
	ck_assert_int_eq(rsb_fd_recv(pair[1], data, sizeof(data), got, &n_got), 0);
	ck_assert_int_eq(rsb_fd_send(pair[1], "d", 1, NULL, 0), -EPIPE);
	(void)close(pair[1]);
}
END_TEST

START_TEST(drops_what_does_not_fit_without_a_leak)
{
	size_t n_got = 1;
	char data[16];
	int fds[2], pair[2];
	int got = -1;
	int lowest;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fds[0] = pair[0];
	fds[1] = pair[1];
	lowest = dup(pair[0]);
	(void)close(lowest);
	ck_assert_int_eq(rsb_fd_send(pair[0], "abc", 3, fds, 2), 3);
	ck_assert_int_eq(rsb_fd_recv(pair[1], data, sizeof(data), &got, &n_got), -EMSGSIZE);
	ck_assert_int_eq(rsb_fd_send(pair[0], "a longer packet", 15, fds, 1), 15);
	n_got = 1;
	ck_assert_int_eq(rsb_fd_recv(pair[1], data, 4, &got, &n_got), -EMSGSIZE);
	ck_assert_int_eq(got, -1);
	ck_assert_int_eq(dup(pair[0]), lowest);
	(void)close(lowest);
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

START_TEST(listens_and_connects_on_a_path)
{
	rsb_autoclose int dir_fd = open_dir();
	rsb_autofree char *path = rsb_str_path(dir, "s");
	rsb_autoclose int server = -1;
	rsb_autoclose int client = -1;
	rsb_autoclose int peer = -1;
	struct stat st;

	ck_assert_int_eq(rsb_fd_unix_connect(path, SOCK_STREAM), -ENOENT);
	server = rsb_fd_unix_listen(path, SOCK_STREAM, 0600);
	ck_assert_int_ge(server, 0);
	ck_assert(is_cloexec(server));
	ck_assert_int_eq(fstatat(dir_fd, "s", &st, 0), 0);
	ck_assert_int_eq((int)(st.st_mode & 0777), 0600);
	client = rsb_fd_unix_connect(path, SOCK_STREAM);
	ck_assert_int_ge(client, 0);
	peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_eq(rsb_fd_check_peer(peer), 0);
	ck_assert_int_eq(rsb_fd_check_peer(dir_fd), -ENOTSOCK);
	(void)close(server);
	server = rsb_fd_unix_listen(path, SOCK_SEQPACKET | SOCK_NONBLOCK, 0600);
	ck_assert_int_ge(server, 0);
	ck_assert_int_eq(unlinkat(dir_fd, "s", 0), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(refuses_a_path_that_no_socket_can_have)
{
	char path[200];

	memset(path, 'x', sizeof(path));
	path[108] = '\0';
	ck_assert_int_eq(rsb_fd_unix_listen(path, SOCK_STREAM, 0600), -ENAMETOOLONG);
	ck_assert_int_eq(rsb_fd_unix_connect(path, SOCK_STREAM), -ENAMETOOLONG);
	ck_assert_int_eq(rsb_fd_unix_connect("", SOCK_STREAM), -EINVAL);
	ck_assert_int_eq(rsb_fd_unix_listen("/dev/null", SOCK_STREAM, 0600), -EADDRINUSE);
}
END_TEST

START_TEST(makes_directories_on_the_way)
{
	rsb_autoclose int dir_fd = open_dir();
	rsb_autofree char *deep = rsb_str_path(dir, "a//b/c/");
	rsb_autofree char *through = rsb_str_path(dir, "f/x");

	ck_assert_int_eq(rsb_fd_mkdir_parents(deep, 0700), 0);
	ck_assert_int_eq(rsb_fd_mkdir_parents(deep, 0700), 0);
	ck_assert_int_eq(rsb_fd_replace_file(dir_fd, "f", rsb_bytes_str(""), 0600), 0);
	ck_assert_int_eq(rsb_fd_mkdir_parents(through, 0700), -ENOTDIR);
	ck_assert_int_eq(unlinkat(dir_fd, "f", 0), 0);
	ck_assert_int_eq(unlinkat(dir_fd, "a/b/c", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(dir_fd, "a/b", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(dir_fd, "a", AT_REMOVEDIR), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(opens_a_directory_that_is_ours_alone)
{
	rsb_autofree char *sub = NULL;
	rsb_autofree char *link = NULL;
	struct stat st;
	int fd;

	rsb_autoclose int dir_fd = open_dir();

	sub = rsb_str_path(dir, "sub/own");
	link = rsb_str_path(dir, "link");
	fd = rsb_fd_open_own_dir(sub);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	ck_assert_int_eq(fchmod(fd, 0720), 0);
	ck_assert_int_eq(rsb_fd_open_own_dir(sub), -EPERM);
	ck_assert_int_eq(fchmod(fd, 0755), 0);
	ck_assert_int_eq(close(rsb_fd_open_own_dir(sub)), 0);
	/* one that another user made: he can point it to wherever he wants */
	ck_assert_int_eq(symlink(sub, link), 0);
	ck_assert_int_eq(rsb_fd_open_own_dir(link), -ENOTDIR);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(unlinkat(dir_fd, "link", 0), 0);
	ck_assert_int_eq(unlinkat(dir_fd, "sub/own", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(dir_fd, "sub", AT_REMOVEDIR), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(waits_for_a_lock_but_not_for_ever)
{
	rsb_autoclose int dir_fd = open_dir();
	rsb_autoclose int other = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(rsb_fd_lock(dir_fd, 0), 0);
	ck_assert_int_eq(rsb_fd_lock(other, 0), -EBUSY);
	ck_assert_int_eq(flock(dir_fd, LOCK_UN), 0);
	ck_assert_int_eq(rsb_fd_lock(other, 0), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(fills_closed_standard_descriptors)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		char byte = 0;

		(void)close(0);
		(void)close(1);
		if (rsb_fd_fill_standard() < 0)
			_exit(1);
		if (read(0, &byte, 1) >= 0 || errno != EBADF)
			_exit(2);
		if (write(1, &byte, 1) >= 0 || errno != EBADF)
			_exit(3);
		_exit(fcntl(2, F_GETFD) < 0 ? 4 : 0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_whole_across_short_counts,
		reads_all_up_to_the_maximum,
		replaces_a_file_whole_and_reads_it_back,
		leaves_nothing_of_a_replacement_that_failed,
		does_not_wait_for_a_fifo,
		sets_and_clears_flags,
		passes_descriptors,
		drops_what_does_not_fit_without_a_leak,
		listens_and_connects_on_a_path,
		refuses_a_path_that_no_socket_can_have,
		makes_directories_on_the_way,
		opens_a_directory_that_is_ours_alone,
		waits_for_a_lock_but_not_for_ever,
		fills_closed_standard_descriptors,
	};

	return unit_run("fd", tests, RSB_ARRAY_SIZE(tests));
}
