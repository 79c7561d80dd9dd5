/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "daemon"

#include "fuse/daemon.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "fuse/attach.h"
#include "fuse/barrier.h"
#include "fuse/control.h"
#include "fuse/heard.h"
#include "fuse/hold.h"
#include "fuse/mount.h"
#include "fuse/ops.h"
#include "fuse/packet.h"
#include "fuse/recover.h"
#include "fuse/relay.h"
#include "fuse/send.h"
#include "fuse/session.h"
#include "fuse/status.h"
#include "keeper/mountpoint.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/str.h"

#define FILES_WANTED (RSB_CONTROL_CLIENTS_MAX + 256u)
#define TICK_NS (500 * RSB_NSEC_PER_MSEC)
#define ENDS_POLL_NS (5 * RSB_NSEC_PER_MSEC)
#define END_NS (3 * RSB_NSEC_PER_SEC)  /* for the last request, after an unmount */
#define LINGER_MIN_NS RSB_NSEC_PER_SEC /* who started us comes only now */

enum phase { STARTING, RUNNING, DRAINING, UNMOUNTING, ENDING };

struct daemon {
	const struct rsb_options *options;
	struct rsb_uplink *uplink;
	struct rsb_shared *shared;
	int sock; /* to the supervisor */
	int notify_sock;
	struct rsb_loop *loop;
	struct rsb_link *link;
	struct rsb_fs *fs;
	struct rsb_notify *notify;
	struct rsb_barrier *barrier;
	struct rsb_control *control;
	struct rsb_fuse_session *session;
	struct rsb_source *source;
	struct rsb_timer *tick;
	struct rsb_timer *ending;
	struct rsb_status status;
	struct rsb_task ended; /* the fuse thread has ended */
	struct rsb_heard heard;
	enum phase phase;
	bool mounted;
	bool lazy;
	bool forced;
	bool waits;  /* for commands that end with us */
	int refusal; /* of those that come while we end, fuse/relay.h */
	uint64_t end_ns;
};

/* ---- the end ---- */

static void
finish(struct daemon *d)
{
	d->phase = ENDING;
	rsb_loop_stop(d->loop);
}

static void on_drained(void *arg, bool late);

/* All that was written has arrived, or never will. */
static void
go_on(void *arg)
{
	struct daemon *d = arg;

	if (d->control && rsb_relay_ends(rsb_control_relay(d->control))) {
		d->waits = true;
		rsb_timer_set(d->ending, rsb_loop_now(d->loop) + ENDS_POLL_NS);
	} else if (d->waits) {
		/* Meanwhile more was written, perhaps. */
		d->waits = false;
		if (rsb_barrier_drain(d->barrier, true, on_drained, d) < 0)
			on_drained(d, true);
	} else if (!d->mounted) {
		finish(d);
	} else {
		d->phase = UNMOUNTING;
		if (rsb_packet_send(d->sock, RSB_PACKET_UNMOUNT, d->lazy, NULL) < 0)
			finish(d);
	}
}

static void
on_drained(void *arg, bool late)
{
	if (late)
		rsb_err("not everything that was written has reached the sandbox");
	go_on(arg);
}

static void
begin_end(struct daemon *d, bool lazy)
{
	if (d->phase != RUNNING && d->phase != STARTING)
		return;
	d->phase = DRAINING;
	d->lazy = lazy;
	/* Else none runs, or there is no end. */
	if (d->control)
		rsb_relay_close(rsb_control_relay(d->control), d->refusal, lazy);
	if (rsb_barrier_drain(d->barrier, d->forced, on_drained, d) < 0)
		on_drained(d, true);
}

/* The kernel has ended the session: somebody unmounted. */
static void
on_ended(struct rsb_task *task)
{
	struct daemon *d = rsb_container_of(task, struct daemon, ended);

	d->mounted = false;
	if (d->phase == RUNNING) {
		rsb_info("unmounted");
		begin_end(d, true);
	} else if (d->phase == UNMOUNTING && d->end_ns) {
		finish(d);
	}
}

