/* SPDX-License-Identifier: MIT */
#include "exec/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/where.h"
#include "proto/limits.h"
#include "util/cleanup.h"

#define PROGRAM_SIZE 32

static bool
leads_below(int dir_fd, const char *link, const char *path)
{
	char target[RSB_PATH_MAX + 1];
	ssize_t n = readlinkat(dir_fd, link, target, sizeof(target) - 1);

	if (n < 0)
		return false;
	target[n] = '\0';
	return rsb_where_below(target, path) != NULL;
}

static bool
has_open(int proc_fd, const char *path)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autoclosedir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while ((entry = readdir(dir)))
		if (leads_below(fd, entry->d_name, path))
			return true;
	return false;
}

static bool
has_mapped(int proc_fd, const char *path)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	rsb_autofclose FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
	rsb_autofree char *line = NULL;
	size_t cap = 0;

	if (!file) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while (getline(&line, &cap, file) >= 0) {
		const char *slash = strchr(line, '/');

		if (slash && rsb_where_below(slash, path))
			return true;
	}
	return false;
}

static bool
holds(int proc_fd, const char *path)
{
	return leads_below(proc_fd, "cwd", path) || leads_below(proc_fd, "root", path) ||
	       has_open(proc_fd, path) || has_mapped(proc_fd, path);
}

static void
read_program(int proc_fd, char program[static PROGRAM_SIZE])
{
	rsb_autoclose int fd = openat(proc_fd, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, program, PROGRAM_SIZE - 1) : 0;

	program[n > 0 ? n : 0] = '\0';
	program[strcspn(program, "\n")] = '\0';
	/* A program may call itself anything. */
	for (; *program; program++)
		if (*program < ' ' || *program > '~')
			*program = '?';
}

bool
rsb_holders_is_here(const char *path)
{
	return leads_below(AT_FDCWD, "/proc/self/cwd", path);
}

int
rsb_holders_of(const char *path, struct rsb_buf *out)
{
	rsb_autoclosedir DIR *dir = opendir("/proc");
	const struct dirent *entry;
	size_t n = 0;
	int r = 0;

	if (!dir)
		return -errno;
	while (r >= 0 && n < RSB_HOLDERS_MAX && (entry = readdir(dir))) {
		rsb_autoclose int fd = -1;
		char program[PROGRAM_SIZE];

		if (entry->d_name[strspn(entry->d_name, "0123456789")] ||
			atoi(entry->d_name) == getpid())
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || !holds(fd, path))
			continue;
		read_program(fd, program);
		r = rsb_buf_printf(out, "%s%s (%s)", n++ ? ", " : "", entry->d_name, program);
	}
	return r;
}
