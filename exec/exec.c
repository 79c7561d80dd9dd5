/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/daemon.h"
#include "exec/environ.h"
#include "exec/lossnote.h"
#include "exec/outcome.h"
#include "exec/run.h"
#include "exec/where.h"
#include "keeper/mountpoint.h"
#include "proto/limits.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/optlong.h"
#include "util/str.h"

#define OVERRIDES_MAX 64
#define STATUS_MAX ((size_t)1 << 20)
/* For one that is ending: what was written takes it half of that, commands their grace. */
#define ENDING_NS (60 * RSB_NSEC_PER_SEC)

struct options {
	const char *sandbox;
	const char *dir;
	const char *script; /* -c */
	const char *overrides[OVERRIDES_MAX + 1];
	size_t n_override;
	const char **sets; /* -e, in order */
	size_t n_set;
	bool no_stdin;
	bool quiet;
};

static const char program[] = "rsb-exec";

static const char help[] =
	"Usage: rsb-exec [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	"       rsb-exec [OPTION]... -c SCRIPT [NAME [ARGUMENT]...]\n"
	"Run a command in the sandbox as if it ran here.\n"
	"\n"
	"  -s, --sandbox NAME    which one; else $RSB_SANDBOX, else that of this directory\n"
	"  -C, --chdir DIR       run in DIR, relative to the workspace or absolute\n"
	"  -e, --env NAME[=VAL]  set a variable, or pass ours on\n"
	"  -c SCRIPT             run it by bash -c\n"
	"  -n, --no-stdin        standard input is /dev/null\n"
	"  -o KEY=VALUE          a setting of rsb.conf(5)\n"
	"  -q, --quiet           no remarks of ours\n"
	"      --help, --version\n"
	"\n"
	"The exit status is the command's own; a command that died by a signal makes rsb-exec die\n"
	"by it. 125: rsb failed, 126: the command cannot be run, 127: it was not found.\n";

rsb_noreturn static void
fatal(int r, const struct rsb_diag *diag)
{
	(void)fprintf(stderr, "%s: fatal: %s\n", program, rsb_diag_text(diag, r));
	exit(RSB_EXIT_FAILED);
}

rsb_noreturn static void
usage(const char *what)
{
	(void)fprintf(stderr, "%s: fatal: %s; try '%s --help'\n", program, what, program);
	exit(RSB_EXIT_FAILED);
}

enum { OPT_HELP = 256, OPT_VERSION };

