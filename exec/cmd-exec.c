/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "exec/daemon.h"
#include "exec/exec.h"
#include "exec/pausenote.h"
#include "exec/verbs.h"
#include "keeper/provision.h"

static int
ask_for_sandbox(const struct rsb_exec_need *need, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	const struct rsb_state *state = &need->where->state;
	int r;

	r = rsb_keeper_backend(need->config, need->env, state->backend, &backend, diag);
	if (r < 0)
		return r;
	r = backend->ops->get(backend, state->sandbox_id, &sandbox, diag);
	if (r >= 0 && sandbox.state == RSB_SANDBOX_PAUSED)
		rsb_pausenote_found(need->where, 0);
	return r == -ENOENT ? rsb_state_say_gone(need->where->root, state->name, diag) : r;
}

/*
 * Without a mount; somebody else may start one at the same time. The control plane is asked first:
 * it knows sooner than a daemon that tries whether there is hope.
 */
static int
start_daemon(const struct rsb_exec_need *need, struct rsb_diag *diag)
{
	int r;

	r = ask_for_sandbox(need, diag);
	if (r < 0)
		return r;
	r = rsb_daemon_start(need->where->state.name, NULL, need->overrides, diag);
	return r < 0 && rsb_daemon_runs(need->where) ? 0 : r;
}

static int
exec_main(int argc, char **argv, char **env)
{
	rsb_exec_main(argc, argv, env, start_daemon);
}

const struct rsb_verb rsb_verb_exec = {
	.name = "exec",
	.usage = "exec [OPTION]... [--] COMMAND [ARGUMENT]...",
	.help = "Run a command in the sandbox; the same as rsb-exec(1).",
	.main = exec_main,
};
