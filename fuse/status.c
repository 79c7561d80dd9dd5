/* SPDX-License-Identifier: MIT */
#include "fuse/status.h"

#include <errno.h>

#include "fuse/judge.h"
#include "fuse/losses.h"
#include "fuse/relay.h"
#include "fuse/send.h"
#include "util/clock.h"
#include "util/json.h"

struct number {
	const char *key;
	uint64_t value;
};

static int
set_numbers(struct rsb_json *json, const char *key, const char *state, const struct number *numbers,
	size_t n)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *object = rsb_json_new_object();
	int r = object ? 0 : -ENOMEM;

	if (r >= 0 && state)
		r = rsb_json_set_str(object, "state", state);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = rsb_json_set_i64(object, numbers[i].key,
			(int64_t)rsb_min(numbers[i].value, (uint64_t)INT64_MAX));
	return r < 0 ? r : rsb_json_set(json, key, rsb_steal(&object));
}

static int
set_mount(const struct rsb_status *status, struct rsb_json *json)
{
	struct rsb_fs *fs = status->fs;
	int r;

	rsb_mutex_lock(&fs->lock);
	{
		const struct number numbers[] = {
			{ "requests", fs->stats.requests },
			{ "calls", fs->stats.calls },
			{ "hits", fs->stats.hits },
			{ "parked", fs->stats.parked },
			{ "pending", rsb_send_pending(fs->send) },
			{ "nodes", rsb_inodes_count(fs->inodes) },
			{ "names", rsb_names_count(fs->names) },
			{ "open", rsb_handles_count(fs->handles) },
			{ "unsent_bytes", fs->unsent },
			{ "unacknowledged_bytes", fs->sent },
			{ "refused_links", fs->stats.refused_links },
			{ "lost_writes", fs->stats.lost_writes },
			{ "withdrawn", fs->stats.withdrawn },
			{ "unknown", fs->stats.unknown },
			{ "crashes", fs->shared->head.n_restart },
			{ "upgrades", fs->shared->head.n_upgrade },
			{ "generation", fs->cache.generation },
			{ "cache_on", rsb_cache_ttl(&fs->cache) > 0 },
		};

		r = set_numbers(json, "fs", NULL, numbers, RSB_ARRAY_SIZE(numbers));
	}
	rsb_mutex_unlock(&fs->lock);
	return r;
}

static int
set_held(const struct rsb_status *status, struct rsb_json *json)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_fs *fs = status->fs;
	size_t n = 0;
	int r = -ENOMEM;

	rsb_mutex_lock(&fs->lock);
	if (array)
		r = rsb_judge_tell(fs->judge, array, &n);
	rsb_mutex_unlock(&fs->lock);
	if (r >= 0)
		r = rsb_json_set_i64(json, "held_back", (int64_t)n);
	return r < 0 || !n ? r : rsb_json_set(json, "held", rsb_steal(&array));
}

static int
set_losses(const struct rsb_status *status, struct rsb_json *json)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_fs *fs = status->fs;
	int r = -ENOMEM;

	rsb_mutex_lock(&fs->lock);
	if (array)
		r = rsb_losses_list(fs->shared, array);
	rsb_mutex_unlock(&fs->lock);
	return r < 0 || !rsb_json_len(array) ? r : rsb_json_set(json, "losses", rsb_steal(&array));
}

static int
set_link(const struct rsb_status *status, struct rsb_json *json)
{
	struct rsb_link_stats stats;

	rsb_link_stats(status->link, &stats);
	{
		const struct number numbers[] = {
			{ "calls", stats.calls },
			{ "replies", stats.replies },
			{ "bytes_out", stats.bytes_out },
			{ "bytes_in", stats.bytes_in },
			{ "frames_out", stats.frames_out },
			{ "frames_in", stats.frames_in },
			{ "reconnects", stats.reconnects },
			{ "rtt_us", rsb_link_rtt(status->link) / 1000 },
		};

		return set_numbers(json, "link",
			rsb_link_state_name(rsb_link_connection(status->link)), numbers,
			RSB_ARRAY_SIZE(numbers));
	}
}

