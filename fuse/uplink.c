/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "uplink"

#include "fuse/uplink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuse/fixed.h"
#include "fuse/shared.h"
#include "keeper/archivist.h"
#include "keeper/herald.h"
#include "keeper/keeper.h"
#include "keeper/mountpoint.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/str.h"
#include "util/thread.h"

/* A fixed address has no configuration: the built-in values of rsb.conf(5). */
#define DIRECT_LINGER_NS (600 * RSB_NSEC_PER_SEC)
#define DIRECT_GRACE_NS (3 * RSB_NSEC_PER_SEC)

struct rsb_uplink {
	const struct rsb_options *options;
	struct rsb_uplink_info info;
	struct rsb_secret key;
	struct rsb_link *link;
	bool direct;
	/* of the keeper */
	struct rsb_config config;
	char *const *env;
	struct rsb_state_dir *dir;
	struct rsb_state state;
	struct rsb_backend *backend;
	struct rsb_mutex lock;
	struct rsb_keeper *keeper;       /* {lock} */
	struct rsb_herald *herald;       /* const after start; NULL: nothing is run */
	struct rsb_archivist *archivist; /* the same */
	void (*restored)(void *arg, const char *text);
	void *restored_arg;
	char *socket;
	char *log;
	char *trust;
};

/* ---- a fixed address ---- */

static int
open_direct(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	uplink->direct = true;
	uplink->info.name = uplink->options->name;
	uplink->info.sandbox_id = uplink->options->name;
	uplink->info.socket = uplink->options->socket;
	uplink->info.idmap_none =
		uplink->options->idmap && strcmp(uplink->options->idmap, "none") == 0;
	uplink->info.sync = uplink->options->sync;
	uplink->info.linger_ns = DIRECT_LINGER_NS;
	uplink->info.grace_ns = DIRECT_GRACE_NS;
	return rsb_fixed_key(uplink->options, &uplink->key, diag);
}

/* ---- a sandbox of the state directory ---- */

static int
open_state(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	const char *name = uplink->options->name;
	rsb_autofree char *root = NULL;
	int r;

	r = rsb_state_root(uplink->env, &root, diag);
	if (r < 0)
		return r;
	r = rsb_state_open(root, name, false, &uplink->dir, diag);
	if (r >= 0)
		r = rsb_state_load(uplink->dir, &uplink->state, diag);
	if (r < 0)
		return r;
	if (uplink->options->takeover.role)
		rsb_state_lock_move(
			uplink->dir, RSB_STATE_LOCK_DAEMON, uplink->options->takeover.lock_fd);
	r = rsb_state_lock(uplink->dir, RSB_STATE_LOCK_DAEMON, false);
	if (r == -EBUSY)
		return rsb_diag_set(diag, r, "a daemon serves the sandbox '%s' already", name);
	if (r < 0)
		return rsb_diag_set(diag, r, "%s cannot be locked: %s", rsb_state_path(uplink->dir),
			strerror(-r));
	/* What destroys a sandbox holds this lock: only what is there now stays. */
	return rsb_state_load(uplink->dir, &uplink->state, diag);
}

static int
load_key(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	int r = rsb_state_key(uplink->dir, &uplink->key);

	return r < 0 ? rsb_diag_set(diag, r, "the sidecar's key in %s cannot be used: %s",
			       rsb_state_path(uplink->dir), rsb_diag_text(NULL, r))
		     : 0;
}

