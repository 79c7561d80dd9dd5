/* SPDX-License-Identifier: MIT */
/*
 * posix-fsx DIRECTORY FAR SEED OPERATIONS FILES: random reads, writes, truncations, mappings,
 * holes and copies of a few files in DIRECTORY against what they must hold. FAR is the same
 * directory over there, or "-": now and then "barrier" is written to standard output and a line
 * waited for, and then the files are looked at and changed there.
 *
 * A failure names the seed and shows the last operations.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/prop/rng.h"
#include "util/cleanup.h"

#define SIZE_MAX_FSX ((size_t)400000)
#define FILES_MAX 16
#define FDS 2
#define TRAIL 60
#define LINE 160

struct names {
	char path[512];
	char far[512];
};

struct file {
	size_t number; /* names move, this stays */
	struct names at;
	unsigned char *want; /* SIZE_MAX_FSX bytes, zero beyond size */
	size_t size;
	int fds[FDS];
};

struct fsx {
	struct rng rng;
	unsigned long long seed;
	size_t n_file;
	struct file files[FILES_MAX];
	unsigned char *data; /* SIZE_MAX_FSX bytes */
	bool has_far;
	char trail[TRAIL][LINE];
	size_t n;
};

static void note(struct fsx *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
note(struct fsx *x, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(x->trail[x->n % TRAIL], LINE, format, args);
	va_end(args);
}

static void
check_at(struct fsx *x, bool good, const char *what, int line)
{
	int saved = errno;

	if (good)
		return;
	printf("seed %llu, operation %zu, line %d: %s (%s)\n", x->seed, x->n, line, what,
		strerror(saved));
	for (size_t i = x->n < TRAIL ? 0 : x->n - TRAIL + 1; i <= x->n; i++)
		printf("  %zu %s\n", i, x->trail[i % TRAIL]);
	exit(1);
}

#define CHECK(x, expression) check_at((x), (expression), #expression, __LINE__)

/* What was read at offset of f is what it must hold. */
static void
check_data(struct fsx *x, const struct file *f, const unsigned char *data, size_t offset,
	size_t size, int line)
{
	size_t i = 0;

	if (memcmp(data, f->want + offset, size) == 0)
		return;
	while (data[i] == f->want[offset + i])
		i++;
	printf("#%zu of %zu bytes differs at %zu: %02x is there, not %02x\n", f->number, f->size,
		offset + i, data[i], f->want[offset + i]);
	check_at(x, false, "contents", line);
}

#define CHECK_DATA(x, f, data, offset, size) check_data(x, f, data, offset, size, __LINE__)

static size_t
below(struct fsx *x, size_t n)
{
	return rng_below(&x->rng, n);
}

static struct file *
any_file(struct fsx *x)
{
	return &x->files[below(x, x->n_file)];
}

static int
any_fd(struct fsx *x, const struct file *f)
{
	return f->fds[below(x, FDS)];
}

/* An offset and a size that stay below the most a file may have. */
static size_t
place(struct fsx *x, size_t *ret_size)
{
	static const size_t sizes[] = { 1, 7, 4095, 4096, 4097, 61440, 61441, 131072 };
	size_t offset = below(x, SIZE_MAX_FSX);
	size_t size = below(x, 2) ? sizes[below(x, RSB_ARRAY_SIZE(sizes))] : 1 + below(x, 70000);

	if (below(x, 4) == 0)
		offset &= ~(size_t)4095;
	*ret_size = size < SIZE_MAX_FSX - offset ? size : SIZE_MAX_FSX - offset;
	return offset;
}

static void
fill(struct fsx *x, size_t size)
{
	uint64_t word = rng_u64(&x->rng);

	for (size_t i = 0; i < size; i++) {
		x->data[i] = (unsigned char)(word >> (i & 7) * 8);
		if ((i & 7) == 7)
			word = word * 6364136223846793005 + 1;
	}
}

static void
grow(struct file *f, size_t size)
{
	if (f->size < size)
		f->size = size;
}

static void
set_size(struct file *f, size_t size)
{
	if (size < f->size)
		memset(f->want + size, 0, f->size - size);
	f->size = size;
}

static void
do_write(struct fsx *x)
{
	struct file *f = any_file(x);
	size_t size, offset = place(x, &size);

	note(x, "write #%zu %zu+%zu", f->number, offset, size);
	fill(x, size);
	CHECK(x, pwrite(any_fd(x, f), x->data, size, (off_t)offset) == (ssize_t)size);
	memcpy(f->want + offset, x->data, size);
	grow(f, offset + size);
}

static void
do_small_writes(struct fsx *x)
{
	struct file *f = any_file(x);
	size_t offset = below(x, SIZE_MAX_FSX - 60000);
	int fd = any_fd(x, f);
	size_t n = 1 + below(x, 30);

	note(x, "%zu small writes #%zu at %zu", n, f->number, offset);
	for (; n; n--) {
		size_t size = 1 + below(x, 2000);

		fill(x, size);
		CHECK(x, pwrite(fd, x->data, size, (off_t)offset) == (ssize_t)size);
		memcpy(f->want + offset, x->data, size);
		offset += size;
		grow(f, offset);
	}
}

static void
do_read(struct fsx *x)
{
	struct file *f = any_file(x);
	size_t size, offset = place(x, &size);
	size_t there = offset < f->size ? f->size - offset : 0;
	ssize_t n;

	note(x, "read #%zu %zu+%zu of %zu", f->number, offset, size, f->size);
	n = pread(any_fd(x, f), x->data, size, (off_t)offset);
	CHECK(x, n == (ssize_t)(size < there ? size : there));
	CHECK_DATA(x, f, x->data, offset, (size_t)n);
}

static void
do_truncate(struct fsx *x)
{
	struct file *f = any_file(x);
	size_t size = below(x, 8) ? below(x, SIZE_MAX_FSX) : 0;

	note(x, "truncate #%zu to %zu from %zu", f->number, size, f->size);
	if (below(x, 2))
		CHECK(x, ftruncate(any_fd(x, f), (off_t)size) == 0);
	else
		CHECK(x, truncate(f->at.path, (off_t)size) == 0);
	set_size(f, size);
}

static void
do_stat(struct fsx *x)
{
	struct file *f = any_file(x);
	struct stat st;

	note(x, "stat #%zu", f->number);
	CHECK(x, fstat(any_fd(x, f), &st) == 0 && st.st_size == (off_t)f->size);
	CHECK(x, stat(f->at.path, &st) == 0 && st.st_size == (off_t)f->size);
	CHECK(x, lseek(any_fd(x, f), 0, SEEK_END) == (off_t)f->size);
}

/* As programs do: mapping and copying alone do not ask what became of the size over there. */
static void
look_at(struct fsx *x, const struct file *f, int fd)
{
	struct stat st;

	CHECK(x, fstat(fd, &st) == 0 && st.st_size == (off_t)f->size);
}

static void
do_map(struct fsx *x)
{
	struct file *f = any_file(x);
	int fd = any_fd(x, f);
	bool writes = below(x, 2);
	size_t offset, size;
	unsigned char *at;

	if (!f->size)
		return;
	offset = below(x, f->size);
	size = rsb_min(1 + below(x, 20000), f->size - offset);
	note(x, "map #%zu %zu+%zu to %s", f->number, offset, size, writes ? "write" : "read");
	look_at(x, f, fd);
	at = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(x, at != MAP_FAILED);
	if (writes) {
		fill(x, size);
		memcpy(at + offset, x->data, size);
		memcpy(f->want + offset, x->data, size);
	} else {
		CHECK_DATA(x, f, at + offset, offset, size);
	}
	if (below(x, 3) == 0)
		CHECK(x, msync(at, f->size, MS_SYNC) == 0);
	CHECK(x, munmap(at, f->size) == 0);
}

static void
do_allocate(struct fsx *x)
{
	static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE };
	struct file *f = any_file(x);
	size_t size, offset = place(x, &size);
	int mode = modes[below(x, RSB_ARRAY_SIZE(modes))];
	size_t end = offset + size < f->size ? offset + size : f->size;

	note(x, "fallocate %x #%zu %zu+%zu of %zu", (unsigned int)mode, f->number, offset, size,
		f->size);
	if (fallocate(any_fd(x, f), mode, (off_t)offset, (off_t)size) < 0) {
		CHECK(x, errno == EOPNOTSUPP);
		return;
	}
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) && offset < end)
		memset(f->want + offset, 0, end - offset);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		grow(f, offset + size);
}

