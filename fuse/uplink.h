/* SPDX-License-Identifier: MIT */
#ifndef RSB_UPLINK_H
#define RSB_UPLINK_H

/*
 * Where the daemon's link goes and who keeps it up: a sandbox of the state directory, kept by the
 * keeper's thread, or (option url=) a sidecar at a fixed address, where all that is done is to
 * connect again.
 */

#include "backend/backend.h"
#include "fuse/options.h"
#include "keeper/snapdue.h"
#include "link/link.h"
#include "util/cleanup.h"
#include "util/secret.h"

#define RSB_UPLINK_WAIT_S 90u /* for the first connection */

struct rsb_shared;
struct rsb_uplink;

struct rsb_uplink_info {
	const char *name;
	const char *sandbox_id; /* when it was opened */
	const struct rsb_secret *key;
	const char *socket; /* path of the control socket; NULL: none */
	const char *log;    /* path of the log; NULL: stderr */
	const char *trust;  /* path of what is trusted; NULL: it is not kept */
	bool idmap_none;
	bool sync;
	uint64_t linger_ns;
	uint64_t grace_ns;
};

/*
 * Before any fork: reads configuration, state and key, and holds the sandbox's daemon lock from
 * now on, or has it from options->takeover. -ENOENT: no such sandbox; -EBUSY: a daemon serves it
 * already; each with a sentence.
 */
rsb_nodiscard int rsb_uplink_open(const struct rsb_options *options, char *const *env,
	struct rsb_uplink **ret_uplink, struct rsb_diag *diag);
/* Ends what was started. NULL is fine. */
void rsb_uplink_close(struct rsb_uplink *uplink);
RSB_DEFINE_CLEANUP(struct rsb_uplink *, rsb_uplink_close)
const struct rsb_uplink_info *rsb_uplink_info(const struct rsb_uplink *uplink);
/* The descriptor that holds the daemon lock, borrowed; -1: there is none. */
int rsb_uplink_lock_fd(const struct rsb_uplink *uplink);

/*
 * In the process of a daemon that goes on after another one: what that one has changed in the state
 * since the fork.
 */
rsb_nodiscard int rsb_uplink_reload(struct rsb_uplink *uplink, struct rsb_diag *diag);
/*
 * Before start. {keeper} fn: another sandbox was made of a snapshot, as that of struct
 * rsb_keeper_config; fn puts it where events come from.
 */
void rsb_uplink_on_restored(
	struct rsb_uplink *uplink, void (*fn)(void *arg, const char *text), void *arg);
/* Begins to connect. link is borrowed and outlives uplink's stop. */
rsb_nodiscard int rsb_uplink_start(
	struct rsb_uplink *uplink, struct rsb_link *link, struct rsb_diag *diag);
/* Lets go of the link. */
void rsb_uplink_stop(struct rsb_uplink *uplink);
/* {any} What the link told. */
void rsb_uplink_link_state(
	struct rsb_uplink *uplink, enum rsb_link_state state, int reason, bool new_epoch);
/* Waits until the link is live for the first time. */
rsb_nodiscard int rsb_uplink_wait(struct rsb_uplink *uplink, struct rsb_diag *diag);
/* Now and then, on the main thread. */
void rsb_uplink_tick(struct rsb_uplink *uplink);
/* What snapshots that are taken by themselves go by. Main thread, every second or oftener. */
void rsb_uplink_changed(struct rsb_uplink *uplink, const struct rsb_snapdue_news *news);
/* {any} An event for the log. */
void rsb_uplink_say(struct rsb_uplink *uplink, const char *kind, const char *text);
/* For status. Main thread. */
void rsb_uplink_sandbox(struct rsb_uplink *uplink, char ret_id[static RSB_SANDBOX_ID_MAX + 1]);
const char *rsb_uplink_state(struct rsb_uplink *uplink);
bool rsb_uplink_is_lost(struct rsb_uplink *uplink);     /* the sandbox, and for good */
uint64_t rsb_uplink_down_ns(struct rsb_uplink *uplink); /* of keeper/keeper.h; 0 without one */
bool rsb_uplink_keeps(struct rsb_uplink *uplink);       /* the same */
/* The daemon before this one died, or made way: the event log says so. */
void rsb_uplink_say_restarted(struct rsb_uplink *uplink, const struct rsb_shared *shared);
/* The state says where it is mounted, also afterwards: the next mount goes there. */
void rsb_uplink_mounted(struct rsb_uplink *uplink, const char *mountpoint);
/* If rsb made the mount point, it goes. */
void rsb_uplink_unmounted(struct rsb_uplink *uplink, const char *mountpoint);

#endif