static int
set_facts(const struct rsb_status *status, struct rsb_json *json)
{
	struct rsb_link_facts facts;
	int r;

	if (rsb_link_facts(status->link, &facts) < 0)
		return 0;
	r = rsb_json_set_str(json, "boot_id", facts.boot_id);
	if (r >= 0)
		r = rsb_json_set_str(json, "workspace", facts.workspace);
	if (r >= 0)
		r = rsb_json_set_i64(json, "skew_us", rsb_link_skew_ns(status->link) / 1000);
	return r;
}

static int
set_commands(const struct rsb_status *status, struct rsb_json *json, size_t n)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	const struct rsb_relay *relay = NULL;
	int r = array ? 0 : -ENOMEM;

	if (status->control)
		relay = rsb_control_relay(status->control);
	if (r >= 0)
		r = rsb_json_set_i64(json, "commands", (int64_t)n);
	if (r >= 0)
		r = rsb_json_set_i64(
			json, "attended", relay ? (int64_t)rsb_relay_count(relay, true) : 0);
	if (r >= 0 && relay)
		r = rsb_relay_tell(relay, array);
	return r < 0 || !rsb_json_len(array) ? r : rsb_json_set(json, "running", rsb_steal(&array));
}

/* Until it ends by itself; 0: not while something runs. */
static int64_t
linger_s(const struct rsb_status *status, size_t running)
{
	uint64_t idle_ns = 0;

	if (running)
		return 0;
	if (status->control)
		idle_ns = rsb_relay_idle_ns(rsb_control_relay(status->control));
	return (int64_t)((status->linger_ns - rsb_min(idle_ns, status->linger_ns)) /
			 RSB_NSEC_PER_SEC);
}

/* Which build serves the mount: the path ends in " (deleted)" when it was replaced. */
static int
set_program(struct rsb_json *json)
{
	char path[RSB_PATH_MAX + 1];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int r;

	r = rsb_json_set_str(json, "version", RSB_VERSION);
	if (r < 0 || n < 0)
		return r;
	path[n] = 0;
	r = rsb_json_set_str(json, "program", path);
	/* A path that is no UTF-8 cannot be said in JSON. */
	return r == -EINVAL ? 0 : r;
}

int
rsb_status_write(const struct rsb_status *status, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	const struct rsb_uplink_info *info = rsb_uplink_info(status->uplink);
	uint64_t age_s = (rsb_now_ns() - status->started_ns) / RSB_NSEC_PER_SEC;
	int64_t down_s = (int64_t)(rsb_uplink_down_ns(status->uplink) / RSB_NSEC_PER_SEC);
	char id[RSB_SANDBOX_ID_MAX + 1];
	size_t running = 0;
	int r;

	if (!json)
		return -ENOMEM;
	if (status->control)
		running = rsb_relay_count(rsb_control_relay(status->control), false);
	rsb_uplink_sandbox(status->uplink, id);
	r = rsb_json_set_str(json, "name", info->name);
	if (r >= 0)
		r = rsb_json_set_str(json, "sandbox", id);
	if (r >= 0)
		r = rsb_json_set_str(json, "state", rsb_uplink_state(status->uplink));
	if (r >= 0)
		r = rsb_json_set_i64(json, "down_s", down_s);
	if (r >= 0)
		r = rsb_json_set_bool(json, "kept", rsb_uplink_keeps(status->uplink));
	if (r >= 0)
		r = rsb_json_set_bool(json, "mounted", status->mountpoint[0] != '\0');
	if (r >= 0)
		r = rsb_json_set_str(json, "mountpoint", status->mountpoint);
	/* A path that is no UTF-8 cannot be said in JSON. */
	if (r == -EINVAL)
		r = 0;
	if (r >= 0 && !status->mountpoint[0])
		r = rsb_json_set_i64(json, "linger_s", linger_s(status, running));
	if (r >= 0)
		r = rsb_json_set_i64(json, "pid", getpid());
	if (r >= 0)
		r = set_program(json);
	if (r >= 0)
		r = rsb_json_set_i64(json, "age_s", (int64_t)age_s);
	if (r >= 0)
		r = set_commands(status, json, running);
	if (r >= 0)
		r = set_facts(status, json);
	if (r >= 0)
		r = set_mount(status, json);
	if (r >= 0)
		r = set_link(status, json);
	if (r >= 0)
		r = set_held(status, json);
	if (r >= 0)
		r = set_losses(status, json);
	return r < 0 ? r : rsb_json_write(json, false, out);
}
