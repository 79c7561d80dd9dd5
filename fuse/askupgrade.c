/* SPDX-License-Identifier: MIT */
#include "fuse/askupgrade.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "fuse/shared.h"
#include "keeper/state.h"
#include "link/ctl.h"
#include "proto/version.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

#define ANSWER_NS (10 * RSB_NSEC_PER_SEC) /* of a daemon */
#define DONE_NS (30 * RSB_NSEC_PER_SEC)   /* of the upgrade */
#define STEP_MS 100
#define PAUSE_NS (20 * RSB_NSEC_PER_MSEC)

/* One call on a connection of its own. */
struct asked {
	struct rsb_ctl_upgrade_rep rep;
	int r;
	bool over;
};

static void
on_message(void *arg, const struct rsb_call_head *head)
{
	struct asked *asked = arg;

	if (head->op || asked->over)
		return;
	asked->over = true;
	asked->r = head->error;
	if (asked->r >= 0)
		asked->r = rsb_codec_decode(&rsb_desc_rsb_ctl_upgrade_rep, head->body, &asked->rep);
}

static void
on_frame(void *arg, const struct rsb_frame *frame)
{
	(void)arg;
	(void)frame;
}

static void
on_closed(void *arg, int r)
{
	struct asked *asked = arg;

	(void)r;
	if (!asked->over)
		asked->r = -ECONNRESET;
	asked->over = true;
}

static int
converse(struct rsb_loop *loop, int fd, const struct rsb_ctl_upgrade_req *req, struct asked *asked)
{
	static const struct rsb_ctl_ops ops = {
		.message = on_message,
		.frame = on_frame,
		.closed = on_closed,
	};
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf msg = { .max = RSB_MESSAGE_MAX };
	const uint64_t end_ns = rsb_now_ns() + ANSWER_NS;
	struct rsb_ctl *ctl = NULL;
	int r;

	r = rsb_ctl_new(loop, fd, &ops, asked, &ctl);
	if (r < 0)
		return r;
	r = rsb_codec_request(RSB_OP_ctl_upgrade, 1, 0, req, RSB_PROTO_VERSION, &msg);
	if (r >= 0)
		r = rsb_ctl_send(ctl, rsb_buf_view(&msg));
	while (r >= 0 && !asked->over) {
		if (rsb_now_ns() > end_ns)
			r = -ETIMEDOUT;
		else
			r = rsb_loop_step(loop, STEP_MS);
	}
	rsb_ctl_free(ctl);
	return r < 0 ? r : asked->r;
}

static int
ask(const char *socket, const struct rsb_ctl_upgrade_req *req, struct rsb_ctl_upgrade_rep *ret_rep)
{
	RSB_CLEANUP(rsb_loop_freep) struct rsb_loop *loop = NULL;
	struct asked asked = { .r = 0 };
	int fd;
	int r;

	fd = rsb_fd_unix_connect(socket, SOCK_SEQPACKET | SOCK_NONBLOCK);
	if (fd < 0)
		return fd;
	r = rsb_fd_check_peer(fd);
	if (r >= 0)
		r = rsb_loop_new(rsb_clock_monotonic(), &loop);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = converse(loop, fd, req, &asked);
	if (r >= 0)
		*ret_rep = asked.rep;
	return r;
}

static int
refused(int r, const char *name, struct rsb_diag *diag)
{
	switch (r) {
	case -EPROTONOSUPPORT:
		return rsb_diag_set(diag, r,
			"rsb-mount " RSB_VERSION
			" keeps its tables in another way than the daemon of %s, which goes on as "
			"it is; unmount and mount to change over",
			name);
	case -EBUSY:
		return rsb_diag_set(diag, r,
			"commands run through the daemon of %s, whose output would be lost; wait "
			"for them, or use --force",
			name);
	case -EOPNOTSUPP:
		return rsb_diag_set(
			diag, r, "the kernel cannot hand a mount on; that takes Linux 6.16");
	case -ENOENT:
	case -ECONNREFUSED:
	case -ENOTCONN:
		return rsb_diag_set(diag, r, "the sandbox %s is not mounted", name);
	case -ECONNRESET:
		return rsb_diag_set(diag, r, "the daemon of %s is too old to be upgraded", name);
	default:
		return rsb_diag_set(diag, r, "the daemon of %s does not give way: %s", name,
			rsb_diag_text(NULL, r));
	}
}

/* Until there is another daemon than that of pid, which says how it went. */
static int
await(const char *socket, uint64_t pid, const char *name, struct rsb_diag *diag)
{
	const struct rsb_ctl_upgrade_req req = { .size = 0 };
	const struct timespec pause = { .tv_nsec = (long)PAUSE_NS };
	const uint64_t end_ns = rsb_now_ns() + DONE_NS;
	struct rsb_ctl_upgrade_rep rep = { .pid = pid };

	while (rsb_now_ns() < end_ns) {
		/* There is a moment without a daemon. */
		int r = ask(socket, &req, &rep);

		if (r >= 0 && rep.pid != pid && rep.outcome == RSB_SHARED_UPGRADED)
			return 0;
		if (r >= 0 && rep.pid != pid && rep.outcome == RSB_SHARED_UPGRADE_FAILED)
			return rsb_diag_set(diag, -EIO,
				"this program cannot go on with the mount of %s, so the one before "
				"does; its log says why",
				name);
		(void)nanosleep(&pause, NULL);
	}
	return rsb_diag_set(diag, -ETIMEDOUT, "the daemon of %s was not replaced in time", name);
}

static int
find_socket(const struct rsb_options *options, char *const *env, char **ret_socket,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;
	rsb_autofree char *root = NULL;
	int r;

	if (options->socket) {
		*ret_socket = strdup(options->socket);
		return *ret_socket ? 0 : -ENOMEM;
	}
	r = rsb_state_root(env, &root, diag);
	if (r >= 0)
		r = rsb_state_open(root, options->name, false, &dir, diag);
	return r < 0 ? r : rsb_state_socket(dir, ret_socket, diag);
}

int
rsb_askupgrade(const struct rsb_options *options, char *const *env, struct rsb_diag *diag)
{
	rsb_autofree char *socket = NULL;
	struct rsb_ctl_upgrade_rep rep;
	char self[RSB_PATH_MAX + 1];
	struct rsb_ctl_upgrade_req req = {
		.magic = RSB_SHARED_MAGIC,
		.size = sizeof(struct rsb_shared),
		.version = RSB_PROTO_VERSION,
		.table_hash = rsb_op_table_hash(),
		.force = options->force,
	};
	ssize_t n;
	int r;

	r = find_socket(options, env, &socket, diag);
	if (r < 0)
		return r;
	n = readlink("/proc/self/exe", self, sizeof(self));
	if (n < 0 || n == sizeof(self))
		return n < 0 ? -errno : -ENAMETOOLONG;
	req.program = (struct rsb_bytes){ .data = (const uint8_t *)self, .size = (size_t)n };
	r = ask(socket, &req, &rep);
	if (r < 0)
		return refused(r, options->name, diag);
	return await(socket, rep.pid, options->name, diag);
}
