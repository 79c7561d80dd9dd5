/* SPDX-License-Identifier: MIT */
#include "exec/until.h"

#include <errno.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/clock.h"

#define WAIT_NS (5 * RSB_NSEC_PER_SEC)

int
rsb_until_ask(
	struct rsb_backend *backend, const struct rsb_state *state, char out[static RSB_UNTIL_SIZE])
{
	static const char *const then[] = {
		[RSB_SANDBOX_EXPIRY_UNKNOWN] = "",
		[RSB_SANDBOX_IS_PAUSED] = ", then it is paused",
		[RSB_SANDBOX_IS_KILLED] = ", then it ends with all that is in it",
	};
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	char text[RSB_LOCALTIME_SIZE];
	int r;

	out[0] = '\0';
	r = backend->ops->get(backend, state->sandbox_id, &sandbox, NULL);
	if (r == -ENOENT)
		return r;
	if (r < 0 || sandbox.state != RSB_SANDBOX_RUNNING || !sandbox.end_ns)
		return 0;
	rsb_localtime(sandbox.end_ns, rsb_wall_ns(), text);
	(void)snprintf(out, RSB_UNTIL_SIZE, " until %s%s", text, then[sandbox.expiry]);
	return 0;
}

/* Does not wait for long: what is asked is said beside something else. */
static int
open_backend(const struct rsb_state *state, const struct rsb_verb_common *common, char **env,
	struct rsb_backend **ret_backend)
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	const struct rsb_config_source source = { .overrides = common->overrides,
		.env = env,
		.project_dir = state->local_dir[0] ? state->local_dir : NULL,
		.sandbox = state->name };
	int r;

	r = rsb_config_load(&source, &config, NULL);
	if (r < 0)
		return r;
	config.e2b.request_timeout_ns = rsb_min(config.e2b.request_timeout_ns, WAIT_NS);
	return rsb_keeper_backend(&config, env, state->backend, ret_backend, NULL);
}

int
rsb_until_find(const struct rsb_state *state, const struct rsb_verb_common *common, char **env,
	char out[static RSB_UNTIL_SIZE])
{
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;

	out[0] = '\0';
	return open_backend(state, common, env, &backend) < 0 ? 0
							      : rsb_until_ask(backend, state, out);
}

int
rsb_until_state(const struct rsb_state *state, const struct rsb_verb_common *common, char **env,
	uint64_t *ret_end_ns)
{
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	int r;

	if (open_backend(state, common, env, &backend) < 0)
		return -EIO; /* whatever is missing there is not the sandbox */
	r = backend->ops->get(backend, state->sandbox_id, &sandbox, NULL);
	if (ret_end_ns)
		*ret_end_ns = sandbox.end_ns;
	return r < 0 ? r : (int)sandbox.state;
}
