/* SPDX-License-Identifier: MIT */
#include "sidecar/welcome.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"

static uint64_t
landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (uint64_t)abi;
}

void
rsb_welcome_fill(const struct rsb_sidecar_config *config, const struct rsb_registry *registry,
	const struct rsb_joined *joined, struct rsb_welcome *ret_welcome)
{
	const struct rsb_sess *sess = joined->sess;
	uint64_t wall_ns = rsb_wall_ns();
	struct rsb_stream_state state;

	rsb_stream_state(rsb_session_stream(sess->proto), &state);
	*ret_welcome = (struct rsb_welcome){
		.epoch = rsb_bytes_str(rsb_registry_epoch(registry)),
		.resumed = joined->resumed,
		.received = state.received,
		.acked = state.acked,
		.window = state.limit,
		.digest = state.digest,
		.uid = getuid(),
		.cmd_uid = config->cmd_uid,
		.cmd_gid = config->cmd_gid,
		.workspace = rsb_bytes_str(config->workspace),
		.boot_id = rsb_bytes_str(rsb_registry_boot_id(registry)),
		.kill_rung = config->cgroups ? 1 : 2,
		.landlock_abi = landlock_abi(),
		.wall_sec = wall_ns / RSB_NSEC_PER_SEC,
		.wall_nsec = wall_ns % RSB_NSEC_PER_SEC,
		.anew = joined->anew,
		.fifo = sess->fifo_seen,
		.lock_losses = sess->lock_losses,
	};
}
