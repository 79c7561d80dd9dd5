/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "main"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "proto/auth.h"
#include "sidecar/cgroup.h"
#include "sidecar/listkeep.h"
#include "sidecar/passwd.h"
#include "sidecar/server.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/optlong.h"
#include "util/str.h"

#define LISTEN_DEFAULT "0.0.0.0"
#define JOURNAL_DEFAULT "/run/rsb-sidecar.journal" /* root's */
#define MMAP_THRESHOLD (256 << 10)

struct options {
	int64_t port; /* -1: not given */
	int fd;       /* -1: not given */
	int key_fd;
	const char *listen;
	const char *workspace;
	const char *user;
	const char *journal; /* NULL: the default */
	bool no_cgroup;
	bool verbose;
};

static void
usage(FILE *to)
{
	(void)fputs(
		"usage: rsb-sidecar (--port N | --fd N) --workspace DIR --user NAME --key-fd N\n"
		"                   [--listen ADDRESS] [--journal FILE] [--no-cgroup] [-v]\n"
		"       rsb-sidecar --help | --version\n",
		to);
}

static int
fatal(const char *what, int r)
{
	(void)fprintf(stderr, "rsb-sidecar: %s%s%s\n", what, r ? ": " : "", r ? strerror(-r) : "");
	return 1;
}

/* ---- options ---- */

static int
parse_number(const char *text, uint64_t max, int64_t *ret_value)
{
	uint64_t value;
	int r = rsb_str_u64(text, max, &value);

	if (r == 0)
		*ret_value = (int64_t)value;
	return r;
}

static int
parse_fd(const char *text, int *ret_fd)
{
	int64_t value;
	int r = parse_number(text, INT32_MAX, &value);

	if (r == 0)
		*ret_fd = (int)value;
	return r;
}

static int
take_option(int option, struct options *o)
{
	switch (option) {
	case 'p':
		return parse_number(optarg, UINT16_MAX, &o->port);
	case 'f':
		return parse_fd(optarg, &o->fd);
	case 'k':
		return parse_fd(optarg, &o->key_fd);
	case 'w':
		o->workspace = optarg;
		return 0;
	case 'u':
		o->user = optarg;
		return 0;
	case 'l':
		o->listen = optarg;
		return 0;
	case 'j':
		o->journal = optarg;
		return 0;
	case 'C':
		o->no_cgroup = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	default:
		return -EINVAL;
	}
}

/* 0: go on; 1: all is said; negative: not understood. */
static int
parse(int argc, char **argv, struct options *o, struct rsb_diag *diag)
{
	static const struct option longs[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "fd", required_argument, NULL, 'f' },
		{ "key-fd", required_argument, NULL, 'k' },
		{ "workspace", required_argument, NULL, 'w' },
		{ "user", required_argument, NULL, 'u' },
		{ "listen", required_argument, NULL, 'l' },
		{ "journal", required_argument, NULL, 'j' },
		{ "no-cgroup", no_argument, NULL, 'C' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option, r;

	while ((option = rsb_optlong(argc, argv, "v", longs, diag)) != -1) {
		if (option == 'h') {
			usage(stdout);
			return 1;
		}
		if (option == 'V') {
			(void)printf("rsb-sidecar %s\n", RSB_VERSION);
			return 1;
		}
		r = take_option(option, o);
		if (r < 0)
			return r;
	}
	if (optind != argc || (o->port < 0) == (o->fd < 0) || o->key_fd < 0 || !o->workspace ||
		!o->user || o->workspace[0] != '/')
		return -EINVAL;
	return 0;
}

/* ---- process-wide setup ---- */

/* Descriptors 0 to 2 must be taken, or a socket would get one of these numbers. */
static int
hold_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

/* Exactly as many bytes as a key has: fewer is a mistake that must not become a weak key. */
static int
read_key(int fd, struct rsb_secret *key)
{
	uint8_t bytes[RSB_AUTH_KEY_SIZE + 1];
	size_t size;
	int r;

	r = rsb_fd_read_full(fd, bytes, RSB_AUTH_KEY_SIZE, &size);
	if (r == 0 && size != RSB_AUTH_KEY_SIZE)
		r = -EINVAL;
	if (r == 0)
		r = rsb_secret_set(key, bytes, RSB_AUTH_KEY_SIZE);
	explicit_bzero(bytes, sizeof(bytes));
	(void)close(fd);
	return r;
}

static void
raise_nofile(struct rlimit *ret_before)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit = (struct rlimit){ .rlim_cur = 1024, .rlim_max = 1024 };
	*ret_before = limit;
	rsb_fd_raise_limit(limit.rlim_max);
}

