/* SPDX-License-Identifier: MIT */
#include "util/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

#define STEP (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Copies the first component of path to name; its size, or -EINVAL. */
static int
take_name(const char *path, char name[static NAME_MAX + 1])
{
	size_t size = strcspn(path, "/");

	if (!rsb_str_is_component(
		    (struct rsb_bytes){ .data = (const uint8_t *)path, .size = size }))
		return -EINVAL;
	memcpy(name, path, size);
	name[size] = '\0';
	return (int)size;
}

int
rsb_beneath_open(int root_fd, const char *path, int flags)
{
	rsb_autoclose int dir = -1;
	char name[NAME_MAX + 1];
	int fd;

	if (!path[0]) {
		fd = openat(root_fd, ".", flags | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	for (;;) {
		int size = take_name(path, name);
		int from = dir < 0 ? root_fd : dir;

		if (size < 0)
			return size;
		path += size;
		fd = openat(from, name, *path ? STEP : flags | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (!*path)
			return fd;
		path++;
		if (dir >= 0)
			(void)close(dir);
		dir = fd;
	}
}

int
rsb_beneath_parent(int root_fd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	rsb_autofree char *parent = NULL;
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!rsb_str_is_component(rsb_bytes_str(*ret_name)))
		return -EINVAL;
	parent = strndup(path, slash ? (size_t)(slash - path) : 0);
	if (!parent)
		return -ENOMEM;
	fd = rsb_beneath_open(root_fd, parent, O_RDONLY | O_DIRECTORY);
	return fd;
}

int
rsb_beneath_read(int root_fd, const char *path, struct rsb_buf *out)
{
	rsb_autoclose int fd = rsb_beneath_open(root_fd, path, O_RDONLY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? rsb_fd_read_all(fd, out) : -EINVAL;
}