static const struct option long_options[] = {
	{ "sandbox", required_argument, NULL, 's' },
	{ "chdir", required_argument, NULL, 'C' },
	{ "env", required_argument, NULL, 'e' },
	{ "no-stdin", no_argument, NULL, 'n' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

static void
take_option(struct options *o, int c)
{
	switch (c) {
	case 's':
		o->sandbox = optarg;
		break;
	case 'C':
		o->dir = optarg;
		break;
	case 'e':
		o->sets[o->n_set++] = optarg;
		break;
	case 'c':
		o->script = optarg;
		break;
	case 'n':
		o->no_stdin = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'o':
		if (o->n_override == OVERRIDES_MAX)
			usage("too many -o options");
		o->overrides[o->n_override++] = optarg;
		break;
	case OPT_HELP:
		(void)fputs(help, stdout);
		exit(0);
	case OPT_VERSION:
		(void)puts("rsb-exec " RSB_VERSION);
		exit(0);
	default:
		break;
	}
}

static void
parse(struct options *o, int argc, char **argv)
{
	struct rsb_diag diag = { 0 };
	int c;

	/* At most one -e for each word. */
	o->sets = rsb_new_array(const char *, (size_t)argc + 1);
	if (!o->sets)
		fatal(-ENOMEM, NULL);
	optind = 1;
	/* '+': the first word that is no option starts the command. */
	while ((c = rsb_optlong(argc, argv, "+s:C:e:c:nqo:", long_options, &diag)) != -1) {
		if (c == '?')
			usage(diag.text);
		take_option(o, c);
	}
}

/* The command's argv: bash -c SCRIPT for -c, else the words themselves. Lives until we end. */
static char **
command_of(const struct options *o, int argc, char **argv)
{
	char **list;
	size_t n = 0;

	if (!o->script) {
		if (optind >= argc)
			usage("no command was given");
		return argv + optind;
	}
	list = rsb_new_array(char *, (size_t)(argc - optind) + 4);
	if (!list)
		fatal(-ENOMEM, NULL);
	list[n++] = (char *)(uintptr_t) "bash";
	list[n++] = (char *)(uintptr_t) "-c";
	list[n++] = (char *)(uintptr_t)o->script;
	for (int i = optind; i < argc; i++)
		list[n++] = argv[i];
	return list;
}

static int
make_environ(struct rsb_environ *set, const struct options *o, char **env,
	const struct rsb_config *config, struct rsb_diag *diag)
{
	int r;

	r = rsb_environ_allow(set, env, &config->exec.env);
	for (size_t i = 0; r >= 0 && i < o->n_set; i++) {
		r = rsb_environ_set(set, env, o->sets[i]);
		if (r == -EINVAL)
			r = rsb_diag_set(diag, r, "-e takes NAME or NAME=VALUE");
	}
	return r;
}

/* What the daemon says of it, when a command could not even be asked for. */
static void
explain(const struct rsb_where *where, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = STATUS_MAX };
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	const char *state = NULL;

	if (rsb_daemon_status(where, &out, NULL) < 0 ||
		rsb_json_parse(rsb_buf_view(&out), &json, NULL) < 0 ||
		rsb_json_str(json, "state", &state) < 0)
		return;
	if (strcmp(state, "lost") == 0)
		(void)rsb_diag_set(diag, 0,
			"the sandbox %s is gone or refuses us; 'rsb mount %s' brings back what can "
			"be, 'rsb destroy %s' forgets it",
			where->state.name, where->state.name, where->state.name);
	else
		(void)rsb_diag_set(
			diag, 0, "the sandbox %s cannot be reached (%s)", where->state.name, state);
}

static void
say_beside(const struct rsb_where *where)
{
	const struct rsb_state *state = &where->state;

	(void)fprintf(
		stderr, "%s: note: edits made in this directory are not in the sandbox; ", program);
	if (rsb_mountpoint_is_ours(state->mountpoint, state->name))
		(void)fprintf(stderr, "its mount is %s\n", state->mountpoint);
	else
		(void)fprintf(stderr, "'rsb mount %s DIR' shows its files\n", state->name);
}

/* They were lost, or may have been, when there was no rsb-exec to say so. */
static void
say_losses(struct rsb_bytes text)
{
	rsb_lossnote_say(program, text);
}

/* Whether to look for another daemon, after a pause. */
static bool
look_again(const struct rsb_run_result *result, uint64_t until_ns, unsigned int *n)
{
	if (result->end != RSB_RUN_FAILED || !(result->unreached || result->ending))
		return false;
	if (result->ending && rsb_now_ns() < until_ns)
		*n = 0;
	return rsb_daemon_pause(result->error, n);
}

/* A daemon ends by itself or is told to, maybe just when we come: then there is another. */
static void
run_once(const struct rsb_run *run, const struct rsb_exec_need *need, rsb_exec_start_fn start,
	struct rsb_run_result *ret_result, struct rsb_diag *diag)
{
	const uint64_t until_ns = rsb_now_ns() + ENDING_NS;
	unsigned int n = 0;
	sigset_t mask;
	int r;

	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	do {
		/* What came to the one before means us. */
		(void)sigprocmask(SIG_SETMASK, &mask, NULL);
		r = rsb_daemon_runs(need->where) ? 0 : start(need, diag);
		if (r >= 0)
			rsb_run(run, ret_result, diag);
		else
			*ret_result = (struct rsb_run_result){ .end = RSB_RUN_FAILED, .error = r };
	} while (r >= 0 && look_again(ret_result, until_ns, &n));
}

void
rsb_exec_main(int argc, char **argv, char **env, rsb_exec_start_fn start)
{
	struct options o = { 0 };
	struct rsb_exec_need need;
	struct rsb_run run = { 0 };
	struct rsb_run_result result;
	struct rsb_environ *set;
	struct rsb_config config;
	struct rsb_where where;
	struct rsb_diag diag = { 0 };
	int r;

	parse(&o, argc, argv);
	run.argv = command_of(&o, argc, argv);
	r = rsb_where_find(o.sandbox, env, &where, &diag);
	if (r >= 0)
		r = rsb_config_load(&(struct rsb_config_source){ .overrides = o.overrides,
					    .env = env,
					    .project_dir = where.state.local_dir,
					    .sandbox = where.state.name },
			&config, &diag);
	if (r >= 0)
		r = rsb_environ_new(&set);
	if (r >= 0)
		r = make_environ(set, &o, env, &config, &diag);
	/* What is edited in a mount point without its mount is not there when the command runs. */
	if (r >= 0 && where.by_mount &&
		!rsb_mountpoint_is_ours(where.state.mountpoint, where.state.name))
		r = rsb_daemon_check(&where, true, &diag);
	if (r < 0)
		fatal(r, &diag);
	if (where.beside && !o.quiet && !o.dir && rsb_where_first_beside(&where))
		say_beside(&where);
	run.socket = where.socket;
	run.env = rsb_environ_list(set);
	run.cwd = o.dir ? o.dir : where.cwd;
	run.no_stdin = o.no_stdin;
	run.drain_ns = config.exec.drain_ns;
	run.losses = say_losses;
	need = (struct rsb_exec_need){
		.where = &where,
		.config = &config,
		.env = env,
		.overrides = o.overrides,
		.argv = argv,
	};
	run_once(&run, &need, start, &result, &diag);
	if (result.end == RSB_RUN_FAILED && result.error == -EIO && !diag.text[0])
		explain(&where, &diag);
	if (result.end == RSB_RUN_FAILED && result.error == -ENFILE && !diag.text[0])
		(void)rsb_diag_set(&diag, -ENFILE,
			"%u commands, or what they left running, are alive in the sandbox; "
			"end some of them first",
			RSB_PROCS_MAX);
	if (result.ending && !diag.text[0])
		(void)rsb_diag_set(&diag, result.error, "the daemon of the sandbox is ending");
	rsb_outcome_exit(program, &run, &result, &diag);
}
