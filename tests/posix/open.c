/* SPDX-License-Identifier: MIT */
/* open(2) with every set of flags on every type; what O_EXCL, O_APPEND, O_TRUNC mean. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static const struct flags {
	const char *name;
	int flags;
} sets[] = {
	{ "RDONLY", O_RDONLY },
	{ "WRONLY", O_WRONLY },
	{ "RDWR", O_RDWR },
	{ "ACCMODE", O_ACCMODE },
	{ "RDONLY|CREAT", O_RDONLY | O_CREAT },
	{ "RDWR|CREAT", O_RDWR | O_CREAT },
	{ "RDWR|CREAT|EXCL", O_RDWR | O_CREAT | O_EXCL },
	{ "RDWR|EXCL", O_RDWR | O_EXCL },
	{ "RDONLY|TRUNC", O_RDONLY | O_TRUNC },
	{ "WRONLY|TRUNC", O_WRONLY | O_TRUNC },
	{ "WRONLY|CREAT|TRUNC", O_WRONLY | O_CREAT | O_TRUNC },
	{ "WRONLY|CREAT|EXCL|TRUNC", O_WRONLY | O_CREAT | O_EXCL | O_TRUNC },
	{ "WRONLY|APPEND", O_WRONLY | O_APPEND },
	{ "RDWR|APPEND|CREAT", O_RDWR | O_APPEND | O_CREAT },
	{ "WRONLY|APPEND|TRUNC", O_WRONLY | O_APPEND | O_TRUNC },
	{ "RDONLY|DIRECTORY", O_RDONLY | O_DIRECTORY },
	{ "RDWR|DIRECTORY", O_RDWR | O_DIRECTORY },
	{ "RDONLY|DIRECTORY|CREAT", O_RDONLY | O_DIRECTORY | O_CREAT },
	{ "RDONLY|NOFOLLOW", O_RDONLY | O_NOFOLLOW },
	{ "RDWR|NOFOLLOW|CREAT", O_RDWR | O_NOFOLLOW | O_CREAT },
	{ "PATH", O_PATH },
	{ "PATH|NOFOLLOW", O_PATH | O_NOFOLLOW },
	{ "PATH|DIRECTORY", O_PATH | O_DIRECTORY },
	{ "RDONLY|NOATIME", O_RDONLY | O_NOATIME },
	{ "RDWR|SYNC", O_RDWR | O_SYNC },
	{ "RDWR|DSYNC|CREAT", O_RDWR | O_DSYNC | O_CREAT },
};

struct on_type {
	const struct flags *set;
	enum pt_type type;
};

static void
open_type(struct pt *t, const void *arg)
{
	const struct on_type *on = arg;
	rsb_autoclose int fd = -1;
	char data[8];

	pt_make(t, on->type, "x");
	fd = open("x", on->set->flags | O_NONBLOCK | O_CLOEXEC, 0666);
	pt_did(t, "open", fd);
	if (fd >= 0) {
		pt_got(t, "write", write(fd, "new", 3));
		pt_got(t, "pread", pread(fd, data, sizeof(data), 0));
	}
	pt_show(t, "x", "x");
	pt_cat(t, "x", "x");
	pt_list(t, "list", ".");
}

static void
append_from_two(struct pt *t, const void *arg)
{
	rsb_autoclose int a = open("x", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	rsb_autoclose int b = open("x", O_RDWR | O_APPEND | O_CLOEXEC);
	rsb_autoclose int c = open("x", O_WRONLY | O_CLOEXEC);
	char data[8];

	(void)arg;
	for (int i = 0; i < 3; i++) {
		pt_got(t, "a", write(a, "aa", 2));
		pt_got(t, "b", write(b, "b", 1));
	}
	pt_got(t, "c", pwrite(c, "C", 1, 1));
	/* Linux appends what pwrite(2) gives to such a descriptor. */
	pt_got(t, "pwrite", pwrite(a, "P", 1, 0));
	pt_got(t, "at-a", lseek(a, 0, SEEK_CUR));
	pt_got(t, "at-b", lseek(b, 0, SEEK_CUR));
	pt_got(t, "seek", lseek(b, 1, SEEK_SET));
	pt_got(t, "read", read(b, data, 3));
	pt_got(t, "b", write(b, "z", 1));
	pt_cat(t, "x", "x");
}

static void
append_set_later(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	(void)arg;
	pt_got(t, "write", write(fd, "12345", 5));
	pt_got(t, "seek", lseek(fd, 0, SEEK_SET));
	pt_got(t, "set", fcntl(fd, F_SETFL, O_APPEND));
	pt_got(t, "append", write(fd, "6", 1));
	pt_got(t, "clear", fcntl(fd, F_SETFL, 0));
	pt_got(t, "seek", lseek(fd, 0, SEEK_SET));
	pt_got(t, "write", write(fd, "0", 1));
	pt_cat(t, "x", "x");
}

