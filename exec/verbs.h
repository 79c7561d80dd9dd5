/* SPDX-License-Identifier: MIT */
#ifndef RSB_VERBS_H
#define RSB_VERBS_H

/* The verbs of rsb: one file each, one row each in the table of rsb.c. */

#include "keeper/keeper.h"

struct rsb_verb {
	const char *name;
	const char *usage; /* after "rsb " */
	const char *help;  /* one line */
	const char *more;  /* the options, a line each; NULL: none beyond the common ones */
	/* argv[0] is the verb. Returns the exit status. */
	int (*run)(const struct rsb_verb *verb, int argc, char **argv, char **env);
};

extern const struct rsb_verb rsb_verb_create;
extern const struct rsb_verb rsb_verb_destroy;
extern const struct rsb_verb rsb_verb_doctor;
extern const struct rsb_verb rsb_verb_down;
extern const struct rsb_verb rsb_verb_exec;
extern const struct rsb_verb rsb_verb_list;
extern const struct rsb_verb rsb_verb_mount;
extern const struct rsb_verb rsb_verb_status;
extern const struct rsb_verb rsb_verb_trust;
extern const struct rsb_verb rsb_verb_umount;
extern const struct rsb_verb rsb_verb_up;

/* ---- what several verbs need ---- */

#define RSB_VERB_OVERRIDES_MAX 64

/* Options that every verb has; see rsb_verb_option(). */
struct rsb_verb_common {
	const char *overrides[RSB_VERB_OVERRIDES_MAX + 1]; /* -o, NULL-terminated */
	size_t n_override;
	bool quiet;
	bool json;
};

/* getopt_long(3) letters and long options that all share; a verb puts its own around them. */
#define RSB_VERB_LETTERS "o:q"
#define RSB_VERB_LONG                                        \
	{ "quiet", 0, NULL, 'q' }, { "json", 0, NULL, 'J' }, \
	{                                                    \
		"help", 0, NULL, 'H'                         \
	}
/*
 * For the letters above and for getopt's '?'. 0: taken; else *ret_status is what the verb returns
 * (after --help or an error, which has been told).
 */
int rsb_verb_option(
	const struct rsb_verb *verb, int c, struct rsb_verb_common *common, int *ret_status);
/* Tells on stderr what is wrong with the command line; returns RSB_EXIT_USAGE. */
int rsb_verb_usage(const struct rsb_verb *verb, const char *what);
/* Tells r and its sentence on stderr; returns RSB_EXIT_FAILED. */
int rsb_verb_failed(const struct rsb_verb *verb, int r, const struct rsb_diag *diag);

/*
 * Configuration, backend and opened state directory of one sandbox: what the keeper's functions
 * stand on.
 */
struct rsb_verb_session {
	struct rsb_config config;
	struct rsb_backend *backend;
	struct rsb_state_dir *dir;
	struct rsb_keeper_env env;
	struct rsb_state state; /* as it is now that nobody else changes it; if known */
	bool known;
	bool locked;
};
/*
 * name: of the sandbox, which create lets not exist yet. The state lock is held until
 * rsb_verb_session_done(), which also removes what create made for a sandbox that did not come.
 */
struct rsb_verb_session_of {
	const char *root;
	const char *name;
	const char *project_dir;
	bool create;
	uint64_t request_max_ns; /* waits no longer for the control plane; 0: as configured */
};
rsb_nodiscard int rsb_verb_session_open(struct rsb_verb_session *session,
	const struct rsb_verb_session_of *of, const struct rsb_verb_common *common, char **env,
	struct rsb_diag *diag);
void rsb_verb_session_done(struct rsb_verb_session *session);

#endif
