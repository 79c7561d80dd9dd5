/* SPDX-License-Identifier: MIT */
#include "keeper/provision.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "backend/e2b.h"
#include "backend/local.h"
#include "keeper/deploy.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"

/* After a create whose reply was lost: how long its sandbox may take to show up in the list. */
#define LOOKUPS 5
#define LOOKUP_PAUSE_NS (500 * 1000 * 1000L)

/* ---- backends ---- */

static int
open_e2b(const struct rsb_config *config, const struct rsb_secret *key,
	struct rsb_backend **ret_backend, struct rsb_diag *diag)
{
	struct rsb_e2b_config e2b = {
		.name = "e2b",
		.api_url = config->e2b.api_url,
		.domain = config->e2b.domain,
		.envd_url = config->e2b.envd_url,
		.envd_port = (unsigned int)config->e2b.envd_port,
		.ca_file = config->e2b.ca_file[0] ? config->e2b.ca_file : NULL,
		.timeout_ns = config->e2b.request_timeout_ns,
		.ask_ns = rsb_min(config->e2b.request_timeout_ns, RSB_E2B_ASK_NS),
		.api_key = *key,
	};
	int r = rsb_e2b_new(&e2b, ret_backend, diag);

	rsb_secret_done(&e2b.api_key);
	return r;
}

static int
open_local(const struct rsb_config *config, char *const *env, struct rsb_backend **ret_backend,
	struct rsb_diag *diag)
{
	rsb_autofree char *root = NULL;
	rsb_autofree char *dir = NULL;
	struct rsb_local local;
	struct rsb_e2b_config e2b = {
		.name = "local",
		.domain = "localhost",
		.envd_port = (unsigned int)config->e2b.envd_port,
		.timeout_ns = config->e2b.request_timeout_ns,
		.ask_ns = rsb_min(config->e2b.request_timeout_ns, RSB_E2B_ASK_NS),
		.local_env = env,
	};
	int r;

	r = rsb_state_root(env, &root, diag);
	if (r < 0)
		return r;
	dir = rsb_str_path(root, RSB_STATE_LOCAL);
	if (!dir)
		return -ENOMEM;
	r = rsb_local_open(dir, env, &local, diag);
	if (r < 0)
		return r;
	e2b.local_dir = dir;
	e2b.api_url = local.url;
	e2b.envd_url = local.url;
	e2b.api_key = local.api_key;
	r = rsb_e2b_new(&e2b, ret_backend, diag);
	rsb_secret_done(&e2b.api_key);
	rsb_secret_done(&local.api_key);
	return r;
}

int
rsb_keeper_backend(const struct rsb_config *config, char *const *env, const char *kind,
	struct rsb_backend **ret_backend, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_secret_done) struct rsb_secret key = { 0 };
	unsigned int backend = config->backend;
	struct rsb_diag why = { 0 };
	int r;

	if (kind && strcmp(kind, "local") == 0)
		backend = RSB_CONFIG_LOCAL;
	else if (kind && strcmp(kind, "e2b") == 0)
		backend = RSB_CONFIG_E2B;
	else if (kind && kind[0])
		return rsb_diag_set(diag, -EINVAL, "there is no backend '%s'", kind);
	if (backend == RSB_CONFIG_LOCAL)
		return open_local(config, env, ret_backend, diag);
	r = rsb_config_api_key(config, env, &key, &why);
	if (r == -ENOKEY && backend == RSB_CONFIG_AUTO)
		return open_local(config, env, ret_backend, diag);
	if (r < 0)
		return rsb_diag_set(diag, r, "%s", rsb_diag_text(&why, r));
	return open_e2b(config, &key, ret_backend, diag);
}

/* ---- create ---- */

/* Of the state directories. Caller frees; NULL: no memory. */
static char *
root_of(const struct rsb_keeper_env *env)
{
	char *root = strdup(rsb_state_path(env->dir));

	if (root)
		*strrchr(root, '/') = '\0';
	return root;
}

