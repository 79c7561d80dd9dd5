/* SPDX-License-Identifier: MIT */
#include "sidecar/ownfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

/* Nobody else can write into it, or could have another name for it. */
static int
check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 || st.st_mode & 077)
		return -EPERM;
	return 0;
}

static int
lock_file(int fd)
{
	/* Of the process, not of the descriptor, which supervisors of commands have too. */
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
}

int
rsb_ownfile_clear(int fd, size_t size)
{
	return ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

int
rsb_ownfile_allocate(int fd, size_t offset, size_t size)
{
	return -posix_fallocate(fd, (off_t)offset, (off_t)size);
}

int
rsb_ownfile_open(const char *path, size_t size)
{
	rsb_autoclose int fd =
		open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;
	int r;

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	r = check_file(fd);
	if (r == 0)
		r = lock_file(fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)size)
		r = rsb_ownfile_clear(fd, size);
	return r < 0 ? r : rsb_steal_fd(&fd);
}