/* {fuse} */
static void
session_ended(void *arg, int r)
{
	struct daemon *d = arg;

	if (r < 0)
		(void)rsb_err_r(r, "reading from the kernel failed");
	rsb_loop_post(d->loop, &d->ended);
}

static void
on_unmounted(struct daemon *d, int r)
{
	if (d->phase != UNMOUNTING)
		return;
	if (r < 0) {
		/* Somebody works there: the mount goes on. */
		d->phase = RUNNING;
		d->refusal = -ECONNREFUSED;
		rsb_relay_open(rsb_control_relay(d->control));
		rsb_control_stopped(d->control, r);
		return;
	}
	d->end_ns = rsb_now_ns() + END_NS;
	/* A lazy one is in use for as long as somebody likes. */
	if (!d->mounted || d->lazy)
		finish(d);
}

static int
on_stop(void *arg, bool force)
{
	struct daemon *d = arg;
	size_t n_open;

	rsb_mutex_lock(&d->fs->lock);
	n_open = rsb_handles_count(d->fs->handles);
	rsb_mutex_unlock(&d->fs->lock);
	if (!force && (n_open || rsb_relay_count(rsb_control_relay(d->control), true)))
		return -EBUSY;
	d->forced = force;
	d->refusal = -ECANCELED; /* they may have more to do with the sandbox */
	begin_end(d, force);
	return 0;
}

/* What the one before was told and had not done is told again: everything. */
static void
on_notifier(struct daemon *d, int sock)
{
	int r = rsb_notify_revive(d->notify, sock, rsb_fuse_session_fd(d->session));

	if (r < 0)
		(void)rsb_err_r(r, "the new notifier cannot be used");
	rsb_barrier_revived(d->barrier);
}

static void
on_supervisor(void *arg, uint32_t events)
{
	struct daemon *d = arg;
	struct rsb_packet msg;
	int fd;
	int r = rsb_packet_recv(d->sock, &msg, &fd);

	(void)events;
	if (r > 0 && msg.type == RSB_PACKET_NOTIFIER && fd >= 0) {
		on_notifier(d, fd);
		return;
	}
	if (fd >= 0)
		(void)close(fd);
	if (r <= 0) {
		/* Without it a crash of ours would leave a dead mount: better none at all. */
		rsb_err("the supervisor is gone: unmounting");
		rsb_source_del(rsb_steal(&d->source));
		if (d->mounted && rsb_mountpoint_is_ours(d->options->mountpoint, d->options->name))
			(void)rsb_mount_undo(d->options->mountpoint, true);
		d->mounted = false;
		if (d->phase == UNMOUNTING)
			finish(d);
		begin_end(d, true);
	} else if (msg.type == RSB_PACKET_STOP) {
		rsb_info("told to end");
		begin_end(d, true);
	} else if (msg.type == RSB_PACKET_UNMOUNTED) {
		on_unmounted(d, msg.error);
	}
}

/* ---- life ---- */

/* Who connects meanwhile starts another one. */
static void
check_linger(struct daemon *d)
{
	if (!d->options->no_mount || !d->control || rsb_control_clients(d->control) ||
		rsb_relay_idle_ns(rsb_control_relay(d->control)) < d->status.linger_ns)
		return;
	rsb_info("no command has come for long enough");
	begin_end(d, false);
}

static void
tell_changes(struct daemon *d)
{
	struct rsb_fs *fs = d->fs;
	struct rsb_snapdue_news news = { .live = rsb_link_state(d->link) == RSB_LINK_LIVE };

	if (d->control)
		news.commands = rsb_relay_count(rsb_control_relay(d->control), false);
	rsb_mutex_lock(&fs->lock);
	news.change = fs->seq;
	news.settled = !fs->unsent && !fs->sent && !rsb_send_pending(fs->send);
	rsb_mutex_unlock(&fs->lock);
	rsb_uplink_changed(d->uplink, &news);
}

static void
on_tick(void *arg)
{
	struct daemon *d = arg;

	rsb_timer_set(d->tick, rsb_loop_now(d->loop) + TICK_NS);
	rsb_uplink_tick(d->uplink);
	rsb_hold_tick(d->fs, TICK_NS);
	rsb_heard_tick(&d->heard);
	rsb_recover_tick(d->fs);
	tell_changes(d);
	if (d->control)
		rsb_control_tick(d->control);
	check_linger(d);
	if (d->end_ns && rsb_now_ns() > d->end_ns)
		finish(d);
}

