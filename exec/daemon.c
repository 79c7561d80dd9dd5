/* SPDX-License-Identifier: MIT */
#include "exec/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec/beside.h"
#include "exec/client.h"
#include "exec/inuse.h"
#include "exec/lossnote.h"
#include "keeper/mountpoint.h"
#include "proto/op.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/json.h"
#include "util/spawn.h"
#include "util/str.h"

#define ARGS_MAX 160
#define STOP_TIMEOUT_NS (60 * RSB_NSEC_PER_SEC)
/* A daemon holds its lock before it listens, and for a moment after it has ended. */
#define PAUSE_NS (50 * 1000 * 1000L)
#define PAUSES_MAX 40u
#define NAMED_MAX 3u /* commands, in a sentence */
#define STATUS_MAX ((size_t)1 << 20)
#define STATUS_TIMEOUT_NS (10 * RSB_NSEC_PER_SEC)

/* The last line that rsb-mount wrote, without its own name in front. */
static int
its_sentence(int fd, struct rsb_diag *diag)
{
	char text[RSB_DIAG_MAX];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t size = 0;
	ssize_t n = 1;
	char *line;

	/* The daemon may still hold the other end: what is there now is what the parent wrote. */
	while (n > 0 && size < sizeof text - 1 && poll(&p, 1, 0) > 0) {
		n = read(fd, text + size, sizeof text - 1 - size);
		if (n > 0)
			size += (size_t)n;
	}
	while (size > 0 && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (strncmp(line, "rsb-mount: ", 11) == 0)
		line += 11;
	return rsb_diag_set(diag, -EIO, "%s", *line ? line : "rsb-mount failed without a word");
}

/* argv[0] is filled in; with what it said if it fails. */
static int
run_mount(const char **argv, struct rsb_diag *diag)
{
	rsb_autofree char *path = rsb_beside("rsb-mount");
	rsb_autoclose int read_end = -1;
	rsb_autoclose int write_end = -1;
	rsb_autoclose int pidfd = -1;
	struct rsb_spawn spec = { .argv = argv, .stdio = { -1, -1, -1 } };
	int fds[2];
	pid_t pid;
	int r;

	argv[0] = path ? path : "rsb-mount";
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	read_end = fds[0];
	write_end = fds[1];
	spec.stdio[2] = write_end;
	r = rsb_spawn(&spec, &pid, &pidfd);
	if (r < 0)
		return rsb_diag_set(diag, r, "rsb-mount cannot be started: %s", strerror(-r));
	(void)close(rsb_steal_fd(&write_end));
	r = rsb_spawn_wait(pid);
	if (r == 0)
		return 0;
	return r < 0 ? r : its_sentence(read_end, diag);
}

int
rsb_daemon_start(const char *name, const char *mountpoint, const char *const *overrides,
	struct rsb_diag *diag)
{
	const char *argv[ARGS_MAX];
	size_t n = 1;

	for (; overrides && *overrides && n + 6 < ARGS_MAX; overrides++) {
		argv[n++] = "-o";
		argv[n++] = *overrides;
	}
	if (!mountpoint)
		argv[n++] = "--no-mount";
	argv[n++] = "--";
	argv[n++] = name;
	argv[n++] = mountpoint;
	argv[n] = NULL;
	return run_mount(argv, diag);
}

int
rsb_daemon_upgrade(const struct rsb_where *where, bool force, struct rsb_diag *diag)
{
	const char *argv[] = { NULL, "--upgrade", force ? "--force" : "--", where->state.name,
		NULL };

	return run_mount(argv, diag);
}

int
rsb_daemon_bury(const struct rsb_where *where, struct rsb_diag *diag)
{
	const struct rsb_state *state = &where->state;
	const char *argv[] = { NULL, "-u", "--", state->mountpoint, NULL };

	if (!state->mountpoint[0] || !rsb_mountpoint_is_ours(state->mountpoint, state->name))
		return 0;
	return run_mount(argv, diag);
}

bool
rsb_daemon_runs(const struct rsb_where *where)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;

	return rsb_state_open(where->root, where->state.name, false, &dir, NULL) >= 0 &&
	       rsb_state_has_daemon(dir);
}

static void
on_closed(void *arg, int r)
{
	/* For stop this is the answer; for status the waiting call ends with it. */
	(void)arg;
	(void)r;
}

static const struct rsb_client_ops client_ops = { .closed = on_closed };

