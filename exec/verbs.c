/* SPDX-License-Identifier: MIT */
#include "exec/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/outcome.h"
#include "exec/synchook.h"
#include "util/optlong.h"

#define OPEN_TRIES 8u

int
rsb_verb_usage(const struct rsb_verb *verb, const char *what)
{
	(void)fprintf(stderr, "rsb %s: %s; try 'rsb %s --help'\n", verb->name, what, verb->name);
	return RSB_EXIT_USAGE;
}

int
rsb_verb_failed(const struct rsb_verb *verb, int r, const struct rsb_diag *diag)
{
	(void)fprintf(stderr, "rsb %s: %s\n", verb->name, rsb_diag_text(diag, r));
	return RSB_EXIT_FAILED;
}

static void
print_help(const struct rsb_verb *verb)
{
	(void)printf("Usage: rsb %s\n%s\n\n", verb->usage, verb->help);
	if (verb->more)
		(void)fputs(verb->more, stdout);
	(void)fputs("  -o KEY=VALUE          a setting of rsb.conf(5)\n"
		    "  -q, --quiet           nothing but errors and results\n"
		    "  -v, --verbose         tell the begin and end of what takes long\n"
		    "      --json            the result as JSON\n"
		    "      --help\n",
		stdout);
}

/* What is wrong with option c, of those that are not --help; NULL: it is taken. */
static const char *
take_option(struct rsb_verb_call *call, int c)
{
	struct rsb_verb_common *common = &call->common;

	switch (c) {
	case 'o':
		if (common->n_override == RSB_VERB_OVERRIDES_MAX)
			return "too many -o options";
		common->overrides[common->n_override++] = optarg;
		return NULL;
	case 'q':
	case 'v':
		common->quiet = c == 'q';
		common->verbose = c == 'v';
		return NULL;
	case 'J':
		common->json = true;
		return NULL;
	default:
		if (call->n_own == RSB_VERB_OWN_MAX)
			return "too many options";
		call->own[call->n_own++] = (struct rsb_verb_option){ .c = c, .value = optarg };
		return NULL;
	}
}