static int
on_status(void *arg, struct rsb_buf *out)
{
	return rsb_status_write(&((struct daemon *)arg)->status, out);
}

/* ---- the beginning ---- */

static int
make_link(struct daemon *d)
{
	const struct rsb_uplink_info *info = rsb_uplink_info(d->uplink);
	struct rsb_link_config config = {
		.key = *info->key,
		.ping_ns = RSB_NSEC_PER_MSEC *
			   (d->options->no_mount ? RSB_PING_EXEC_MS : RSB_PING_MOUNT_MS),
		.saved = &d->shared->link,
		.ops = &rsb_heard_ops,
		.arg = &d->heard,
	};
	int r;

	if (strlen(info->sandbox_id) >= sizeof(config.sandbox_id))
		return -ENAMETOOLONG;
	strcpy(config.sandbox_id, info->sandbox_id);
	rsb_shared_recover_fifo(d->shared);
	r = rsb_link_new(&config, &d->link);
	rsb_secret_done(&config.key);
	return r;
}

static int
make_fs(struct daemon *d)
{
	const struct rsb_uplink_info *info = rsb_uplink_info(d->uplink);
	const struct rsb_fs_config config = {
		.name = d->options->name,
		.mountpoint = d->options->mountpoint,
		.idmap = { .forward = info->idmap_none, .uid = getuid(), .gid = getgid() },
		.trust_file = info->trust,
		.no_guard = d->options->no_guard,
		.no_expire = d->options->no_expire,
		.sync = info->sync,
		.read_only = d->options->read_only,
	};

	return rsb_fs_new(&config, d->link, d->shared, &d->fs);
}

static int
make_control(struct daemon *d, struct rsb_diag *diag)
{
	const struct rsb_uplink_info *info = rsb_uplink_info(d->uplink);
	const struct rsb_control_config config = {
		.loop = d->loop,
		.fs = d->fs,
		.barrier = d->barrier,
		.sandbox = info->name,
		.mountpoint = d->options->mountpoint,
		.sock = d->sock,
		.grace_ns = info->grace_ns,
		.status = on_status,
		.stop = on_stop,
		.arg = d,
	};
	int fd;

	if (!info->socket)
		return 0;
	/* What an earlier daemon left; we hold the lock. */
	(void)unlink(info->socket);
	fd = rsb_fd_unix_listen(info->socket, SOCK_SEQPACKET, 0600);
	if (fd < 0)
		return rsb_diag_set(diag, fd, "the control socket '%s' cannot be made: %s",
			info->socket, strerror(-fd));
	return rsb_control_new(&config, fd, &d->control);
}

static int
make_all(struct daemon *d, struct rsb_diag *diag)
{
	int r;

	r = d->shared->head.live ? rsb_uplink_reload(d->uplink, diag) : 0;
	if (r >= 0)
		r = rsb_loop_new(rsb_clock_monotonic(), &d->loop);
	if (r >= 0)
		r = make_link(d);
	if (r >= 0)
		r = make_fs(d);
	if (r >= 0)
		r = rsb_notify_new(d->loop, d->notify_sock, &d->notify);
	if (r < 0)
		return r;
	d->notify_sock = -1;
	if (!d->options->no_mount)
		d->fs->notify = d->notify;
	r = rsb_barrier_new(d->fs, d->fs->notify, d->loop, &d->barrier);
	if (r >= 0)
		r = rsb_timer_new(d->loop, on_tick, d, &d->tick);
	if (r >= 0)
		r = rsb_timer_new(d->loop, go_on, d, &d->ending);
	if (r >= 0)
		r = make_control(d, diag);
	rsb_heard_init(&d->heard, d->loop, d->fs, d->barrier, d->uplink);
	d->heard.control = d->control;
	d->status = (struct rsb_status){
		.fs = d->fs,
		.link = d->link,
		.uplink = d->uplink,
		.control = d->control,
		.mountpoint = d->options->mountpoint,
		.linger_ns = rsb_max(rsb_uplink_info(d->uplink)->linger_ns, LINGER_MIN_NS),
		.started_ns = rsb_now_ns(),
	};
	return r;
}

