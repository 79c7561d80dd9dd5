/* SPDX-License-Identifier: MIT */
#include "sidecar/local/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/spawn.h"
#include "util/thread.h"

#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/bootctl.h"
#include "sidecar/local/identity.h"

/* A monitor that does not end after its pid 1 was killed is killed itself. */
#define MONITOR_END_MS 10000

struct rsb_sandbox {
	struct rsb_mutex lock;
	struct rsb_cond gone_cond;
	size_t refs;       /* {lock} */
	uint64_t end_ns;   /* {lock} monotonic */
	uint64_t end_wall; /* {lock} */
	bool killed;       /* {lock} asked for */
	bool leaving_now;  /* {lock} the end has begun */
	bool gone;         /* {lock} */
	/* The rest is constant after the start. */
	char id[RSB_IDENTITY_ID_SIZE];
	char token[RSB_IDENTITY_TOKEN_SIZE];
	bool secure;
	struct rsb_json *metadata;
	uint64_t started_wall;
	void (*leaving)(void *arg, struct rsb_sandbox *sandbox);
	void (*on_gone)(void *arg);
	void *arg;
	int control;
	int wake_fd;
	pid_t monitor;
	int monitor_fd; /* pidfd */
	int init_fd;    /* pidfd of the sandbox's pid 1 */
};

/* ---- life ---- */

static void
sandbox_free(struct rsb_sandbox *s)
{
	const int fds[] = { s->control, s->wake_fd, s->monitor_fd, s->init_fd };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	rsb_json_free(s->metadata);
	rsb_cond_done(&s->gone_cond);
	rsb_mutex_done(&s->lock);
	explicit_bzero(s->token, sizeof(s->token));
	free(s);
}

struct rsb_sandbox *
rsb_sandbox_ref(struct rsb_sandbox *s)
{
	rsb_mutex_lock(&s->lock);
	s->refs++;
	rsb_mutex_unlock(&s->lock);
	return s;
}

void
rsb_sandbox_unref(struct rsb_sandbox *s)
{
	size_t left;

	if (!s)
		return;
	rsb_mutex_lock(&s->lock);
	left = --s->refs;
	rsb_mutex_unlock(&s->lock);
	if (left == 0)
		sandbox_free(s);
}

static int
make_names(struct rsb_sandbox *s)
{
	int r = rsb_identity_id(s->id);

	return r < 0 ? r : rsb_identity_token(s->token);
}

static int
sandbox_alloc(const struct rsb_sandbox_spec *spec, struct rsb_sandbox **ret_sandbox)
{
	struct rsb_sandbox *s = rsb_new(struct rsb_sandbox);
	int r;

	if (!s)
		return -ENOMEM;
	rsb_mutex_init(&s->lock);
	rsb_cond_init(&s->gone_cond);
	s->refs = 1;
	s->control = s->monitor_fd = s->init_fd = -1;
	s->secure = spec->secure;
	s->leaving = spec->leaving;
	s->on_gone = spec->gone;
	s->arg = spec->arg;
	s->metadata = spec->metadata ? rsb_json_ref(spec->metadata) : NULL;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = s->wake_fd < 0 ? -errno : make_names(s);
	if (r < 0) {
		sandbox_free(s);
		return r;
	}
	*ret_sandbox = s;
	return 0;
}

/* ---- start ---- */

static int
write_config(const struct rsb_sandbox *s, const struct rsb_sandbox_spec *spec, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	char uuid[RSB_IDENTITY_UUID_SIZE];
	int r;

	if (!json)
		return -ENOMEM;
	r = rsb_identity_uuid(uuid);
	if (r == 0)
		r = rsb_json_set_str(json, "id", s->id);
	if (r == 0)
		r = rsb_json_set_str(json, "boot_id", uuid);
	if (r == 0)
		r = rsb_json_set_str(json, "disk_dir", spec->state_dir);
	if (r == 0)
		r = rsb_json_set_i64(json, "disk_size", (int64_t)spec->disk_size);
	if (r == 0)
		r = rsb_json_set_bool(json, "idmap", spec->idmap);
	if (r == 0)
		r = rsb_json_set_i64(json, "uid_base", spec->uid_base);
	if (r == 0 && s->secure)
		r = rsb_json_set_str(json, "token", s->token);
	if (r == 0 && spec->env)
		r = rsb_json_set(json, "env", rsb_json_ref(spec->env));
	return r < 0 ? r : rsb_json_write(json, false, out);
}

