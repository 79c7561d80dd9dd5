/* SPDX-License-Identifier: MIT */
#include "sidecar/local/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/thread.h"

#include "sidecar/envd/bootcfg.h"
#include "sidecar/local/ask.h"
#include "sidecar/local/boxproc.h"
#include "sidecar/local/identity.h"

#define RSB_LOG_MODULE "sandbox"
#include "util/log.h"

enum phase { RUNNING, PAUSING, PAUSED, RESUMING };

struct rsb_sandbox {
	struct rsb_mutex lock;
	struct rsb_cond changed;
	size_t refs;           /* {lock} */
	enum phase phase;      /* {lock} */
	uint64_t started_wall; /* {lock} */
	uint64_t last_ns;      /* {lock} monotonic: it cannot end later; 0: no cap */
	uint64_t end_ns;       /* {lock} monotonic; while it runs */
	uint64_t end_wall;     /* {lock} */
	bool killed;           /* {lock} asked for */
	bool leaving_now;      /* {lock} the end has begun */
	bool gone;             /* {lock} */
	/* The rest is constant after the start. */
	char id[RSB_IDENTITY_ID_SIZE];
	char token[RSB_IDENTITY_TOKEN_SIZE];
	bool secure;
	bool auto_pause;
	uint64_t cap_ns;
	struct rsb_json *metadata;
	struct rsb_inlets *inlets;
	void (*leaving)(void *arg, struct rsb_sandbox *sandbox);
	void (*on_gone)(void *arg);
	void *arg;
	struct rsb_boxproc proc;
	int wake_fd;
};

/* ---- life ---- */

static void
sandbox_free(struct rsb_sandbox *s)
{
	rsb_inlets_end(s->inlets);
	rsb_boxproc_done(&s->proc);
	if (s->wake_fd >= 0)
		(void)close(s->wake_fd);
	rsb_json_free(s->metadata);
	rsb_cond_done(&s->changed);
	rsb_mutex_done(&s->lock);
	explicit_bzero(s->token, sizeof(s->token));
	free(s);
}

struct rsb_sandbox *
rsb_sandbox_ref(struct rsb_sandbox *s)
{
	rsb_mutex_lock(&s->lock);
	s->refs++;
	rsb_mutex_unlock(&s->lock);
	return s;
}

void
rsb_sandbox_unref(struct rsb_sandbox *s)
{
	size_t left;

	if (!s)
		return;
	rsb_mutex_lock(&s->lock);
	left = --s->refs;
	rsb_mutex_unlock(&s->lock);
	if (left == 0)
		sandbox_free(s);
}

static int
make_names(struct rsb_sandbox *s)
{
	int r = rsb_identity_id(s->id);

	return r < 0 ? r : rsb_identity_token(s->token);
}

static int
sandbox_alloc(const struct rsb_sandbox_spec *spec, struct rsb_sandbox **ret_sandbox)
{
	struct rsb_sandbox *s = rsb_new(struct rsb_sandbox);
	int r;

	if (!s)
		return -ENOMEM;
	rsb_mutex_init(&s->lock);
	rsb_cond_init(&s->changed);
	s->refs = 1;
	s->proc = (struct rsb_boxproc)RSB_BOXPROC_INIT;
	s->secure = spec->secure;
	s->auto_pause = spec->auto_pause;
	s->cap_ns = spec->cap_ns;
	s->leaving = spec->leaving;
	s->on_gone = spec->gone;
	s->arg = spec->arg;
	s->metadata = spec->metadata ? rsb_json_ref(spec->metadata) : NULL;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = s->wake_fd < 0 ? -errno : make_names(s);
	if (r < 0) {
		sandbox_free(s);
		return r;
	}
	*ret_sandbox = s;
	return 0;
}

/* ---- start ---- */

static int
write_config(const struct rsb_sandbox *s, const struct rsb_sandbox_spec *spec, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	char uuid[RSB_IDENTITY_UUID_SIZE];
	int r;

	if (!json)
		return -ENOMEM;
	r = rsb_identity_uuid(uuid);
	if (r == 0)
		r = rsb_json_set_str(json, "id", s->id);
	if (r == 0)
		r = rsb_json_set_str(json, "boot_id", uuid);
	if (r == 0)
		r = rsb_json_set_str(json, "disk_dir", spec->state_dir);
	if (r == 0)
		r = rsb_json_set_i64(json, "disk_size", (int64_t)spec->disk_size);
	if (r == 0)
		r = rsb_json_set_bool(json, "idmap", spec->idmap);
	if (r == 0)
		r = rsb_json_set_i64(json, "uid_base", spec->uid_base);
	if (r == 0 && s->secure)
		r = rsb_json_set_str(json, "token", s->token);
	if (r == 0 && spec->env)
		r = rsb_json_set(json, "env", rsb_json_ref(spec->env));
	return r < 0 ? r : rsb_json_write(json, false, out);
}

enum end { KILLED, CRASHED, EXPIRED };

