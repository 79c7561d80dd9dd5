/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/startreq.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

void
rsb_startreq_done(struct rsb_startreq *start)
{
	free(start->argv);
	for (char **word = start->env; word && *word; word++)
		free(*word);
	free(start->env);
	start->argv = NULL;
	start->env = NULL;
}

static int
read_argv(struct rsb_startreq *start, struct rsb_diag *diag)
{
	struct rsb_json *args = NULL;
	const char *cmd;
	size_t n = 0;
	int r;

	r = rsb_json_str(start->config, "cmd", &cmd);
	if (r < 0 || cmd[0] == '\0')
		return rsb_diag_set(diag, -EBADMSG, "the process has no command");
	r = rsb_json_get(start->config, "args", &args);
	if (r == 0)
		n = rsb_json_len(args);
	if (n > RSB_STARTREQ_WORDS_MAX)
		return rsb_diag_set(diag, -EBADMSG, "too many arguments");
	start->argv = rsb_new_array(char *, n + 2);
	if (!start->argv)
		return -ENOMEM;
	start->argv[0] = (char *)(uintptr_t)cmd;
	for (size_t i = 0; i < n; i++) {
		const char *arg = rsb_json_as_str(rsb_json_at(args, i));

		if (!arg)
			return rsb_diag_set(diag, -EBADMSG, "an argument is no string");
		start->argv[i + 1] = (char *)(uintptr_t)arg;
	}
	return 0;
}

static int
set_user_vars(struct rsb_json *vars, const struct rsb_user *user)
{
	int r = rsb_json_set_str(vars, "PATH", RSB_STARTREQ_PATH);

	if (r == 0)
		r = rsb_json_set_str(vars, "HOME", user->home);
	if (r == 0)
		r = rsb_json_set_str(vars, "USER", user->name);
	if (r == 0)
		r = rsb_json_set_str(vars, "LOGNAME", user->name);
	return r;
}

/* Later ones replace earlier ones. */
static int
add_vars(struct rsb_json *vars, const struct rsb_json *more, struct rsb_diag *diag)
{
	struct rsb_json *value;
	void *cursor = NULL;
	const char *name;

	while ((name = rsb_json_member(more, &cursor, &value))) {
		const char *text = rsb_json_as_str(value);

		if (!text || name[0] == '\0' || strchr(name, '='))
			return rsb_diag_set(diag, -EBADMSG, "a variable is wrong: %s", name);
		if (rsb_json_set_str(vars, name, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int
write_env(struct rsb_startreq *start, const struct rsb_json *vars)
{
	struct rsb_json *value;
	void *cursor = NULL;
	const char *name;
	size_t n = 0;

	if (rsb_json_len(vars) > RSB_STARTREQ_WORDS_MAX)
		return -EBADMSG;
	start->env = rsb_new_array(char *, rsb_json_len(vars) + 1);
	if (!start->env)
		return -ENOMEM;
	while ((name = rsb_json_member(vars, &cursor, &value))) {
		start->env[n] = rsb_str_printf("%s=%s", name, rsb_json_as_str(value));
		if (!start->env[n++])
			return -ENOMEM;
	}
	return 0;
}

static int
read_env(struct rsb_startreq *start, const struct rsb_user *user, const struct rsb_json *env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *vars = rsb_json_new_object();
	struct rsb_json *own;
	int r;

	if (!vars)
		return -ENOMEM;
	r = set_user_vars(vars, user);
	if (r == 0 && env)
		r = add_vars(vars, env, diag);
	if (r == 0 && rsb_json_get(start->config, "envs", &own) == 0)
		r = add_vars(vars, own, diag);
	return r < 0 ? r : write_env(start, vars);
}

int
rsb_startreq_read(const struct rsb_json *json, const struct rsb_user *user,
	const struct rsb_json *env, const char *workdir, struct rsb_startreq *ret_start,
	struct rsb_diag *diag)
{
	struct rsb_startreq *start = ret_start;
	struct rsb_json *pty;
	const char *cwd = "";
	int r;

	if (rsb_json_get(json, "pty", &pty) == 0)
		return rsb_diag_set(diag, -EINVAL, "this envd has no terminals");
	if (rsb_json_get(json, "process", &start->config) < 0)
		return rsb_diag_set(diag, -EBADMSG, "no process is described");
	start->with_stdin = true;
	(void)!rsb_json_bool(json, "stdin", &start->with_stdin); /* absent means true */
	(void)!rsb_json_str(json, "tag", &start->tag);
	(void)!rsb_json_str(start->config, "cwd", &cwd);
	r = rsb_user_path(user, workdir, cwd, start->cwd);
	if (r < 0)
		return rsb_diag_set(diag, r, "cwd '%.400s' cannot be resolved", cwd);
	r = read_argv(start, diag);
	if (r < 0)
		return r;
	return read_env(start, user, env, diag);
}