static int
start(struct daemon *d, struct rsb_diag *diag)
{
	struct rsb_attach attach;
	int r;

	r = make_all(d, diag);
	if (r < 0)
		return r;
	attach = (struct rsb_attach){
		.loop = d->loop,
		.fs = d->fs,
		.notify = d->notify,
		.barrier = d->barrier,
		.control = d->control,
		.uplink = d->uplink,
		.sock = d->sock,
		.no_mount = d->options->no_mount,
		.ended = session_ended,
		.arg = d,
	};
	r = rsb_attach_mount(&attach, &d->session, &d->mounted, diag);
	if (r >= 0)
		r = rsb_loop_add(d->loop, d->sock, EPOLLIN, on_supervisor, d, &d->source);
	if (r < 0)
		return r;
	rsb_fd_raise_limit(FILES_WANTED);
	op_statfs_ahead(d->fs);
	if (!d->options->no_epoch && !d->options->no_expire)
		rsb_barrier_attach(d->barrier);
	if (!d->options->no_mount)
		rsb_uplink_mounted(d->uplink, d->options->mountpoint);
	rsb_timer_set(d->tick, rsb_loop_now(d->loop) + TICK_NS);
	if (d->phase == STARTING)
		d->phase = RUNNING;
	/* Who started us may be waiting for its stderr to end. */
	if (!d->options->foreground)
		(void)dup2(0, 2);
	rsb_shared_publish(&d->shared->head.live, 1);
	return rsb_packet_send(d->sock, RSB_PACKET_READY, 0, NULL);
}

/* Everything but the loop stops before what it stands on. */
static void
stop(struct daemon *d)
{
	if (d->control) {
		rsb_control_stopped(d->control, 0);
		/* Their answers go out; a client that does not read gets none. */
		(void)rsb_loop_step(d->loop, 0);
		(void)unlink(rsb_uplink_info(d->uplink)->socket);
	}
	rsb_fuse_session_free(d->session);
	/* Whoever unmounted it; a mount that another daemon goes on with is in the way. */
	if (!d->options->no_mount)
		rsb_uplink_unmounted(d->uplink, d->options->mountpoint);
	rsb_uplink_stop(d->uplink);
	rsb_link_stop(d->link);
	if (d->control)
		rsb_relay_say_end(rsb_control_relay(d->control));
	rsb_fs_link_gone(d->fs);
	rsb_notify_free(d->notify);
	rsb_barrier_free(d->barrier);
	rsb_control_free(d->control);
	rsb_timer_del(d->tick);
	rsb_timer_del(d->ending);
	rsb_source_del(d->source);
	rsb_fs_free(d->fs);
	/* Commands that are not over had streams of it to the last. */
	rsb_link_free(d->link);
	rsb_loop_free(d->loop);
	if (d->notify_sock >= 0)
		(void)close(d->notify_sock);
}

int
rsb_daemon_main(const struct rsb_options *options, struct rsb_uplink *uplink,
	struct rsb_shared *shared, const int socks[static 2])
{
	struct daemon d = {
		.options = options,
		.uplink = uplink,
		.shared = shared,
		.sock = socks[0],
		.notify_sock = socks[1],
		.refusal = -ECONNREFUSED,
		.ended = { .fn = on_ended },
	};
	struct rsb_diag diag = { .text = "" };
	int r;

	(void)prctl(PR_SET_NAME, "rsb-mount");
	r = start(&d, &diag);
	if (r < 0) {
		const char *text = rsb_diag_text(&diag, r);

		/* Told by who started us; only if nobody listens by the log. */
		if (rsb_packet_send(d.sock, RSB_PACKET_READY, r, text) < 0)
			rsb_err("%s", text);
	} else {
		r = rsb_loop_run(d.loop);
	}
	stop(&d);
	rsb_uplink_close(uplink);
	(void)close(d.sock);
	return r < 0 ? 1 : 0;
}
