/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/secret.h"
#include "util/str.h"
#include "util/thread.h"

#define DEFAULT_USER "user"

struct rsb_settings {
	struct rsb_mutex lock;
	struct rsb_secret token;          /* {lock} size 0: none */
	struct rsb_json *env;             /* {lock} */
	char user[RSB_USER_NAME_MAX + 1]; /* {lock} */
	char workdir[PATH_MAX];           /* {lock} */
	uint64_t newest_ns;               /* {lock} timestamp of the last /init */
};

int
rsb_settings_new(const struct rsb_bootcfg *cfg, struct rsb_settings **ret_settings)
{
	rsb_autofree struct rsb_settings *settings = rsb_new(struct rsb_settings);
	int r;

	if (!settings)
		return -ENOMEM;
	rsb_mutex_init(&settings->lock);
	(void)strcpy(settings->user, DEFAULT_USER);
	if (cfg->token) {
		r = rsb_secret_set(&settings->token, cfg->token, strlen(cfg->token));
		if (r < 0)
			return r;
	}
	if (cfg->env)
		settings->env = rsb_json_ref(cfg->env);
	*ret_settings = rsb_steal(&settings);
	return 0;
}

static bool
allow_locked(struct rsb_settings *settings, const char *token) RSB_REQUIRES(settings->lock)
{
	if (settings->token.size == 0)
		return true;
	return token && rsb_secret_equal(token, strlen(token), settings->token.data,
				settings->token.size) == 1;
}

bool
rsb_settings_allow(struct rsb_settings *settings, const char *token)
{
	bool allowed;

	rsb_mutex_lock(&settings->lock);
	allowed = allow_locked(settings, token);
	rsb_mutex_unlock(&settings->lock);
	return allowed;
}

static int
apply_locked(struct rsb_settings *settings, const struct rsb_json *json)
	RSB_REQUIRES(settings->lock)
{
	struct rsb_json *env;
	const char *text;
	uint64_t when;
	int r;

	if (rsb_json_str(json, "timestamp", &text) == 0 &&
		rsb_clock_parse_rfc3339(text, &when) == 0) {
		if (when < settings->newest_ns)
			return 0;
		settings->newest_ns = when;
	}
	if (rsb_json_str(json, "accessToken", &text) == 0 && text[0]) {
		r = rsb_secret_set(&settings->token, text, strlen(text));
		if (r < 0)
			return r;
	}
	if (rsb_json_get(json, "envVars", &env) == 0 && rsb_json_is_object(env)) {
		rsb_json_free(settings->env);
		settings->env = rsb_json_ref(env);
	}
	if (rsb_json_str(json, "defaultUser", &text) == 0 && strlen(text) <= RSB_USER_NAME_MAX)
		(void)strcpy(settings->user, text);
	if (rsb_json_str(json, "defaultWorkdir", &text) == 0 && strlen(text) < PATH_MAX)
		(void)strcpy(settings->workdir, text);
	return 0;
}

int
rsb_settings_apply(struct rsb_settings *settings, const struct rsb_json *json, const char *token)
{
	const char *body_token = NULL;
	int r;

	(void)!rsb_json_str(json, "accessToken", &body_token); /* NULL without one */
	rsb_mutex_lock(&settings->lock);
	if (allow_locked(settings, token) || allow_locked(settings, body_token))
		r = apply_locked(settings, json);
	else
		r = -EACCES;
	rsb_mutex_unlock(&settings->lock);
	return r;
}

int
rsb_settings_user(struct rsb_settings *settings, const char *name, struct rsb_user *ret_user)
{
	char user[RSB_USER_NAME_MAX + 1];

	if (name && name[0])
		return rsb_user_find(name, ret_user);
	rsb_mutex_lock(&settings->lock);
	(void)strcpy(user, settings->user);
	rsb_mutex_unlock(&settings->lock);
	return rsb_user_find(user, ret_user);
}

void
rsb_settings_workdir(struct rsb_settings *settings, char out[static PATH_MAX])
{
	rsb_mutex_lock(&settings->lock);
	(void)strcpy(out, settings->workdir);
	rsb_mutex_unlock(&settings->lock);
}

struct rsb_json *
rsb_settings_env(struct rsb_settings *settings)
{
	struct rsb_json *env;

	rsb_mutex_lock(&settings->lock);
	env = settings->env ? rsb_json_ref(settings->env) : NULL;
	rsb_mutex_unlock(&settings->lock);
	return env;
}

/* "v1_" and base64 without its padding. */
static int
sign(struct rsb_settings *settings, const struct rsb_settings_url *url, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	uint8_t digest[RSB_SHA256_SIZE];
	int r;

	rsb_mutex_lock(&settings->lock);
	r = rsb_buf_printf(&text, "%s:%s:%s:%.*s%s%s", url->path ? url->path : "", url->operation,
		url->username ? url->username : "", (int)settings->token.size,
		(const char *)settings->token.data, url->expiration ? ":" : "",
		url->expiration ? url->expiration : "");
	rsb_mutex_unlock(&settings->lock);
	if (r < 0)
		return r;
	rsb_sha256(rsb_buf_view(&text), digest);
	explicit_bzero(text.data, text.size);
	r = rsb_buf_append(out, "v1_", 3);
	if (r < 0)
		return r;
	return rsb_base64_encode((struct rsb_bytes){ digest, sizeof(digest) }, out);
}

int
rsb_settings_signed(struct rsb_settings *settings, const struct rsb_settings_url *url)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf want = { 0 };
	uint64_t until;
	size_t size;
	int r;

	if (!url->signature)
		return -ENOENT;
	r = sign(settings, url, &want);
	if (r < 0)
		return r;
	for (size = rsb_buf_len(&want); size > 0 && rsb_buf_head(&want)[size - 1] == '=';)
		size--;
	if (rsb_secret_equal(url->signature, strlen(url->signature), rsb_buf_head(&want), size) !=
		1)
		return -EACCES;
	if (!url->expiration)
		return 0;
	if (rsb_str_u64(url->expiration, INT64_MAX, &until) < 0)
		return -EACCES;
	return until < rsb_wall_ns() / RSB_NSEC_PER_SEC ? -ETIME : 0;
}
