/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/freezer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

#define STAT_MAX 1024
#define ROUND_NS (5L * 1000 * 1000)

/* ---- by signals ---- */

struct look {
	char state;
	uint64_t started;
};

/*
 * dir: its directory in /proc. The name in there is in parentheses and may hold any byte
 * (proc_pid_stat(5)).
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

/* The number of its pid namespace; 0: gone, or not ours to see, so not in there either. */
static ino_t
namespace_of(int dir)
{
	struct stat st;

	return fstatat(dir, "ns/pid", &st, 0) < 0 ? 0 : st.st_ino;
}

static int
open_process(pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int
note(struct rsb_freezer *freezer, pid_t pid, uint64_t started)
{
	struct rsb_frozen *bigger;

	if ((freezer->n_stopped & (freezer->n_stopped - 1)) == 0) {
		bigger = realloc(freezer->stopped,
			rsb_max((size_t)16, 2 * freezer->n_stopped) * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		freezer->stopped = bigger;
	}
	freezer->stopped[freezer->n_stopped++] =
		(struct rsb_frozen){ .pid = pid, .started = started };
	return 0;
}

static bool
is_noted(const struct rsb_freezer *freezer, pid_t pid, uint64_t started)
{
	for (size_t i = freezer->n_stopped; i-- > 0;) {
		if (freezer->stopped[i].pid == pid)
			return freezer->stopped[i].started == started;
	}
	return false;
}

/*
 * 1: it still ran, 0: it does not, or is none of the sandbox's. The directory is that of one
 * process, and empty when it is gone, whoever has its number then.
 */
static int
stop_one(struct rsb_freezer *freezer, pid_t pid, ino_t ns)
{
	rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rsb_autoclose int dir = open_process(pid);
	struct look look;

	if (pidfd < 0 || dir < 0 || namespace_of(dir) != ns || look_at(dir, &look) < 0 ||
		strchr("TtZX", look.state))
		return 0;
	if (!is_noted(freezer, pid, look.started) && note(freezer, pid, look.started) < 0)
		return -ENOMEM;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, NULL, 0); /* ESRCH: it is gone */
	return 1;
}

/* Once through all: how many still run. */
static int
stop_all(struct rsb_freezer *freezer, ino_t ns)
{
	rsb_autoclosedir DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t pid;
	int n = 0;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		int r;

		if (rsb_str_u64(entry->d_name, INT_MAX, &pid) < 0)
			continue;
		r = stop_one(freezer, (pid_t)pid, ns);
		if (r < 0)
			return r;
		n += r;
	}
	return n;
}

/* A process that was being forked meanwhile is found in the next round, until one finds none. */
static int
stop(struct rsb_freezer *freezer)
{
	const struct timespec round = { .tv_nsec = ROUND_NS };
	uint64_t end_ns = rsb_now_ns() + RSB_FREEZER_NS;
	rsb_autoclose int init = open_process(freezer->init);
	ino_t ns = init < 0 ? 0 : namespace_of(init);
	int r;

	if (ns == 0)
		return -errno;
	while ((r = stop_all(freezer, ns)) > 0) {
		if (rsb_now_ns() >= end_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&round, NULL);
	}
	return r;
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
