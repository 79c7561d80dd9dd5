/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/spawn.h"

#include "sidecar/envd/init.h"
#include "sidecar/envd/layers.h"
#include "sidecar/envd/userns.h"

#define INNER_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Descriptors of the process in between; -1 where not open. */
struct passage {
	int exe;    /* this program's file */
	int config; /* a memfd for pid 1 */
	int userns; /* inner user namespace */
	int pid_fd; /* pid 1's number, or a negative errno, goes here */
	int ready;  /* pid 1's report goes here */
};

int
rsb_boot_seal(char *const argv[])
{
	rsb_autoclose int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	rsb_autoclose int copy = -1;
	struct stat st;
	char *env[] = { NULL };
	off_t left;
	int seals;

	if (self < 0 || fstat(self, &st) < 0)
		return -errno;
	seals = fcntl(self, F_GET_SEALS);
	if (seals >= 0 && (seals & SEALS) == SEALS)
		return 0;
	copy = memfd_create("rsb-envd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return -errno;
	for (left = st.st_size; left > 0;) {
		ssize_t n = sendfile(copy, self, NULL, (size_t)left);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	if (fchmod(copy, 0555) < 0 || fcntl(copy, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	(void)syscall(SYS_execveat, copy, "", argv, env, AT_EMPTY_PATH);
	return -errno;
}

/* ---- the process in between ---- */

/* In the child that becomes pid 1; its /proc is still the host's. */
static rsb_noreturn void
exec_init(const struct passage *p)
{
	char *argv[] = { (char *)(uintptr_t) "rsb-envd", (char *)(uintptr_t) "--init", NULL };
	char *env[] = { NULL };
	int r;

	rsb_spawn_reset_signals();
	if (dup3(p->config, RSB_INIT_CONFIG_FD, 0) >= 0 &&
		dup3(p->ready, RSB_INIT_READY_FD, 0) >= 0)
		(void)syscall(SYS_execveat, p->exe, "", argv, env, AT_EMPTY_PATH);
	r = -errno;
	(void)dprintf(p->ready, "cannot start rsb-envd in the sandbox: %s", strerror(-r));
	_exit(1);
}

/*
 * Enters the sandbox's namespaces and leaves pid 1 behind as a child of the monitor
 * (CLONE_PARENT), so that the monitor is the one who waits for it.
 */
static rsb_noreturn void
pass(const struct passage *p)
{
	int r = rsb_userns_enter(p->userns);
	long pid;

	if (r == 0 && unshare(INNER_NAMESPACES) < 0)
		r = -errno;
	if (r == 0) {
		/* By number: glibc's fork() knows no CLONE_PARENT, and the child execs at once. */
		pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
		if (pid == 0)
			exec_init(p);
		r = pid < 0 ? -errno : (int)pid;
	}
	(void)rsb_fd_write_full(p->pid_fd, &r, sizeof(r));
	_exit(r < 0);
}

/* Above the numbers that pid 1 gets, so that dup3() there overwrites none of them. */
static int
raise_fd(int *fd)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, RSB_INIT_FD_FREE);

	if (high < 0)
		return -errno;
	(void)close(*fd);
	*fd = high;
	return 0;
}

static int
make_config(struct rsb_bytes text, int *ret_fd)
{
	rsb_autoclose int fd = memfd_create("config", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = rsb_fd_write_full(fd, text.data, text.size);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = raise_fd(&fd);
	if (r < 0)
		return r;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

static int
make_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = fds[0];
	*ret_write = fds[1];
	return raise_fd(ret_write);
}

/* The passage's child waits for go, so that it is in the control group before it makes others. */
static int
fork_passage(struct rsb_boot *boot, const struct passage *p, const struct rsb_boxgroup *cgroup,
	int pid_read)
{
	rsb_autoclose int go_read = -1, go = -1;
	pid_t child;
	char c = 0;
	size_t size;
	int pid, r;

	r = make_pipe(&go_read, &go);
	if (r < 0)
		return r;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		(void)close(rsb_steal_fd(&go));
		if (read(go_read, &c, 1) != 1)
			_exit(1);
		pass(p);
	}
	rsb_boxgroup_enter(cgroup, child);
	if (write(go, &c, 1) != 1)
		return -errno;
	r = rsb_fd_read_full(pid_read, &pid, sizeof(pid), &size);
	(void)waitpid(child, NULL, 0); /* its message is what counts */
	if (r < 0 || size != sizeof(pid))
		return r < 0 ? r : -EPIPE;
	if (pid < 0)
		return pid;
	boot->pid = pid;
	/* Our child: the number stays its own until it is waited for. */
	boot->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return boot->pidfd < 0 ? -errno : 0;
}

/* pid 1 says nothing and closes when it is ready, else it says why not. */
static int
await_ready(int fd, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_DIAG_MAX };
	int r = rsb_fd_read_all(fd, &text);

	if (r < 0)
		return r;
	if (rsb_buf_len(&text) == 1 && rsb_buf_head(&text)[0] == RSB_INIT_READY)
		return 0;
	if (rsb_buf_len(&text) == 0)
		return rsb_diag_set(diag, -EIO, "the sandbox ended while it started");
	return rsb_diag_set(
		diag, -EIO, "%.*s", (int)rsb_buf_len(&text), (const char *)rsb_buf_head(&text));
}

static int
open_passage(struct passage *p, const struct rsb_userns *ns, struct rsb_bytes text,
	struct rsb_diag *diag)
{
	int r = make_config(text, &p->config);

	if (r < 0)
		return r;
	p->exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (p->exe < 0)
		return -errno;
	r = raise_fd(&p->exe);
	if (r < 0)
		return r;
	return rsb_userns_inner(ns, &p->userns, diag);
}

int
rsb_boot_start(struct rsb_boot *boot, const struct rsb_bootcfg *cfg, struct rsb_bytes text,
	const struct rsb_boxgroup *cgroup, struct rsb_diag *diag)
{
	rsb_autoclose int exe = -1, config = -1, userns = -1, pid_read = -1, pid_write = -1;
	rsb_autoclose int ready_read = -1, ready_write = -1;
	struct passage p = { -1, -1, -1, -1, -1 };
	struct rsb_userns ns;
	int r;

	/* Before the namespaces: /proc/self/exe may be out of reach for the sandbox's root. */
	r = rsb_userns_outer(cfg->uid_base, &ns, diag);
	if (r < 0)
		return r;
	r = open_passage(&p, &ns, text, diag);
	exe = p.exe;
	config = p.config;
	userns = p.userns;
	if (r < 0)
		return r;
	r = rsb_layers_build(cfg, &ns, userns, diag);
	if (r < 0)
		return r;
	r = make_pipe(&pid_read, &pid_write);
	if (r < 0)
		return r;
	r = make_pipe(&ready_read, &ready_write);
	if (r < 0)
		return r;
	p.pid_fd = pid_write;
	p.ready = ready_write;
	r = fork_passage(boot, &p, cgroup, pid_read);
	if (r < 0)
		return diag->text[0] ? r
				     : rsb_diag_set(diag, r, "cannot enter the sandbox: %s",
					       rsb_diag_text(NULL, r));
	(void)close(rsb_steal_fd(&ready_write));
	return await_ready(ready_read, diag);
}
