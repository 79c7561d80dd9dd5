/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

#include "sidecar/local/host.h"
#include "sidecar/local/hostopt.h"
#include "sidecar/local/proxy.h"

#define RSB_LOG_MODULE "main"
#include "util/log.h"

#define BACKLOG 128
#define IDLE_CHECK_NS (500L * 1000 * 1000)
/* Two descriptors for each connection that is passed on, some for each sandbox. */
#define FILES_WANTED 8192U

/* ---- state directory ---- */

/* The caller's own, for nobody else; the lock lives as long as the descriptor. */
static int
lock_state(const char *dir, int *ret_fd, struct rsb_diag *diag)
{
	rsb_autoclose int dir_fd = -1, fd = -1;
	struct stat st;
	int r;

	r = rsb_fd_mkdir_parents(dir, 0700);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot make %s: %s", dir, rsb_diag_text(NULL, r));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || fstat(dir_fd, &st) < 0)
		return rsb_diag_set(diag, -errno, "cannot open %s: %s", dir, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 0077))
		return rsb_diag_set(diag, -EPERM, "%s must be yours alone (mode 0700)", dir);
	fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return rsb_diag_set(diag, -errno, "cannot open %s/lock: %s", dir, strerror(errno));
	r = rsb_fd_lock(fd, RSB_FD_LOCK_PROBE_NS);
	if (r == -EBUSY)
		return rsb_diag_set(diag, r, "another rsb-local is running on %s", dir);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot lock %s: %s", dir, rsb_diag_text(NULL, r));
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

/* ---- port ---- */

static int
open_listener(const struct sockaddr_in *want, int *ret_fd, unsigned int *ret_port)
{
	rsb_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = *want;
	socklen_t size = sizeof(addr);
	int one = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	if (getsockname(fd, (struct sockaddr *)&addr, &size) < 0)
		return -errno;
	*ret_port = ntohs(addr.sin_port);
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

static int
write_port_file(const char *path, unsigned int port)
{
	rsb_autofree char *dir = rsb_str_dup(rsb_bytes_str(path));
	rsb_autofree char *name = rsb_str_dup(rsb_bytes_str(path));
	rsb_autoclose int dir_fd = -1;
	char text[64];

	if (!dir || !name)
		return -ENOMEM;
	dir_fd = open(dirname(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "{\"port\":%u,\"pid\":%d}\n", port, getpid());
	return rsb_fd_replace_file(dir_fd, basename(name), rsb_bytes_str(text), 0600);
}

/* ---- life ---- */

static void
block_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGHUP);
	/* Before there are threads, so that all of them leave these to us. */
	(void)pthread_sigmask(SIG_BLOCK, set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Until a signal ends it, or nobody was there for idle_ns. */
static void
wait_end(struct rsb_host *host, const sigset_t *set, uint64_t idle_ns)
{
	struct timespec pause = { .tv_nsec = IDLE_CHECK_NS };
	uint64_t busy_ns = rsb_now_ns();

	for (;;) {
		int sig = idle_ns ? sigtimedwait(set, NULL, &pause) : sigwaitinfo(set, NULL);

		if (sig > 0)
			return;
		if (!rsb_host_is_idle(host))
			busy_ns = rsb_now_ns();
		else if (idle_ns && rsb_now_ns() - busy_ns >= idle_ns)
			return;
	}
}

static int
serve(const struct rsb_hostopt *options, const sigset_t *set, struct rsb_diag *diag)
{
	struct rsb_host *host;
	unsigned int port = 0;
	int fd = -1, r;

	r = open_listener(&options->listen, &fd, &port);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot listen on port %u: %s",
			ntohs(options->listen.sin_port), rsb_diag_text(NULL, r));
	r = rsb_host_new(options, fd, &host);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot start: %s", rsb_diag_text(NULL, r));
	if (options->port_file)
		r = write_port_file(options->port_file, port);
	if (r < 0) {
		rsb_host_free(host);
		return rsb_diag_set(
			diag, r, "cannot write %s: %s", options->port_file, rsb_diag_text(NULL, r));
	}
	rsb_info("listening on port %u", port);
	wait_end(host, set, options->idle_ns);
	if (options->port_file)
		(void)unlink(options->port_file); /* it may be gone already */
	rsb_host_free(host);
	return 0;
}

static int
run(const struct rsb_hostopt *options, struct rsb_diag *diag)
{
	rsb_autoclose int lock = -1;
	sigset_t set;
	int r;

	r = lock_state(options->state_dir, &lock, diag);
	if (r < 0)
		return r;
	block_signals(&set);
	rsb_fd_raise_limit(FILES_WANTED);
	r = rsb_proxy_global_init();
	if (r < 0)
		return r;
	return serve(options, &set, diag);
}

int
main(int argc, char *argv[])
{
	struct rsb_hostopt options;
	struct rsb_diag diag = { 0 };
	int r;

	r = rsb_hostopt_read(argc, argv, &options, &diag);
	if (r < 0) {
		(void)fprintf(
			stderr, "rsb-local: %s\n%s", rsb_diag_text(&diag, r), rsb_hostopt_usage);
		return 2;
	}
	if (options.help || options.version) {
		(void)printf("%s%s", options.help ? rsb_hostopt_usage : "rsb-local " RSB_VERSION,
			options.help ? "" : "\n");
		return 0;
	}
	rsb_log_init("rsb-local", options.verbose ? RSB_LOG_INFO : RSB_LOG_WARN, STDERR_FILENO);
	r = run(&options, &diag);
	if (r < 0)
		(void)fprintf(stderr, "rsb-local: %s\n", rsb_diag_text(&diag, r));
	rsb_hostopt_done(&options);
	return r < 0;
}
