/* SPDX-License-Identifier: MIT */
/*
 * posix-tree MOUNT FAR LOCAL SEED OPERATIONS: random operations on names, each on the mount and in
 * a local directory: both must give the same result. After each stretch a barrier ("barrier" on
 * standard output, a line on standard input), then the tree on the mount must be that of FAR, the
 * same files over there, to the last bit of stat(2), and that of LOCAL but for numbers and times.
 * Some operations are made over there instead of on the mount.
 *
 * A failure names the seed and shows the last operations.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/prop/rng.h"
#include "util/cleanup.h"

#define STRETCH 200
#define TRAIL 40
#define LINE 200
#define PATH_SIZE 256
#define NAMES 7
#define DEPTH 3

enum side { MOUNT, FAR, LOCAL, N_SIDE };

struct tree {
	struct rng rng;
	unsigned long long seed;
	int dirs[N_SIDE];
	enum side side; /* that operations are made on, beside LOCAL */
	char trail[TRAIL][LINE];
	size_t n;
};

/* One operation, the same on both sides. */
struct op {
	char a[PATH_SIZE];
	char b[PATH_SIZE];
	size_t number;
	mode_t mode;
};

static void
show_trail(const struct tree *t)
{
	for (size_t i = t->n < TRAIL ? 0 : t->n - TRAIL + 1; i <= t->n; i++)
		printf("  %zu %s\n", i, t->trail[i % TRAIL]);
}

