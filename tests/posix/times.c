/* SPDX-License-Identifier: MIT */
/* Times: set to the nanosecond, NOW and OMIT, what each call moves. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

/* ---- setting them ---- */

static const struct setting {
	const char *name;
	struct timespec t;
} settings[] = {
	{ "zero", { 0, 0 } },
	{ "one", { 1, 1 } },
	{ "exact", { 1234567890, 123456789 } },
	{ "last ns", { 1700000000, 999999999 } },
	{ "before 1970", { -1, 5 } },
	{ "1901", { -2147483647, 7 } },
	{ "2038", { 2147483648, 1 } },
	{ "2400", { 13569465600, 42 } },
	{ "NOW", { 0, UTIME_NOW } },
	{ "OMIT", { 0, UTIME_OMIT } },
	{ "too many ns", { 1, 1000000000 } },
	{ "negative ns", { 1, -1 } },
};

struct pair {
	const struct setting *atime;
	const struct setting *mtime;
	enum pt_type type;
};

static bool
is_recent(const struct timespec *ts)
{
	time_t now = time(NULL);

	return ts->tv_sec > now - 300 && ts->tv_sec < now + 300;
}

static void
say_time(struct pt *t, const char *what, const struct timespec *ts)
{
	if (is_recent(ts))
		pt_say(t, " %s=now", what);
	else
		pt_say(t, " %s=%lld.%09ld", what, (long long)ts->tv_sec, ts->tv_nsec);
}

static void
say_times(struct pt *t, const char *path)
{
	struct stat st;

	pt_need(t, lstat(path, &st) == 0, path);
	say_time(t, "atime", &st.st_atim);
	say_time(t, "mtime", &st.st_mtim);
	say_time(t, "ctime", &st.st_ctim);
}

static void
set_times(struct pt *t, const void *arg)
{
	const struct pair *pair = arg;
	const struct timespec times[2] = { pair->atime->t, pair->mtime->t };
	const struct timespec old[2] = { { 77, 70 }, { 88, 80 } };
	rsb_autoclose int fd = -1;

	pt_make(t, pair->type, "x");
	pt_need(t, utimensat(AT_FDCWD, "x", old, AT_SYMLINK_NOFOLLOW) == 0, "old times");
	pt_did(t, "utimensat", utimensat(AT_FDCWD, "x", times, AT_SYMLINK_NOFOLLOW));
	say_times(t, "x");
	if (pair->type != PT_FILE)
		return;
	fd = open("x", O_WRONLY | O_CLOEXEC);
	pt_did(t, "old", futimens(fd, old));
	pt_did(t, "futimens", futimens(fd, times));
	say_times(t, "x");
}

/* ---- what moves them ---- */

static void
mv_nothing(void)
{
}

static void
mv_read(void)
{
	rsb_autoclose int fd = open("x", O_RDONLY | O_NOATIME | O_CLOEXEC);
	char data[4];

	(void)!read(fd, data, sizeof(data));
}

static void
mv_write(void)
{
	rsb_autoclose int fd = open("x", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, "w", 1);
}

static void
mv_write_nothing(void)
{
	rsb_autoclose int fd = open("x", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, "", 0);
}

static void
mv_open_close(void)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);

	(void)fsync(fd);
}

static void
mv_open_trunc(void)
{
	rsb_autoclose int fd = open("x", O_WRONLY | O_TRUNC | O_CLOEXEC);

	(void)fd;
}

static void
mv_truncate(void)
{
	(void)!truncate("x", 2);
}

static void
mv_truncate_same(void)
{
	(void)!truncate("x", 4);
}

static void
mv_ftruncate_same(void)
{
	rsb_autoclose int fd = open("x", O_WRONLY | O_CLOEXEC);

	(void)!ftruncate(fd, 4);
}

static void
mv_allocate(void)
{
	rsb_autoclose int fd = open("x", O_WRONLY | O_CLOEXEC);

	(void)fallocate(fd, 0, 0, 10000);
}

static void
mv_map(void)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return;
	at[0] = 'm';
	(void)msync(at, 4096, MS_SYNC);
	(void)munmap(at, 4096);
}

static void
mv_copy(void)
{
	rsb_autoclose int in = open("other", O_RDONLY | O_CLOEXEC);
	rsb_autoclose int out = open("x", O_WRONLY | O_CLOEXEC);

	(void)!copy_file_range(in, NULL, out, NULL, 3, 0);
}

static void
mv_chmod(void)
{
	(void)chmod("x", 0600);
}

static void
mv_chmod_same(void)
{
	(void)chmod("x", 0644);
}

static void
mv_chown(void)
{
	(void)!chown("x", geteuid(), getegid());
}

static void
mv_chown_nothing(void)
{
	(void)!chown("x", (uid_t)-1, (gid_t)-1);
}

static void
mv_link(void)
{
	(void)!link("x", "d/y");
}

static void
mv_unlink_other_name(void)
{
	(void)unlink("x2");
}

static void
mv_rename(void)
{
	(void)rename("x", "d/z");
	(void)rename("d/z", "x");
}

