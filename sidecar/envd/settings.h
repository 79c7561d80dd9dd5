/* SPDX-License-Identifier: MIT */
#ifndef RSB_SETTINGS_H
#define RSB_SETTINGS_H

/* What /init may change while envd runs: token, default environment, user and directory. */

#include "util/json.h"

#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/user.h"

struct rsb_settings;

rsb_nodiscard int rsb_settings_new(
	const struct rsb_bootcfg *cfg, struct rsb_settings **ret_settings);
/*
 * Whether a request with this X-Access-Token (NULL: none) may act. Everybody may without a token.
 */
bool rsb_settings_allow(struct rsb_settings *settings, const char *token);
/* Applies the body of /init. -EACCES when a set token is neither in the header nor in the body. */
rsb_nodiscard int rsb_settings_apply(
	struct rsb_settings *settings, const struct rsb_json *json, const char *token);

/* name NULL or empty: the default user. -ENOENT. */
rsb_nodiscard int rsb_settings_user(
	struct rsb_settings *settings, const char *name, struct rsb_user *ret_user);
/* Empty when none is set. */
void rsb_settings_workdir(struct rsb_settings *settings, char out[static PATH_MAX]);
/* A reference to what nobody changes; NULL without any. */
struct rsb_json *rsb_settings_env(struct rsb_settings *settings);

/*
 * A signed URL (the protocol's form "v1_"): the token is proved without being sent. operation is
 * "read" or "write"; NULLs are absent parameters. 0, -ENOENT without a signature, -EACCES for a
 * wrong one, -ETIME for a right one whose time has passed.
 */
struct rsb_settings_url {
	const char *path;
	const char *operation;
	const char *username;
	const char *signature;
	const char *expiration;
};
rsb_nodiscard int rsb_settings_signed(
	struct rsb_settings *settings, const struct rsb_settings_url *url);

#endif
