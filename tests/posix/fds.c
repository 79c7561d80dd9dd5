/* SPDX-License-Identifier: MIT */
/* Every call on a descriptor, by how it was opened and what it is of; and what has no effect. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

#define FAR ((off_t)1 << 62)

#define FD_CALL(name, ...)          \
	static long name(int fd)    \
	{                           \
		return __VA_ARGS__; \
	}

static long
fd_read(int fd)
{
	char data[4];

	return read(fd, data, sizeof(data));
}

FD_CALL(fd_read_fault, syscall(SYS_read, fd, 8, 4))

static long
fd_pread_before(int fd)
{
	char data[4];

	return pread(fd, data, sizeof(data), -1);
}

static long
fd_pread_far(int fd)
{
	char data[4];

	return pread(fd, data, sizeof(data), FAR);
}

FD_CALL(fd_write, write(fd, "WW", 2))
FD_CALL(fd_write_fault, syscall(SYS_write, fd, 8, 4))
FD_CALL(fd_write_nothing, write(fd, "", 0))
FD_CALL(fd_pwrite, pwrite(fd, "P", 1, 6))
FD_CALL(fd_pwrite_before, pwrite(fd, "P", 1, -1))
FD_CALL(fd_pwrite_far, pwrite(fd, "P", 1, INT64_MAX))

static long
fd_seek_end(int fd)
{
	off_t end = lseek(fd, 2, SEEK_END);
	struct stat st;

	/* Where a directory ends is the file system's own. */
	return end >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : end;
}

FD_CALL(fd_seek_before, lseek(fd, -1, SEEK_SET))
FD_CALL(fd_seek_odd, lseek(fd, 0, 77))
FD_CALL(fd_seek_data, lseek(fd, 0, SEEK_DATA))
FD_CALL(fd_seek_data_beyond, lseek(fd, 100000, SEEK_DATA))
FD_CALL(fd_seek_hole, lseek(fd, 1, SEEK_HOLE))
FD_CALL(fd_seek_hole_beyond, lseek(fd, 100000, SEEK_HOLE))
FD_CALL(fd_truncate, ftruncate(fd, 2))
FD_CALL(fd_truncate_before, ftruncate(fd, -1))
FD_CALL(fd_truncate_far, ftruncate(fd, INT64_MAX))
FD_CALL(fd_allocate, fallocate(fd, 0, 0, 100))
FD_CALL(fd_allocate_nothing, fallocate(fd, 0, 0, 0))
FD_CALL(fd_allocate_before, fallocate(fd, 0, -1, 10))
FD_CALL(fd_allocate_far, fallocate(fd, 0, FAR, FAR))
FD_CALL(fd_punch_wrong, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10))
FD_CALL(fd_punch, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 2))
FD_CALL(fd_chmod, fchmod(fd, 0711))
FD_CALL(fd_chown, fchown(fd, geteuid(), getegid()))
FD_CALL(fd_utimens, futimens(fd, NULL))

static long
fd_stat(int fd)
{
	struct stat st;

	return fstat(fd, &st);
}

static long
fd_statfs(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st);
}

FD_CALL(fd_getxattr, fgetxattr(fd, "user.none", NULL, 0))
FD_CALL(fd_setxattr, fsetxattr(fd, "user.some", "v", 1, 0))
FD_CALL(fd_flock, flock(fd, LOCK_EX | LOCK_NB))
FD_CALL(fd_flock_odd, flock(fd, 77))

static long
fd_lock(int fd, short type, off_t start, off_t length)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length
	};

	return fcntl(fd, F_SETLK, &lock);
}

FD_CALL(fd_lock_read, fd_lock(fd, F_RDLCK, 0, 0))
FD_CALL(fd_lock_write, fd_lock(fd, F_WRLCK, 0, 10))
FD_CALL(fd_lock_before, fd_lock(fd, F_RDLCK, -5, 2))

static long
fd_getdents(int fd)
{
	char data[4096];

	return syscall(SYS_getdents64, fd, data, sizeof(data)) < 0 ? -1 : 0;
}

static long
fd_getdents_small(int fd)
{
	char data[8];

	return syscall(SYS_getdents64, fd, data, sizeof(data));
}

static long
map(int fd, int prot, int flags)
{
	void *at = mmap(NULL, 4096, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		return -1;
	return munmap(at, 4096);
}

FD_CALL(fd_map_read, map(fd, PROT_READ, MAP_SHARED))
FD_CALL(fd_map_write, map(fd, PROT_READ | PROT_WRITE, MAP_SHARED))
FD_CALL(fd_map_private, map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE))

static long
fd_copy_here(int fd)
{
	rsb_autoclose int in = open("source", O_RDONLY | O_CLOEXEC);

	return copy_file_range(in, NULL, fd, NULL, 4, 0);
}