static int
open_workspace(const char *path, const struct rsb_passwd *user, int *ret_fd)
{
	rsb_autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT) {
		r = rsb_fd_mkdir_parents(path, 0755);
		if (r < 0)
			return r;
		if (getuid() == 0 && chown(path, user->uid, user->gid) < 0)
			return -errno;
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

static int
check_user(const struct rsb_passwd *user)
{
	if (getuid() == 0 || getuid() == user->uid)
		return 0;
	(void)fprintf(stderr,
		"rsb-sidecar: commands cannot run as '%s': this is uid %u, not root\n", user->name,
		(unsigned int)getuid());
	return -EPERM;
}

static void
fill_config(
	struct rsb_sidecar_config *config, const struct options *o, const struct rsb_passwd *user)
{
	config->workspace = o->workspace;
	config->cmd_uid = user->uid;
	config->cmd_gid = user->gid;
	config->cmd_groups = user->groups;
	config->n_cmd_groups = user->n_group;
	config->cmd_user = user->name;
	config->cmd_home = user->home;
	config->cmd_shell = user->shell;
	config->is_root = getuid() == 0;
	config->journal = o->journal;
	if (!config->journal && config->is_root)
		config->journal = JOURNAL_DEFAULT;
}

/* ---- the loop ---- */

struct signals {
	int fd;
	struct rsb_server *server;
};

static void
on_signal(void *arg, uint32_t events rsb_unused)
{
	struct signals *signals = arg;
	struct signalfd_siginfo info;

	if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	rsb_info("ending by a signal");
	rsb_server_stop(signals->server);
}

static int
watch_signals(struct rsb_loop *loop, struct signals *signals)
{
	struct rsb_source *source;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	/* A host that hangs up the terminal of its start is no reason to end. */
	(void)signal(SIGHUP, SIG_IGN);
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0)
		return -errno;
	return rsb_loop_add(loop, signals->fd, EPOLLIN, on_signal, signals, &source);
}

static int
open_way_in(struct rsb_server *server, const struct options *o)
{
	struct rsb_diag diag = { .text = "" };
	uint16_t port;
	int r;

	if (o->fd >= 0) {
		r = rsb_fd_cloexec(o->fd, true);
		if (r == 0)
			r = rsb_server_adopt(server, o->fd);
		if (r < 0)
			(void)fatal("cannot serve the inherited socket", r);
		return r;
	}
	r = rsb_server_listen(server, o->listen, (uint16_t)o->port, &port, &diag);
	if (r < 0) {
		(void)fatal(rsb_diag_text(&diag, r), 0);
		return r;
	}
	(void)printf("ready %u\n", (unsigned int)port);
	(void)fflush(stdout);
	return 0;
}

static int
serve(const struct options *o, const struct rsb_sidecar_config *config,
	const struct rsb_secret *key)
{
	struct signals signals = { .fd = -1 };
	struct rsb_loop *loop = NULL;
	int r;

	r = rsb_loop_new(rsb_clock_monotonic(), &loop);
	if (r == 0)
		r = rsb_server_new(config, key, loop, &signals.server);
	if (r == 0)
		r = watch_signals(loop, &signals);
	if (r < 0)
		(void)fatal("cannot start", r);
	else
		r = open_way_in(signals.server, o);
	if (r == 0) {
		r = rsb_loop_run(loop);
		if (r < 0)
			(void)fatal("the loop broke", r);
	}
	rsb_server_free(signals.server);
	rsb_cleanup_close(&signals.fd);
	rsb_loop_free(loop);
	return r < 0 ? 1 : 0;
}

static int
run(const struct options *o, const struct rsb_secret *key)
{
	struct rsb_sidecar_config config = { .root_fd = -1 };
	struct rsb_diag diag = { .text = "" };
	struct rsb_passwd user;
	int r;

	r = rsb_passwd_read("/etc", o->user, &user, &diag);
	if (r < 0)
		return fatal(rsb_diag_text(&diag, r), 0);
	fill_config(&config, o, &user);
	raise_nofile(&config.cmd_nofile);
	r = check_user(&user);
	if (r == 0) {
		r = open_workspace(o->workspace, &user, &config.root_fd);
		if (r < 0)
			(void)fatal(o->workspace, r);
	}
	if (r == 0)
		r = rsb_listkeep_new(&config.lists);
	if (r == 0 && !o->no_cgroup && rsb_cgroups_new(&config.cgroups) < 0)
		rsb_info("no cgroups of our own: each command gets a supervisor");
	r = r < 0 ? 1 : serve(o, &config, key);
	rsb_listkeep_free(config.lists);
	rsb_cgroups_free(config.cgroups);
	rsb_cleanup_close(&config.root_fd);
	rsb_passwd_done(&user);
	return r;
}

int
main(int argc, char **argv)
{
	struct options o = { .port = -1, .fd = -1, .key_fd = -1, .listen = LISTEN_DEFAULT };
	struct rsb_secret key;
	struct rsb_diag diag = { 0 };
	int r;

	r = parse(argc, argv, &o, &diag);
	if (r < 0) {
		if (diag.text[0])
			(void)fprintf(stderr, "rsb-sidecar: %s\n", diag.text);
		usage(stderr);
		return 2;
	}
	if (r > 0)
		return 0;
	/*
	 * Buffers of streams go back to the system when they are freed. By itself malloc(3) raises
	 * the threshold with the first large block that is freed, and keeps the next ones.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
	(void)mallopt(M_ARENA_MAX, 2);
	/* No core file and no reader in /proc: the key is in this memory. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)umask(0);
	r = read_key(o.key_fd, &key);
	/* After that, because the key may have come over descriptor 0, which is closed now. */
	if (r == 0)
		r = hold_stdio();
	if (r < 0)
		return fatal("there is no key of 32 bytes on --key-fd", r == -EINVAL ? 0 : r);
	rsb_log_init("rsb-sidecar", o.verbose ? RSB_LOG_DBG : RSB_LOG_WARN, 2);
	r = run(&o, &key);
	rsb_secret_done(&key);
	return r;
}
