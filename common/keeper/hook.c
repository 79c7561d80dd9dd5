/* SPDX-License-Identifier: MIT */
#include "keeper/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/spawn.h"
#include "util/str.h"

/* env with vars in place of those of the same names. Caller frees the array. */
static const char **
join(char *const *env, const char *const *vars)
{
	const char **joined;
	size_t n_env = 0;
	size_t n = 0;

	while (env[n_env])
		n_env++;
	joined = rsb_new_array(const char *, n_env + RSB_HOOK_VARS_MAX + 1);
	if (!joined)
		return NULL;
	while (n < RSB_HOOK_VARS_MAX && vars[n]) {
		joined[n] = vars[n];
		n++;
	}
	for (size_t i = 0; i < n_env; i++) {
		size_t name = strcspn(env[i], "=");
		bool taken = false;

		for (size_t k = 0; vars[k] && !taken; k++)
			taken = strncmp(vars[k], env[i], name) == 0 && vars[k][name] == '=';
		if (!taken)
			joined[n++] = env[i];
	}
	return joined;
}

/* 0: it has ended. */
static int
wait_for(int pid_fd, const struct rsb_hook *hook)
{
	struct pollfd fds[2] = { { .fd = pid_fd, .events = POLLIN },
		{ .fd = hook->stop_fd, .events = POLLIN } };
	const uint64_t end_ns = rsb_now_ns() + hook->timeout_ns;

	for (;;) {
		uint64_t now_ns = rsb_now_ns();
		uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / RSB_NSEC_PER_MSEC + 1 : 0;
		int n = poll(fds, RSB_ARRAY_SIZE(fds), (int)rsb_min(left_ms, UINT64_C(60000)));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && fds[0].revents)
			return 0;
		if (n > 0)
			return -ECANCELED;
		if (left_ms == 0)
			return -ETIMEDOUT;
	}
}

int
rsb_hook_run(const struct rsb_hook *hook, struct rsb_diag *diag)
{
	const char *const argv[] = { "/bin/sh", "-c", hook->command, NULL };
	rsb_autofree const char **env = join(hook->env, hook->vars);
	rsb_autoclose int pid_fd = -1;
	rsb_autoclose int leash = -1;
	struct rsb_spawn spawn = { .argv = argv,
		.env = env,
		.cwd = hook->cwd,
		.stdio = { -1, hook->quiet ? -1 : 2, hook->quiet ? -1 : 2 },
		.setsid = 1 };
	int ends[2];
	pid_t pid;
	int r, status;

	if (!env)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	leash = ends[1];
	spawn.leash_fd = &ends[0];
	r = rsb_spawn(&spawn, &pid, &pid_fd);
	(void)close(ends[0]);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "'%s' cannot be started: %s", hook->command, strerror(-r));
	r = wait_for(pid_fd, hook);
	/* What it left in its session ends with it only when it was not done, or we are killed. */
	if (r < 0)
		(void)close(rsb_steal_fd(&leash));
	status = rsb_spawn_wait(pid);
	if (r == -ETIMEDOUT)
		return rsb_diag_set(diag, r, "'%s' took longer than %llu s and was ended",
			hook->command, (unsigned long long)(hook->timeout_ns / RSB_NSEC_PER_SEC));
	if (r < 0)
		return rsb_diag_set(diag, r, "'%s' was ended", hook->command);
	return status;
}

int
rsb_hook_about(const struct rsb_hook_about *about, char *ret_vars[static RSB_HOOK_ABOUT_N])
{
	ret_vars[0] = rsb_str_printf("RSB_SANDBOX=%s", about->sandbox);
	ret_vars[1] = rsb_str_printf("RSB_SANDBOX_ID=%s", about->sandbox_id);
	ret_vars[2] = rsb_str_printf("RSB_DIR=%s", about->dir);
	return ret_vars[0] && ret_vars[1] && ret_vars[2] ? 0 : -ENOMEM;
}