static void
append_by_many(struct pt *t, const void *arg)
{
	enum { WRITERS = 4, ROUNDS = 50 };
	struct stat st;

	(void)arg;
	pt_put(t, "x", "");
	for (int i = 0; i < WRITERS; i++) {
		if (fork() == 0) {
			rsb_autoclose int fd = open("x", O_WRONLY | O_APPEND | O_CLOEXEC);
			int bad = fd < 0;

			for (int k = 0; k < ROUNDS; k++)
				bad |= write(fd, "0123456789", 10) != 10;
			bad |= close(rsb_steal_fd(&fd)) < 0;
			_exit(bad);
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		int status = -1;

		pt_need(t, wait(&status) > 0, "wait");
		pt_say(t, " writer=%d", status);
	}
	pt_need(t, stat("x", &st) == 0, "stat");
	pt_say(t, " size=%lld", (long long)st.st_size);
}

static void
exclusive_has_one_winner(struct pt *t, const void *arg)
{
	enum { RACERS = 6, ROUNDS = 10 };
	int won = 0;

	(void)arg;
	for (int i = 0; i < RACERS; i++) {
		if (fork() == 0) {
			int n = 0;

			for (int k = 0; k < ROUNDS; k++) {
				char name[16];

				(void)snprintf(name, sizeof(name), "x%d", k);
				n += open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0;
			}
			_exit(n);
		}
	}
	for (int i = 0; i < RACERS; i++) {
		int status = 0;

		pt_need(t, wait(&status) > 0, "wait");
		won += WEXITSTATUS(status);
	}
	pt_say(t, " won=%d", won);
	pt_list(t, "list", ".");
}

static void
truncate_under_a_reader(struct pt *t, const void *arg)
{
	rsb_autoclose int reader = -1;
	rsb_autoclose int writer = -1;
	char data[16];
	struct stat st;

	(void)arg;
	pt_put(t, "x", "0123456789");
	reader = open("x", O_RDONLY | O_CLOEXEC);
	pt_got(t, "read", read(reader, data, 4));
	writer = open("x", O_WRONLY | O_TRUNC | O_CLOEXEC);
	pt_got(t, "read", read(reader, data, 4));
	pt_need(t, fstat(reader, &st) == 0, "fstat");
	pt_say(t, " size=%lld", (long long)st.st_size);
	pt_got(t, "write", write(writer, "abcdef", 6));
	pt_got(t, "read", read(reader, data, 4));
	pt_need(t, fstat(reader, &st) == 0, "fstat");
	pt_say(t, " size=%lld", (long long)st.st_size);
	pt_cat(t, "x", "x");
}

/* The mode given to open(2) counts for later calls, not for the descriptor itself. */
static void
mode_is_for_later(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0);

	(void)arg;
	if (t->root)
		pt_need(t, fchown(fd, PT_USER, PT_GROUP) == 0, "chown");
	pt_become(t, PT_USER, PT_GROUP);
	pt_got(t, "write", write(fd, "abc", 3));
	pt_did(t, "fsync", fsync(fd));
	pt_did(t, "truncate", ftruncate(fd, 1));
	pt_did(t, "reopen", open("x", O_RDONLY | O_CLOEXEC));
	pt_did(t, "chmod", fchmod(fd, 0200));
	pt_did(t, "reopen", open("x", O_RDONLY | O_CLOEXEC));
	pt_did(t, "reopen", open("x", O_WRONLY | O_CLOEXEC));
	pt_show(t, "x", "x");
}

static void
text_is_busy(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	char *argv[] = { (char *)(uintptr_t) "x", NULL };

	(void)arg;
	pt_got(t, "write", write(fd, "#!/bin/true\n", 12));
	pt_did(t, "exec", execv("x", argv));
	pt_did(t, "close", close(rsb_steal_fd(&fd)));
	fd = open("x", O_RDONLY | O_CLOEXEC);
	if (fork() == 0) {
		(void)execv("x", argv);
		_exit(99);
	}
	int status = -1;
	(void)wait(&status);
	pt_say(t, " ran=%d", status);
}

static void
openat_of_descriptors(struct pt *t, const void *arg)
{
	rsb_autoclose int dir = -1;
	rsb_autoclose int file = -1;

	(void)arg;
	pt_make(t, PT_FULL, "d");
	pt_make(t, PT_FILE, "f");
	dir = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = open("f", O_RDONLY | O_CLOEXEC);
	pt_did(t, "in-dir", openat(dir, "inside", O_RDONLY | O_CLOEXEC));
	pt_did(t, "in-file", openat(file, "inside", O_RDONLY | O_CLOEXEC));
	pt_did(t, "in-none", openat(999, "inside", O_RDONLY | O_CLOEXEC));
	pt_did(t, "mkdir", mkdirat(dir, "m", 0755));
	pt_did(t, "link", linkat(AT_FDCWD, "f", dir, "l", 0));
	pt_did(t, "unlink", unlinkat(dir, "inside", 0));
	pt_did(t, "rmdir", unlinkat(dir, "m", AT_REMOVEDIR));
	pt_did(t, "unlink-odd", unlinkat(dir, "l", 77));
	pt_did(t, "rename", rename("d", "e"));
	pt_did(t, "after", openat(dir, "l", O_RDONLY | O_CLOEXEC));
	pt_list(t, "e", "e");
}

void
pt_cases_open(struct pt_run *run)
{
	for (size_t s = 0; s < RSB_ARRAY_SIZE(sets); s++) {
		for (int type = PT_NONE; type < PT_N_TYPE; type++) {
			const struct on_type on = { .set = &sets[s], .type = (enum pt_type)type };

			pt_case(run, open_type, &on, "open.%s of %s", sets[s].name,
				pt_type_names[type]);
		}
	}
	pt_case(run, append_from_two, NULL, "open.append from two descriptors");
	pt_case(run, append_set_later, NULL, "open.append set later");
	pt_case(run, append_by_many, NULL, "open.append by many");
	pt_case(run, exclusive_has_one_winner, NULL, "open.exclusive has one winner");
	pt_case(run, truncate_under_a_reader, NULL, "open.truncate under a reader");
	pt_case(run, mode_is_for_later, NULL, "open.mode is for later");
	pt_case(run, text_is_busy, NULL, "open.text is busy");
	pt_case(run, openat_of_descriptors, NULL, "open.openat of descriptors");
}