static int
spawn_monitor(struct rsb_sandbox *s, const char *envd, struct rsb_diag *diag)
{
	const char *argv[] = { envd, "--boot", NULL };
	const char *env[] = { NULL };
	rsb_autoclose int ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	r = rsb_spawn(&(struct rsb_spawn){ .argv = argv,
			      .env = env,
			      .cwd = "/",
			      .stdio = { theirs, -1, STDERR_FILENO },
			      .setsid = 1 },
		&s->monitor, &s->monitor_fd);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot run %s: %s", envd, rsb_diag_text(NULL, r));
	s->control = rsb_steal_fd(&ours);
	return 0;
}

static int
wait_readable(int fd, uint64_t timeout_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = rsb_now_ns() + timeout_ns;

	for (;;) {
		uint64_t now = rsb_now_ns();
		int r;

		if (now >= end)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)((end - now) / RSB_NSEC_PER_MSEC) + 1);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

static int
await_ready(struct rsb_sandbox *s, struct rsb_diag *diag)
{
	struct rsb_bootctl_ready ready;
	size_t n_fd = 1;
	int r;

	r = wait_readable(s->control, RSB_SANDBOX_START_NS);
	if (r < 0)
		return rsb_diag_set(diag, r, "the sandbox did not start in time");
	r = rsb_fd_recv(s->control, &ready, sizeof(ready), &s->init_fd, &n_fd);
	if (r != (int)sizeof(ready))
		return rsb_diag_set(diag, -EIO, "the sandbox ended while it started");
	ready.text[sizeof(ready.text) - 1] = '\0';
	if (ready.r < 0)
		return rsb_diag_set(diag, -EIO, "%s", ready.text);
	return n_fd == 1 ? 0 : -EIO;
}

static void
end_monitor(struct rsb_sandbox *s)
{
	struct pollfd p = { .fd = s->monitor_fd, .events = POLLIN };

	if (s->init_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, s->init_fd, SIGKILL, NULL, 0);
	else
		(void)shutdown(s->control, SHUT_RDWR);
	if (poll(&p, 1, MONITOR_END_MS) == 0)
		(void)syscall(SYS_pidfd_send_signal, s->monitor_fd, SIGKILL, NULL, 0);
	(void)rsb_spawn_wait(s->monitor); /* how it ended says nothing new */
}

