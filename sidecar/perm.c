/* SPDX-License-Identifier: MIT */
#include "sidecar/perm.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/cleanup.h"

int
rsb_perm_set(const struct rsb_root *root, int fd, mode_t mode)
{
	char name[RSB_PROC_NAME_SIZE];
	struct stat st;

	if (fchmod(fd, mode) == 0)
		return 0;
	if (errno != EBADF)
		return -errno;
	/* Of O_PATH. Some kernels change the mode of a link and then say that they cannot. */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -EOPNOTSUPP;
	int proc_fd = rsb_root_proc_link(root, fd, name);
	if (proc_fd >= 0)
		return fchmodat(proc_fd, name, mode, 0) < 0 ? -errno : 0;
	rsb_autoclose int new_fd = rsb_root_reopen(root, fd, O_RDONLY);
	if (new_fd < 0)
		return new_fd;
	return fchmod(new_fd, mode) < 0 ? -errno : 0;
}

int
rsb_perm_kill_suidgid(const struct rsb_root *root, int fd)
{
	mode_t kill = S_ISUID;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_mode & S_IXGRP)
		kill |= S_ISGID;
	if (!(st.st_mode & kill))
		return 0;
	return rsb_perm_set(root, fd, st.st_mode & 07777 & ~kill);
}