static int
open_kept(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	struct rsb_config_source source = {
		.overrides = (const char *const *)uplink->options->overrides,
		.env = uplink->env,
		.sandbox = uplink->options->name,
	};
	int r;

	r = open_state(uplink, diag);
	if (r >= 0 && uplink->state.local_dir[0])
		source.project_dir = uplink->state.local_dir;
	if (r >= 0)
		r = rsb_config_load(&source, &uplink->config, diag);
	if (r >= 0)
		r = load_key(uplink, diag);
	if (r >= 0)
		r = rsb_state_socket(uplink->dir, &uplink->socket, diag);
	if (r < 0)
		return r;
	uplink->log = rsb_str_path(rsb_state_path(uplink->dir), "log");
	uplink->trust = rsb_str_path(rsb_state_path(uplink->dir), "trust");
	if (!uplink->log || !uplink->trust)
		return -ENOMEM;
	uplink->info.name = uplink->state.name;
	uplink->info.sandbox_id = uplink->state.sandbox_id;
	uplink->info.socket = uplink->options->socket ? uplink->options->socket : uplink->socket;
	uplink->info.log = uplink->log;
	uplink->info.trust = uplink->trust;
	uplink->info.idmap_none = uplink->options->idmap
					  ? strcmp(uplink->options->idmap, "none") == 0
					  : uplink->config.mount.idmap == RSB_CONFIG_IDMAP_NONE;
	uplink->info.sync =
		uplink->options->sync || (uplink->config.mount.sync && !uplink->options->async);
	uplink->info.linger_ns = uplink->config.exec.linger_ns;
	uplink->info.grace_ns = uplink->config.exec.grace_ns;
	return 0;
}

static void
on_event(void *arg, const char *kind, const char *text)
{
	struct rsb_uplink *uplink = arg;

	/* The keeper itself writes the event log. */
	rsb_info("%s: %s", kind, text);
	if (uplink->herald)
		rsb_herald_tell(uplink->herald, kind, text);
}

static int
start_herald(struct rsb_uplink *uplink)
{
	const struct rsb_herald_config config = { .command = uplink->config.notify.command,
		.sandbox = uplink->state.name,
		.sandbox_id = uplink->state.sandbox_id,
		.dir = uplink->state.local_dir,
		.timeout_ns = uplink->config.notify.timeout_ns,
		.env = uplink->env };

	return config.command[0] ? rsb_herald_new(&config, &uplink->herald) : 0;
}

/* {archivist} */
static int
find_way(
	void *arg, struct rsb_keeper_target *ret_target, char ret_id[static RSB_SANDBOX_ID_MAX + 1])
{
	const struct rsb_uplink *uplink = arg;

	return rsb_keeper_way(uplink->keeper, ret_target, ret_id);
}

/* {archivist} */
static void
say_no_snapshot(void *arg, const char *text)
{
	struct rsb_uplink *uplink = arg;
	struct rsb_diag whole;

	(void)rsb_diag_set(&whole, 0, "no snapshot is taken: %s", text);
	rsb_uplink_say(uplink, "snapshot", whole.text);
}

/* After the keeper, which it asks for the way. */
static int
start_archivist(struct rsb_uplink *uplink)
{
	const struct rsb_archivist_config config = { .config = &uplink->config,
		.state_dir = rsb_state_path(uplink->dir),
		.local_dir = uplink->state.local_dir,
		.key = &uplink->key,
		.target = find_way,
		.say = say_no_snapshot,
		.arg = uplink };

	return uplink->config.sync.interval_ns ? rsb_archivist_new(&config, &uplink->archivist) : 0;
}

/* {keeper} */
static void
on_restored(void *arg, const char *text)
{
	const struct rsb_uplink *uplink = arg;

	uplink->restored(uplink->restored_arg, text);
}

void
rsb_uplink_on_restored(
	struct rsb_uplink *uplink, void (*fn)(void *arg, const char *text), void *arg)
{
	uplink->restored = fn;
	uplink->restored_arg = arg;
}

static int
start_kept(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	struct rsb_keeper_config config = {
		.event = on_event, .restored = on_restored, .arg = uplink
	};
	struct rsb_keeper *keeper;
	int r;

	r = start_herald(uplink);
	if (r >= 0)
		r = rsb_keeper_backend(&uplink->config, uplink->env, uplink->state.backend,
			&uplink->backend, diag);
	if (r < 0)
		return r;
	config.env = (struct rsb_keeper_env){
		.config = &uplink->config,
		.environ = uplink->env,
		.dir = uplink->dir,
		.backend = uplink->backend,
	};
	config.state = &uplink->state;
	config.link = uplink->link;
	/* What the link tells from its thread waits until there is somebody to tell it to. */
	rsb_mutex_lock(&uplink->lock);
	r = rsb_keeper_start(&config, &keeper);
	if (r >= 0)
		uplink->keeper = keeper;
	rsb_mutex_unlock(&uplink->lock);
	return r < 0 ? r : start_archivist(uplink);
}

