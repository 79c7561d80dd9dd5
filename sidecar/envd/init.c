/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/keyctl.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/spawn.h"

#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/layers.h"
#include "sidecar/envd/service.h"

static int
loopback_up(void)
{
	rsb_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo" };

	if (fd < 0)
		return -errno;
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return -errno;
	return 0;
}

/* A bind on itself gives the tree a top that is not locked, which pivot_root(2) wants. */
static int
mount_inside(void)
{
	static const char boot_id[] = "proc/sys/kernel/random/boot_id";

	if (mount(RSB_LAYERS_ROOT, RSB_LAYERS_ROOT, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	if (chdir(RSB_LAYERS_ROOT) < 0)
		return -errno;
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	if (mount(RSB_LAYERS_BOOT_ID, boot_id, NULL, MS_BIND, NULL) < 0)
		return -errno;
	/* gid 5 is tty; a sandbox with one id has no such group. */
	if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		    "newinstance,ptmxmode=0666,mode=620,gid=5") < 0 &&
		mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=620") < 0)
		return -errno;
	return 0;
}

static int
leave_host(void)
{
	/* Both trees at "/", the old one on top, is pivot_root(2)'s own recipe. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return -errno;
	if (umount2(".", MNT_DETACH) < 0)
		return -errno;
	if (chdir("/") < 0)
		return -errno;
	return 0;
}

/* The host's descriptors end here; a standard error of the host could be opened from inside. */
static int
close_host_fds(void)
{
	static const int keep[] = { RSB_INIT_CONFIG_FD, RSB_INIT_READY_FD };
	rsb_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int i = 0; i < 3; i++) {
		if (dup2(null, i) < 0)
			return -errno;
	}
	rsb_spawn_close_fds(keep, RSB_ARRAY_SIZE(keep));
	(void)rsb_steal_fd(&null); /* closed among the others */
	return 0;
}

/* Counted for each user namespace, so that the host's own user is not hit (getrlimit(2)). */
static int
limit_processes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NPROC, &limit) < 0)
		return -errno;
	limit.rlim_max = rsb_min(limit.rlim_max, (rlim_t)RSB_INIT_NPROC_MAX);
	limit.rlim_cur = rsb_min(limit.rlim_cur, limit.rlim_max);
	return setrlimit(RLIMIT_NPROC, &limit) < 0 ? -errno : 0;
}

static int
enter(const struct rsb_bootcfg *cfg)
{
	int r;

	/* The monitor's death is ours. It may have died before the call. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	(void)prctl(PR_SET_NAME, "rsb-envd"); /* cosmetic */
	(void)umask(022);
	(void)syscall(
		SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); /* absent: no host keys either */
	if (setsid() < 0 && errno != EPERM)
		return -errno;
	if (sethostname(cfg->id, strlen(cfg->id)) < 0)
		return -errno;
	r = limit_processes();
	if (r < 0)
		return r;
	r = loopback_up();
	if (r < 0)
		return r;
	r = mount_inside();
	if (r < 0)
		return r;
	r = leave_host();
	if (r < 0)
		return r;
	return close_host_fds();
}

static int
start(struct rsb_bootcfg *cfg, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_BOOTCFG_MAX };
	sigset_t chld;
	int r;

	r = rsb_fd_read_all(RSB_INIT_CONFIG_FD, &text);
	if (r < 0)
		return r;
	r = rsb_bootcfg_parse(rsb_buf_view(&text), cfg, diag);
	if (r < 0)
		return r;
	r = enter(cfg);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot set up the sandbox from inside: %s",
			rsb_diag_text(NULL, r));
	(void)close(RSB_INIT_CONFIG_FD);
	/* Before there are threads, so that all of them leave it to the reaper. */
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	return 0;
}

int
rsb_init_run(void)
{
	RSB_CLEANUP(rsb_bootcfg_done) struct rsb_bootcfg cfg = { 0 };
	struct rsb_service *service = NULL;
	struct rsb_diag diag = { 0 };
	char ready = RSB_INIT_READY;
	int r;

	r = start(&cfg, &diag);
	if (r == 0)
		r = rsb_service_new(&cfg, &service, &diag);
	if (r < 0) {
		const char *text = rsb_diag_text(&diag, r);

		(void)rsb_fd_write_full(RSB_INIT_READY_FD, text, strlen(text));
		return r;
	}
	r = rsb_fd_write_full(RSB_INIT_READY_FD, &ready, 1);
	(void)close(RSB_INIT_READY_FD);
	if (r < 0)
		return r;
	return rsb_service_reap(service);
}