struct census {
	const char *name; /* does not count itself */
	struct rsb_backend *backend;
	bool asks; /* the host, whether it is there */
	uint64_t n;
};

static int
count(void *arg, const struct rsb_state *state)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct census *census = arg;
	const struct rsb_backend_ops *ops = census->backend->ops;

	if (strcmp(state->name, census->name) == 0 || strcmp(state->backend, ops->name) != 0)
		return 0;
	if (!census->asks ||
		ops->get(census->backend, state->sandbox_id, &sandbox, NULL) != -ENOENT)
		census->n++;
	return 0;
}

static int
check_max(const struct rsb_keeper_env *env, struct rsb_diag *diag)
{
	struct census census = {
		.name = rsb_state_name(env->dir),
		.backend = env->backend,
	};
	rsb_autofree char *root = root_of(env);
	int r;

	if (!root)
		return -ENOMEM;
	r = rsb_state_list(root, count, &census);
	/* Some may be gone, which their host knows; as a rule it need not be asked. */
	if (r >= 0 && census.n >= env->config->sandbox.max) {
		census.n = 0;
		census.asks = true;
		r = rsb_state_list(root, count, &census);
	}
	if (r < 0)
		return r;
	if (census.n >= env->config->sandbox.max)
		return rsb_diag_set(diag, -EDQUOT,
			"there %s %llu sandbox%s already (sandbox.max); destroy one first",
			census.n == 1 ? "is" : "are", (unsigned long long)census.n,
			census.n == 1 ? "" : "es");
	return 0;
}

static int
copy_text(char *out, size_t size, const char *text)
{
	if (text && strlen(text) >= size)
		return -ENAMETOOLONG;
	strcpy(out, text ? text : "");
	return 0;
}

#define COPY(member, text) copy_text(member, sizeof(member), text)

static int
fill_state(const struct rsb_keeper_env *env, const struct rsb_keeper_create *req,
	struct rsb_state *state, struct rsb_diag *diag)
{
	const struct rsb_config *config = env->config;
	int r;

	*state = (struct rsb_state){
		.port = config->sandbox.port,
		.ttl_ns = config->sandbox.ttl_ns ? config->sandbox.ttl_ns : req->ttl_ns,
		.created_ns = rsb_wall_ns(),
		.made_mountpoint = req->made_mountpoint,
	};
	r = COPY(state->name, rsb_state_name(env->dir));
	if (r == 0)
		r = COPY(state->backend, env->backend->ops->name);
	if (r == 0)
		r = COPY(state->template, config->sandbox.template);
	if (r == 0)
		r = COPY(state->user, config->sandbox.user);
	if (r == 0)
		r = COPY(state->workspace, config->sandbox.workspace);
	if (r == 0)
		r = COPY(state->runtime_dir, config->sandbox.runtime_dir);
	if (r == 0)
		r = COPY(state->local_dir, req->local_dir);
	if (r == 0)
		r = COPY(state->mountpoint, req->mountpoint);
	return r < 0 ? rsb_diag_set(diag, r, "a setting or path is too long") : 0;
}

static int
take_first(void *arg, const struct rsb_sandbox *sandbox)
{
	struct rsb_sandbox *found = arg;

	*found = *sandbox;
	return 1;
}

/*
 * The sandbox that carries this intent. -ENOENT: there is none, by an answer that can be
 * trusted.
 */
static int
look_up(const struct rsb_keeper_env *env, const char *intent, struct rsb_sandbox *ret_sandbox,
	struct rsb_diag *diag)
{
	struct rsb_sandbox found = { 0 };
	int r;

	r = env->backend->ops->list(env->backend, intent, take_first, &found, diag);
	if (r < 0)
		return r;
	if (r == 0)
		return -ENOENT;
	/* a list has no tokens */
	r = env->backend->ops->get(env->backend, found.id, ret_sandbox, diag);
	rsb_sandbox_done(&found);
	return r;
}