/* Of a paused one nothing is over. */
static enum end
await_end(struct rsb_sandbox *s)
{
	struct pollfd fds[2] = {
		{ .fd = s->proc.fd, .events = POLLIN },
		{ .fd = s->wake_fd, .events = POLLIN },
	};

	for (;;) {
		uint64_t now = rsb_now_ns(), end, count;
		bool killed;

		rsb_mutex_lock(&s->lock);
		killed = s->killed;
		end = s->phase == RUNNING ? s->end_ns : UINT64_MAX;
		rsb_mutex_unlock(&s->lock);
		if (killed)
			return KILLED;
		if (now >= end)
			return EXPIRED;
		/* At most an hour, so that the time fits into the argument. */
		end = rsb_min(end - now, 3600 * RSB_NSEC_PER_SEC);
		if (poll(fds, 2, (int)(end / RSB_NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
			return CRASHED;
		(void)!read(s->wake_fd, &count, sizeof(count)); /* EAGAIN: not rung */
		if (fds[0].revents)
			return CRASHED;
	}
}

/* Its time is over; it may have got more meanwhile. */
static void
pause_itself(struct rsb_sandbox *s)
{
	int r = rsb_sandbox_pause(s);

	if (r == 0)
		rsb_info("sandbox %s is paused", s->id);
	if (r == 0 || r == -EBUSY)
		return;
	rsb_warn_r(r, "sandbox %s cannot be paused", s->id);
	(void)!rsb_sandbox_set_timeout(
		s, RSB_SANDBOX_RETRY_NS, true); /* -EBUSY: it was, after all */
}

static void *
keep(void *arg)
{
	struct rsb_sandbox *s = arg;
	void (*on_gone)(void *) = s->on_gone;
	void *gone_arg = s->arg;

	while (await_end(s) == EXPIRED && s->auto_pause)
		pause_itself(s);
	rsb_mutex_lock(&s->lock);
	s->leaving_now = true;
	rsb_mutex_unlock(&s->lock);
	s->leaving(s->arg, s);
	rsb_boxproc_end(&s->proc);
	rsb_mutex_lock(&s->lock);
	s->gone = true;
	rsb_cond_broadcast(&s->changed);
	rsb_mutex_unlock(&s->lock);
	rsb_sandbox_unref(s);
	on_gone(gone_arg);
	return NULL;
}

static int
start_keeper(struct rsb_sandbox *s)
{
	pthread_t thread;
	int r;

	(void)rsb_sandbox_ref(s);
	r = rsb_thread_start("sandbox", keep, s, &thread);
	if (r < 0)
		rsb_sandbox_unref(s);
	else
		(void)pthread_detach(thread);
	return r;
}

static void
set_end_locked(struct rsb_sandbox *s, uint64_t timeout_ns, bool only_longer) RSB_REQUIRES(s->lock)
{
	uint64_t now = rsb_now_ns(), end = now + timeout_ns;

	if (s->last_ns)
		end = rsb_min(end, s->last_ns);
	if (only_longer && end <= s->end_ns)
		return;
	s->end_ns = end;
	s->end_wall = rsb_wall_ns() + end - now;
}

/* It runs from now on. */
static void
begin_locked(struct rsb_sandbox *s, uint64_t timeout_ns) RSB_REQUIRES(s->lock)
{
	s->started_wall = rsb_wall_ns();
	s->last_ns = s->cap_ns ? rsb_now_ns() + s->cap_ns : 0;
	set_end_locked(s, timeout_ns, false);
}

static int
start(struct rsb_sandbox *s, const struct rsb_sandbox_spec *spec, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	r = write_config(s, spec, &text);
	if (r < 0)
		return r;
	if (rsb_buf_len(&text) > RSB_BOOTCFG_MAX)
		return rsb_diag_set(diag, -E2BIG, "envVars are too large");
	r = rsb_boxproc_start(&s->proc, spec->envd, s->id, rsb_buf_view(&text), diag);
	explicit_bzero(text.data, text.size);
	if (r < 0)
		return r;
	r = rsb_inlets_new(s->proc.control, &s->inlets);
	if (r == 0) {
		rsb_mutex_lock(&s->lock);
		begin_locked(s, spec->timeout_ns);
		rsb_mutex_unlock(&s->lock);
	}
	if (r == 0)
		r = start_keeper(s);
	if (r < 0)
		rsb_boxproc_end(&s->proc);
	return r;
}

int
rsb_sandbox_new(const struct rsb_sandbox_spec *spec, struct rsb_sandbox **ret_sandbox,
	struct rsb_diag *diag)
{
	struct rsb_sandbox *s;
	int r;

	r = sandbox_alloc(spec, &s);
	if (r < 0)
		return r;
	r = start(s, spec, diag);
	if (r < 0) {
		rsb_sandbox_unref(s);
		return r;
	}
	*ret_sandbox = s;
	return 0;
}

/* ---- facts ---- */

const char *
rsb_sandbox_id(const struct rsb_sandbox *s)
{
	return s->id;
}

const char *
rsb_sandbox_token(const struct rsb_sandbox *s)
{
	return s->secure ? s->token : NULL;
}

struct rsb_json *
rsb_sandbox_metadata(const struct rsb_sandbox *s)
{
	return s->metadata;
}

bool
rsb_sandbox_pauses_itself(const struct rsb_sandbox *s)
{
	return s->auto_pause;
}

uint64_t
rsb_sandbox_started_ns(struct rsb_sandbox *s)
{
	uint64_t started;

	rsb_mutex_lock(&s->lock);
	started = s->started_wall;
	rsb_mutex_unlock(&s->lock);
	return started;
}

uint64_t
rsb_sandbox_end_ns(struct rsb_sandbox *s)
{
	uint64_t end;

	rsb_mutex_lock(&s->lock);
	end = s->end_wall;
	rsb_mutex_unlock(&s->lock);
	return end;
}

bool
rsb_sandbox_is_paused(struct rsb_sandbox *s)
{
	bool paused;

	rsb_mutex_lock(&s->lock);
	paused = s->phase != RUNNING;
	rsb_mutex_unlock(&s->lock);
	return paused;
}

static void
wake(struct rsb_sandbox *s)
{
	uint64_t one = 1;

	(void)!write(s->wake_fd, &one, sizeof(one)); /* EAGAIN: rung enough */
}

int
rsb_sandbox_set_timeout(struct rsb_sandbox *s, uint64_t timeout_ns, bool only_longer)
{
	bool runs;

	rsb_mutex_lock(&s->lock);
	runs = s->phase == RUNNING;
	if (runs)
		set_end_locked(s, timeout_ns, only_longer);
	rsb_mutex_unlock(&s->lock);
	wake(s);
	return runs ? 0 : -EBUSY;
}

int
rsb_sandbox_connect(struct rsb_sandbox *s, unsigned int port, struct rsb_inlet **ret_inlet)
{
	return rsb_inlet_open(s->inlets, port, ret_inlet);
}

/* ---- pause ---- */

static void
set_phase_locked(struct rsb_sandbox *s, enum phase phase) RSB_REQUIRES(s->lock)
{
	s->phase = phase;
	rsb_cond_broadcast(&s->changed);
}

int
rsb_sandbox_pause(struct rsb_sandbox *s)
{
	bool runs;
	int r;

	rsb_mutex_lock(&s->lock);
	runs = s->phase == RUNNING;
	if (runs)
		set_phase_locked(s, PAUSING);
	rsb_mutex_unlock(&s->lock);
	if (!runs)
		return -EBUSY;
	rsb_inlets_cut(s->inlets);
	r = rsb_ask_freeze(s->proc.control);
	if (r < 0)
		rsb_inlets_join(s->inlets);
	rsb_mutex_lock(&s->lock);
	if (r == 0)
		s->end_wall = rsb_wall_ns();
	set_phase_locked(s, r < 0 ? RUNNING : PAUSED);
	rsb_mutex_unlock(&s->lock);
	wake(s);
	return r;
}

/* What was paused is thawed by one of those who ask, the others wait for that. */
static bool
may_thaw_locked(struct rsb_sandbox *s) RSB_REQUIRES(s->lock)
{
	while (s->phase == PAUSING || s->phase == RESUMING)
		rsb_cond_wait(&s->changed, &s->lock);
	if (s->phase == RUNNING)
		return false;
	set_phase_locked(s, RESUMING);
	return true;
}

int
rsb_sandbox_resume(struct rsb_sandbox *s, uint64_t timeout_ns)
{
	bool thaws;
	int r = 0;

	rsb_mutex_lock(&s->lock);
	thaws = may_thaw_locked(s);
	if (!thaws)
		set_end_locked(s, timeout_ns, true);
	rsb_mutex_unlock(&s->lock);
	if (thaws) {
		r = rsb_ask_thaw(s->proc.control);
		rsb_inlets_join(s->inlets);
		rsb_mutex_lock(&s->lock);
		begin_locked(s, timeout_ns);
		set_phase_locked(s, RUNNING);
		rsb_mutex_unlock(&s->lock);
	}
	wake(s);
	return r < 0 ? r : thaws;
}

/* ---- end ---- */

bool
rsb_sandbox_alive(struct rsb_sandbox *s)
{
	bool alive;

	rsb_mutex_lock(&s->lock);
	alive = !s->leaving_now;
	rsb_mutex_unlock(&s->lock);
	return alive;
}

void
rsb_sandbox_kill(struct rsb_sandbox *s)
{
	rsb_mutex_lock(&s->lock);
	s->killed = true;
	rsb_mutex_unlock(&s->lock);
	wake(s);
	rsb_mutex_lock(&s->lock);
	while (!s->gone)
		rsb_cond_wait(&s->changed, &s->lock);
	rsb_mutex_unlock(&s->lock);
}