/* Until its time is over, it is killed, or its monitor ended. */
static void
await_end(struct rsb_sandbox *s)
{
	struct pollfd fds[2] = {
		{ .fd = s->monitor_fd, .events = POLLIN },
		{ .fd = s->wake_fd, .events = POLLIN },
	};

	for (;;) {
		uint64_t now = rsb_now_ns(), end, count;
		bool killed;

		rsb_mutex_lock(&s->lock);
		killed = s->killed;
		end = s->end_ns;
		rsb_mutex_unlock(&s->lock);
		if (killed || now >= end)
			return;
		/* At most an hour, so that the time fits into the argument. */
		end = rsb_min(end - now, 3600 * RSB_NSEC_PER_SEC);
		if (poll(fds, 2, (int)(end / RSB_NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
			return;
		(void)!read(s->wake_fd, &count, sizeof(count)); /* EAGAIN: not rung */
		if (fds[0].revents)
			return;
	}
}

static void *
keep(void *arg)
{
	struct rsb_sandbox *s = arg;
	void (*on_gone)(void *) = s->on_gone;
	void *gone_arg = s->arg;

	await_end(s);
	rsb_mutex_lock(&s->lock);
	s->leaving_now = true;
	rsb_mutex_unlock(&s->lock);
	s->leaving(s->arg, s);
	end_monitor(s);
	rsb_mutex_lock(&s->lock);
	s->gone = true;
	rsb_cond_broadcast(&s->gone_cond);
	rsb_mutex_unlock(&s->lock);
	rsb_sandbox_unref(s);
	on_gone(gone_arg);
	return NULL;
}

static int
start_keeper(struct rsb_sandbox *s)
{
	pthread_t thread;
	int r;

	(void)rsb_sandbox_ref(s);
	r = rsb_thread_start("sandbox", keep, s, &thread);
	if (r < 0)
		rsb_sandbox_unref(s);
	else
		(void)pthread_detach(thread);
	return r;
}

static int
start(struct rsb_sandbox *s, const struct rsb_sandbox_spec *spec, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	r = write_config(s, spec, &text);
	if (r < 0)
		return r;
	if (rsb_buf_len(&text) > RSB_BOOTCFG_MAX)
		return rsb_diag_set(diag, -E2BIG, "envVars are too large");
	r = spawn_monitor(s, spec->envd, diag);
	if (r < 0)
		return r;
	r = rsb_fd_send(s->control, rsb_buf_head(&text), rsb_buf_len(&text), NULL, 0);
	explicit_bzero(text.data, text.size);
	if (r >= 0)
		r = await_ready(s, diag);
	if (r == 0) {
		s->started_wall = rsb_wall_ns();
		rsb_sandbox_set_timeout(s, spec->timeout_ns, false);
		r = start_keeper(s);
	}
	if (r < 0)
		end_monitor(s);
	return r;
}

int
rsb_sandbox_new(const struct rsb_sandbox_spec *spec, struct rsb_sandbox **ret_sandbox,
	struct rsb_diag *diag)
{
	struct rsb_sandbox *s;
	int r;

	r = sandbox_alloc(spec, &s);
	if (r < 0)
		return r;
	r = start(s, spec, diag);
	if (r < 0) {
		rsb_sandbox_unref(s);
		return r;
	}
	*ret_sandbox = s;
	return 0;
}

/* ---- facts ---- */

const char *
rsb_sandbox_id(const struct rsb_sandbox *s)
{
	return s->id;
}

const char *
rsb_sandbox_token(const struct rsb_sandbox *s)
{
	return s->secure ? s->token : NULL;
}

struct rsb_json *
rsb_sandbox_metadata(const struct rsb_sandbox *s)
{
	return s->metadata;
}

uint64_t
rsb_sandbox_started_ns(const struct rsb_sandbox *s)
{
	return s->started_wall;
}

uint64_t
rsb_sandbox_end_ns(struct rsb_sandbox *s)
{
	uint64_t end;

	rsb_mutex_lock(&s->lock);
	end = s->end_wall;
	rsb_mutex_unlock(&s->lock);
	return end;
}

static void
wake(struct rsb_sandbox *s)
{
	uint64_t one = 1;

	(void)!write(s->wake_fd, &one, sizeof(one)); /* EAGAIN: rung enough */
}

void
rsb_sandbox_set_timeout(struct rsb_sandbox *s, uint64_t timeout_ns, bool only_longer)
{
	uint64_t end = rsb_now_ns() + timeout_ns;
	uint64_t end_wall = rsb_wall_ns() + timeout_ns;

	rsb_mutex_lock(&s->lock);
	if (!only_longer || end > s->end_ns) {
		s->end_ns = end;
		s->end_wall = end_wall;
	}
	rsb_mutex_unlock(&s->lock);
	wake(s);
}

/* ---- sockets ---- */

static int
await_connected(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&p, 1, (int)(RSB_SANDBOX_CONNECT_NS / RSB_NSEC_PER_MSEC)) <= 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static int
ask_socket(struct rsb_sandbox *s, const struct rsb_bootctl_connect *want, int *ret_fd)
{
	rsb_autoclose int ours = -1, theirs = -1, fd = -1;
	struct rsb_bootctl_connected reply;
	size_t n_fd = 1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	if (rsb_fd_send(s->control, want, sizeof(*want), &theirs, 1) < 0)
		return -ENOTCONN;
	/* Ours is the last copy of the monitor's end but its own: its death is an end of file. */
	(void)close(rsb_steal_fd(&theirs));
	r = wait_readable(ours, RSB_SANDBOX_CONNECT_NS);
	if (r < 0)
		return r;
	if (rsb_fd_recv(ours, &reply, sizeof(reply), &fd, &n_fd) != (int)sizeof(reply))
		return -ENOTCONN;
	if (reply.r < 0)
		return reply.r;
	if (n_fd != 1)
		return -ENOTCONN;
	r = await_connected(fd);
	if (r < 0)
		return r;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_sandbox_connect(struct rsb_sandbox *s, unsigned int port, int *ret_fd)
{
	struct rsb_bootctl_connect want = { .port = port };
	int r = ask_socket(s, &want, ret_fd);

	if (r != -ECONNREFUSED)
		return r;
	want.ipv6 = 1;
	r = ask_socket(s, &want, ret_fd);
	return r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT || r == -ENETUNREACH ? -ECONNREFUSED : r;
}

bool
rsb_sandbox_alive(struct rsb_sandbox *s)
{
	bool alive;

	rsb_mutex_lock(&s->lock);
	alive = !s->leaving_now;
	rsb_mutex_unlock(&s->lock);
	return alive;
}

void
rsb_sandbox_kill(struct rsb_sandbox *s)
{
	rsb_mutex_lock(&s->lock);
	s->killed = true;
	rsb_mutex_unlock(&s->lock);
	wake(s);
	rsb_mutex_lock(&s->lock);
	while (!s->gone)
		rsb_cond_wait(&s->gone_cond, &s->lock);
	rsb_mutex_unlock(&s->lock);
}