/* ---- either ---- */

int
rsb_uplink_open(const struct rsb_options *options, char *const *env, struct rsb_uplink **ret_uplink,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_uplink_closep) struct rsb_uplink *uplink = rsb_new(struct rsb_uplink);
	int r;

	if (!uplink)
		return -ENOMEM;
	rsb_mutex_init(&uplink->lock);
	uplink->options = options;
	uplink->env = env;
	r = options->url ? open_direct(uplink, diag) : open_kept(uplink, diag);
	if (r < 0)
		return r;
	if (uplink->info.idmap_none && geteuid() != 0)
		return rsb_diag_set(diag, -EPERM, "idmap=none takes root here");
	uplink->info.key = &uplink->key;
	*ret_uplink = rsb_steal(&uplink);
	return 0;
}

void
rsb_uplink_close(struct rsb_uplink *uplink)
{
	if (!uplink)
		return;
	rsb_uplink_stop(uplink);
	rsb_backend_free(uplink->backend);
	rsb_state_close(uplink->dir);
	rsb_config_done(&uplink->config);
	rsb_secret_done(&uplink->key);
	rsb_mutex_done(&uplink->lock);
	free(uplink->socket);
	free(uplink->log);
	free(uplink->trust);
	free(uplink);
}

const struct rsb_uplink_info *
rsb_uplink_info(const struct rsb_uplink *uplink)
{
	return &uplink->info;
}

int
rsb_uplink_lock_fd(const struct rsb_uplink *uplink)
{
	return uplink->dir ? rsb_state_lock_fd(uplink->dir, RSB_STATE_LOCK_DAEMON) : -1;
}

int
rsb_uplink_start(struct rsb_uplink *uplink, struct rsb_link *link, struct rsb_diag *diag)
{
	uplink->link = link;
	return uplink->direct ? rsb_fixed_connect(uplink->options, uplink->link)
			      : start_kept(uplink, diag);
}

void
rsb_uplink_stop(struct rsb_uplink *uplink)
{
	struct rsb_keeper *keeper;

	rsb_archivist_free(rsb_steal(&uplink->archivist));
	rsb_mutex_lock(&uplink->lock);
	keeper = rsb_steal(&uplink->keeper);
	rsb_mutex_unlock(&uplink->lock);
	/* The sandbox stays as it is: its end is the business of rsb down. */
	if (keeper && rsb_keeper_stop(keeper, RSB_KEEPER_END_LEAVE, NULL) < 0)
		rsb_warn("the keeper did not end in order");
	rsb_herald_free(rsb_steal(&uplink->herald));
}

void
rsb_uplink_link_state(
	struct rsb_uplink *uplink, enum rsb_link_state state, int reason, bool new_epoch)
{
	rsb_mutex_lock(&uplink->lock);
	if (uplink->keeper)
		rsb_keeper_link_state(uplink->keeper, state, reason, new_epoch);
	rsb_mutex_unlock(&uplink->lock);
}

int
rsb_uplink_wait(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	if (uplink->direct)
		return rsb_fixed_wait(
			uplink->options, uplink->link, RSB_UPLINK_WAIT_S * RSB_NSEC_PER_SEC, diag);
	return rsb_keeper_wait(uplink->keeper, RSB_UPLINK_WAIT_S * RSB_NSEC_PER_SEC, diag);
}

void
rsb_uplink_tick(struct rsb_uplink *uplink)
{
	if (uplink->keeper)
		rsb_keeper_tick(uplink->keeper);
	/* -EALREADY: it is not down. */
	if (uplink->direct && uplink->link && rsb_link_state(uplink->link) == RSB_LINK_DOWN)
		(void)rsb_fixed_connect(uplink->options, uplink->link);
}

