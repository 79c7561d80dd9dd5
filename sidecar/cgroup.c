/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "cgroup"
#include "sidecar/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/str.h"

#define NAME_SIZE 80
#define TEXT_MAX ((size_t)1 << 20)
#define PIDFD_SELF_CHECK_SIZE 4096
#define STAT_MAX 4096

struct rsb_cgroups {
	int parent_fd;
	int dir_fd;
	char name[NAME_SIZE];
	uint64_t pid_ns;
	uint64_t next;
};

/*
 * The mount point of cgroup2 whose root is the whole hierarchy (or namespace), from
 * proc_pid_mountinfo(5).
 */
static int
find_mount(char **ret_path)
{
	rsb_autofree char *text = NULL;
	char *save = NULL;
	int r;

	r = rsb_fd_read_file(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &text);
	if (r < 0)
		return r;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char root[256], point[256];

		if (!strstr(line, " - cgroup2 ") ||
			sscanf(line, "%*d %*d %*s %255s %255s", root, point) != 2 ||
			strcmp(root, "/") != 0)
			continue;
		*ret_path = strdup(point);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

/* The cgroup that we run in, below the mount. */
static int
find_own(char **ret_path)
{
	rsb_autofree char *text = NULL;
	const char *line;
	int r;

	r = rsb_fd_read_file(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &text);
	if (r < 0)
		return r;
	line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	if (!line)
		return -ENOENT;
	line = strchr(line, '/') + 1;
	*ret_path = rsb_str_printf("%.*s", (int)strcspn(line, "\n"), line);
	return *ret_path ? 0 : -ENOMEM;
}

static int
open_parent(void)
{
	rsb_autofree char *mount = NULL;
	rsb_autofree char *own = NULL;
	rsb_autofree char *path = NULL;
	int fd, r;

	r = find_mount(&mount);
	if (r == 0)
		r = find_own(&own);
	if (r < 0)
		return r;
	path = rsb_str_path(mount, own);
	if (!path)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
write_file(int dir_fd, const char *name, const char *text)
{
	rsb_autoclose int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return rsb_fd_write_full(fd, text, strlen(text));
}

/* Clock ticks since boot: field 22 of proc_pid_stat(5), behind a name that may hold anything. */
static int
read_start(pid_t pid, uint64_t *ret_start)
{
	rsb_autofree char *text = NULL;
	char path[NAME_SIZE];
	const char *end;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = rsb_fd_read_file(AT_FDCWD, path, STAT_MAX, &text);
	if (r < 0)
		return r;
	end = strrchr(text, ')');
	if (!end || sscanf(end,
			    ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			    "%*d %*d %*d %" SCNu64,
			    ret_start) != 1)
		return -EBADMSG;
	return 0;
}

/* Who made it, so that the next one can tell whether that sidecar is dead. */
static int
name_it(struct rsb_cgroups *cgroups)
{
	struct stat st;
	uint64_t start;
	int r;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return -errno;
	cgroups->pid_ns = st.st_ino;
	r = read_start(getpid(), &start);
	if (r < 0)
		return r;
	(void)snprintf(cgroups->name, sizeof(cgroups->name), "rsb.%d.%" PRIu64 ".%" PRIu64,
		(int)getpid(), start, cgroups->pid_ns);
	return 0;
}

/* Only with proof: numbers of another PID name space say nothing here. */
static bool
is_stale(const struct rsb_cgroups *cgroups, const char *name)
{
	uint64_t start, pid_ns, start_now;
	int pid, n = 0;

	if (sscanf(name, "rsb.%d.%" SCNu64 ".%" SCNu64 "%n", &pid, &start, &pid_ns, &n) != 3 ||
		name[n] || pid <= 0 || pid_ns != cgroups->pid_ns)
		return false;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return true;
	return read_start(pid, &start_now) == 0 && start_now != start;
}

static int
try_once(struct rsb_cgroups *cgroups)
{
	rsb_autoclose int pidfd = -1;
	struct rsb_cgroup cgroup;
	pid_t pid;
	int r;

	r = rsb_cgroup_make(cgroups, &cgroup);
	if (r < 0)
		return r;
	r = rsb_cgroup_fork(&cgroup, &pid, &pidfd);
	if (r == 0 && pid == 0) {
		(void)pause(); /* until it is killed: that is what is tried */
		_exit(0);
	}
	if (r == 0) {
		r = rsb_cgroup_kill(&cgroup);
		if (r < 0)
			(void)kill(pid, SIGKILL); /* ours, and not reaped yet */
		(void)waitpid(pid, NULL, 0);
	}
	if (r == 0 && rsb_cgroup_populated(&cgroup) != 0)
		r = -EOPNOTSUPP;
	rsb_cgroup_remove(cgroups, &cgroup);
	return r;
}

/* Killed processes take a moment to leave. */
static void
remove_patiently(int dir_fd, const char *name)
{
	for (int i = 0; i < 100 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno == EBUSY; i++)
		(void)usleep(1000);
}

/* Kills what lives in it and removes what is below. */
static void
empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autoclosedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	(void)write_file(dir_fd, "cgroup.kill", "1"); /* nothing else is possible */
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			remove_patiently(dir_fd, entry->d_name);
}

/*
 * What sidecars that were killed have left: nobody can reach its processes any more, as nobody can
 * when a sidecar ends in order.
 */
static void
sweep(struct rsb_cgroups *cgroups)
{
	int fd = openat(cgroups->parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autoclosedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		rsb_autoclose int dir_fd = -1;

		if (!is_stale(cgroups, entry->d_name))
			continue;
		dir_fd = openat(cgroups->parent_fd, entry->d_name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (dir_fd < 0)
			continue;
		empty(dir_fd);
		remove_patiently(cgroups->parent_fd, entry->d_name);
	}
}

int
rsb_cgroups_new(struct rsb_cgroups **ret_cgroups)
{
	struct rsb_cgroups *cgroups = rsb_new(struct rsb_cgroups);
	int r;

	if (!cgroups)
		return -ENOMEM;
	cgroups->dir_fd = -1;
	cgroups->parent_fd = open_parent();
	r = rsb_min(cgroups->parent_fd, 0);
	if (r == 0)
		r = name_it(cgroups);
	if (r == 0 && mkdirat(cgroups->parent_fd, cgroups->name, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		cgroups->dir_fd = openat(cgroups->parent_fd, cgroups->name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		r = cgroups->dir_fd < 0 ? -errno : try_once(cgroups);
	}
	if (r < 0) {
		rsb_cgroups_free(cgroups);
		return r;
	}
	sweep(cgroups);
	*ret_cgroups = cgroups;
	return 0;
}

void
rsb_cgroups_free(struct rsb_cgroups *cgroups)
{
	if (!cgroups)
		return;
	if (cgroups->dir_fd >= 0) {
		empty(cgroups->dir_fd);
		(void)close(cgroups->dir_fd);
	}
	if (cgroups->parent_fd >= 0) {
		remove_patiently(cgroups->parent_fd, cgroups->name);
		(void)close(cgroups->parent_fd);
	}
	free(cgroups);
}

int
rsb_cgroup_make(struct rsb_cgroups *cgroups, struct rsb_cgroup *ret_cgroup)
{
	struct rsb_cgroup cgroup = { .number = cgroups->next++, .dir_fd = -1, .events_fd = -1 };
	char name[NAME_SIZE];
	int r = 0;

	(void)snprintf(name, sizeof(name), "%" PRIu64, cgroup.number);
	if (mkdirat(cgroups->dir_fd, name, 0755) < 0)
		return -errno;
	cgroup.dir_fd =
		openat(cgroups->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (cgroup.dir_fd >= 0)
		cgroup.events_fd = openat(cgroup.dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (cgroup.events_fd < 0)
		r = -errno;
	if (r < 0)
		rsb_cgroup_remove(cgroups, &cgroup);
	else
		*ret_cgroup = cgroup;
	return r;
}

void
rsb_cgroup_remove(struct rsb_cgroups *cgroups, struct rsb_cgroup *cgroup)
{
	char name[NAME_SIZE];

	rsb_cleanup_close(&cgroup->events_fd);
	rsb_cleanup_close(&cgroup->dir_fd);
	cgroup->events_fd = -1;
	cgroup->dir_fd = -1;
	(void)snprintf(name, sizeof(name), "%" PRIu64, cgroup->number);
	if (unlinkat(cgroups->dir_fd, name, AT_REMOVEDIR) < 0)
		(void)rsb_dbg_r(-errno, "cgroup %s stays for now", name);
}

int
rsb_cgroup_fork(struct rsb_cgroup *cgroup, pid_t *ret_pid, int *ret_pidfd)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = (uint64_t)CLONE_PIDFD | CLONE_INTO_CGROUP,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (unsigned int)cgroup->dir_fd,
	};
	sigset_t all, old;
	long pid;
	int r;

	/* No handler of ours may run in the child; it empties the mask when it has none left. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	r = pid < 0 ? -errno : 0;
	if (pid != 0)
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return r;
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}

int
rsb_cgroup_populated(struct rsb_cgroup *cgroup)
{
	char text[256];
	ssize_t n = pread(cgroup->events_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = 0;
	return strstr(text, "populated 0") ? 0 : 1;
}

int
rsb_cgroup_kill(struct rsb_cgroup *cgroup)
{
	return write_file(cgroup->dir_fd, "cgroup.kill", "1");
}

/*
 * A number may have been given to another process since it was listed: look again, holding the
 * process by a pidfd.
 */
static bool
is_member(struct rsb_cgroup *cgroup, pid_t pid)
{
	rsb_autofree char *text = NULL;
	char path[NAME_SIZE], tail[NAME_SIZE];
	char *line, *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	(void)snprintf(tail, sizeof(tail), "/%" PRIu64, cgroup->number);
	if (rsb_fd_read_file(AT_FDCWD, path, PIDFD_SELF_CHECK_SIZE, &text) < 0)
		return false;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return false;
	line += line[0] == '\n';
	end = line + strcspn(line, "\n");
	return strstr(line, "/rsb.") && (size_t)(end - line) > strlen(tail) &&
	       strncmp(end - strlen(tail), tail, strlen(tail)) == 0;
}

static bool
signal_one(struct rsb_cgroup *cgroup, pid_t pid, int signal, pid_t pgid)
{
	rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0 || !is_member(cgroup, pid) || (pgid > 0 && getpgid(pid) != pgid))
		return false;
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
}

/* Calls for each listed process; returns their number. signal 0: only counts. */
static int
walk(struct rsb_cgroup *cgroup, int signal, pid_t pgid)
{
	rsb_autofree char *text = NULL;
	char *save = NULL;
	int n = 0;
	int r;

	r = rsb_fd_read_file(cgroup->dir_fd, "cgroup.procs", TEXT_MAX, &text);
	if (r < 0)
		return r;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t pid;

		if (rsb_str_u64(line, INT32_MAX, &pid) < 0 || pid == 0)
			continue;
		n += signal == 0 || signal_one(cgroup, (pid_t)pid, signal, pgid);
	}
	return n;
}

int
rsb_cgroup_signal(struct rsb_cgroup *cgroup, int signal, pid_t pgid)
{
	return walk(cgroup, signal, pgid);
}

int
rsb_cgroup_count(struct rsb_cgroup *cgroup)
{
	return walk(cgroup, 0, 0);
}
