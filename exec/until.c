/* SPDX-License-Identifier: MIT */
#include "exec/until.h"

#include <stdio.h>

#include "util/cleanup.h"
#include "util/clock.h"

#define WAIT_NS (5 * RSB_NSEC_PER_SEC)

void
rsb_until_ask(
	struct rsb_backend *backend, const struct rsb_state *state, char out[static RSB_UNTIL_SIZE])
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	char text[RSB_LOCALTIME_SIZE];

	out[0] = '\0';
	if (backend->ops->get(backend, state->sandbox_id, &sandbox, NULL) < 0 ||
		sandbox.state != RSB_SANDBOX_RUNNING || !sandbox.end_ns)
		return;
	rsb_localtime(sandbox.end_ns, rsb_wall_ns(), text);
	(void)snprintf(out, RSB_UNTIL_SIZE, " until %s", text);
}

void
rsb_until_find(const struct rsb_state *state, const struct rsb_verb_common *common, char **env,
	char out[static RSB_UNTIL_SIZE])
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	const struct rsb_config_source source = { .overrides = common->overrides,
		.env = env,
		.project_dir = state->local_dir[0] ? state->local_dir : NULL,
		.sandbox = state->name };
	int r;

	out[0] = '\0';
	r = rsb_config_load(&source, &config, NULL);
	if (r < 0)
		return;
	config.e2b.request_timeout_ns = rsb_min(config.e2b.request_timeout_ns, WAIT_NS);
	r = rsb_keeper_backend(&config, env, state->backend, &backend, NULL);
	if (r >= 0)
		rsb_until_ask(backend, state, out);
}
