/* SPDX-License-Identifier: MIT */
/* Contents: sizes and offsets around pages and buffers, holes, fallocate's modes, copies. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

#define EDGE 61440 /* the most that a message carries */

static void
fill(char *data, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char)(i * 31 + seed + (i >> 8));
}

/* FNV-1a of the whole file, by an own descriptor. */
static void
say_digest(struct pt *t, const char *path)
{
	rsb_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned long long h = 0xcbf29ce484222325;
	unsigned char data[8192];
	long long size = 0;
	ssize_t n;

	while ((n = read(fd, data, sizeof(data))) > 0) {
		size += n;
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ data[i]) * 0x100000001b3;
	}
	pt_say(t, " %s=%lld:%llx", path, size, h);
	if (n < 0)
		pt_did(t, "read", n);
}

/* ---- one write ---- */

static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, EDGE - 1, EDGE, EDGE + 1, 131072, 200001 };
static const off_t offsets[] = { 0, 1, 4096, EDGE - 1, 1000003 };

struct writing {
	size_t size;
	off_t offset;
};

static void
write_at(struct pt *t, const void *arg)
{
	const struct writing *w = arg;
	rsb_autofree char *data = malloc(w->size + 1);
	rsb_autofree char *back = malloc(w->size + 10);
	rsb_autoclose int fd = -1;

	pt_put(t, "x", "some text that was there before");
	pt_need(t, data && back, "memory");
	fill(data, w->size, 5);
	fd = open("x", O_RDWR | O_CLOEXEC);
	pt_got(t, "pwrite", pwrite(fd, data, w->size, w->offset));
	pt_got(t, "pread", pread(fd, back, w->size + 10, w->offset));
	pt_say(t, " same=%d", memcmp(data, back, w->size) == 0);
	pt_show(t, "x", "x");
	pt_did(t, "shrink", ftruncate(fd, (off_t)(w->size / 2)));
	say_digest(t, "x");
	pt_did(t, "grow", ftruncate(fd, (off_t)w->size));
	say_digest(t, "x");
	pt_got(t, "end", lseek(fd, 0, SEEK_END));
	pt_got(t, "pread", pread(fd, back, 1, (off_t)w->size));
}

/* ---- fallocate ---- */

