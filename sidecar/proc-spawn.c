/* SPDX-License-Identifier: MIT */
#include "sidecar/proc-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/codec.h"
#include "util/cleanup.h"
#include "util/spawn.h"
#include "util/str.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define N_DEFAULT 5u
/* Above the standard three, so that dup2(2) onto one cannot hit the source of another. */
#define FD_FREE_MIN 10

static void
free_strings(char **strings)
{
	for (char **s = strings; s && *s; s++)
		free(*s);
	free(strings);
}

void
rsb_exec_free(struct rsb_exec *exec)
{
	if (!exec)
		return;
	for (int i = 0; i < 3; i++)
		rsb_cleanup_close(&exec->stdio[i]);
	free_strings(exec->argv);
	free_strings(exec->env);
	free_strings(exec->candidates);
	free(exec->sh_argv); /* its strings are those of others */
	free(exec->cwd);
	free(exec);
}

/* The list as C strings, with n_more places behind them; NULL: no memory. */
static char **
copy_strings(struct rsb_seq seq, size_t n_more)
{
	char **out = rsb_new_array(char *, seq.n + n_more + 1);
	struct rsb_bytes bytes;

	for (size_t i = 0; out && rsb_seq_next_bytes(&seq, &bytes) > 0; i++) {
		out[i] = rsb_str_dup(bytes);
		if (!out[i]) {
			free_strings(out);
			return NULL;
		}
	}
	return out;
}

/* The value of name, or NULL. */
static const char *
find_env(char *const *env, const char *name)
{
	size_t size = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, size) == 0 && (*env)[size] == '=')
			return *env + size + 1;
	return NULL;
}

static int
copy_env(const struct rsb_sidecar_config *config, struct rsb_seq seq, char ***ret_env)
{
	const char *const defaults[N_DEFAULT][2] = {
		{ "HOME", config->cmd_home },
		{ "USER", config->cmd_user },
		{ "LOGNAME", config->cmd_user },
		{ "SHELL", config->cmd_shell },
		{ "PATH", PATH_DEFAULT },
	};
	char **env = copy_strings(seq, N_DEFAULT);
	size_t n = seq.n;

	if (!env)
		return -ENOMEM;
	for (size_t i = 0; i < N_DEFAULT; i++) {
		if (find_env(env, defaults[i][0]))
			continue;
		env[n] = rsb_str_printf("%s=%s", defaults[i][0], defaults[i][1]);
		if (!env[n++]) {
			free_strings(env);
			return -ENOMEM;
		}
	}
	*ret_env = env;
	return 0;
}

/*
 * As execvp(3): an empty element of PATH is the current directory, a name with a slash is no name.
 */
static int
find_candidates(const char *name, const char *path, char ***ret_candidates)
{
	size_t n_max = 2;
	size_t n = 0;
	char **out;

	for (const char *p = path; *p; p++)
		n_max += *p == ':';
	out = rsb_new_array(char *, n_max + 1);
	if (!out)
		return -ENOMEM;
	if (strchr(name, '/'))
		out[n++] = strdup(name);
	for (const char *p = path; !strchr(name, '/');) {
		int size = (int)strcspn(p, ":");

		out[n++] = size ? rsb_str_printf("%.*s/%s", size, p, name) : strdup(name);
		if (!out[n - 1] || !p[size])
			break;
		p += size + 1;
	}
	if (!out[n - 1]) {
		free_strings(out);
		return -ENOMEM;
	}
	*ret_candidates = out;
	return 0;
}

static int
fill(struct rsb_exec *exec, const struct rsb_spawn_req *req)
{
	int r;

	exec->argv = copy_strings(req->argv, 0);
	exec->sh_argv = rsb_new_array(char *, req->argv.n + 2);
	exec->cwd = rsb_str_dup(req->cwd);
	if (!exec->argv || !exec->sh_argv || !exec->cwd)
		return -ENOMEM;
	r = copy_env(exec->config, req->env, &exec->env);
	if (r < 0)
		return r;
	/* sh, the script, then the arguments with the NULL behind them */
	exec->sh_argv[0] = exec->argv[0];
	memcpy(&exec->sh_argv[2], &exec->argv[1], req->argv.n * sizeof(char *));
	/* execvp(3) of the empty name is ENOENT, not the directory itself. */
	if (!exec->argv[0][0]) {
		exec->candidates = rsb_new_array(char *, 1);
		return exec->candidates ? 0 : -ENOMEM;
	}
	return find_candidates(exec->argv[0], find_env(exec->env, "PATH"), &exec->candidates);
}