static int
look_up_patiently(
	const struct rsb_keeper_env *env, const char *intent, struct rsb_sandbox *ret_sandbox)
{
	const struct timespec pause = { .tv_nsec = LOOKUP_PAUSE_NS };
	int r = -ENOENT;
	int i;

	for (i = 0; i < LOOKUPS && r < 0; i++) {
		(void)nanosleep(&pause, NULL); /* an early end is fine */
		r = look_up(env, intent, ret_sandbox, NULL);
	}
	return r;
}

static int
request(const struct rsb_keeper_env *env, const struct rsb_keeper_create *how,
	const struct rsb_state *state, struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	const struct rsb_config *config = env->config;
	const struct rsb_backend_create req = {
		.template = state->template,
		.intent = state->intent,
		.name = state->name,
		.ttl_ns = state->ttl_ns,
		.pause_on_expire = config->sandbox.on_expire == RSB_CONFIG_EXPIRE_UNSET
					   ? how->pause_on_expire
					   : config->sandbox.on_expire == RSB_CONFIG_EXPIRE_PAUSE,
		.internet = config->sandbox.internet,
	};
	int r, found;

	r = env->backend->ops->create(env->backend, &req, ret_sandbox, diag);
	if (r != -EREMOTEIO && r != -EBADMSG)
		return r;
	/* it may be there all the same */
	found = look_up_patiently(env, state->intent, ret_sandbox);
	return found == 0 ? 0 : r;
}

/* Whether a create that failed so has certainly made nothing. */
static bool
made_nothing(int r)
{
	return r != -EREMOTEIO && r != -EBADMSG && r != -ECANCELED;
}

int
rsb_keeper_request(const struct rsb_keeper_env *env, const struct rsb_keeper_create *how,
	struct rsb_state *state, struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	int r = check_max(env, diag);

	if (r < 0)
		return r;
	r = rsb_state_intent_begin(env->dir, state->intent);
	if (r < 0)
		return rsb_state_say_unwritten(env->dir, r, diag);
	r = request(env, how, state, ret_sandbox, diag);
	if (r < 0 && made_nothing(r))
		(void)rsb_state_intent_end(env->dir); /* it will find nothing either way */
	return r;
}

static int
create_or_adopt(const struct rsb_keeper_env *env, const struct rsb_keeper_create *how,
	struct rsb_state *state, struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	int r = rsb_state_intent_pending(env->dir, state->intent);

	if (r == 0) {
		r = look_up(env, state->intent, ret_sandbox, diag);
		if (r != -ENOENT)
			return r;
	}
	return rsb_keeper_request(env, how, state, ret_sandbox, diag);
}

int
rsb_keeper_create(const struct rsb_keeper_env *env, const struct rsb_keeper_create *req,
	struct rsb_state *ret_state, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_state state;
	int r;

	r = fill_state(env, req, &state, diag);
	if (r == 0)
		r = create_or_adopt(env, req, &state, &sandbox, diag);
	if (r < 0)
		return r;
	if (sandbox.state == RSB_SANDBOX_PAUSED) {
		/* one that was adopted may have waited long */
		r = env->backend->ops->connect(
			env->backend, sandbox.id, state.ttl_ns, &sandbox, diag);
		if (r < 0)
			return r;
	}
	strcpy(state.sandbox_id, sandbox.id);
	r = rsb_state_save(env->dir, &state);
	if (r == 0)
		r = rsb_state_intent_end(env->dir);
	if (r < 0)
		(void)rsb_state_say_unwritten(env->dir, r, diag);
	else
		r = rsb_keeper_deploy(env, &state, &sandbox, diag);
	if (r < 0) {
		/* nothing was done in it yet */
		(void)rsb_keeper_destroy(env, &state, NULL);
		return r;
	}
	rsb_state_event(env->dir, "created", sandbox.id);
	*ret_state = state;
	return 0;
}