static void fail(const struct tree *t, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static void
fail(const struct tree *t, const char *format, ...)
{
	va_list args;

	printf("seed %llu, operation %zu: ", t->seed, t->n);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	printf("\n");
	show_trail(t);
	exit(1);
}

static size_t
below(struct tree *t, size_t n)
{
	return rng_below(&t->rng, n);
}

/* A path of few names, so that most are there, or were. */
static void
any_path(struct tree *t, char path[static PATH_SIZE])
{
	size_t depth = 1 + below(t, DEPTH);
	size_t n = 0;

	for (size_t i = 0; i < depth; i++)
		n += (size_t)snprintf(
			path + n, PATH_SIZE - n, "%s%c", i ? "/" : "", 'a' + (char)below(t, NAMES));
}

/* ---- the operations: what they return, or the negative errno ---- */

static long
result(long r)
{
	return r < 0 ? -errno : r;
}

static long
op_create(int dir, const struct op *op)
{
	rsb_autoclose int fd = openat(
		dir, op->a, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, op->mode);

	if (fd < 0)
		return -errno;
	return result(write(fd, op->b, strlen(op->b) * (op->number % 4)));
}

static long
op_append(int dir, const struct op *op)
{
	rsb_autoclose int fd =
		openat(dir, op->a, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : result(write(fd, op->b, strlen(op->b)));
}

static long
op_exclusive(int dir, const struct op *op)
{
	rsb_autoclose int fd = openat(dir, op->a, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, op->mode);

	return fd < 0 ? -errno : 0;
}

static long
op_mkdir(int dir, const struct op *op)
{
	return result(mkdirat(dir, op->a, op->mode | 0700));
}

static long
op_link(int dir, const struct op *op)
{
	return result(linkat(dir, op->a, dir, op->b, 0));
}

static long
op_symlink(int dir, const struct op *op)
{
	return result(symlinkat("a", dir, op->a));
}

static long
op_rename(int dir, const struct op *op)
{
	return result(renameat(dir, op->a, dir, op->b));
}

static long
op_rename_flags(int dir, const struct op *op)
{
	return result(renameat2(
		dir, op->a, dir, op->b, op->number % 2 ? RENAME_NOREPLACE : RENAME_EXCHANGE));
}

static long
op_unlink(int dir, const struct op *op)
{
	return result(unlinkat(dir, op->a, 0));
}

static long
op_rmdir(int dir, const struct op *op)
{
	return result(unlinkat(dir, op->a, AT_REMOVEDIR));
}

static long
op_chmod(int dir, const struct op *op)
{
	struct stat st;

	/* What is not a directory may lose every right; those must be walked. */
	if (fstatat(dir, op->a, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return 0;
	return result(fchmodat(dir, op->a, S_ISDIR(st.st_mode) ? op->mode | 0700 : op->mode, 0));
}

static long
op_truncate(int dir, const struct op *op)
{
	rsb_autoclose int fd = openat(dir, op->a, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : result(ftruncate(fd, (off_t)op->number * 100));
}

static long
op_mknod(int dir, const struct op *op)
{
	return result(mknodat(dir, op->a, (op->number % 2 ? S_IFIFO : S_IFREG) | op->mode, 0));
}

static long
op_times(int dir, const struct op *op)
{
	const struct timespec times[2] = { { .tv_sec = 1000, .tv_nsec = 1 },
		{ .tv_sec = (time_t)op->number * 1000, .tv_nsec = 123456789 } };

	return result(utimensat(dir, op->a, times, AT_SYMLINK_NOFOLLOW));
}

static long
op_xattr(int dir, const struct op *op)
{
	rsb_autoclose int fd = openat(dir, op->a, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (op->number % 3)
		return result(fsetxattr(fd, "user.t", op->b, strlen(op->b), 0));
	return result(fremovexattr(fd, "user.t"));
}

/* Written to after its name is gone, or is another's. */
static long
op_unlink_open(int dir, const struct op *op)
{
	rsb_autoclose int fd = openat(dir, op->a, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (unlinkat(dir, op->a, 0) < 0)
		return -errno;
	if (write(fd, "gone", 4) != 4 || fstat(fd, &st) < 0)
		return -errno;
	return (long)st.st_nlink * 100000 + st.st_size;
}

/* Names, types and sizes. */
static long
op_list(int dir, const struct op *op)
{
	rsb_autoclosedir DIR *listing = NULL;
	int fd = openat(dir, op->a, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	long sum = 0;

	listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing)
		return -errno;
	while ((entry = readdir(listing)))
		sum += entry->d_name[0] * 1000 + entry->d_type;
	return sum;
}

static long
op_stat(int dir, const struct op *op)
{
	struct stat st;

	if (fstatat(dir, op->a, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return (long)st.st_mode * 1000 + (long)st.st_nlink;
}

static const struct kind {
	const char *name;
	long (*fn)(int dir, const struct op *op);
	unsigned int weight;
} kinds[] = {
	{ "create", op_create, 8 },
	{ "append", op_append, 4 },
	{ "exclusive", op_exclusive, 3 },
	{ "mkdir", op_mkdir, 9 },
	{ "link", op_link, 5 },
	{ "symlink", op_symlink, 3 },
	{ "rename", op_rename, 9 },
	{ "rename with flags", op_rename_flags, 5 },
	{ "unlink", op_unlink, 4 },
	{ "rmdir", op_rmdir, 3 },
	{ "chmod", op_chmod, 3 },
	{ "truncate", op_truncate, 3 },
	{ "mknod", op_mknod, 3 },
	{ "times", op_times, 2 },
	{ "xattr", op_xattr, 3 },
	{ "unlink while open", op_unlink_open, 2 },
	{ "list", op_list, 3 },
	{ "stat", op_stat, 5 },
};

static const struct kind *
any_kind(struct tree *t)
{
	size_t sum = 0;
	size_t n;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(kinds); i++)
		sum += kinds[i].weight;
	n = below(t, sum);
	for (size_t i = 0;; i++) {
		if (n < kinds[i].weight)
			return &kinds[i];
		n -= kinds[i].weight;
	}
}

static void
step(struct tree *t)
{
	const struct kind *kind = any_kind(t);
	struct op op = { .number = below(t, 50), .mode = (mode_t)below(t, 01000) };
	long here, local;

	any_path(t, op.a);
	any_path(t, op.b);
	(void)snprintf(t->trail[t->n % TRAIL], LINE, "%s %.60s %.60s %zu %04o%s", kind->name, op.a,
		op.b, op.number, op.mode, t->side == FAR ? " over there" : "");
	here = kind->fn(t->dirs[t->side], &op);
	local = kind->fn(t->dirs[LOCAL], &op);
	if (here != local)
		fail(t, "%s gave %ld, not %ld", kind->name, here, local);
}

/* ---- whole trees ---- */

static uint64_t
digest_of(int dir, const char *name)
{
	rsb_autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t h = 0xcbf29ce484222325;
	unsigned char data[4096];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, data, sizeof(data))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ data[i]) * 0x100000001b3;
	}
	return fd < 0 ? 0 : h;
}

static void
say_times(FILE *out, const struct stat *st)
{
	(void)fprintf(out, " ino=%lu mtime=%lld.%09ld ctime=%lld.%09ld blocks=%lld",
		(unsigned long)st->st_ino, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		(long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec, (long long)st->st_blocks);
}

static int
no_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void
say_tree(FILE *out, int dir, const char *prefix, bool exact)
{
	struct dirent **entries;
	int n = scandirat(dir, ".", &entries, no_dots, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char path[PATH_SIZE];
		char text[64] = "";
		struct stat st = { .st_mode = 0 };
		rsb_autoclose int fd = -1;

		(void)snprintf(path, sizeof(path), "%s/%.60s", prefix, name);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			(void)fprintf(out, "%s: %s\n", path, strerror(errno));
		(void)fprintf(out, "%s %o %lu", path, st.st_mode, (unsigned long)st.st_nlink);
		if (exact)
			say_times(out, &st);
		if (S_ISREG(st.st_mode))
			(void)fprintf(out, " %lld %llx", (long long)st.st_size,
				(unsigned long long)digest_of(dir, name));
		if (S_ISLNK(st.st_mode) && readlinkat(dir, name, text, sizeof(text) - 1) > 0)
			(void)fprintf(out, " -> %s", text);
		if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))
			fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fgetxattr(fd, "user.t", text, sizeof(text) - 1) > 0)
			(void)fprintf(out, " xattr %c", text[0]);
		(void)fprintf(out, "\n");
		if (S_ISDIR(st.st_mode) && fd >= 0)
			say_tree(out, fd, path, exact);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static char *
text_of(const struct tree *t, enum side side, bool exact)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		fail(t, "no memory");
	say_tree(out, t->dirs[side], "", exact);
	(void)fclose(out);
	return text;
}

static void
compare(const struct tree *t, enum side with, bool exact)
{
	rsb_autofree char *a = text_of(t, MOUNT, exact);
	rsb_autofree char *b = text_of(t, with, exact);
	size_t start = 0;

	if (strcmp(a, b) == 0)
		return;
	for (size_t i = 0; a[i] == b[i]; i++) {
		if (a[i] == '\n')
			start = i + 1;
	}
	fail(t, "the mount and %s differ:\n  %.*s\n  %.*s", with == FAR ? "over there" : "local",
		(int)strcspn(a + start, "\n"), a + start, (int)strcspn(b + start, "\n"), b + start);
}

static void
barrier(const struct tree *t)
{
	char line[64];

	printf("barrier\n");
	(void)fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		fail(t, "nobody answers");
}

int
main(int argc, char **argv)
{
	static struct tree t;
	size_t n;

	if (argc != 6) {
		(void)fprintf(stderr, "usage: posix-tree MOUNT FAR LOCAL SEED OPERATIONS\n");
		return 2;
	}
	(void)umask(0);
	t.seed = strtoull(argv[4], NULL, 0);
	t.rng.state = t.seed;
	n = strtoul(argv[5], NULL, 0);
	for (int i = 0; i < N_SIDE; i++) {
		t.dirs[i] = open(argv[1 + i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (t.dirs[i] < 0)
			fail(&t, "%s: %s", argv[1 + i], strerror(errno));
	}
	for (; t.n < n; t.n++) {
		step(&t);
		if (t.n % STRETCH != STRETCH - 1)
			continue;
		/* Our own changes are known without a barrier. */
		if (t.side == MOUNT)
			compare(&t, LOCAL, false);
		barrier(&t);
		compare(&t, FAR, true);
		compare(&t, LOCAL, false);
		t.side = below(&t, 4) ? MOUNT : FAR;
	}
	return 0;
}