/* A connection for one call. */
struct line {
	struct rsb_loop *loop;
	struct rsb_client *client;
};

static void
line_done(struct line *line)
{
	rsb_client_free(line->client);
	rsb_loop_free(line->loop);
}

/* -ENOTCONN: no daemon there. */
static int
line_open(const struct rsb_where *where, struct line *line, struct rsb_diag *diag)
{
	int r;

	r = rsb_loop_new(rsb_clock_monotonic(), &line->loop);
	if (r >= 0)
		r = rsb_client_open(
			line->loop, where->socket, &client_ops, NULL, &line->client, diag);
	return r == -ENOENT || r == -ECONNREFUSED ? -ENOTCONN : r;
}

static void
tell_losses(void *arg, const void *rep)
{
	const struct rsb_ctl_status_rep *status = rep;

	rsb_lossnote_say(arg, status->json);
}

/* The connection is gone afterwards: the daemon need not wait for it. */
static int
tell_to_stop(const struct rsb_where *where, const struct rsb_daemon_end *end, struct rsb_diag *diag)
{
	RSB_CLEANUP(line_done) struct line line = { 0 };
	struct rsb_ctl_stop_req req = { .force = end->force };
	int r;

	r = line_open(where, &line, diag);
	if (r < 0)
		return r;
	/* What nobody was told of it takes with it. That it does not answer, the next call says. */
	if (end->teller)
		(void)rsb_client_call_wait(line.client, RSB_OP_ctl_losses, NULL, STATUS_TIMEOUT_NS,
			tell_losses, (void *)(uintptr_t)end->teller);
	return rsb_client_call_wait(
		line.client, RSB_OP_ctl_stop, &req, STOP_TIMEOUT_NS, NULL, NULL);
}

static int
end_daemon(const struct rsb_where *where, struct rsb_state_dir *dir,
	const struct rsb_daemon_end *end, struct rsb_diag *diag)
{
	int r;

	r = tell_to_stop(where, end, diag);
	if (r == -EBUSY)
		return rsb_inuse_say(where, end->can_force, diag);
	/* It may be gone before its answer was read: what counts is its lock. */
	if (r < 0 && r != -ENOTCONN)
		return r;
	r = rsb_state_lock(dir, RSB_STATE_LOCK_DAEMON, true);
	if (r < 0)
		return rsb_diag_set(diag, r, "the daemon of %s does not end", where->state.name);
	rsb_state_unlock(dir, RSB_STATE_LOCK_DAEMON);
	return 0;
}

int
rsb_daemon_stop(
	const struct rsb_where *where, const struct rsb_daemon_end *end, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;
	int r;

	r = rsb_state_open(where->root, where->state.name, false, &dir, diag);
	if (r >= 0 && rsb_state_has_daemon(dir))
		r = end_daemon(where, dir, end, diag);
	if (r >= 0)
		r = rsb_daemon_bury(where, diag);
	if (r >= 0)
		rsb_mountpoint_remove(where->state.mountpoint, where->state.made_mountpoint);
	return r;
}

struct copied {
	struct rsb_buf *out;
	int r;
};

static void
copy_status(void *arg, const void *rep)
{
	const struct rsb_ctl_status_rep *status = rep;
	struct copied *copied = arg;

	copied->r = rsb_buf_append(copied->out, status->json.data, status->json.size);
}

int
rsb_daemon_status(const struct rsb_where *where, struct rsb_buf *out, struct rsb_diag *diag)
{
	RSB_CLEANUP(line_done) struct line line = { 0 };
	struct copied copied = { .out = out };
	int r;

	r = line_open(where, &line, diag);
	if (r >= 0)
		r = rsb_client_call_wait(line.client, RSB_OP_ctl_status, NULL, STATUS_TIMEOUT_NS,
			copy_status, &copied);
	return r < 0 ? r : copied.r;
}

int
rsb_daemon_trust(
	const struct rsb_where *where, const char *path, struct rsb_buf *out, struct rsb_diag *diag)
{
	RSB_CLEANUP(line_done) struct line line = { 0 };
	const struct rsb_ctl_trust_req req = { .path = rsb_bytes_str(path) };
	struct copied copied = { .out = out };
	int r;

	r = line_open(where, &line, diag);
	if (r >= 0)
		r = rsb_client_call_wait(line.client, RSB_OP_ctl_trust, &req, STATUS_TIMEOUT_NS,
			copy_status, &copied);
	return r < 0 ? r : copied.r;
}