static void
do_copy(struct fsx *x)
{
	struct file *in = any_file(x);
	struct file *out = any_file(x);
	int fd = any_fd(x, in);
	size_t size, from = place(x, &size);
	size_t to = below(x, SIZE_MAX_FSX - size + 1);
	size_t there = from < in->size ? in->size - from : 0;
	off_t off_in = (off_t)from;
	off_t off_out = (off_t)to;
	ssize_t n;

	note(x, "copy #%zu %zu+%zu to #%zu %zu", in->number, from, size, out->number, to);
	size = rsb_min(size, there);
	look_at(x, in, fd);
	n = copy_file_range(fd, &off_in, any_fd(x, out), &off_out, size, 0);
	if (in == out && size && from < to + size && to < from + size) {
		CHECK(x, n < 0 && errno == EINVAL);
		return;
	}
	CHECK(x, n >= 0 && n <= (ssize_t)size && (n || !size));
	size = rsb_min((size_t)n, size);
	memmove(out->want + to, in->want + from, size);
	if (size)
		grow(out, to + size);
}

static void
do_append(struct fsx *x)
{
	struct file *f = any_file(x);
	rsb_autoclose int fd = open(f->at.path, O_WRONLY | O_APPEND | O_CLOEXEC);

	note(x, "append to #%zu at %zu", f->number, f->size);
	CHECK(x, fd >= 0);
	for (size_t n = 1 + below(x, 4); n; n--) {
		size_t size = 1 + below(x, 3000);

		if (size > SIZE_MAX_FSX - f->size)
			return;
		fill(x, size);
		CHECK(x, write(fd, x->data, size) == (ssize_t)size);
		memcpy(f->want + f->size, x->data, size);
		f->size += size;
	}
	CHECK(x, close(rsb_steal_fd(&fd)) == 0);
}

