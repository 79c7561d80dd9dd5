/* SPDX-License-Identifier: MIT */
#include "backend/local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "backend/http.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/json.h"
#include "util/spawn.h"
#include "util/str.h"

#define START_NS (15 * RSB_NSEC_PER_SEC)
#define HEALTH_NS (2 * RSB_NSEC_PER_SEC)
#define POLL_MS 20
#define IDLE "10min"
#define KEY_BYTES 32
#define SERVER_DIR "server"
#define PORT_FILE SERVER_DIR "/port.json"
#define LOCK_FILE SERVER_DIR "/lock"
#define KEY_FILE "key"
#define LOG_FILE "log"
#define FILE_MAX 4096

/* Everything of the server's is in it. */
struct place {
	const char *path;
	int fd;
};

static void
place_done(struct place *place)
{
	rsb_cleanup_close(&place->fd);
}

static const char *
env_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static int
open_place(const char *dir, struct place *place, struct rsb_diag *diag)
{
	int r = rsb_fd_open_own_dir(dir);

	if (r == -EPERM)
		return rsb_diag_set(
			diag, r, "%s must belong to you and be written by nobody else", dir);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot use %s: %s", dir, rsb_diag_text(NULL, r));
	*place = (struct place){ .path = dir, .fd = r };
	return 0;
}

/* A server holds its lock for as long as it lives. */
static bool
is_served(const struct place *place)
{
	rsb_autoclose int fd = openat(place->fd, LOCK_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno != ENOENT;
	return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* The key that the server was, or will be, started with. */
static int
load_key(const struct place *place, struct rsb_secret *ret_key)
{
	rsb_autofree char *text = NULL;
	int r;

	r = rsb_fd_read_file(place->fd, KEY_FILE, RSB_SECRET_MAX, &text);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	r = text[0] ? rsb_secret_set(ret_key, text, strlen(text)) : -ENOENT;
	explicit_bzero(text, strlen(text));
	return r;
}

static int
make_key(const struct place *place, struct rsb_secret *ret_key)
{
	char text[2 * KEY_BYTES + 1];
	struct rsb_secret bytes;
	int r;

	r = rsb_secret_generate(&bytes, KEY_BYTES);
	if (r < 0)
		return r;
	rsb_str_hex(bytes.data, bytes.size, text);
	rsb_secret_done(&bytes);
	r = rsb_fd_replace_file(place->fd, KEY_FILE, rsb_bytes_str(text), 0600);
	if (r == 0)
		r = rsb_secret_set(ret_key, text, strlen(text));
	explicit_bzero(text, sizeof(text));
	return r;
}

static int
read_port(const struct place *place, uint64_t *ret_port)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	rsb_autofree char *text = NULL;
	int64_t port;
	int r;

	r = rsb_fd_read_file(place->fd, PORT_FILE, FILE_MAX, &text);
	if (r < 0)
		return r;
	r = rsb_json_parse(rsb_bytes_str(text), &json, NULL);
	if (r == 0)
		r = rsb_json_i64(json, "port", &port);
	if (r < 0 || port < 1 || port > UINT16_MAX)
		return -EBADMSG;
	*ret_port = (uint64_t)port;
	return 0;
}

/*
 * A port file may be left of a server that is gone, also before this machine was booted, and then
 * somebody else may have its port: he would be given our key.
 */
static int
try_server(const struct place *place, struct rsb_local *ret_local)
{
	const struct rsb_http_config config = { .abort_fd = -1 };
	RSB_CLEANUP(rsb_http_freep) struct rsb_http *http = NULL;
	struct rsb_local local = { .url = "" };
	struct rsb_http_reply reply = { 0 };
	struct rsb_http_request req = { .method = "GET", .timeout_ns = HEALTH_NS };
	char url[160];
	uint64_t port = 0;
	int r;

	r = read_port(place, &port);
	/* Looked at for a moment only, and last: who starts needs the lock. */
	if (r == 0 && !is_served(place))
		r = -ENOENT;
	if (r == 0)
		r = load_key(place, &local.api_key);
	if (r == 0)
		r = rsb_http_new(&config, &http);
	if (r < 0)
		return r;
	(void)snprintf(local.url, sizeof(local.url), "http://127.0.0.1:%u", (unsigned int)port);
	(void)snprintf(url, sizeof(url), "%s/health", local.url);
	req.url = url;
	r = rsb_http_do(http, &req, &reply, NULL);
	rsb_buf_done(&reply.body);
	if (r < 0)
		return r;
	if (reply.status != 204)
		return -EBADMSG;
	*ret_local = local;
	return 0;
}

/*
 * Beside our own program (a build's neighbour folder too), where it is installed, else on
 * PATH.
 */
static char *
find_program(char *const *env)
{
	static const char *const places[] = { "rsb-local", "../sidecar/local/rsb-local",
		"../libexec/rsb/rsb-local" };
	const char *named = env_get(env, "RSB_LOCAL");
	rsb_autofree char *path = NULL;
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (named && named[0])
		return strdup(named);
	if (n < 0)
		return strdup("rsb-local");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < RSB_ARRAY_SIZE(places); i++) {
		path = rsb_str_path(self, places[i]);
		if (!path || access(path, X_OK) == 0)
			return rsb_steal(&path);
		free(rsb_steal(&path));
	}
	return strdup("rsb-local");
}

