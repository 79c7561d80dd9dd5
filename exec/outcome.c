/* SPDX-License-Identifier: MIT */
#include "exec/outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/str.h"

void
rsb_outcome_die_by(int sig)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t set;

	/* The core, if any, was dumped over there. */
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(sig);
	/* Signals that do not end a process here, such as STOP for a stopped tree. */
	_exit(128 + sig);
}

#define ENDED_WITH_SIDECAR "lost: the command ended with the sidecar, which was started again"
#define UNKNOWN_BY_SIDECAR \
	"lost: the sidecar was started again; whether the command had begun nobody knows"

/* Says why; the exit status. */
static int
not_begun(const char *program, const struct rsb_run *run, const struct rsb_run_result *result)
{
	const bool chdir = result->stage == RSB_SPAWN_STAGE_CHDIR;
	const char *about = chdir ? run->cwd : run->argv[0];
	rsb_autofree char *quoted = rsb_str_quote(about);
	const char *name = quoted ? quoted : about;
	int code = RSB_EXIT_FAILED;

	if (result->stage == RSB_SPAWN_STAGE_EXEC)
		code = result->error == -ENOENT ? RSB_EXIT_NOENT : RSB_EXIT_NOEXEC;
	if (chdir && !about[0])
		(void)fprintf(stderr,
			"%s: fatal: the workspace cannot be entered in the sandbox: %s\n", program,
			strerror(-result->error));
	else if (chdir)
		(void)fprintf(stderr,
			"%s: fatal: the directory %s%s cannot be entered in the sandbox: %s\n",
			program, name, about[0] == '/' ? "" : " of the workspace",
			strerror(-result->error));
	else if (result->stage == RSB_SPAWN_STAGE_EXEC)
		(void)fprintf(stderr, "%s: fatal: %s: %s\n", program, name,
			result->error == -ENOENT ? "command not found in the sandbox"
						 : strerror(-result->error));
	else
		(void)fprintf(stderr, "%s: fatal: the sandbox cannot start a process: %s\n",
			program, strerror(-result->error));
	return code;
}

static const struct {
	int error;
	enum rsb_run_end end;
	const char *sentence;
} endings[] = {
	{ -ESHUTDOWN, RSB_RUN_LOST,
		"lost: the command was ended: the daemon of its sandbox was told to end, as by 'rsb "
		"down' or umount" },
	{ -ECONNABORTED, RSB_RUN_LOST,
		"lost: the daemon of the sandbox was told to end; whether the command has ended "
		"nobody knows" },
	{ -ECONNABORTED, RSB_RUN_UNKNOWN,
		"lost: the daemon of the sandbox was told to end; whether the command had begun "
		"nobody knows" },
	{ -ECANCELED, RSB_RUN_FAILED,
		"fatal: the daemon of the sandbox was told to end, and the command did not begin" },
	{ -ERESTART, RSB_RUN_FAILED,
		"fatal: the sidecar was started again, and the command did not begin" },
	{ -ERESTART, RSB_RUN_LOST, ENDED_WITH_SIDECAR },
	{ -ERESTART, RSB_RUN_UNKNOWN, UNKNOWN_BY_SIDECAR },
	{ -EOWNERDEAD, RSB_RUN_LOST, ENDED_WITH_SIDECAR },
	{ -EOWNERDEAD, RSB_RUN_UNKNOWN, UNKNOWN_BY_SIDECAR },
};

/* The sidecar's process or the daemon has ended meanwhile. The sentence; NULL: neither has. */
static const char *
ended_with_another(const struct rsb_run_result *result)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(endings); i++) {
		if (endings[i].error == result->error && endings[i].end == result->end)
			return endings[i].sentence;
	}
	return NULL;
}

static void
say_cut(const char *program, const struct rsb_run_result *result)
{
	(void)fprintf(stderr,
		"%s: lost: only %" PRIu64 " of %" PRIu64
		" byte%s of the command's output came; the command itself had ended %s %d\n",
		program, result->came, result->output, result->output == 1 ? "" : "s",
		result->signal ? "by signal" : "with status",
		result->signal ? result->signal : result->code);
}

void
rsb_outcome_exit(const char *program, const struct rsb_run *run,
	const struct rsb_run_result *result, const struct rsb_diag *diag)
{
	const char *sentence = ended_with_another(result);

	if (sentence) {
		(void)fprintf(stderr, "%s: %s\n", program, sentence);
		exit(RSB_EXIT_FAILED);
	}
	switch (result->end) {
	case RSB_RUN_EXITED:
		exit(result->code);
	case RSB_RUN_SIGNALED:
		rsb_outcome_die_by(result->signal);
	case RSB_RUN_NOT_BEGUN:
		exit(not_begun(program, run, result));
	case RSB_RUN_FAILED:
		(void)fprintf(
			stderr, "%s: fatal: %s\n", program, rsb_diag_text(diag, result->error));
		exit(RSB_EXIT_FAILED);
	case RSB_RUN_UNKNOWN:
		(void)fprintf(stderr, "%s: lost: whether the command has begun nobody knows: %s\n",
			program, strerror(-result->error));
		exit(RSB_EXIT_FAILED);
	case RSB_RUN_UNWRITTEN:
		(void)fprintf(stderr, "%s: lost: the command's output cannot be written: %s\n",
			program, strerror(-result->error));
		exit(RSB_EXIT_FAILED);
	case RSB_RUN_CUT:
		say_cut(program, result);
		exit(RSB_EXIT_FAILED);
	case RSB_RUN_LOST:
	default:
		(void)fprintf(stderr,
			"%s: lost: the command was started, but not seen to its end: %s\n", program,
			strerror(-result->error));
		exit(RSB_EXIT_FAILED);
	}
}
