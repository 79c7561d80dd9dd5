/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/boxgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"

#define PIDS_MAX "16384"
#define REMOVE_TRIES 100
#define REMOVE_PAUSE_NS (10L * 1000 * 1000)
#define FILE_MAX 4096

static int
open_file(const struct rsb_boxgroup *cgroup, const char *name, int flags)
{
	rsb_autoclose int dir = open(cgroup->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, name, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int
write_file(const struct rsb_boxgroup *cgroup, const char *name, const char *text)
{
	rsb_autoclose int fd = open_file(cgroup, name, O_WRONLY);

	return fd < 0 ? fd : rsb_fd_write_full(fd, text, strlen(text));
}

void
rsb_boxgroup_find(struct rsb_boxgroup *cgroup, const char *id)
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
		return;
	}
}

void
rsb_boxgroup_init(struct rsb_boxgroup *cgroup, const char *id)
{
	rsb_boxgroup_find(cgroup, id);
	if (cgroup->path[0] == '\0')
		return;
	if (mkdir(cgroup->path, 0755) < 0)
		cgroup->path[0] = '\0';
	else
		(void)!write_file(cgroup, "pids.max", PIDS_MAX); /* no controller, no limit */
}

void
rsb_boxgroup_enter(const struct rsb_boxgroup *cgroup, pid_t pid)
{
	char text[32];

	if (cgroup->path[0] == '\0')
		return;
	(void)snprintf(text, sizeof(text), "%d", pid);
	(void)!write_file(cgroup, "cgroup.procs", text); /* refused: it is in no group */
}

/* The kernel tells a change of this file by POLLPRI (cgroups(7)). */
static int
await_frozen(const struct rsb_boxgroup *cgroup, uint64_t wait_ns)
{
	rsb_autoclose int fd = open_file(cgroup, "cgroup.events", O_RDONLY);
	uint64_t end_ns = rsb_now_ns() + wait_ns;
	char text[FILE_MAX];

	if (fd < 0)
		return fd;
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		uint64_t now_ns = rsb_now_ns();

		if (n < 0)
			return -errno;
		text[n] = '\0';
		if (strstr(text, "frozen 1"))
			return 0;
		if (now_ns >= end_ns)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((end_ns - now_ns) / RSB_NSEC_PER_MSEC) + 1) < 0 &&
			errno != EINTR)
			return -errno;
	}
}

int
rsb_boxgroup_freeze(const struct rsb_boxgroup *cgroup, bool freeze, uint64_t wait_ns)
{
	int r = cgroup->path[0] ? write_file(cgroup, "cgroup.freeze", freeze ? "1" : "0") : -ENOENT;

	if (r < 0)
		return -EOPNOTSUPP;
	return freeze ? await_frozen(cgroup, wait_ns) : 0;
}

void
rsb_boxgroup_done(struct rsb_boxgroup *cgroup)
{
	struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };

	if (cgroup->path[0] == '\0')
		return;
	(void)!write_file(cgroup, "cgroup.kill", "1"); /* an old kernel: pid 1 has ended them */
	/* The kernel lets go of the last dead process a moment after it was waited for. */
	for (int i = 0; i < REMOVE_TRIES && rmdir(cgroup->path) < 0 && errno == EBUSY; i++)
		(void)nanosleep(&pause, NULL);
	cgroup->path[0] = '\0';
}
