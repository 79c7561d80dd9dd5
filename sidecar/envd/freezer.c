/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/freezer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

#define STAT_MAX 1024
#define STATUS_MAX ((size_t)1 << 20) /* the longest list of groups is in it */
#define ROUND_NS (5L * 1000 * 1000)
#define QUIET_ROUNDS 3
#define PIDS_MAX ((size_t)4 << 20) /* the kernel's own limit (pid_max) */
#define NAMESPACES_MAX 32          /* of the kernel, within each other */

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* ---- by signals: what /proc tells ---- */

struct look {
	char state;
	uint64_t started;
};

/*
 * dir: the directory of a process or a thread in /proc. The name in there is in parentheses and may
 * hold any byte (proc_pid_stat(5)).
 */
static int
look_at(int dir, struct look *ret_look)
{
	rsb_autofree char *text = NULL;
	unsigned long long started;
	char *rest;
	int r = rsb_fd_read_file(dir, "stat", STAT_MAX, &text);

	if (r < 0)
		return r;
	rest = strrchr(text, ')');
	if (!rest ||
		sscanf(rest + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %llu",
			&ret_look->state, &started) != 2)
		return -EBADMSG;
	ret_look->started = started;
	return 0;
}

/* A line break in the name is escaped there. */
static bool
stop_is_pending(int dir)
{
	static const char *const keys[] = { "\nSigPnd:", "\nShdPnd:" };
	rsb_autofree char *text = NULL;

	if (rsb_fd_read_file(dir, "status", STATUS_MAX, &text) < 0)
		return false;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(keys); i++) {
		const char *at = strstr(text, keys[i]);

		if (at && strtoull(at + strlen(keys[i]), NULL, 16) & 1ULL << (SIGSTOP - 1))
			return true;
	}
	return false;
}

/*
 * What waits in the kernel where no signal reaches it (a parent for the end of its vfork, which was
 * stopped) stops before it does anything else.
 */
static bool
stands_still(int dir, char state)
{
	return strchr("TtZX", state) || (state == 'D' && stop_is_pending(dir));
}

/* In the pid namespace ns or one below it. Not what is gone, or not ours to see. */
static bool
is_within(int dir, ino_t ns)
{
	rsb_autoclose int fd = openat(dir, "ns/pid", O_RDONLY | O_CLOEXEC);
	struct stat st;

	for (int i = 0; i <= NAMESPACES_MAX && fd >= 0 && fstat(fd, &st) == 0; i++) {
		int above;

		if (st.st_ino == ns)
			return true;
		above = ioctl(fd, NS_GET_PARENT); /* close-on-exec */
		(void)close(fd);
		fd = above; /* -1 above our own */
	}
	return false;
}