static void
mv_setxattr(void)
{
	(void)setxattr("x", "user.k", "v", 1, 0);
}

static void
mv_removexattr(void)
{
	(void)removexattr("x", "user.old");
}

static void
mv_create_in_dir(void)
{
	rsb_autoclose int fd = open("d/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)fd;
}

static void
mv_open_in_dir(void)
{
	rsb_autoclose int fd = open("d/old", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)fd;
}

static void
mv_mkdir_in_dir(void)
{
	(void)mkdir("d/newdir", 0755);
}

static void
mv_unlink_in_dir(void)
{
	(void)unlink("d/old");
}

static void
mv_rename_in_dir(void)
{
	(void)rename("d/old", "d/older");
}

static void
mv_failures(void)
{
	(void)mkdir("x", 0755);
	(void)unlink("d");
	(void)rename("none", "x");
	(void)!link("d", "y");
	(void)rmdir("d");
}

static const struct mover {
	const char *name;
	void (*fn)(void);
} movers[] = {
	{ "nothing", mv_nothing },
	{ "read", mv_read },
	{ "write", mv_write },
	{ "write of nothing", mv_write_nothing },
	{ "open and fsync", mv_open_close },
	{ "open with TRUNC", mv_open_trunc },
	{ "truncate", mv_truncate },
	{ "truncate to the same size", mv_truncate_same },
	{ "ftruncate to the same size", mv_ftruncate_same },
	{ "fallocate", mv_allocate },
	{ "mmap", mv_map },
	{ "copy_file_range", mv_copy },
	{ "chmod", mv_chmod },
	{ "chmod to the same mode", mv_chmod_same },
	{ "chown", mv_chown },
	{ "chown of nothing", mv_chown_nothing },
	{ "link", mv_link },
	{ "unlink of another name", mv_unlink_other_name },
	{ "rename", mv_rename },
	{ "setxattr", mv_setxattr },
	{ "removexattr", mv_removexattr },
	{ "create in it", mv_create_in_dir },
	{ "open with CREAT of what is there", mv_open_in_dir },
	{ "mkdir in it", mv_mkdir_in_dir },
	{ "unlink in it", mv_unlink_in_dir },
	{ "rename in it", mv_rename_in_dir },
	{ "what fails", mv_failures },
};

static void
say_moved(struct pt *t, const char *name, const struct stat *old)
{
	struct stat now;

	pt_need(t, stat(name, &now) == 0, name);
	pt_say(t, " %s:", name);
	if (now.st_mtim.tv_sec != old->st_mtim.tv_sec ||
		now.st_mtim.tv_nsec != old->st_mtim.tv_nsec)
		pt_say(t, "mtime%s,", is_recent(&now.st_mtim) ? "" : "?");
	if (now.st_ctim.tv_sec != old->st_ctim.tv_sec ||
		now.st_ctim.tv_nsec != old->st_ctim.tv_nsec)
		pt_say(t, "ctime%s,", is_recent(&now.st_ctim) ? "" : "?");
	if (now.st_mtim.tv_sec == now.st_ctim.tv_sec && now.st_mtim.tv_nsec == now.st_ctim.tv_nsec)
		pt_say(t, "equal,");
}

static void
move_times(struct pt *t, const void *arg)
{
	static const struct timespec old[2] = { { 77, 70 }, { 88, 80 } };
	static const char *const names[] = { "x", "other", "d", "." };
	const struct mover *mover = arg;
	struct stat before[RSB_ARRAY_SIZE(names)];

	pt_put(t, "x", "text");
	pt_put(t, "other", "other");
	pt_need(t, mkdir("d", 0755) == 0 && link("x", "x2") == 0, "make");
	pt_put(t, "d/old", "old");
	pt_need(t, setxattr("x", "user.old", "v", 1, 0) == 0, "xattr");
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++)
		pt_need(t, utimensat(AT_FDCWD, names[i], old, 0) == 0, "times");
	/* The clock of the file system stands still for up to a tick. */
	(void)usleep(11000);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++)
		pt_need(t, stat(names[i], &before[i]) == 0, "stat");
	mover->fn();
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++)
		say_moved(t, names[i], &before[i]);
}

void
pt_cases_times(struct pt_run *run)
{
	static const enum pt_type types[] = { PT_FILE, PT_DIR, PT_LINK, PT_FIFO };

	for (size_t a = 0; a < RSB_ARRAY_SIZE(settings); a++) {
		for (size_t m = 0; m < RSB_ARRAY_SIZE(settings); m++) {
			for (size_t k = 0; k < RSB_ARRAY_SIZE(types); k++) {
				const struct pair pair = { .atime = &settings[a],
					.mtime = &settings[m],
					.type = types[k] };

				/* All pairs for files, the diagonal for others. */
				if (a == m || types[k] == PT_FILE)
					pt_case(run, set_times, &pair, "time.set %s to %s and %s",
						pt_type_names[types[k]], settings[a].name,
						settings[m].name);
			}
		}
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(movers); i++)
		pt_case(run, move_times, &movers[i], "time.moved by %s", movers[i].name);
}
