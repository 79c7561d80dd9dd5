/* SPDX-License-Identifier: MIT */
#ifndef RSB_CONFIG_H
#define RSB_CONFIG_H

/*
 * What rsb.conf(5) can say, as plain data, after all its sources were laid over each other. From
 * the strongest: options and -o (the last of two wins), environment, the project's .rsb/config
 * (keys that could start a program, reach another server or touch a secret are refused there
 * unless the file is trusted, keeper/trust.h), $XDG_CONFIG_HOME/rsb/config, /etc/rsb/config,
 * built-in values. A [sandbox "NAME"] section counts for that sandbox, over [sandbox] of the same
 * file. A list key replaces the weaker source's list; "key += value" adds.
 *
 * An unknown key, a bad value, or a line that the reader would have to cut is refused with file
 * and line in one sentence.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/diag.h"
#include "util/secret.h"

#define RSB_CONFIG_LIST_MAX 256
#define RSB_CONFIG_FILE_MAX ((size_t)64 << 10)

struct rsb_config_list {
	char **items; /* NULL-terminated; never NULL */
	size_t n;
	bool fresh; /* while loading: this source said nothing of it yet */
};

enum rsb_config_backend { RSB_CONFIG_AUTO, RSB_CONFIG_E2B, RSB_CONFIG_LOCAL };
enum rsb_config_expire { RSB_CONFIG_EXPIRE_UNSET, RSB_CONFIG_EXPIRE_PAUSE, RSB_CONFIG_EXPIRE_KILL };
enum rsb_config_down { RSB_CONFIG_DOWN_PAUSE, RSB_CONFIG_DOWN_KILL, RSB_CONFIG_DOWN_LEAVE };
enum rsb_config_idmap { RSB_CONFIG_IDMAP_USER, RSB_CONFIG_IDMAP_NONE };

/* Strings are never NULL; empty means not set. Durations in ns. */
struct rsb_config {
	unsigned int backend; /* enum rsb_config_backend */
	struct {
		char *api_key_command;
		char *credentials; /* file, 0600; default $XDG_CONFIG_HOME/rsb/credentials */
		char *api_key;     /* from E2B_API_KEY alone, never from a file */
		char *api_url;     /* default https://api.DOMAIN */
		char *domain;
		char *envd_url;
		uint64_t envd_port;
		char *ca_file;
		uint64_t request_timeout_ns;
	} e2b;
	struct {
		char *template;
		char *user; /* empty: the server's default */
		char *workspace;
		char *runtime_dir;
		uint64_t port;
		uint64_t ttl_ns;        /* 0: the verb's own (300 s for up, 600 s for create) */
		unsigned int on_expire; /* enum rsb_config_expire; UNSET: the verb's own */
		unsigned int on_down;   /* enum rsb_config_down */
		bool internet;
		uint64_t max;
	} sandbox;
	struct {
		uint64_t heartbeat_ns;
		uint64_t idle_limit_ns; /* 0: none */
		uint64_t recover_wait_ns;
	} keeper;
	struct {
		struct rsb_config_list exclude;
		uint64_t interval_ns;  /* of automatic snapshots; 0: none */
		uint64_t snapshot_max; /* bytes of a chain of them */
		uint64_t out_max;      /* bytes of all files that one sync may bring */
		bool out_on_down;
		char *in_command; /* empty: none */
		char *out_command;
		uint64_t command_timeout_ns;
	} sync;
	struct {
		char *command; /* empty: none */
		uint64_t timeout_ns;
	} notify;
	struct {
		uint64_t linger_ns;
		uint64_t drain_ns;
		uint64_t grace_ns;
		struct rsb_config_list
			env; /* names that are forwarded; a trailing * matches the rest */
	} exec;
	struct {
		bool sync;
		unsigned int idmap; /* enum rsb_config_idmap */
	} mount;
};

struct rsb_config_source {
	/* "section.key=value" or "section.key+=value"; NULL-terminated, may be NULL. */
	const char *const *overrides;
	char *const *env;        /* as environ(7) */
	const char *project_dir; /* .rsb/config is looked for here and above; NULL: nowhere */
	const char *sandbox;     /* whose [sandbox "NAME"] counts; NULL: nobody's */
	const char *etc;         /* NULL: /etc; for tests */
};

/*
 * The caller ends it by rsb_config_done(), also zeroed memory; nothing to release on failure.
 * -EINVAL, -EACCES, -ENOMEM.
 */
rsb_nodiscard int rsb_config_load(const struct rsb_config_source *source,
	struct rsb_config *ret_config, struct rsb_diag *diag);
void rsb_config_done(struct rsb_config *config);
/* One of the overrides makes sense. -EINVAL, with a sentence, -ENOMEM. */
rsb_nodiscard int rsb_config_check_override(const char *text, struct rsb_diag *diag);

/*
 * The project's file for dir (absolute): .rsb/config there or above, up to the repository's root.
 * *ret_path NULL: there is none; one that lies in a mount of ours is the sandbox's, and none.
 */
rsb_nodiscard int rsb_config_project(const char *dir, char **ret_path);

/*
 * The API key, from the first source that has one: $CREDENTIALS_DIRECTORY/rsb-api-key,
 * api_key_command, the credentials file (-EACCES if others can read it), E2B_API_KEY.
 * -ENOKEY: none has.
 */
rsb_nodiscard int rsb_config_api_key(const struct rsb_config *config, char *const *env,
	struct rsb_secret *ret_key, struct rsb_diag *diag);

/* The value of name in env, NULL when absent. */
const char *rsb_config_getenv(char *const *env, const char *name);
/*
 * The user's home: HOME, or without it, as for a mount(8) at boot, that of passwd(5); absolute.
 * NULL: there is none. Valid until the next call. Not for several threads at once.
 */
const char *rsb_config_home(char *const *env);

#endif