static void
do_reopen(struct fsx *x)
{
	struct file *f = any_file(x);
	size_t i = below(x, FDS);
	bool trunc = below(x, 20) == 0;

	note(x, "reopen #%zu%s", f->number, trunc ? " with TRUNC" : "");
	CHECK(x, close(f->fds[i]) == 0);
	f->fds[i] = open(f->at.path, O_RDWR | O_CLOEXEC | (trunc ? O_TRUNC : 0));
	CHECK(x, f->fds[i] >= 0);
	if (trunc)
		set_size(f, 0);
}

static void
do_sync(struct fsx *x)
{
	const struct file *f = any_file(x);

	note(x, "fsync #%zu", f->number);
	CHECK(x, fsync(any_fd(x, f)) == 0);
}

/* Two files change names; what is open follows. */
static void
do_exchange(struct fsx *x)
{
	struct file *a = any_file(x);
	struct file *b = any_file(x);
	struct names at;

	if (a == b)
		return;
	note(x, "exchange #%zu and #%zu", a->number, b->number);
	CHECK(x, renameat2(AT_FDCWD, a->at.path, AT_FDCWD, b->at.path, RENAME_EXCHANGE) == 0);
	at = a->at;
	a->at = b->at;
	b->at = at;
}

static void
barrier(struct fsx *x)
{
	char line[64];

	printf("barrier\n");
	(void)fflush(stdout);
	CHECK(x, fgets(line, sizeof(line), stdin) != NULL);
}

/* It is there as we wrote it, and we see what is written there. */
static void
look_over_there(struct fsx *x, struct file *f)
{
	rsb_autoclose int fd = open(f->at.far, O_RDWR | O_CLOEXEC);
	size_t size = 1 + below(x, 5000);
	size_t offset = below(x, f->size + 1);
	struct stat st;

	CHECK(x, fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)f->size);
	CHECK(x, pread(fd, x->data, SIZE_MAX_FSX, 0) == (ssize_t)f->size);
	CHECK_DATA(x, f, x->data, 0, f->size);
	size = size < SIZE_MAX_FSX - offset ? size : SIZE_MAX_FSX - offset;
	fill(x, size);
	CHECK(x, pwrite(fd, x->data, size, (off_t)offset) == (ssize_t)size);
	memcpy(f->want + offset, x->data, size);
	grow(f, offset + size);
	if (below(x, 3) == 0) {
		CHECK(x, ftruncate(fd, (off_t)offset) == 0);
		set_size(f, offset);
	}
}

static void
do_over_there(struct fsx *x)
{
	if (!x->has_far)
		return;
	note(x, "over there");
	barrier(x);
	for (size_t i = 0; i < x->n_file; i++)
		look_over_there(x, &x->files[i]);
	barrier(x);
}

static void
open_all(struct fsx *x, const char *dir, const char *far)
{
	x->data = malloc(SIZE_MAX_FSX);
	CHECK(x, x->data != NULL);
	for (size_t i = 0; i < x->n_file; i++) {
		struct file *f = &x->files[i];

		f->number = i;
		(void)snprintf(f->at.path, sizeof(f->at.path), "%.400s/%zu", dir, i);
		(void)snprintf(f->at.far, sizeof(f->at.far), "%.400s/%zu", far, i);
		f->want = calloc(SIZE_MAX_FSX, 1);
		CHECK(x, f->want != NULL);
		for (size_t k = 0; k < FDS; k++) {
			f->fds[k] = open(f->at.path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
			CHECK(x, f->fds[k] >= 0);
		}
	}
}

static void
close_all(struct fsx *x)
{
	for (size_t i = 0; i < x->n_file; i++) {
		for (size_t k = 0; k < FDS; k++)
			CHECK(x, close(x->files[i].fds[k]) == 0);
		free(x->files[i].want);
	}
	free(x->data);
}

int
main(int argc, char **argv)
{
	static void (*const operations[])(struct fsx * x) = {
		do_write,
		do_small_writes,
		do_read,
		do_read,
		do_truncate,
		do_stat,
		do_map,
		do_allocate,
		do_copy,
		do_append,
		do_reopen,
		do_sync,
		do_exchange,
	};
	static struct fsx x;
	size_t n;

	if (argc != 6) {
		(void)fprintf(stderr, "usage: posix-fsx DIRECTORY FAR SEED OPERATIONS FILES\n");
		return 2;
	}
	x.seed = strtoull(argv[3], NULL, 0);
	x.rng.state = x.seed;
	n = strtoul(argv[4], NULL, 0);
	x.n_file = rsb_min(strtoul(argv[5], NULL, 0), (unsigned long)FILES_MAX);
	x.has_far = strcmp(argv[2], "-") != 0;
	open_all(&x, argv[1], argv[2]);
	for (; x.n < n; x.n++) {
		if (below(&x, 100) == 0)
			do_over_there(&x);
		else
			operations[below(&x, RSB_ARRAY_SIZE(operations))](&x);
	}
	do_over_there(&x);
	close_all(&x);
	return 0;
}
