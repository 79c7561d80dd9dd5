/* SPDX-License-Identifier: MIT */
#ifndef RSB_SANDBOX_H
#define RSB_SANDBOX_H

/*
 * One sandbox, running or paused: its monitor process (sidecar/envd/monitor.h), its life time, and
 * sockets to its ports. A thread of its own waits for its end, whatever brings it, and waits for
 * the monitor, after which no process, mount or control group of it is left.
 *
 * A paused one stands still in memory, without an end; it is gone when rsb-local is.
 */

#include <sys/types.h>

#include "util/diag.h"
#include "util/json.h"

#include "sidecar/local/inlet.h"

/* One that cannot be paused at its end lives on for so long, and is tried again. */
#define RSB_SANDBOX_RETRY_NS (60 * RSB_NSEC_PER_SEC)

struct rsb_sandbox;

struct rsb_sandbox_spec {
	const char *envd;      /* path of rsb-envd */
	const char *state_dir; /* for the disk image */
	uint64_t disk_size;
	bool idmap; /* see bootcfg.h */
	uint32_t uid_base;
	uint64_t timeout_ns;
	uint64_t cap_ns;           /* of each time that it runs; 0: none */
	bool auto_pause;           /* at its end; else it is killed */
	bool secure;               /* with a token */
	struct rsb_json *env;      /* borrowed, may be NULL */
	struct rsb_json *metadata; /* borrowed, may be NULL */
	/* Once each on the sandbox's thread: before it is taken down, and when nothing is left. */
	void (*leaving)(void *arg, struct rsb_sandbox *sandbox);
	void (*gone)(void *arg);
	void *arg;
};

/*
 * Waits until envd answers. -E2BIG, -ENOENT (no rsb-envd), -EIO: with a sentence; the callbacks are
 * not called then.
 */
rsb_nodiscard int rsb_sandbox_new(const struct rsb_sandbox_spec *spec,
	struct rsb_sandbox **ret_sandbox, struct rsb_diag *diag);
struct rsb_sandbox *rsb_sandbox_ref(struct rsb_sandbox *sandbox);
/* NULL is fine. A running sandbox goes on without references. */
void rsb_sandbox_unref(struct rsb_sandbox *sandbox);

const char *rsb_sandbox_id(const struct rsb_sandbox *sandbox);
/* NULL when it is not secured. Into answers to the key's holder only. */
const char *rsb_sandbox_token(const struct rsb_sandbox *sandbox);
/* Borrowed; NULL without any. */
struct rsb_json *rsb_sandbox_metadata(const struct rsb_sandbox *sandbox);
bool rsb_sandbox_pauses_itself(const struct rsb_sandbox *sandbox);
/* Wall time: of the latest start or resume; and of the end, or of the latest pause. */
uint64_t rsb_sandbox_started_ns(struct rsb_sandbox *sandbox);
uint64_t rsb_sandbox_end_ns(struct rsb_sandbox *sandbox);
/* Also while it is being paused. */
bool rsb_sandbox_is_paused(struct rsb_sandbox *sandbox);

/*
 * The end is timeout_ns from now, or at the cap; with only_longer, unless it is later already.
 * -EBUSY: it is paused.
 */
rsb_nodiscard int rsb_sandbox_set_timeout(
	struct rsb_sandbox *sandbox, uint64_t timeout_ns, bool only_longer);

/* As rsb_inlet_open(); -ENOTCONN when it is paused or gone. */
rsb_nodiscard int rsb_sandbox_connect(
	struct rsb_sandbox *sandbox, unsigned int port, struct rsb_inlet **ret_inlet);

/*
 * Cuts all connections and waits until every process stands still. -EBUSY: it is paused, or about
 * to be. Else it goes on running: -ETIMEDOUT when a process cannot be stopped.
 */
rsb_nodiscard int rsb_sandbox_pause(struct rsb_sandbox *sandbox);
/*
 * A paused one goes on, its end timeout_ns from now: 1. A running one lives at least that long: 0.
 * Waits for a pause that is under way.
 */
rsb_nodiscard int rsb_sandbox_resume(struct rsb_sandbox *sandbox, uint64_t timeout_ns);

/* False once its end has begun. */
bool rsb_sandbox_alive(struct rsb_sandbox *sandbox);
/* Waits until nothing of it is left. */
void rsb_sandbox_kill(struct rsb_sandbox *sandbox);

RSB_DEFINE_CLEANUP(struct rsb_sandbox *, rsb_sandbox_unref)

#endif
