/* SPDX-License-Identifier: MIT */
#ifndef RSB_ENVIRON_H
#define RSB_ENVIRON_H

/*
 * The part of our environment that a command in the sandbox gets: names on the allow-list of
 * exec.env, then what the user named. PATH, HOME and the like are the sandbox's own and not
 * forwarded unless named.
 */

#include "keeper/config.h"
#include "util/cleanup.h"

struct rsb_environ;

rsb_nodiscard int rsb_environ_new(struct rsb_environ **ret_environ);
void rsb_environ_free(struct rsb_environ *set); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_environ *, rsb_environ_free)

/* Everything of env that the list allows. */
rsb_nodiscard int rsb_environ_allow(
	struct rsb_environ *set, char *const *env, const struct rsb_config_list *allowed);
/*
 * "NAME=VALUE", or "NAME" for its value in env (nothing when it has none). -EINVAL: no such form.
 */
rsb_nodiscard int rsb_environ_set(struct rsb_environ *set, char *const *env, const char *text);
/* NULL-terminated; lives as long as set and until it is changed. */
const char *const *rsb_environ_list(const struct rsb_environ *set);

#endif
