/* SPDX-License-Identifier: MIT */
/* Link counts, names that go while something is open or the current directory, symbolic links. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static void
show_fd(struct pt *t, const char *what, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		pt_did(t, what, -1);
	else
		pt_show_stat(t, what, &st);
}

static void
count_links(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;
	struct stat a, b;

	(void)arg;
	pt_put(t, "a", "linked");
	fd = open("a", O_RDWR | O_CLOEXEC);
	pt_did(t, "link", link("a", "b"));
	pt_need(t, stat("a", &a) == 0 && stat("b", &b) == 0, "stat");
	pt_say(t, " one=%d", a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	pt_show(t, "a", "a");
	pt_show(t, "b", "b");
	pt_got(t, "write", write(fd, "L", 1));
	pt_cat(t, "b", "b");
	pt_did(t, "chmod", chmod("b", 0600));
	pt_show(t, "a", "a");
	pt_did(t, "unlink", unlink("a"));
	pt_show(t, "b", "b");
	show_fd(t, "fd", fd);
	pt_did(t, "again", link("b", "a"));
	pt_show(t, "a", "a");
	pt_did(t, "both", unlink("a") < 0 || unlink("b") < 0 ? -1 : 0);
	show_fd(t, "fd", fd);
}

static void
count_directories(struct pt *t, const void *arg)
{
	(void)arg;
	pt_need(t, mkdir("d", 0755) == 0, "d");
	pt_show(t, "d", "d");
	for (int i = 0; i < 3; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "d/%d", i);
		pt_did(t, "mkdir", mkdir(name, 0755));
		pt_show(t, "d", "d");
	}
	pt_need(t, mkdir("e", 0755) == 0, "e");
	pt_did(t, "rename", rename("d/0", "e/0"));
	pt_show(t, "d", "d");
	pt_show(t, "e", "e");
	pt_did(t, "over", rename("d/1", "e/0"));
	pt_show(t, "d", "d");
	pt_show(t, "e", "e");
	pt_did(t, "rmdir", rmdir("d/2"));
	pt_show(t, "d", "d");
	pt_show(t, ".", ".");
}

static void
many_links(struct pt *t, const void *arg)
{
	int n = t->big ? 70000 : 100;
	int i;

	(void)arg;
	pt_put(t, "x", "x");
	for (i = 0; i < n; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "l%d", i);
		if (link("x", name) < 0) {
			pt_did(t, "link", -1);
			break;
		}
	}
	pt_say(t, " made=%d", i);
	pt_show(t, "x", "x");
	pt_show(t, "l", "l7");
}

/* What belongs to the machine and not to the file system. */
static void
of_two_file_systems(struct pt *t, const void *arg)
{
	rsb_autoclose int in = -1;
	rsb_autoclose int out = memfd_create("other", MFD_CLOEXEC);
	char path[64];

	(void)arg;
	pt_put(t, "x", "text");
	in = open("x", O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/dev/shm/posix-cases.%d", (int)getpid());
	pt_did(t, "rename", rename("x", path));
	pt_did(t, "link", link("x", path));
	pt_did(t, "copy", copy_file_range(in, NULL, out, NULL, 4, 0));
	pt_put(t, path, "other");
	pt_did(t, "rename", rename(path, "y"));
	pt_did(t, "link", link(path, "y"));
	pt_did(t, "unlink", unlink(path));
	pt_list(t, "list", ".");
}

static void
limit_of_descriptors(struct pt *t, const void *arg)
{
	const struct rlimit limit = { 20, 20 };
	int n = 0;

	(void)arg;
	pt_put(t, "x", "");
	pt_need(t, setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
	while (open("x", O_RDONLY | O_CLOEXEC) >= 0)
		n++;
	pt_did(t, "open", -1);
	pt_did(t, "creat", open("y", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	pt_say(t, " some=%d", n > 3);
	pt_show(t, "y", "y");
}

static void
unlinked_and_open(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	rsb_autoclose int new_fd = -1;
	const struct timespec times[2] = { { 5, 6 }, { 7, 8 } };
	char data[16] = "";
	char path[64];

	(void)arg;
	pt_got(t, "write", write(fd, "before", 6));
	pt_did(t, "unlink", unlink("x"));
	show_fd(t, "fd", fd);
	pt_got(t, "write", write(fd, "after", 5));
	pt_got(t, "read", pread(fd, data, 15, 0));
	pt_say(t, "'%s'", data);
	pt_did(t, "truncate", ftruncate(fd, 3));
	pt_did(t, "chmod", fchmod(fd, 0600));
	pt_did(t, "times", futimens(fd, times));
	pt_did(t, "fsync", fsync(fd));
	pt_did(t, "chown", fchown(fd, geteuid(), getegid()));
	show_fd(t, "fd", fd);
	pt_list(t, "list", ".");
	new_fd = open("x", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	pt_got(t, "write", write(new_fd, "NEW", 3));
	pt_got(t, "read", pread(fd, data, 15, 0));
	pt_cat(t, "x", "x");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	pt_did(t, "reopen", open(path, O_RDONLY | O_CLOEXEC));
	pt_did(t, "link-back", linkat(AT_FDCWD, path, AT_FDCWD, "back", AT_SYMLINK_FOLLOW));
}

static void
unlinked_by_another_process(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;
	int status = -1;

	(void)arg;
	pt_put(t, "x", "held");
	fd = open("x", O_RDWR | O_CLOEXEC);
	if (fork() == 0)
		_exit(unlink("x") != 0);
	(void)wait(&status);
	pt_say(t, " child=%d", status);
	show_fd(t, "fd", fd);
	pt_got(t, "write", pwrite(fd, "H", 1, 0));
	show_fd(t, "fd", fd);
}

/* ---- the current directory ---- */

static void
say_cwd(struct pt *t, const char *top)
{
	char *cwd = getcwd(NULL, 0);

	pt_say(t, " cwd=%s",
		!cwd                                  ? strerrorname_np(errno)
		: strncmp(cwd, top, strlen(top)) == 0 ? cwd + strlen(top)
						      : "elsewhere");
	free(cwd);
}

static void
cwd_moves(struct pt *t, const void *arg)
{
	rsb_autofree char *top = getcwd(NULL, 0);

	(void)arg;
	pt_need(t, top && mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && mkdir("z", 0755) == 0,
		"mkdir");
	pt_put(t, "a/mark", "a");
	pt_put(t, "z/mark", "z");
	pt_need(t, chdir("a/b") == 0, "chdir");
	pt_cat(t, "up", "../mark");
	pt_did(t, "rename", rename("../../a", "../../c"));
	say_cwd(t, top);
	pt_cat(t, "up", "../mark");
	pt_did(t, "move", rename("../../c/b", "../../z/b"));
	say_cwd(t, top);
	pt_cat(t, "up", "../mark");
	pt_put(t, "here", "here");
	pt_list(t, "list", "../b");
	pt_did(t, "up", chdir(".."));
	say_cwd(t, top);
	pt_list(t, "list", ".");
}

static void
cwd_removed(struct pt *t, const void *arg)
{
	rsb_autofree char *top = getcwd(NULL, 0);

	(void)arg;
	pt_need(t, top && mkdir("a", 0755) == 0 && chdir("a") == 0, "mkdir");
	pt_did(t, "rmdir", rmdir("../a"));
	say_cwd(t, top);
	pt_did(t, "creat", open("x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	pt_did(t, "mkdir", mkdir("x", 0755));
	pt_list(t, "list", ".");
	pt_show(t, "here", ".");
	pt_did(t, "up", chdir(".."));
	say_cwd(t, top);
	pt_did(t, "mkdir", mkdir("a", 0755));
	pt_show(t, "a", "a");
}

static void
cwd_replaced(struct pt *t, const void *arg)
{
	(void)arg;
	pt_need(t, mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0, "mkdir");
	pt_put(t, "a/mark", "a");
	pt_put(t, "b/mark", "b");
	pt_need(t, chdir("a") == 0, "chdir");
	pt_did(t, "exchange", renameat2(AT_FDCWD, "../a", AT_FDCWD, "../b", RENAME_EXCHANGE));
	pt_cat(t, "mark", "mark");
	pt_cat(t, "a", "../a/mark");
	pt_did(t, "unlink", unlink("mark"));
	pt_did(t, "over", rename("../a", "../b"));
	pt_list(t, "list", ".");
	pt_list(t, "b", "../b");
}

/* ---- symbolic links ---- */

static const char *const targets[] = {
	"t",
	"./t",
	"d/t",
	"d/../t",
	"none",
	"a",
	".",
	"d",
	"d/",
	"t/",
	" ",
	"t\n",
};

static void
symlink_to(struct pt *t, const void *arg)
{
	const char *target = arg;
	char back[64] = "";

	pt_put(t, "t", "target");
	pt_need(t, mkdir("d", 0755) == 0, "d");
	pt_put(t, "d/t", "deeper");
	pt_did(t, "symlink", symlink(target, "a"));
	pt_got(t, "readlink", readlink("a", back, sizeof(back)));
	pt_say(t, " same=%d", strcmp(back, target) == 0);
	pt_got(t, "short", readlink("a", back, 1));
	pt_show(t, "a", "a");
	pt_cat(t, "through", "a");
	pt_list(t, "through", "a");
	pt_did(t, "creat", open("a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	pt_did(t, "rename", rename("a", "d/a"));
	pt_cat(t, "through", "d/a");
	pt_list(t, "list", ".");
}

static void
symlinks_in_a_row(struct pt *t, const void *arg)
{
	(void)arg;
	pt_put(t, "l0", "end");
	for (int i = 1; i <= 42; i++) {
		char name[8], target[8];

		(void)snprintf(name, sizeof(name), "l%d", i);
		(void)snprintf(target, sizeof(target), "l%d", i - 1);
		pt_need(t, symlink(target, name) == 0, name);
	}
	for (int i = 38; i <= 42; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "l%d", i);
		pt_cat(t, name, name);
	}
}

static void
long_symlink(struct pt *t, const void *arg)
{
	static const int lengths[] = { 59, 60, 255, 1000, 4000, 4095 };
	char target[PATH_MAX + 1];

	(void)arg;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(lengths); i++) {
		char back[PATH_MAX + 1];

		memset(target, 'x', sizeof(target));
		for (int k = 200; k < lengths[i]; k += 200)
			target[k] = '/';
		target[lengths[i]] = 0;
		pt_did(t, "symlink", symlink(target, "s"));
		pt_got(t, "readlink", readlink("s", back, sizeof(back)));
		pt_show(t, "s", "s");
		(void)unlink("s");
	}
}

void
pt_cases_links(struct pt_run *run)
{
	pt_case(run, count_links, NULL, "link.count");
	pt_case(run, count_directories, NULL, "link.count of directories");
	pt_case(run, many_links, NULL, "link.many");
	pt_case(run, of_two_file_systems, NULL, "link.of two file systems");
	pt_case(run, limit_of_descriptors, NULL, "link.limit of descriptors");
	pt_case(run, unlinked_and_open, NULL, "link.unlinked and open");
	pt_case(run, unlinked_by_another_process, NULL, "link.unlinked by another process");
	pt_case(run, cwd_moves, NULL, "link.current directory moves");
	pt_case(run, cwd_removed, NULL, "link.current directory is removed");
	pt_case(run, cwd_replaced, NULL, "link.current directory is replaced");
	for (size_t i = 0; i < RSB_ARRAY_SIZE(targets); i++)
		pt_case(run, symlink_to, targets[i], "link.symbolic %zu", i);
	pt_case(run, symlinks_in_a_row, NULL, "link.symbolic ones in a row");
	pt_case(run, long_symlink, NULL, "link.long symbolic ones");
}