static const struct mode {
	const char *name;
	int mode;
} fmodes[] = {
	{ "plain", 0 },
	{ "KEEP_SIZE", FALLOC_FL_KEEP_SIZE },
	{ "PUNCH", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
	{ "ZERO", FALLOC_FL_ZERO_RANGE },
	{ "ZERO|KEEP_SIZE", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE },
	{ "COLLAPSE", FALLOC_FL_COLLAPSE_RANGE },
	{ "INSERT", FALLOC_FL_INSERT_RANGE },
	{ "unknown", 0x4000 },
};

static const struct range {
	const char *name;
	off_t offset;
	off_t length;
} ranges[] = {
	{ "within", 5000, 3000 },
	{ "pages", 4096, 8192 },
	{ "to the end", 10000, 10000 },
	{ "over the end", 15000, 50000 },
	{ "beyond", 100000, 5000 },
	{ "all", 0, 20000 },
};

struct allocating {
	const struct mode *mode;
	const struct range *range;
};

static void
allocate(struct pt *t, const void *arg)
{
	const struct allocating *a = arg;
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char data[20000];

	fill(data, sizeof(data), 9);
	pt_got(t, "write", write(fd, data, sizeof(data)));
	pt_did(t, "fallocate", fallocate(fd, a->mode->mode, a->range->offset, a->range->length));
	pt_show(t, "x", "x");
	say_digest(t, "x");
	pt_got(t, "write", pwrite(fd, "after", 5, a->range->offset + 10));
	say_digest(t, "x");
}

/* ---- holes ---- */

static void
sparse(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct stat st;

	(void)arg;
	for (int i = 0; i < 4; i++)
		pt_got(t, "write", pwrite(fd, "data", 4, (off_t)i * 1048576 + 524288));
	pt_did(t, "size", ftruncate(fd, 8 << 20));
	pt_did(t, "fsync", fsync(fd));
	for (off_t at = 0; at >= 0 && at < 8 << 20;) {
		off_t data = lseek(fd, at, SEEK_DATA);

		pt_got(t, "data", data);
		if (data < 0)
			break;
		at = lseek(fd, data, SEEK_HOLE);
		pt_got(t, "hole", at);
	}
	pt_need(t, fstat(fd, &st) == 0, "fstat");
	pt_say(t, " few-blocks=%d", st.st_blocks * 512 < 1 << 20);
	say_digest(t, "x");
	pt_did(t, "punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 524288, 4096));
	pt_got(t, "data", lseek(fd, 0, SEEK_DATA));
	pt_got(t, "hole-at-end", lseek(fd, (8 << 20) - 1, SEEK_HOLE));
	pt_got(t, "beyond", lseek(fd, 8 << 20, SEEK_DATA));
}

static void
far_away(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	off_t far = (off_t)1 << 40;
	char data[4] = "";

	(void)arg;
	pt_got(t, "write", pwrite(fd, "far", 3, far));
	pt_show(t, "x", "x");
	pt_got(t, "read", pread(fd, data, 3, far));
	pt_say(t, "'%s'", data);
	pt_got(t, "read", pread(fd, data, 3, 1 << 20));
	pt_got(t, "seek", lseek(fd, 0, SEEK_DATA));
	pt_did(t, "shrink", ftruncate(fd, 3));
	pt_show(t, "x", "x");
}

/* ---- copies ---- */

struct copying {
	off_t from;
	off_t to;
	size_t length;
	bool same;
};

static const struct copying copies[] = {
	{ 0, 0, 10, false },
	{ 0, 0, 100000, false },
	{ 5, 3000, 70000, false },
	{ 99990, 0, 100, false },
	{ 100000, 0, 10, false },
	{ 200000, 0, 10, false },
	{ 0, 1000000, 100, false },
	{ 0, 50000, 50000, true },
	{ 0, 100, 1000, true },
	{ 1000, 100, 950, true },
	{ 5, 5, 10, true },
	{ 0, 100000, 100000, true },
	{ 0, 0, 0, false },
};

static void
copy(struct pt *t, const void *arg)
{
	const struct copying *c = arg;
	rsb_autofree char *data = malloc(100000);
	rsb_autoclose int in = open("in", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	rsb_autoclose int out = open(c->same ? "in" : "out", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	off_t from = c->from;
	off_t to = c->to;
	size_t left = c->length;
	ssize_t n;

	pt_need(t, data != NULL, "memory");
	fill(data, 100000, 77);
	pt_got(t, "write", write(in, data, 100000));
	/* How much one call copies is its own business. */
	do {
		n = copy_file_range(in, &from, out, &to, left, 0);
		left -= n > 0 ? (size_t)n : 0;
	} while (n > 0 && left);
	pt_did(t, "copy", n);
	pt_say(t, " left=%zu from=%lld to=%lld", left, (long long)from, (long long)to);
	say_digest(t, "in");
	say_digest(t, "out");
}

/* ---- other ways to write ---- */

static void
vectors(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char a[3] = "";
	char b[3] = "";
	const struct iovec out[3] = { { (char *)(uintptr_t) "abc", 3 },
		{ (char *)(uintptr_t) "", 0 }, { (char *)(uintptr_t) "defg", 4 } };
	const struct iovec in[2] = { { a, 2 }, { b, 2 } };

	(void)arg;
	pt_got(t, "writev", writev(fd, out, 3));
	pt_got(t, "pwritev", pwritev(fd, out, 1, 5));
	pt_got(t, "preadv", preadv(fd, in, 2, 3));
	pt_say(t, " '%s' '%s'", a, b);
	pt_got(t, "append", pwritev2(fd, out, 1, 0, RWF_APPEND));
	pt_got(t, "sync", pwritev2(fd, out, 1, 1, RWF_SYNC));
	pt_got(t, "odd", pwritev2(fd, out, 1, 1, 0x4000));
	pt_got(t, "too-many", syscall(SYS_writev, fd, out, IOV_MAX + 1));
	pt_cat(t, "x", "x");
}

static void
by_pipe(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	loff_t at = 3;
	int fds[2];
	char data[16] = "";

	(void)arg;
	pt_need(t, pipe2(fds, O_CLOEXEC) == 0, "pipe");
	pt_got(t, "write", write(fds[1], "through a pipe", 14));
	pt_got(t, "splice", splice(fds[0], NULL, fd, &at, 14, 0));
	at = 0;
	pt_got(t, "splice", splice(fd, &at, fds[1], NULL, 10, 0));
	pt_got(t, "read", read(fds[0], data, 10));
	pt_cat(t, "x", "x");
}

static void
limit_of_size(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	const struct rlimit limit = { 1000, 1000 };
	char data[2000] = "";

	(void)arg;
	(void)signal(SIGXFSZ, SIG_IGN);
	pt_need(t, setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
	pt_got(t, "write", write(fd, data, sizeof(data)));
	pt_got(t, "write", write(fd, data, 1));
	pt_did(t, "truncate", ftruncate(fd, 1001));
	pt_did(t, "allocate", fallocate(fd, 0, 0, 2000));
	pt_show(t, "x", "x");
}

static void
two_descriptors(struct pt *t, const void *arg)
{
	rsb_autoclose int a = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	rsb_autoclose int b = open("x", O_RDWR | O_CLOEXEC);
	char data[8] = "";

	(void)arg;
	for (int i = 0; i < 6; i++) {
		char text[8];

		(void)snprintf(text, sizeof(text), "%d", i);
		pt_got(t, "w", pwrite(i & 1 ? a : b, text, 1, i / 2));
		pt_got(t, "r", pread(i & 1 ? b : a, data, 4, 0));
		pt_say(t, "'%s'", data);
	}
	pt_did(t, "truncate", ftruncate(a, 1));
	pt_got(t, "r", pread(b, data, 4, 0));
	pt_got(t, "w", pwrite(b, "x", 1, 3));
	pt_cat(t, "x", "x");
}

static void
forked_position(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = open("x", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	rsb_autoclose int dup_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	(void)arg;
	pt_got(t, "write", write(fd, "one", 3));
	if (fork() == 0)
		_exit(write(fd, "two", 3) != 3);
	int status = -1;
	(void)wait(&status);
	pt_say(t, " child=%d", status);
	pt_got(t, "dup", write(dup_fd, "three", 5));
	pt_got(t, "at", lseek(fd, 0, SEEK_CUR));
	pt_cat(t, "x", "x");
}

void
pt_cases_data(struct pt_run *run)
{
	for (size_t s = 0; s < RSB_ARRAY_SIZE(sizes); s++) {
		for (size_t o = 0; o < RSB_ARRAY_SIZE(offsets); o++) {
			const struct writing w = { .size = sizes[s], .offset = offsets[o] };

			pt_case(run, write_at, &w, "data.%zu bytes at %lld", sizes[s],
				(long long)offsets[o]);
		}
	}
	for (size_t m = 0; m < RSB_ARRAY_SIZE(fmodes); m++) {
		for (size_t r = 0; r < RSB_ARRAY_SIZE(ranges); r++) {
			const struct allocating a = { .mode = &fmodes[m], .range = &ranges[r] };

			pt_case(run, allocate, &a, "data.fallocate %s %s", fmodes[m].name,
				ranges[r].name);
		}
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(copies); i++)
		pt_case(run, copy, &copies[i], "data.copy %zu from %lld to %lld%s",
			copies[i].length, (long long)copies[i].from, (long long)copies[i].to,
			copies[i].same ? " of the same file" : "");
	pt_case(run, sparse, NULL, "data.sparse");
	pt_case(run, far_away, NULL, "data.far away");
	pt_case(run, vectors, NULL, "data.vectors");
	pt_case(run, by_pipe, NULL, "data.by pipe");
	pt_case(run, limit_of_size, NULL, "data.limit of size");
	pt_case(run, two_descriptors, NULL, "data.two descriptors");
	pt_case(run, forked_position, NULL, "data.position of a fork");
}