int
rsb_exec_new(const struct rsb_sidecar_config *config, const struct rsb_spawn_req *req,
	struct rsb_exec **ret_exec)
{
	RSB_CLEANUP(rsb_exec_freep) struct rsb_exec *exec = rsb_new(struct rsb_exec);
	int r;

	if (!exec)
		return -ENOMEM;
	exec->config = config;
	exec->umask = (mode_t)(req->umask & 0777);
	for (int i = 0; i < 3; i++)
		exec->stdio[i] = -1;
	if (req->argv.n == 0 || memchr(req->cwd.data, 0, req->cwd.size))
		return -EINVAL;
	r = fill(exec, req);
	if (r < 0)
		return r;
	*ret_exec = rsb_steal(&exec);
	return 0;
}

/* ---- in the child ---- */

static rsb_noreturn void
fail(int error_fd, enum rsb_spawn_stage stage, int error)
{
	struct rsb_exec_failure failure = { .stage = (int32_t)stage, .error = error };

	/* A record of this size is written whole; if the parent is gone, nobody asks. */
	(void)!write(error_fd, &failure, sizeof(failure));
	_exit(127);
}

static int
set_stdio(const int stdio[3])
{
	int fds[3];

	for (int i = 0; i < 3; i++) {
		fds[i] = fcntl(stdio[i], F_DUPFD_CLOEXEC, FD_FREE_MIN);
		if (fds[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			return -errno;
	return 0;
}

/*
 * By number: glibc's setresuid(3) and its like ask all threads that it knows of to do the same, and
 * after a bare clone3(2) it knows threads that are not there.
 */
static int
set_ids(const struct rsb_sidecar_config *config)
{
	/* Root's own commands stay as they are: with one id alone, setgroups(2) is denied. */
	if (!config->is_root || config->cmd_uid == 0)
		return 0;
	if (syscall(SYS_setgroups, config->n_cmd_groups, config->cmd_groups) < 0)
		return -errno;
	if (syscall(SYS_setresgid, config->cmd_gid, config->cmd_gid, config->cmd_gid) < 0)
		return -errno;
	if (syscall(SYS_setresuid, config->cmd_uid, config->cmd_uid, config->cmd_uid) < 0)
		return -errno;
	return 0;
}

static int
set_up(const struct rsb_exec *exec, int error_fd)
{
	int r;

	if (setsid() < 0)
		return -errno;
	r = set_stdio(exec->stdio);
	if (r < 0)
		return r;
	(void)umask(exec->umask);
	/*
	 * What the sidecar raised for itself; refused only if the hard limit fell, then there is no
	 * more.
	 */
	(void)setrlimit(RLIMIT_NOFILE, &exec->config->cmd_nofile);
	r = set_ids(exec->config);
	if (r < 0)
		return r;
	/* The workspace's descriptor goes with the others, so this comes first. */
	if (fchdir(exec->config->root_fd) < 0)
		return -errno;
	rsb_spawn_close_fds(&error_fd, 1);
	rsb_spawn_reset_signals();
	return 0;
}

/* The errno that execvp(3) would come back with. */
static int
try_candidates(const struct rsb_exec *exec)
{
	int error = ENOENT;

	for (char **path = exec->candidates; *path; path++) {
		(void)execve(*path, exec->argv, exec->env);
		if (errno == ENOEXEC) {
			exec->sh_argv[1] = *path;
			(void)execve("/bin/sh", exec->sh_argv, exec->env);
			return ENOEXEC;
		}
		if (errno == EACCES)
			error = EACCES; /* a later one may do; if none does, this is the reason */
		else if (errno != ENOENT && errno != ENOTDIR)
			return errno;
	}
	return error;
}

void
rsb_exec_become(const struct rsb_exec *exec, int error_fd)
{
	int r;

	/* A standard descriptor that was closed here may be what the pipe got. */
	r = fcntl(error_fd, F_DUPFD_CLOEXEC, FD_FREE_MIN);
	if (r >= 0)
		error_fd = r;
	r = set_up(exec, error_fd);
	if (r < 0)
		fail(error_fd, RSB_SPAWN_STAGE_SETUP, -r);
	if (exec->cwd[0] && chdir(exec->cwd) < 0)
		fail(error_fd, RSB_SPAWN_STAGE_CHDIR, errno);
	fail(error_fd, RSB_SPAWN_STAGE_EXEC, try_candidates(exec));
}