/* ---- back and to its end ---- */

int
rsb_keeper_look(const struct rsb_keeper_env *env, const struct rsb_state *state,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	struct rsb_backend *backend = env->backend;
	rsb_autofree char *root = NULL;
	int r = backend->ops->get(backend, state->sandbox_id, ret_sandbox, diag);

	if (r != -ENOENT)
		return r;
	root = root_of(env);
	return root ? rsb_state_say_gone(root, state->name, diag) : -ENOMEM;
}

int
rsb_keeper_resume(const struct rsb_keeper_env *env, const struct rsb_state *state,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_backend *backend = env->backend;
	struct rsb_sandbox resumed;
	int r;

	r = rsb_keeper_look(env, state, &sandbox, diag);
	if (r < 0)
		return r;
	if (sandbox.state == RSB_SANDBOX_PAUSED) {
		r = backend->ops->connect(
			backend, state->sandbox_id, state->ttl_ns, &resumed, diag);
		if (r < 0)
			return r;
		*ret_sandbox = resumed;
		return 1;
	}
	r = backend->ops->extend(backend, state->sandbox_id, state->ttl_ns, diag);
	if (r < 0)
		return r;
	*ret_sandbox = sandbox;
	sandbox = (struct rsb_sandbox){ 0 };
	return 0;
}

int
rsb_keeper_deploy(const struct rsb_keeper_env *env, const struct rsb_state *state,
	const struct rsb_sandbox *sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_secret_done) struct rsb_secret key = { 0 };
	rsb_autofree char *sidecar = NULL;
	struct rsb_deploy deploy = {
		.backend = env->backend,
		.sandbox = sandbox,
		.runtime_dir = state->runtime_dir,
		.workspace = state->workspace,
		.user = state->user,
		.port = (unsigned int)state->port,
		.key = &key,
	};
	int r;

	r = rsb_state_key(env->dir, &key);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot use the sidecar's key in %s", rsb_state_path(env->dir));
	r = rsb_deploy_find(env->environ, &sidecar, diag);
	if (r < 0)
		return r;
	deploy.sidecar = sidecar;
	return rsb_deploy(&deploy, diag);
}

int
rsb_keeper_destroy(
	const struct rsb_keeper_env *env, const struct rsb_state *state, struct rsb_diag *diag)
{
	int r;

	/* rsb-exec starts a daemon without the state's lock: it must not lose its state. */
	r = rsb_state_lock(env->dir, RSB_STATE_LOCK_DAEMON, false);
	if (r == -EBUSY)
		return rsb_diag_set(diag, r, "the sandbox %s is in use again: a daemon serves it",
			rsb_state_name(env->dir));
	r = env->backend->ops->kill(env->backend, state->sandbox_id, diag);
	if (r < 0 && r != -ENOENT)
		return r;
	/* One that was to take its place, by somebody who was interrupted, goes with it. */
	r = rsb_keeper_forget(env, diag);
	if (r == 0)
		r = rsb_state_remove(env->dir);
	return r < 0 ? rsb_diag_set(diag, r, "cannot remove %s: %s", rsb_state_path(env->dir),
			       rsb_diag_text(NULL, r))
		     : 0;
}

int
rsb_keeper_forget(const struct rsb_keeper_env *env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	char intent[RSB_INTENT_SIZE + 1];
	int r;

	r = rsb_state_intent_pending(env->dir, intent);
	if (r == -ENOENT)
		return 0;
	/* The call may have been cut off before its sandbox is in the list. */
	if (r == 0)
		r = look_up_patiently(env, intent, &sandbox);
	if (r == 0)
		r = env->backend->ops->kill(env->backend, sandbox.id, diag);
	if (r < 0 && r != -ENOENT)
		return r;
	r = rsb_state_intent_end(env->dir);
	return r < 0 ? rsb_state_say_unwritten(env->dir, r, diag) : 0;
}