static int
open_process(pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- by signals ---- */

/* Once through all processes. */
struct round {
	struct rsb_freezer *freezer;
	ino_t ns; /* the sandbox's */
	uint64_t end_ns;
	bool ran;      /* one of them did */
	uint64_t seen; /* a hash of all its threads, the ended ones that are still there included */
};

struct process {
	pid_t pid;
	int pidfd;
	uint64_t started;
	bool ran;
};

/* Before the first signal to one that is to be noted. */
static int
make_room(struct rsb_freezer *freezer)
{
	struct rsb_frozen *bigger;
	size_t n = rsb_max((size_t)16, 2 * freezer->n_room);

	if (freezer->n_stopped < freezer->n_room)
		return 0;
	bigger = realloc(freezer->stopped, n * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	freezer->stopped = bigger;
	freezer->n_room = n;
	return 0;
}

static void
note(struct rsb_freezer *freezer, pid_t pid, uint64_t started)
{
	for (size_t i = freezer->n_stopped; i-- > 0;) {
		if (freezer->stopped[i].pid == pid && freezer->stopped[i].started == started)
			return;
	}
	freezer->stopped[freezer->n_stopped++] =
		(struct rsb_frozen){ .pid = pid, .started = started };
}

static void
count_in(struct round *round, uint64_t value)
{
	round->seen = (round->seen ^ value) * 0x100000001b3; /* FNV-1a */
}

/*
 * The signal is for the whole process, but sent to each thread that runs, too: one that nothing
 * reaches may have got that of the process. An old kernel knows no such pidfd.
 */
static void
stop_thread(struct round *round, struct process *process, int threads, const char *name, pid_t tid)
{
	rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
	rsb_autoclose int dir = openat(threads, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct look look;

	if (dir < 0 || look_at(dir, &look) < 0)
		return;
	count_in(round, (uint64_t)tid);
	count_in(round, look.started);
	if (stands_still(dir, look.state))
		return;
	if (!process->ran) {
		note(round->freezer, process->pid, process->started);
		(void)syscall(SYS_pidfd_send_signal, process->pidfd, SIGSTOP, NULL, 0);
	}
	process->ran = round->ran = true;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, NULL, 0);
}

/* Each one is looked at: the first may have ended alone, and is a zombie while the others run. */
static void
stop_threads(struct round *round, struct process *process, int dir)
{
	int fd = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autoclosedir DIR *threads = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t tid;

	while (threads && rsb_now_ns() < round->end_ns && (entry = readdir(threads))) {
		if (rsb_str_u64(entry->d_name, INT_MAX, &tid) == 0)
			stop_thread(round, process, fd, entry->d_name, (pid_t)tid);
	}
}

/* The directory is that of one process, and empty when it is gone, whoever has its number then. */
static int
stop_process(struct round *round, pid_t pid)
{
	rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rsb_autoclose int dir = open_process(pid);
	struct process process = { .pid = pid, .pidfd = pidfd };
	struct look look;

	if (pidfd < 0 || dir < 0 || !is_within(dir, round->ns) || look_at(dir, &look) < 0)
		return 0;
	if (make_room(round->freezer) < 0)
		return -ENOMEM;
	process.started = look.started;
	stop_threads(round, &process, dir);
	return rsb_now_ns() < round->end_ns ? 0 : -ETIMEDOUT;
}

static int
list_all(struct rsb_buf *pids)
{
	rsb_autoclosedir DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t number;
	int r = 0;

	if (!proc)
		return -errno;
	while (r == 0 && (entry = readdir(proc))) {
		if (rsb_str_u64(entry->d_name, INT_MAX, &number) == 0)
			r = rsb_buf_append(pids, &(pid_t){ (pid_t)number }, sizeof(pid_t));
	}
	return r;
}

/* The newest first: of those that fork and end it is the one that may be met alive. */
static int
stop_all(struct round *round)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf pids = { .max = PIDS_MAX * sizeof(pid_t) };
	int r = list_all(&pids);

	for (size_t end = rsb_buf_len(&pids); r == 0 && end > 0; end -= sizeof(pid_t)) {
		pid_t pid;

		memcpy(&pid, rsb_buf_head(&pids) + end - sizeof(pid), sizeof(pid));
		r = stop_process(round, pid);
	}
	return r;
}

/*
 * One round that finds nobody running is no proof: of processes that fork and end, each can be gone
 * when it is looked at, and its child behind. So several in a row have to meet the very same ones.
 */
static int
stop(struct rsb_freezer *freezer)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	const uint64_t end_ns = rsb_now_ns() + RSB_FREEZER_NS;
	uint64_t last = 0;
	rsb_autoclose int init = open_process(freezer->init);
	struct stat st;

	if (init < 0 || fstatat(init, "ns/pid", &st, 0) < 0)
		return -errno;
	for (int quiet = 0; quiet < QUIET_ROUNDS;) {
		struct round round = { .freezer = freezer, .ns = st.st_ino, .end_ns = end_ns };
		int r = stop_all(&round);

		if (r < 0)
			return r;
		if (round.ran)
			quiet = 0;
		else
			quiet = round.seen == last ? quiet + 1 : 1;
		last = round.seen;
		if (round.ran)
			(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static void
go_on(struct rsb_freezer *freezer)
{
	for (size_t i = 0; i < freezer->n_stopped; i++) {
		const struct rsb_frozen *one = &freezer->stopped[i];
		rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, one->pid, 0);
		rsb_autoclose int dir = open_process(one->pid);
		struct look look;

		if (pidfd >= 0 && dir >= 0 && look_at(dir, &look) == 0 &&
			look.started == one->started)
			(void)syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
	}
	freezer->n_stopped = 0;
}

/* ---- both ---- */

int
rsb_freezer_freeze(struct rsb_freezer *freezer)
{
	int r = rsb_boxgroup_freeze(freezer->cgroup, true, RSB_FREEZER_NS);

	if (r == -EOPNOTSUPP)
		r = stop(freezer);
	if (r < 0)
		rsb_freezer_thaw(freezer);
	return r;
}

void
rsb_freezer_thaw(struct rsb_freezer *freezer)
{
	(void)!rsb_boxgroup_freeze(freezer->cgroup, false, 0); /* it has none, or was not frozen */
	go_on(freezer);
}

void
rsb_freezer_done(struct rsb_freezer *freezer)
{
	free(freezer->stopped);
}
