/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/boxgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/fd.h"

#define PIDS_MAX "16384"
#define REMOVE_TRIES 100
#define REMOVE_PAUSE_NS (10L * 1000 * 1000)
#define FILE_MAX 4096

static void
write_file(const struct rsb_boxgroup *cgroup, const char *name, const char *text)
{
	rsb_autoclose int dir = open(cgroup->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	rsb_autoclose int fd = -1;

	if (dir < 0)
		return;
	fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* A kernel without the controller has no such file, or refuses: then there is no limit. */
	(void)rsb_fd_write_full(fd, text, strlen(text));
}

void
rsb_boxgroup_init(struct rsb_boxgroup *cgroup, const char *id)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	rsb_autofree char *own = NULL;
	char probe[64];
	char *line, *end;

	cgroup->path[0] = '\0';
	if (rsb_fd_read_file(AT_FDCWD, "/proc/self/cgroup", FILE_MAX, &own) < 0)
		return;
	line = strncmp(own, "0::", 3) == 0 ? own : strstr(own, "\n0::");
	if (!line)
		return;
	line = strchr(line, '/');
	if (!line)
		return;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	for (size_t i = 0; i < RSB_ARRAY_SIZE(roots); i++) {
		(void)snprintf(probe, sizeof(probe), "%s/cgroup.procs", roots[i]);
		if (access(probe, F_OK) < 0)
			continue;
		(void)snprintf(cgroup->path, sizeof(cgroup->path), "%s%s/rsb-%s", roots[i],
			strcmp(line, "/") == 0 ? "" : line, id);
		if (mkdir(cgroup->path, 0755) < 0)
			cgroup->path[0] = '\0';
		else
			write_file(cgroup, "pids.max", PIDS_MAX);
		return;
	}
}

void
rsb_boxgroup_enter(const struct rsb_boxgroup *cgroup, pid_t pid)
{
	char text[32];

	if (cgroup->path[0] == '\0')
		return;
	(void)snprintf(text, sizeof(text), "%d", pid);
	write_file(cgroup, "cgroup.procs", text);
}

void
rsb_boxgroup_done(struct rsb_boxgroup *cgroup)
{
	struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };

	if (cgroup->path[0] == '\0')
		return;
	write_file(cgroup, "cgroup.kill", "1");
	/* The kernel lets go of the last dead process a moment after it was waited for. */
	for (int i = 0; i < REMOVE_TRIES && rmdir(cgroup->path) < 0; i++)
		(void)nanosleep(&pause, NULL);
	cgroup->path[0] = '\0';
}
