/* SPDX-License-Identifier: MIT */
#include "exec/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/outcome.h"

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
		    "      --json            the result as JSON\n"
		    "      --help\n",
		stdout);
}

int
rsb_verb_option(const struct rsb_verb *verb, int c, struct rsb_verb_common *common, int *ret_status)
{
	extern char *optarg;

	switch (c) {
	case 'o':
		if (common->n_override == RSB_VERB_OVERRIDES_MAX) {
			*ret_status = rsb_verb_usage(verb, "too many -o options");
			return 1;
		}
		common->overrides[common->n_override++] = optarg;
		return 0;
	case 'q':
		common->quiet = true;
		return 0;
	case 'J':
		common->json = true;
		return 0;
	case 'H':
		print_help(verb);
		*ret_status = 0;
		return 1;
	default:
		*ret_status = rsb_verb_usage(verb, "an option is unknown or lacks its argument");
		return 1;
	}
}

/* What had the lock before us may have removed it all: then the next directory is meant. */
static int
open_locked(struct rsb_verb_session *session, const struct rsb_verb_session_of *of,
	struct rsb_diag *diag)
{
	int r = -EBUSY;

	for (unsigned int n = 0; n < OPEN_TRIES; n++) {
		rsb_state_close(session->dir);
		session->dir = NULL;
		r = rsb_state_open(of->root, of->name, of->create, &session->dir, diag);
		if (r < 0)
			return r;
		r = rsb_state_lock(session->dir, RSB_STATE_LOCK, true);
		if (rsb_state_is_there(session->dir))
			return r;
	}
	return r < 0 ? r : -EBUSY;
}

static int
lock(struct rsb_verb_session *session, const struct rsb_verb_session_of *of, struct rsb_diag *diag)
{
	int r;

	r = open_locked(session, of, diag);
	if (!session->dir)
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
		r = lock(session, of, diag);
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
rsb_verb_session_done(struct rsb_verb_session *session)
{
	forget_nothing(session);
	rsb_backend_free(session->backend);
	rsb_state_close(session->dir);
	rsb_config_done(&session->config);
	*session = (struct rsb_verb_session){ 0 };
}
