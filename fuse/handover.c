/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "handover"

#include "fuse/handover.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "fuse/offspring.h"
#include "fuse/packet.h"
#include "util/clock.h"
#include "util/log.h"

#define TRIAL_NS (10 * RSB_NSEC_PER_SEC) /* then the new daemon counts as one that hangs */

bool
rsb_handover_runs(const struct rsb_supervisor *s)
{
	return s->program >= 0;
}

void
rsb_handover_begin(struct rsb_supervisor *s, int program)
{
	if (rsb_handover_runs(s) || s->kill_ns || s->unmounted || s->daemon <= 0) {
		(void)close(program);
		return;
	}
	s->program = program;
	s->trial_ns = 0;
	(void)kill(s->daemon, SIGKILL);
}

static void
give_up(struct rsb_supervisor *s)
{
	rsb_err("the new program cannot go on with the mount: that of before does");
	(void)close(s->program);
	s->program = -1;
	rsb_shared_publish(&s->shared->head.upgrade, RSB_SHARED_UPGRADE_FAILED);
}

int
rsb_handover_daemon_ended(struct rsb_supervisor *s)
{
	struct rsb_shared_head *head = &s->shared->head;
	int r;

	if (s->sock >= 0)
		(void)close(s->sock);
	s->sock = -1;
	head->last_signal = 0;
	if (s->trial_ns) {
		give_up(s);
	} else {
		rsb_shared_publish(&head->upgrade, RSB_SHARED_UPGRADE_TRIED);
		s->trial_ns = rsb_now_ns() + TRIAL_NS;
	}
	r = rsb_offspring_start(s);
	/* It came while there was nobody to tell. */
	if (r >= 0 && s->kill_ns)
		r = rsb_packet_send(s->sock, RSB_PACKET_STOP, 0, NULL);
	return r;
}

void
rsb_handover_ready(struct rsb_supervisor *s)
{
	const struct rsb_takeover takeover = {
		.role = RSB_TAKEOVER_SUPERVISOR,
		.shared_fd = s->shared_fd,
		.lock_fd = s->opts->lock_fd,
		.sock = s->sock,
		.notify_sock = -1,
		.fuse_fd = s->fuse_fd,
		.daemon = s->daemon,
		.notifier = s->notifier,
	};
	int r;

	/* One that is about to end needs no other supervisor. */
	if (!rsb_handover_runs(s) || !s->trial_ns || s->kill_ns)
		return;
	r = rsb_takeover_exec(&takeover, s->program, s->opts->again);
	(void)rsb_err_r(r, "the new program cannot be executed");
	(void)kill(s->daemon, SIGKILL);
}

void
rsb_handover_tick(struct rsb_supervisor *s)
{
	if (rsb_handover_runs(s) && s->trial_ns && rsb_now_ns() > s->trial_ns)
		(void)kill(s->daemon, SIGKILL);
}
