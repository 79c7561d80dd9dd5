/* SPDX-License-Identifier: MIT */
#include "exec/inuse.h"

#include <errno.h>
#include <stdlib.h>

#include "exec/holders.h"
#include "keeper/mountpoint.h"
#include "util/cleanup.h"

struct use {
	struct rsb_buf holders; /* of the mount */
	char *inner;            /* another mount, in it */
	struct rsb_daemon_look look;
};

static void
use_done(struct use *use)
{
	rsb_buf_done(&use->holders);
	free(use->inner);
}

/* What cannot be looked at is not told. */
static void
find(const struct rsb_where *where, struct use *use)
{
	if (rsb_daemon_look(where, &use->look, NULL) < 0)
		use->look = (struct rsb_daemon_look){ 0 };
	if (!use->look.mounted)
		return;
	(void)rsb_holders_of(where->state.mountpoint, &use->holders);
	use->inner = rsb_mountpoint_inner(where->state.mountpoint);
}

static const char *
advice(const struct rsb_state *state, bool can_force)
{
	const char *path = state->mountpoint;

	if (!can_force)
		return "; wait for that, or end it";
	if (path[0] && rsb_holders_is_here(path))
		return "; cd out of it first, or use --force to end it all the same";
	return "; use --force to end it all the same";
}

static int
say(const struct rsb_where *where, const struct use *use, bool can_force, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_DIAG_MAX };
	const struct rsb_daemon_look *look = &use->look;
	const bool held = rsb_buf_len(&use->holders) > 0;

	if (held)
		(void)rsb_buf_printf(&text, " by %.*s", (int)rsb_buf_len(&use->holders),
			(const char *)rsb_buf_head(&use->holders));
	if (look->attended)
		(void)rsb_buf_printf(&text, "%s %llu command%s run%s in it (%s)",
			held ? ", and" : ":", (unsigned long long)look->attended,
			look->attended == 1 ? "" : "s", look->attended == 1 ? "s" : "",
			look->attended_what);
	if (use->inner)
		(void)rsb_buf_printf(&text, "%s something is mounted in it, at '%s'",
			rsb_buf_len(&text) ? ", and" : ":", use->inner);
	/* Of another user. */
	if (!rsb_buf_len(&text))
		(void)rsb_buf_printf(&text, ": files of the mount are open, or commands run");
	return rsb_diag_set(diag, -EBUSY, "%s is in use%.*s%s", where->state.name,
		(int)rsb_buf_len(&text), (const char *)rsb_buf_head(&text),
		advice(&where->state, can_force));
}

int
rsb_inuse_check(const struct rsb_where *where, bool can_force, struct rsb_diag *diag)
{
	RSB_CLEANUP(use_done) struct use use = { .holders = { .max = RSB_DIAG_MAX / 2 } };

	find(where, &use);
	/* Of what nobody here can look at, the daemon tells when it is to stop. */
	if (!rsb_buf_len(&use.holders) && !use.look.attended && !use.inner)
		return 0;
	return say(where, &use, can_force, diag);
}

int
rsb_inuse_say(const struct rsb_where *where, bool can_force, struct rsb_diag *diag)
{
	RSB_CLEANUP(use_done) struct use use = { .holders = { .max = RSB_DIAG_MAX / 2 } };

	find(where, &use);
	return say(where, &use, can_force, diag);
}
