/* SPDX-License-Identifier: MIT */
#include "exec/syncguard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "exec/interrupt.h"
#include "exec/outcome.h"
#include "keeper/stage.h"
#include "util/cleanup.h"

struct rsb_syncguard_seen {
	bool publishing; /* names change here now */
	bool published;  /* some did, and all that were to */
	bool by_command;
	bool past;
	bool woken;
};

static const int all_signals[] = { SIGINT, SIGTERM, SIGHUP };

static bool
is_interrupt(int sig)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(all_signals); i++)
		if (all_signals[i] == sig)
			return true;
	return false;
}

static void
sweep(const struct rsb_syncguard *guard)
{
	rsb_autoclose int fd =
		guard->dir[0] ? open(guard->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		rsb_stage_sweep(fd);
}

static void
say(const struct rsb_syncguard *guard)
{
	const struct rsb_syncguard_seen *seen = guard->seen;
	const char *verb = guard->verb->name;

	if (seen->by_command)
		(void)fprintf(stderr, "rsb %s: interrupted\n", verb);
	else if (guard->in)
		(void)fprintf(stderr,
			"rsb %s: interrupted; nothing is changed here, and 'rsb sync in' brings "
			"what is missing there\n",
			verb);
	else if (guard->ends && (seen->published || seen->past))
		(void)fprintf(stderr, "rsb %s: interrupted%s; 'rsb down %s' goes on with it\n",
			verb, seen->published ? ", what changed was synced out" : "", guard->name);
	else
		(void)fprintf(stderr, "rsb %s: interrupted; nothing is changed\n", verb);
}

/* The child was ended by a signal: so are we. */
rsb_noreturn static void
clear_away(const struct rsb_syncguard *guard, int sig)
{
	/* By force in the midst of it: what was moved aside may be all that there is of it. */
	if (!guard->seen->publishing)
		sweep(guard);
	if (is_interrupt(sig))
		say(guard);
	else
		(void)fprintf(stderr, "rsb %s: ended by a signal: %s\n", guard->verb->name,
			strsignal(sig));
	if (guard->seen->woken)
		(void)fprintf(stderr, "rsb %s: %s was paused, and is running now\n",
			guard->verb->name, guard->name);
	rsb_outcome_die_by(sig);
}

int
rsb_syncguard_begin(struct rsb_syncguard *guard, int *ret_status)
{
	struct rsb_interrupt_end end;
	const pid_t parent = getpid();
	int r;

	guard->seen = mmap(NULL, sizeof(*guard->seen), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->seen == MAP_FAILED)
		return -errno;
	r = rsb_interrupt_fork(&end);
	if (r < 0)
		return r;
	if (r == 0) {
		/* Whoever kills us by our process id means all of it. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			(void)raise(SIGKILL);
		return 0;
	}
	if (end.signal)
		clear_away(guard, end.signal);
	*ret_status = end.status;
	return 1;
}

/* Those that are not ignored, as by nohup(1). */
static void
hold(struct rsb_syncguard *guard)
{
	struct sigaction was;

	(void)sigemptyset(&guard->held);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(all_signals); i++)
		if (sigaction(all_signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			(void)sigaddset(&guard->held, all_signals[i]);
	(void)sigprocmask(SIG_BLOCK, &guard->held, &guard->old);
	guard->holds = true;
}

/* Takes those that have come. */
static void
look(struct rsb_syncguard *guard)
{
	const struct timespec now = { 0 };
	int sig;

	while ((sig = sigtimedwait(&guard->held, NULL, &now)) > 0)
		guard->signal = guard->signal ? guard->signal : sig;
}

bool
rsb_syncguard_publishes(struct rsb_syncguard *guard, uint64_t done, uint64_t all)
{
	if (!guard->holds)
		hold(guard);
	guard->seen->publishing = true;
	guard->seen->published = guard->seen->published || (all && done == all);
	look(guard);
	if (!guard->signal || guard->said)
		return false;
	guard->said = true;
	return true;
}

int
rsb_syncguard_release(struct rsb_syncguard *guard)
{
	if (!guard->holds)
		return 0;
	look(guard);
	guard->seen->publishing = false;
	guard->holds = false;
	(void)sigprocmask(SIG_SETMASK, &guard->old, NULL);
	return guard->signal;
}

void
rsb_syncguard_by_command(struct rsb_syncguard *guard)
{
	guard->seen->by_command = true;
}

bool *
rsb_syncguard_woken(struct rsb_syncguard *guard)
{
	return &guard->seen->woken;
}

void
rsb_syncguard_past(struct rsb_syncguard *guard)
{
	guard->seen->past = true;
}
