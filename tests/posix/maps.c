/* SPDX-License-Identifier: MIT */
/* Mappings of files: shared between processes, with descriptors, beyond the end. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

#define SIZE ((size_t)5 * 4096)

static char *
map_file(struct pt *t, int fd, int flags)
{
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	pt_need(t, at != MAP_FAILED, "mmap");
	return at;
}

static void
map_and_write(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char data[8] = "";
	char *at;

	(void)arg;
	pt_did(t, "size", ftruncate(fd, SIZE));
	at = map_file(t, fd, MAP_SHARED);
	memcpy(at + 4094, "seam", 4);
	pt_got(t, "read", pread(fd, data, 4, 4094));
	pt_say(t, "'%s'", data);
	pt_got(t, "write", pwrite(fd, "over", 4, 4095));
	pt_say(t, " '%.6s'", at + 4094);
	pt_did(t, "msync", msync(at, SIZE, MS_SYNC));
	pt_did(t, "munmap", munmap(at, SIZE));
	pt_got(t, "read", pread(fd, data, 6, 4094));
	pt_say(t, "'%s'", data);
	pt_show(t, "x", "x");
}

static void
map_private(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char *at;

	(void)arg;
	pt_did(t, "size", ftruncate(fd, SIZE));
	at = map_file(t, fd, MAP_PRIVATE);
	at[0] = 'p';
	pt_got(t, "write", pwrite(fd, "f", 1, 4096));
	pt_say(t, " %d %c", at[0], at[4096]);
	pt_did(t, "munmap", munmap(at, SIZE));
	pt_cat(t, "x", "x");
}

static void
map_between_processes(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char *at;
	int status = -1;

	(void)arg;
	pt_did(t, "size", ftruncate(fd, SIZE));
	at = map_file(t, fd, MAP_SHARED);
	if (fork() == 0) {
		rsb_autoclose int own = open("x", O_RDWR | O_CLOEXEC);
		char *there = map_file(t, own, MAP_SHARED);

		there[100] = 'c';
		_exit(0);
	}
	(void)wait(&status);
	pt_say(t, " status=%d %c", status, at[100]);
	(void)munmap(at, SIZE);
	pt_did(t, "close", close(rsb_steal_fd(&fd)));
	fd = open("x", O_RDONLY | O_CLOEXEC);
	char c = 0;
	pt_got(t, "read", pread(fd, &c, 1, 100));
	pt_say(t, " %c", c);
}

static sigjmp_buf out_of_map;

static void
on_bus(int signal)
{
	(void)signal;
	siglongjmp(out_of_map, 1);
}

static char
touch_page(const volatile char *at)
{
	if (sigsetjmp(out_of_map, 1))
		return 'B';
	return *at ? '1' : '0';
}

static void
map_beyond_the_end(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char *at;

	(void)arg;
	(void)signal(SIGBUS, on_bus);
	pt_did(t, "size", ftruncate(fd, 5000));
	at = map_file(t, fd, MAP_SHARED);
	pt_say(t, " %c%c%c", touch_page(at), touch_page(at + 6000), touch_page(at + 9000));
	at[6000] = 'x';
	pt_did(t, "shrink", ftruncate(fd, 100));
	pt_say(t, " %c%c", touch_page(at), touch_page(at + 4096));
	pt_did(t, "grow", ftruncate(fd, SIZE));
	pt_say(t, " %c%c%c", touch_page(at), touch_page(at + 6000), touch_page(at + 4 * 4096));
	pt_did(t, "munmap", munmap(at, SIZE));
	pt_show(t, "x", "x");
}

static void
map_of_unlinked(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char data[8] = "";
	char *at;

	(void)arg;
	pt_did(t, "size", ftruncate(fd, SIZE));
	at = map_file(t, fd, MAP_SHARED);
	pt_did(t, "unlink", unlink("x"));
	memcpy(at, "gone", 4);
	pt_did(t, "msync", msync(at, SIZE, MS_SYNC));
	pt_got(t, "read", pread(fd, data, 4, 0));
	pt_say(t, "'%s'", data);
	pt_put(t, "x", "new");
	memcpy(at, "GONE", 4);
	pt_did(t, "munmap", munmap(at, SIZE));
	pt_did(t, "fsync", fsync(fd));
	pt_cat(t, "x", "x");
}

static void
map_after_close(struct pt *t, const void *arg)
{
	int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char *at;

	(void)arg;
	pt_did(t, "size", ftruncate(fd, SIZE));
	at = map_file(t, fd, MAP_SHARED);
	pt_did(t, "close", close(fd));
	memcpy(at, "closed", 6);
	pt_did(t, "rename", rename("x", "y"));
	pt_did(t, "msync", msync(at, SIZE, MS_SYNC));
	pt_did(t, "munmap", munmap(at, SIZE));
	fd = open("y", O_RDONLY | O_CLOEXEC);
	char data[8] = "";
	pt_got(t, "read", read(fd, data, 6));
	pt_say(t, "'%s'", data);
	(void)close(fd);
	pt_show(t, "y", "y");
}

static void
map_grows_with_writes(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char *at;

	(void)arg;
	(void)signal(SIGBUS, on_bus);
	pt_got(t, "write", write(fd, "abc", 3));
	at = map_file(t, fd, MAP_SHARED);
	pt_say(t, " '%.3s'%d", at, at[3]);
	for (int i = 0; i < 20; i++)
		pt_need(t, pwrite(fd, "more", 4, i * 1000) == 4, "pwrite");
	pt_say(t, " '%.4s' '%.4s' %c", at, at + 19000, touch_page(at + 19004));
	pt_did(t, "munmap", munmap(at, SIZE));
	pt_show(t, "x", "x");
}

void
pt_cases_maps(struct pt_run *run)
{
	pt_case(run, map_and_write, NULL, "map.and write");
	pt_case(run, map_private, NULL, "map.private");
	pt_case(run, map_between_processes, NULL, "map.between processes");
	pt_case(run, map_beyond_the_end, NULL, "map.beyond the end");
	pt_case(run, map_of_unlinked, NULL, "map.of unlinked");
	pt_case(run, map_after_close, NULL, "map.after close");
	pt_case(run, map_grows_with_writes, NULL, "map.grows with writes");
}
