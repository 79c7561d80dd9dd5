/* SPDX-License-Identifier: MIT */
#include "fuse/attach.h"

#include <errno.h>

#include "fuse/packet.h"
#include "fuse/recover.h"
#include "fuse/relay.h"
#include "util/clock.h"

#define INIT_NS (10 * RSB_NSEC_PER_SEC) /* for the kernel's first request */
#define STEP_MS 10

/* *ret_fd is the device. */
static int
ask_mount(int sock, int *ret_fd, struct rsb_diag *diag)
{
	struct rsb_packet msg;
	int fd = -1;
	int r;

	r = rsb_packet_send(sock, RSB_PACKET_MOUNT, 0, NULL);
	/* A stop that came meanwhile is not forgotten: it means that there is no mount. */
	if (r >= 0)
		r = rsb_packet_recv(sock, &msg, &fd);
	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (msg.type == RSB_PACKET_MOUNTED && fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (msg.type == RSB_PACKET_STOP)
		return rsb_diag_set(diag, -EINTR, "stopped before it was mounted");
	return rsb_diag_set(diag, msg.error < 0 ? msg.error : -EPROTO, "%s", msg.text);
}

static int
open_session(const struct rsb_attach *attach, struct rsb_fuse_session **ret_session, bool *mounted,
	struct rsb_diag *diag)
{
	int fd = -1;
	int r;

	r = ask_mount(attach->sock, &fd, diag);
	if (r < 0)
		return r;
	*mounted = true;
	r = rsb_notify_attach(attach->notify, fd);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return rsb_fuse_session_new(attach->fs, fd, ret_session);
}

static int
mount_first(const struct rsb_attach *attach, struct rsb_fuse_session **ret_session, bool *mounted,
	struct rsb_diag *diag)
{
	int r;

	r = rsb_uplink_start(attach->uplink, attach->fs->link, diag);
	if (r >= 0)
		r = rsb_uplink_wait(attach->uplink, diag);
	if (r >= 0)
		r = rsb_fs_take_facts(attach->fs);
	if (r < 0 || attach->no_mount)
		return r;
	return open_session(attach, ret_session, mounted, diag);
}

static void
on_told(void *arg, int r)
{
	struct rsb_fs *fs = arg;

	(void)r;
	fs->names_told = true;
}

/*
 * Before the kernel is answered anything it has to ask for names again: by them it is known what
 * may be shown of a file (fuse/gitplace.h). This notify waits for nothing.
 */
static int
drop_names(const struct rsb_attach *attach)
{
	const uint64_t end_ns = rsb_now_ns() + INIT_NS;
	int r;

	r = rsb_notify_epoch(attach->notify, on_told, attach->fs);
	while (r >= 0 && !attach->fs->names_told) {
		if (rsb_now_ns() > end_ns)
			return -ETIMEDOUT;
		r = rsb_loop_step(attach->loop, STEP_MS);
	}
	return r;
}

/* Whether the sandbox can be reached shows later, as after any break of the link. */
static int
take_over(const struct rsb_attach *attach, struct rsb_fuse_session **ret_session, bool *mounted,
	struct rsb_diag *diag)
{
	struct rsb_fs *fs = attach->fs;
	int r;

	r = rsb_fs_take_facts(fs);
	if (r >= 0)
		r = open_session(attach, ret_session, mounted, diag);
	if (r >= 0)
		r = rsb_recover(fs, *ret_session);
	if (r >= 0 && attach->control)
		r = rsb_relay_recover(rsb_control_relay(attach->control));
	if (r >= 0)
		r = rsb_uplink_start(attach->uplink, fs->link, diag);
	if (r < 0)
		return r;
	/* What the kernel was told to keep, nobody knows any more. */
	r = drop_names(attach);
	if (r < 0)
		return r;
	rsb_barrier_reset(attach->barrier);
	rsb_uplink_say_restarted(attach->uplink, fs->shared);
	return 0;
}

int
rsb_attach_mount(const struct rsb_attach *attach, struct rsb_fuse_session **ret_session,
	bool *mounted, struct rsb_diag *diag)
{
	const uint64_t end_ns = rsb_now_ns() + INIT_NS;
	int r;

	if (attach->fs->shared->head.live)
		r = take_over(attach, ret_session, mounted, diag);
	else
		r = mount_first(attach, ret_session, mounted, diag);
	if (r >= 0 && attach->no_mount)
		return 0;
	if (r >= 0)
		r = rsb_fuse_session_start(*ret_session, attach->ended, attach->arg);
	while (r >= 0 && *mounted && !rsb_fuse_session_ready(*ret_session)) {
		if (rsb_now_ns() > end_ns)
			return rsb_diag_set(diag, -ETIMEDOUT, "the kernel does not use the mount");
		r = rsb_loop_step(attach->loop, STEP_MS);
	}
	if (r >= 0 && !*mounted)
		r = rsb_diag_set(diag, -EIO, "it was unmounted at once");
	return r;
}