static long
fd_copy_from(int fd)
{
	rsb_autoclose int out = open("sink", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return copy_file_range(fd, NULL, out, NULL, 4, 0);
}

static long
fd_copy_flags(int fd)
{
	rsb_autoclose int in = open("source", O_RDONLY | O_CLOEXEC);

	return copy_file_range(in, NULL, fd, NULL, 4, 1);
}

static long
fd_sendfile(int fd)
{
	rsb_autoclose int out = open("sink", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return sendfile(out, fd, NULL, 4);
}

FD_CALL(fd_chdir, fchdir(fd))
FD_CALL(fd_readahead, readahead(fd, 0, 4096))

static long
fd_advise(int fd)
{
	int r = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

	errno = r;
	return r ? -1 : 0;
}

FD_CALL(fd_flags, fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECTORY))

static long
fd_unread(int fd)
{
	int n = 0;

	return ioctl(fd, FIONREAD, &n) < 0 ? -1 : n;
}

FD_CALL(fd_terminal, isatty(fd) ? 1 : -1)

static const struct call {
	const char *name;
	long (*fn)(int fd);
} calls[] = {
	{ "read", fd_read },
	{ "read_fault", fd_read_fault },
	{ "pread_before", fd_pread_before },
	{ "pread_far", fd_pread_far },
	{ "write", fd_write },
	{ "write_fault", fd_write_fault },
	{ "write_nothing", fd_write_nothing },
	{ "pwrite", fd_pwrite },
	{ "pwrite_before", fd_pwrite_before },
	{ "pwrite_far", fd_pwrite_far },
	{ "seek_end", fd_seek_end },
	{ "seek_before", fd_seek_before },
	{ "seek_odd", fd_seek_odd },
	{ "seek_data", fd_seek_data },
	{ "seek_data_beyond", fd_seek_data_beyond },
	{ "seek_hole", fd_seek_hole },
	{ "seek_hole_beyond", fd_seek_hole_beyond },
	{ "truncate", fd_truncate },
	{ "truncate_before", fd_truncate_before },
	{ "truncate_far", fd_truncate_far },
	{ "allocate", fd_allocate },
	{ "allocate_nothing", fd_allocate_nothing },
	{ "allocate_before", fd_allocate_before },
	{ "allocate_far", fd_allocate_far },
	{ "punch_wrong", fd_punch_wrong },
	{ "punch", fd_punch },
	{ "chmod", fd_chmod },
	{ "chown", fd_chown },
	{ "utimens", fd_utimens },
	{ "stat", fd_stat },
	{ "statfs", fd_statfs },
	{ "fsync", NULL },
	{ "fdatasync", NULL },
	{ "getxattr", fd_getxattr },
	{ "setxattr", fd_setxattr },
	{ "flock", fd_flock },
	{ "flock_odd", fd_flock_odd },
	{ "lock_read", fd_lock_read },
	{ "lock_write", fd_lock_write },
	{ "lock_before", fd_lock_before },
	{ "getdents", fd_getdents },
	{ "getdents_small", fd_getdents_small },
	{ "map_read", fd_map_read },
	{ "map_write", fd_map_write },
	{ "map_private", fd_map_private },
	{ "copy_here", fd_copy_here },
	{ "copy_from", fd_copy_from },
	{ "copy_flags", fd_copy_flags },
	{ "sendfile", fd_sendfile },
	{ "chdir", fd_chdir },
	{ "readahead", fd_readahead },
	{ "advise", fd_advise },
	{ "flags", fd_flags },
	{ "unread", fd_unread },
	{ "terminal", fd_terminal },
};

static const struct kind {
	const char *name;
	const char *path;
	int flags;
} kinds[] = {
	{ "read", "file", O_RDONLY },
	{ "write", "file", O_WRONLY },
	{ "both", "file", O_RDWR },
	{ "append", "file", O_WRONLY | O_APPEND },
	{ "path", "file", O_PATH },
	{ "directory", "dir", O_RDONLY | O_DIRECTORY },
	{ "fifo", "fifo", O_RDWR | O_NONBLOCK },
	{ "closed", NULL, 0 },
};

struct on_fd {
	const struct call *call;
	const struct kind *kind;
};

static long
do_call(const struct call *call, int fd)
{
	if (call->fn)
		return call->fn(fd);
	return call->name[1] == 's' ? fsync(fd) : fdatasync(fd);
}

static void
on_fd(struct pt *t, const void *arg)
{
	const struct on_fd *on = arg;
	rsb_autoclose int fd = -1;

	pt_put(t, "file", "contents");
	pt_put(t, "source", "source");
	pt_make(t, PT_DIR, "dir");
	pt_make(t, PT_FIFO, "fifo");
	if (on->kind->path) {
		fd = open(on->kind->path, on->kind->flags | O_CLOEXEC);
		pt_need(t, fd >= 0, on->kind->path);
	}
	pt_got(t, on->call->name, do_call(on->call, fd));
	if (on->kind->path && !(on->kind->flags & (O_DIRECTORY | O_PATH)))
		pt_got(t, "at", lseek(fd, 0, SEEK_CUR));
	pt_show(t, "file", "file");
	pt_cat(t, "file", "file");
	pt_cat(t, "sink", "sink");
}

void
pt_cases_fds(struct pt_run *run)
{
	for (size_t c = 0; c < RSB_ARRAY_SIZE(calls); c++) {
		for (size_t k = 0; k < RSB_ARRAY_SIZE(kinds); k++) {
			const struct on_fd on = { .call = &calls[c], .kind = &kinds[k] };

			pt_case(run, on_fd, &on, "fd.%s of %s", calls[c].name, kinds[k].name);
		}
	}
}