static int
launch(char *const *env, const struct place *place, int *ret_pid_fd)
{
	rsb_autofree char *program = find_program(env);
	rsb_autofree char *state = rsb_str_path(place->path, SERVER_DIR);
	rsb_autofree char *port_file = rsb_str_path(place->path, PORT_FILE);
	rsb_autofree char *key_file = rsb_str_path(place->path, KEY_FILE);
	rsb_autoclose int log_fd = -1;
	const char *argv[] = { program, "--listen", "127.0.0.1:0", "--state", state, "--port-file",
		port_file, "--api-key-file", key_file, "--idle", IDLE, NULL };
	struct rsb_spawn spawn = {
		.argv = argv,
		.env = (const char *const *)env,
		.cwd = "/",
		.setsid = 1,
	};
	pid_t pid;

	if (!program || !state || !port_file || !key_file)
		return -ENOMEM;
	log_fd = openat(place->fd, LOG_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (log_fd < 0)
		return -errno;
	spawn.stdio[0] = -1;
	spawn.stdio[1] = log_fd;
	spawn.stdio[2] = log_fd;
	return rsb_spawn(&spawn, &pid, ret_pid_fd);
}

/* What the server said when it gave up. */
static int
say_log(const struct place *place, int r, struct rsb_diag *diag)
{
	static const char mark[] = "rsb-local: ";
	rsb_autofree char *text = NULL;
	char *line;

	if (rsb_fd_read_file(place->fd, LOG_FILE, FILE_MAX, &text) < 0)
		return rsb_diag_set(diag, r, "rsb-local does not start");
	line = strstr(text, mark);
	line = line ? line + strlen(mark) : text;
	line[strcspn(line, "\n")] = '\0';
	return rsb_diag_set(diag, r, "rsb-local does not start%s%s", line[0] ? ": " : "", line);
}

/*
 * One that runs is not started a second time, however long it does not answer: its sandboxes
 * would be out of reach for good. -ENOENT: it has ended.
 */
static int
wait_for_server(const struct place *place, struct rsb_local *ret_local, struct rsb_diag *diag)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * (long)RSB_NSEC_PER_MSEC };
	const uint64_t deadline_ns = rsb_now_ns() + START_NS;

	while (is_served(place)) {
		if (try_server(place, ret_local) == 0)
			return 0;
		if (rsb_now_ns() >= deadline_ns)
			return rsb_diag_set(diag, -ETIMEDOUT,
				"rsb-local runs, but does not answer; its files are in %s",
				place->path);
		(void)nanosleep(&pause, NULL);
	}
	return -ENOENT;
}

static int
start_server(char *const *env, const struct place *place, struct rsb_local *ret_local,
	struct rsb_diag *diag)
{
	uint64_t deadline_ns = rsb_now_ns() + START_NS;
	struct rsb_secret key = { 0 };
	rsb_autoclose int pid_fd = -1;
	struct pollfd pfd = { .events = POLLIN };
	int r;

	if (unlinkat(place->fd, PORT_FILE, 0) < 0 && errno != ENOENT)
		return -errno;
	r = load_key(place, &key);
	if (r < 0)
		r = make_key(place, &key);
	rsb_secret_done(&key);
	if (r == 0)
		r = launch(env, place, &pid_fd);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot start rsb-local, whose files are in %s: %s",
			place->path, rsb_diag_text(NULL, r));
	pfd.fd = pid_fd;
	while (rsb_now_ns() < deadline_ns) {
		if (try_server(place, ret_local) == 0)
			return 0;
		if (poll(&pfd, 1, POLL_MS) > 0)
			return say_log(place, -EIO, diag);
	}
	return say_log(place, -ETIMEDOUT, diag);
}

/* A server of ours behind another address, say a proxy's: it runs already. */
static int
use_named(const char *url, const struct place *place, struct rsb_local *ret_local,
	struct rsb_diag *diag)
{
	int r;

	if (strlen(url) >= sizeof(ret_local->url))
		return rsb_diag_set(diag, -EINVAL, "RSB_LOCAL_URL is too long");
	r = load_key(place, &ret_local->api_key);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "RSB_LOCAL_URL is set, but no rsb-local of yours runs");
	strcpy(ret_local->url, url);
	return 0;
}

int
rsb_local_open(
	const char *dir, char *const *env, struct rsb_local *ret_local, struct rsb_diag *diag)
{
	RSB_CLEANUP(place_done) struct place place = { .fd = -1 };
	const char *named = env_get(env, "RSB_LOCAL_URL");
	int r;

	r = open_place(dir, &place, diag);
	if (r < 0)
		return r;
	if (named && named[0])
		return use_named(named, &place, ret_local, diag);
	if (try_server(&place, ret_local) == 0)
		return 0;
	/* one of us starts it, the others find it */
	if (flock(place.fd, LOCK_EX) < 0)
		return -errno;
	r = wait_for_server(&place, ret_local, diag);
	return r == -ENOENT ? start_server(env, &place, ret_local, diag) : r;
}

int
rsb_local_find(
	const char *dir, char *const *env, struct rsb_local *ret_local, struct rsb_diag *diag)
{
	RSB_CLEANUP(place_done) struct place place = { .fd = -1 };
	const char *named = env_get(env, "RSB_LOCAL_URL");
	int r;

	if (named && named[0])
		return rsb_diag_set(diag, -ENOTCONN, "nobody answers at %s", named);
	r = open_place(dir, &place, diag);
	if (r < 0)
		return r;
	if (try_server(&place, ret_local) == 0)
		return 0;
	/* Who is about to start one holds this, and its sandboxes are new. */
	if (is_served(&place))
		return rsb_diag_set(diag, -ENOTCONN, "rsb-local does not answer");
	return rsb_diag_set(diag, -ENOENT, "rsb-local has ended, and its sandboxes with it");
}
