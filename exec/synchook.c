/* SPDX-License-Identifier: MIT */
#include "exec/synchook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exec/beside.h"
#include "exec/outcome.h"
#include "keeper/hook.h"
#include "keeper/mountpoint.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/secret.h"
#include "util/str.h"

#define TOKEN_FILE "sync.token"
#define TOKEN_ENV "RSB_SYNC_TOKEN"
#define TOKEN_SIZE 16u
#define TOKEN_HEX (2 * TOKEN_SIZE)

const char *
rsb_synchook_key(const struct rsb_config *config, bool out)
{
	if (out)
		return config->sync.out_command[0] ? "sync.out_command" : NULL;
	return config->sync.in_command[0] ? "sync.in_command" : NULL;
}

bool
rsb_synchook_inside(const char *state_dir, char **env)
{
	const char *ours = rsb_config_getenv(env, TOKEN_ENV);
	rsb_autofree char *path = rsb_str_path(state_dir, TOKEN_FILE);
	rsb_autofree char *text = NULL;

	return ours && path && rsb_fd_read_file(AT_FDCWD, path, TOKEN_HEX, &text) >= 0 &&
	       strlen(text) == TOKEN_HEX && strcmp(ours, text) == 0;
}

/* ---- what it is told ---- */

enum { MOUNT = RSB_HOOK_ABOUT_N, WORKSPACE, DIRECTION, TOKEN, PATHS, VARS_N };

struct vars {
	char *all[VARS_N + 1];
};

static void
vars_done(struct vars *vars)
{
	for (size_t i = 0; i < VARS_N; i++)
		free(vars->all[i]);
}

/* What it calls is found, if not before then where we are. */
static char *
paths(char **env)
{
	const char *path = rsb_config_getenv(env, "PATH");
	rsb_autofree char *self = rsb_beside("rsb-exec");
	char *slash = self ? strrchr(self, '/') : NULL;

	if (slash)
		*slash = '\0';
	return rsb_str_printf(
		"PATH=%s%s%s", path ? path : "/usr/bin:/bin", slash ? ":" : "", slash ? self : "");
}

static int
fill(const struct rsb_synchook *hook, const char *token, struct vars *vars)
{
	const struct rsb_state *state = hook->state;
	const struct rsb_hook_about about = {
		.sandbox = state->name, .sandbox_id = state->sandbox_id, .dir = state->local_dir
	};
	const bool mounted =
		state->mountpoint[0] && rsb_mountpoint_is_ours(state->mountpoint, state->name);
	int r = rsb_hook_about(&about, vars->all);

	vars->all[MOUNT] = rsb_str_printf("RSB_MOUNT=%s", mounted ? state->mountpoint : "");
	vars->all[WORKSPACE] = rsb_str_printf("RSB_WORKSPACE=%s", state->workspace);
	vars->all[DIRECTION] = rsb_str_printf("RSB_SYNC_DIRECTION=%s", hook->out ? "out" : "in");
	vars->all[TOKEN] = rsb_str_printf(TOKEN_ENV "=%s", token);
	vars->all[PATHS] = paths(hook->env);
	for (size_t i = 0; i < VARS_N && r >= 0; i++)
		r = vars->all[i] ? 0 : -ENOMEM;
	return r;
}

/* ---- running it ---- */

static int
run(const struct rsb_synchook *hook, const struct vars *vars, int stop_fd, struct rsb_diag *diag)
{
	const struct rsb_config *config = hook->config;
	const struct rsb_hook what = { .command = hook->out ? config->sync.out_command
							    : config->sync.in_command,
		.env = hook->env,
		.vars = (const char *const *)vars->all,
		.cwd = hook->state->local_dir,
		.timeout_ns = config->sync.command_timeout_ns,
		.stop_fd = stop_fd };
	const char *key = rsb_synchook_key(config, hook->out);
	struct rsb_diag why = { 0 };
	int r = rsb_hook_run(&what, &why);

	if (r < 0)
		return rsb_diag_set(diag, r, "%s: %s", key, rsb_diag_text(&why, r));
	return r > 1 ? rsb_diag_set(diag, -EIO, "%s ended with status %d", key, r) : r;
}

/* What would end us does when the command, which is in a session of its own, has ended. */
static int
run_guarded(const struct rsb_synchook *hook, const struct vars *vars, const char *token_file,
	struct rsb_diag *diag)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	rsb_autoclose int stop_fd = -1;
	struct signalfd_siginfo stop = { 0 };
	struct sigaction was;
	sigset_t set, old;
	int r;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(all); i++)
		if (sigaction(all[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			(void)sigaddset(&set, all[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, &old);
	stop_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r = stop_fd < 0 ? -errno : run(hook, vars, stop_fd, diag);
	(void)unlink(token_file);
	if (r == -ECANCELED && read(stop_fd, &stop, sizeof(stop)) == sizeof(stop))
		rsb_outcome_die_by((int)stop.ssi_signo);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int
rsb_synchook_run(const struct rsb_synchook *hook, struct rsb_diag *diag)
{
	RSB_CLEANUP(vars_done) struct vars vars = { 0 };
	rsb_autofree char *path = rsb_str_path(hook->state_dir, TOKEN_FILE);
	uint8_t bytes[TOKEN_SIZE];
	char token[TOKEN_HEX + 1];
	int r;

	r = path ? rsb_random(bytes, sizeof(bytes)) : -ENOMEM;
	if (r < 0)
		return r;
	rsb_str_hex(bytes, sizeof(bytes), token);
	r = fill(hook, token, &vars);
	if (r >= 0)
		r = rsb_fd_replace_file(AT_FDCWD, path, rsb_bytes_str(token), 0600);
	if (r < 0)
		return r;
	return run_guarded(hook, &vars, path, diag);
}