void
rsb_uplink_changed(struct rsb_uplink *uplink, const struct rsb_snapdue_news *news)
{
	if (uplink->archivist)
		rsb_archivist_tell(uplink->archivist, news);
}

void
rsb_uplink_say(struct rsb_uplink *uplink, const char *kind, const char *text)
{
	if (uplink->dir)
		rsb_state_event(uplink->dir, kind, text);
	if (uplink->herald)
		rsb_herald_tell(uplink->herald, kind, text);
	rsb_warn("%s: %s", kind, text);
}

void
rsb_uplink_sandbox(struct rsb_uplink *uplink, char ret_id[static RSB_SANDBOX_ID_MAX + 1])
{
	if (uplink->keeper)
		rsb_keeper_id(uplink->keeper, ret_id);
	else
		(void)snprintf(ret_id, RSB_SANDBOX_ID_MAX + 1, "%s", uplink->info.sandbox_id);
}

const char *
rsb_uplink_state(struct rsb_uplink *uplink)
{
	if (!uplink->direct)
		return rsb_keeper_state_name(rsb_keeper_state(uplink->keeper));
	return rsb_link_state(uplink->link) == RSB_LINK_LIVE ? "live" : "reconnecting";
}

bool
rsb_uplink_is_lost(struct rsb_uplink *uplink)
{
	return uplink->keeper && rsb_keeper_state(uplink->keeper) == RSB_KEEPER_LOST;
}

uint64_t
rsb_uplink_down_ns(struct rsb_uplink *uplink)
{
	return uplink->direct ? 0 : rsb_keeper_down_ns(uplink->keeper);
}

bool
rsb_uplink_keeps(struct rsb_uplink *uplink)
{
	return !uplink->direct && rsb_keeper_keeps(uplink->keeper);
}

int
rsb_uplink_reload(struct rsb_uplink *uplink, struct rsb_diag *diag)
{
	int r;

	if (uplink->direct)
		return 0;
	r = rsb_state_load(uplink->dir, &uplink->state, diag);
	return r < 0 ? r : load_key(uplink, diag);
}

void
rsb_uplink_say_restarted(struct rsb_uplink *uplink, const struct rsb_shared *shared)
{
	const struct rsb_shared_head *head = &shared->head;
	struct rsb_diag text;

	if (!head->last_signal) {
		rsb_uplink_say(uplink, "upgrade",
			head->upgrade == RSB_SHARED_UPGRADE_FAILED
				? "the new program cannot go on with the mount; that of before does"
				: "rsb-mount " RSB_VERSION " goes on with the mount");
		return;
	}
	(void)rsb_diag_set(&text, 0,
		"the daemon was ended by signal %d; another one goes on (crash %u of this mount)",
		(int)head->last_signal, head->n_restart);
	rsb_uplink_say(uplink, "crashed", text.text);
}

void
rsb_uplink_mounted(struct rsb_uplink *uplink, const char *mountpoint)
{
	int r;

	/* rsb wrote it down before, and holds the lock until we are up. */
	if (uplink->direct || strcmp(uplink->state.mountpoint, mountpoint) == 0)
		return;
	r = rsb_state_lock(uplink->dir, RSB_STATE_LOCK, true);
	if (r >= 0) {
		struct rsb_state state;

		r = rsb_state_load(uplink->dir, &state, NULL);
		if (r >= 0 && strcmp(state.mountpoint, mountpoint) != 0) {
			state.made_mountpoint = 0;
			(void)snprintf(
				state.mountpoint, sizeof(state.mountpoint), "%s", mountpoint);
			r = rsb_state_save(uplink->dir, &state);
		}
		rsb_state_unlock(uplink->dir, RSB_STATE_LOCK);
	}
	if (r < 0)
		rsb_warn_r(r, "the state does not know where the sandbox is mounted");
}

void
rsb_uplink_unmounted(struct rsb_uplink *uplink, const char *mountpoint)
{
	const struct rsb_state *state = &uplink->state;

	if (strcmp(state->mountpoint, mountpoint) == 0)
		rsb_mountpoint_remove(mountpoint, state->made_mountpoint);
}
