/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/spawn.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_RUN 126

struct pipes {
	int in[2];
	int out[2];
	int err[2];
};

static void
close_pipes(struct pipes *p)
{
	int *fds = (int *)p;

	for (size_t i = 0; i < sizeof(*p) / sizeof(int); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
}

static int
open_pipes(bool with_stdin, struct pipes *p)
{
	if (with_stdin) {
		if (pipe2(p->in, O_CLOEXEC) < 0)
			return -errno;
	} else {
		p->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (p->in[0] < 0)
			return -errno;
	}
	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

/* By number: the C library's own would wait for threads that the child does not have. */
static int
become_user(const struct rsb_user *user)
{
	if (user->uid == 0)
		return 0;
	if (syscall(SYS_setgroups, user->n_group, user->groups) < 0)
		return -errno;
	if (syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0)
		return -errno;
	if (syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
		return -errno;
	return 0;
}

static rsb_noreturn void
complain(const char *what, int r)
{
	const char *why = r == -ENOENT || r == -ENOTDIR ? ": not found\n" : ": Permission denied\n";
	struct iovec text[] = {
		{ .iov_base = (void *)(uintptr_t) "sh: ", .iov_len = 4 },
		{ .iov_base = (void *)(uintptr_t)what, .iov_len = strlen(what) },
		{ .iov_base = (void *)(uintptr_t)why, .iov_len = strlen(why) },
	};

	(void)!writev(STDERR_FILENO, text, RSB_ARRAY_SIZE(text)); /* the status says it too */
	_exit(r == -ENOENT || r == -ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

/* Between fork and exec: no memory, no locks. */
static rsb_noreturn void
run_child(const struct rsb_launch *spec, const struct pipes *p)
{
	int r;

	(void)setsid();
	if (dup2(p->in[0], 0) < 0 || dup2(p->out[1], 1) < 0 || dup2(p->err[1], 2) < 0)
		_exit(EXIT_NOT_RUN);
	rsb_spawn_close_fds(NULL, 0);
	rsb_spawn_reset_signals();
	r = become_user(spec->user);
	if (r < 0)
		complain(spec->user->name, r);
	if (chdir(spec->cwd) < 0)
		complain(spec->cwd, -errno);
	/* execvp(3) looks at this PATH, as the shell that envd uses would. */
	environ = spec->env;
	(void)execvp(spec->argv[0], spec->argv);
	complain(spec->argv[0], -errno);
}

int
rsb_launch(const struct rsb_launch *spec, struct rsb_launched *ret_launched)
{
	RSB_CLEANUP(close_pipes) struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	sigset_t all, old;
	pid_t pid;
	int r;

	r = open_pipes(spec->with_stdin, &p);
	if (r < 0)
		return r;
	if (spec->with_stdin)
		r = rsb_fd_nonblock(p.in[1], true);
	if (r == 0)
		r = rsb_fd_nonblock(p.out[0], true);
	if (r == 0)
		r = rsb_fd_nonblock(p.err[0], true);
	if (r < 0)
		return r;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	r = pid < 0 ? -errno : 0;
	if (pid == 0)
		run_child(spec, &p);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return r;
	*ret_launched = (struct rsb_launched){
		.pid = pid,
		.in = rsb_steal_fd(&p.in[1]),
		.out = rsb_steal_fd(&p.out[0]),
		.err = rsb_steal_fd(&p.err[0]),
	};
	return 0;
}