bool
rsb_daemon_keeps(const char *name, char **env)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	struct rsb_daemon_look look;

	return rsb_where_find(name, env, &where, NULL) >= 0 &&
	       rsb_daemon_look(&where, &look, NULL) >= 0 && look.running && look.kept;
}

bool
rsb_daemon_pause(int r, unsigned int *n)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if ((r != -ENOENT && r != -ECONNREFUSED && r != -ENOTCONN) || (*n)++ >= PAUSES_MAX)
		return false;
	(void)nanosleep(&pause, NULL); /* an early end is fine */
	return true;
}

/* What they run, for people. */
static void
name_running(const struct rsb_json *running, struct rsb_daemon_look *look)
{
	const size_t n = rsb_min(rsb_json_len(running), (size_t)NAMED_MAX);
	size_t at = 0;

	for (size_t i = 0; i < n && at < sizeof(look->attended_what); i++) {
		const char *what = rsb_json_as_str(rsb_json_at(running, i));

		at += (size_t)snprintf(look->attended_what + at, sizeof(look->attended_what) - at,
			"%s'%s'", i ? ", " : "", what ? what : "");
	}
	if (look->attended > n && at < sizeof(look->attended_what))
		(void)snprintf(look->attended_what + at, sizeof(look->attended_what) - at,
			" and %llu more", (unsigned long long)(look->attended - n));
}

static int
read_status(const struct rsb_where *where, struct rsb_daemon_look *look, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = STATUS_MAX };
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	const char *state = "";
	int64_t down_s = 0;
	struct rsb_json *running = NULL;
	int64_t commands = 0;
	int64_t attended = 0;
	int64_t generation = 0;
	int r;

	r = rsb_daemon_status(where, &out, diag);
	if (r >= 0)
		r = rsb_json_parse(rsb_buf_view(&out), &json, diag);
	if (r >= 0)
		r = rsb_json_bool(json, "mounted", &look->mounted);
	if (r >= 0)
		r = rsb_json_str(json, "state", &state);
	if (r >= 0)
		r = rsb_json_i64(json, "down_s", &down_s);
	if (r >= 0)
		r = rsb_json_i64(json, "commands", &commands);
	/* One from before an update does not say these. */
	if (r >= 0 && rsb_json_i64(json, "attended", &attended) < 0)
		attended = 0;
	if (r >= 0 && rsb_json_bool(json, "kept", &look->kept) < 0)
		look->kept = true;
	if (r >= 0)
		r = rsb_json_i64(json, "fs.generation", &generation);
	if (r < 0)
		return r;
	(void)snprintf(look->state, sizeof(look->state), "%s", state);
	look->down_s = (uint64_t)rsb_max(down_s, (int64_t)0);
	look->commands = (uint64_t)rsb_max(commands, (int64_t)0);
	look->attended = (uint64_t)rsb_max(attended, (int64_t)0);
	if (look->attended && rsb_json_get(json, "running", &running) == 0)
		name_running(running, look);
	look->generation = (uint64_t)generation;
	look->lost = strcmp(state, "lost") == 0;
	look->cut_off = strcmp(state, "live") != 0;
	/* Somebody may have taken the mount away while files are open in it. */
	look->mounted =
		look->mounted && rsb_mountpoint_is_ours(where->state.mountpoint, where->state.name);
	return 0;
}

int
rsb_daemon_look(
	const struct rsb_where *where, struct rsb_daemon_look *ret_look, struct rsb_diag *diag)
{
	struct rsb_daemon_look look;
	unsigned int n = 0;
	int r;

	do {
		look = (struct rsb_daemon_look){ .running = rsb_daemon_runs(where) };
		r = look.running ? read_status(where, &look, diag) : 0;
	} while (rsb_daemon_pause(r, &n));
	if (r >= 0)
		*ret_look = look;
	return r;
}

int
rsb_daemon_check(const struct rsb_where *where, bool mounted, struct rsb_diag *diag)
{
	struct rsb_daemon_look look;
	int r;

	r = rsb_daemon_look(where, &look, diag);
	/* One that was killed leaves its lock to its supervisor for a moment. */
	if (r < 0 ? r != -ENOTCONN : look.mounted || (look.running && !mounted))
		return r;
	return rsb_diag_set(diag, -ENOTCONN,
		"the sandbox %s is not mounted; 'rsb mount %s' does that", where->state.name,
		where->state.name);
}
