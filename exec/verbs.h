/* SPDX-License-Identifier: MIT */
#ifndef RSB_VERBS_H
#define RSB_VERBS_H

/* The verbs of rsb: one file each, one row each in the table of rsb.c. */

#include <getopt.h>

#include "keeper/keeper.h"

#define RSB_VERB_OVERRIDES_MAX 64
#define RSB_VERB_OWN_MAX RSB_CONFIG_LIST_MAX

/* Options that every verb has. */
struct rsb_verb_common {
	const char *overrides[RSB_VERB_OVERRIDES_MAX + 1]; /* -o, NULL-terminated */
	size_t n_override;
	bool quiet;
	bool verbose; /* not with quiet */
	bool json;
};

/* What the command line said; nothing of it is ours. */
struct rsb_verb_call {
	struct rsb_verb_common common;
	/* The verb's own options, in the order given; value is NULL where there is none. */
	struct rsb_verb_option {
		int c;
		const char *value;
	} own[RSB_VERB_OWN_MAX];
	size_t n_own;
	char **words; /* after the options; NULL-terminated */
	int n_word;
	char **env;
};

struct rsb_verb {
	const char *name;
	const char *usage;   /* after "rsb " */
	const char *help;    /* one line */
	const char *more;    /* its own options, a line each; NULL: it has none, nor the next two */
	const char *letters; /* for getopt_long(3), with RSB_VERB_LETTERS */
	const struct option *options; /* with RSB_VERB_LONG */
	int min_words;
	int max_words;
	const char *wrong_words; /* what is wrong with fewer or more */
	/* Returns the exit status. */
	int (*run)(const struct rsb_verb *verb, const struct rsb_verb_call *call);
	/* Instead of it, where the command line is that of another program; argv[0] is the verb. */
	int (*main)(int argc, char **argv, char **env);
};

/* getopt_long(3) letters and long options that all share; a verb puts its own around them. */
#define RSB_VERB_LETTERS "o:qv"
#define RSB_VERB_LONG                                                                     \
	{ "quiet", 0, NULL, 'q' }, { "verbose", 0, NULL, 'v' }, { "json", 0, NULL, 'J' }, \
	{                                                                                 \
		"help", 0, NULL, 'H'                                                      \
	}

extern const struct rsb_verb rsb_verb_create;
extern const struct rsb_verb rsb_verb_destroy;
extern const struct rsb_verb rsb_verb_doctor;
extern const struct rsb_verb rsb_verb_down;
extern const struct rsb_verb rsb_verb_events;
extern const struct rsb_verb rsb_verb_exec;
extern const struct rsb_verb rsb_verb_list;
extern const struct rsb_verb rsb_verb_mount;
extern const struct rsb_verb rsb_verb_snapshot;
extern const struct rsb_verb rsb_verb_status;
extern const struct rsb_verb rsb_verb_sync;
extern const struct rsb_verb rsb_verb_trust;
extern const struct rsb_verb rsb_verb_umount;
extern const struct rsb_verb rsb_verb_up;

/* ---- what several verbs need ---- */

/* Reads the command line, tells what is wrong with it, and runs the verb; the exit status. */
int rsb_verb_run(const struct rsb_verb *verb, int argc, char **argv, char **env);
/* Whether the verb's own option c was given. */
bool rsb_verb_has(const struct rsb_verb_call *call, int c);
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
	bool was_paused; /* it runs for us, exec/way.h */
	bool *woken;     /* the same for a parent, in memory that is shared; NULL: there is none */
};
/*
 * name: of the sandbox, which create lets not exist yet. Locks are held until
 * rsb_verb_session_done(), which also removes what create made for a sandbox that did not come.
 */
struct rsb_verb_session_of {
	const char *root;
	const char *name;
	const char *project_dir;
	bool create;
	bool sync;               /* the lock of syncs is held, too */
	bool builtin;            /* also for who is called by one that holds it, exec/synchook.h */
	uint64_t request_max_ns; /* waits no longer for the control plane; 0: as configured */
};
rsb_nodiscard int rsb_verb_session_open(struct rsb_verb_session *session,
	const struct rsb_verb_session_of *of, const struct rsb_verb_common *common, char **env,
	struct rsb_diag *diag);
/* Lets others change it; what was read stays, and so does the lock of syncs. */
void rsb_verb_session_unlock(struct rsb_verb_session *session);
/* After that: for us alone again, as it is now. -ENOENT: it is gone. */
rsb_nodiscard int rsb_verb_session_relock(struct rsb_verb_session *session, struct rsb_diag *diag);
void rsb_verb_session_done(struct rsb_verb_session *session);

#endif