/* 0: those of -o make sense. */
static int
check_overrides(const struct rsb_verb *verb, const struct rsb_verb_common *common)
{
	struct rsb_diag diag = { 0 };
	int r = 0;

	for (size_t i = 0; i < common->n_override && r >= 0; i++)
		r = rsb_config_check_override(common->overrides[i], &diag);
	if (r == -EINVAL)
		return rsb_verb_usage(verb, rsb_diag_text(&diag, r));
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

int
rsb_verb_run(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option common[] = { RSB_VERB_LONG, { 0 } };
	const struct option *options = verb->options ? verb->options : common;
	const char *letters = verb->letters ? verb->letters : RSB_VERB_LETTERS;
	struct rsb_verb_call call = { .env = env };
	struct rsb_diag diag = { 0 };
	int c, status;

	if (verb->main)
		return verb->main(argc, argv, env);
	while ((c = rsb_optlong(argc, argv, letters, options, &diag)) != -1) {
		const char *wrong;

		if (c == 'H') {
			print_help(verb);
			return 0;
		}
		wrong = c == '?' ? diag.text : take_option(&call, c);
		if (wrong)
			return rsb_verb_usage(verb, wrong);
	}
	call.words = argv + optind;
	call.n_word = argc - optind;
	if (call.n_word < verb->min_words || call.n_word > verb->max_words)
		return rsb_verb_usage(verb, verb->wrong_words);
	status = check_overrides(verb, &call.common);
	return status ? status : verb->run(verb, &call);
}

bool
rsb_verb_has(const struct rsb_verb_call *call, int c)
{
	for (size_t i = 0; i < call->n_own; i++)
		if (call->own[i].c == c)
			return true;
	return false;
}

/* For as long as somebody else has it, who may be syncing a large directory; that is said once. */
static int
wait_lock(struct rsb_state_dir *dir, enum rsb_state_lock lock, bool *said)
{
	int r = rsb_state_lock(dir, lock, *said);

	while (r == -EBUSY && rsb_state_is_there(dir)) {
		if (!*said)
			(void)fprintf(stderr,
				"rsb: another rsb is changing the sandbox %s: waiting for it\n",
				rsb_state_name(dir));
		*said = true;
		r = rsb_state_lock(dir, lock, true);
	}
	return r;
}

/* Who calls us from his command has it for us. */
static int
wait_sync_lock(struct rsb_state_dir *dir, const struct rsb_verb_session_of *of, char **env,
	bool *said, struct rsb_diag *diag)
{
	int r = rsb_state_lock(dir, RSB_STATE_LOCK_SYNC, false);

	if (r != -EBUSY || !rsb_synchook_inside(rsb_state_path(dir), env))
		return r == -EBUSY ? wait_lock(dir, RSB_STATE_LOCK_SYNC, said) : r;
	return of->builtin ? 0
			   : rsb_diag_set(diag, -EDEADLK,
				     "a command of rsb.conf(5) syncs %s, and we are called by it: "
				     "there, 'rsb sync --builtin' alone is possible",
				     of->name);
}

/* What had the lock before us may have removed it all: then the next directory is meant. */
static int
open_locked(struct rsb_verb_session *session, const struct rsb_verb_session_of *of, char **env,
	struct rsb_diag *diag)
{
	bool said = false;
	int r = -EBUSY;

	for (unsigned int n = 0; n < OPEN_TRIES; n++) {
		rsb_state_close(session->dir);
		session->dir = NULL;
		r = rsb_state_open(of->root, of->name, of->create, &session->dir, diag);
		if (r < 0)
			return r;
		r = of->sync ? wait_sync_lock(session->dir, of, env, &said, diag) : 0;
		if (r >= 0)
			r = wait_lock(session->dir, RSB_STATE_LOCK, &said);
		if (rsb_state_is_there(session->dir))
			return r;
	}
	return r < 0 ? r : -EBUSY;
}

static int
lock(struct rsb_verb_session *session, const struct rsb_verb_session_of *of, char **env,
	struct rsb_diag *diag)
{
	int r;

	r = open_locked(session, of, env, diag);
	if (!session->dir || r == -EDEADLK)
		return r;
	if (r == -EBUSY)
		return rsb_diag_set(diag, r, "another rsb is changing the sandbox %s", of->name);
	if (r < 0)
		return rsb_diag_set(diag, r, "%s cannot be locked: %s",
			rsb_state_path(session->dir), strerror(-r));
	session->locked = true;
	r = rsb_state_load(session->dir, &session->state, of->create ? NULL : diag);
	session->known = r >= 0;
	if (r == -ENOENT && of->create)
		return 0;
	/* Told again with its sentence, which says more than that there is none. */
	return r < 0 && of->create ? rsb_state_load(session->dir, &session->state, diag) : r;
}

int
rsb_verb_session_open(struct rsb_verb_session *session, const struct rsb_verb_session_of *of,
	const struct rsb_verb_common *common, char **env, struct rsb_diag *diag)
{
	struct rsb_config_source source = { .overrides = common->overrides,
		.env = env,
		.project_dir = of->project_dir,
		.sandbox = of->name };
	int r;

	*session = (struct rsb_verb_session){ 0 };
	r = rsb_config_load(&source, &session->config, diag);
	if (r >= 0 && of->request_max_ns)
		session->config.e2b.request_timeout_ns =
			rsb_min(session->config.e2b.request_timeout_ns, of->request_max_ns);
	if (r >= 0)
		r = lock(session, of, env, diag);
	if (r >= 0)
		r = rsb_keeper_backend(&session->config, env,
			session->known ? session->state.backend : NULL, &session->backend, diag);
	if (r < 0) {
		rsb_verb_session_done(session);
		return r;
	}
	session->env = (struct rsb_keeper_env){ .config = &session->config,
		.environ = env,
		.dir = session->dir,
		.backend = session->backend };
	return 0;
}

/* A directory without a state or an open intent stands for nothing. */
static void
forget_nothing(struct rsb_verb_session *session)
{
	struct rsb_state state;

	if (session->locked && !session->known &&
		rsb_state_load(session->dir, &state, NULL) == -ENOENT)
		(void)rsb_state_remove(session->dir);
}

void
rsb_verb_session_unlock(struct rsb_verb_session *session)
{
	if (session->locked)
		rsb_state_unlock(session->dir, RSB_STATE_LOCK);
	session->locked = false;
}

int
rsb_verb_session_relock(struct rsb_verb_session *session, struct rsb_diag *diag)
{
	bool said = false;
	int r;

	if (session->locked)
		return 0;
	r = wait_lock(session->dir, RSB_STATE_LOCK, &said);
	session->locked = r >= 0;
	/* One that is gone has no state either. */
	return r < 0 && r != -EBUSY ? r : rsb_state_load(session->dir, &session->state, diag);
}

void
rsb_verb_session_done(struct rsb_verb_session *session)
{
	forget_nothing(session);
	rsb_backend_free(session->backend);
	rsb_state_close(session->dir);
	rsb_config_done(&session->config);
	*session = (struct rsb_verb_session){ 0 };
}
