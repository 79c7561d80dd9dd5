/* SPDX-License-Identifier: MIT */
#include "fuse/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "util/buf.h"
#include "util/fd.h"
#include "util/spawn.h"
#include "util/str.h"

#define DEVICE "/dev/fuse"
#define HELPER "fusermount3"

static int
mount_as_root(const struct rsb_mount_opts *opts, int *ret_fd, struct rsb_diag *diag)
{
	unsigned long flags = MS_NOSUID | MS_NODEV;
	rsb_autofree char *source = rsb_str_printf("rsb:%s", opts->name);
	rsb_autofree char *data = NULL;
	rsb_autoclose int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return rsb_diag_set(diag, -errno, DEVICE " cannot be opened: %s", strerror(errno));
	data = rsb_str_printf("fd=%d,rootmode=40000,user_id=%u,group_id=%u,default_permissions%s",
		fd, getuid(), getgid(), opts->allow_other ? ",allow_other" : "");
	if (!source || !data)
		return -ENOMEM;
	if (opts->read_only)
		flags |= MS_RDONLY;
	if (opts->noexec)
		flags |= MS_NOEXEC;
	if (mount(source, opts->mountpoint, "fuse.rsb", flags, data) < 0)
		return rsb_diag_set(diag, -errno, "mounting at '%s' failed: %s", opts->mountpoint,
			strerror(errno));
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

/* The descriptor that fusermount3 sends when it has mounted. */
static int
recv_device(int sock, int *ret_fd)
{
	size_t n_fd = 1;
	char byte;
	int fd;
	int r;

	r = rsb_fd_recv(sock, &byte, 1, &fd, &n_fd);
	if (r < 0)
		return r;
	if (n_fd != 1)
		return -EPERM;
	*ret_fd = fd;
	return 0;
}

/* environ with one variable in front. Caller frees the array. */
static const char **
env_with(const char *variable)
{
	size_t n = 0;
	const char **env;

	while (environ[n])
		n++;
	env = rsb_new_array(const char *, n + 2);
	if (!env)
		return NULL;
	env[0] = variable;
	memcpy(env + 1, environ, n * sizeof(*env));
	return env;
}

static int
mount_by_helper(const struct rsb_mount_opts *opts, int *ret_fd, struct rsb_diag *diag)
{
	rsb_autofree char *options =
		rsb_str_printf("fsname=rsb:%s,subtype=rsb,default_permissions,nosuid,nodev%s%s%s",
			opts->name, opts->allow_other ? ",allow_other" : "",
			opts->read_only ? ",ro" : "", opts->noexec ? ",noexec" : "");
	const char *argv[] = { HELPER, "-o", options, "--", opts->mountpoint, NULL };
	struct rsb_spawn spawn = { .argv = argv, .stdio = { -1, 2, 2 }, .n_keep = 1 };
	rsb_autofree char *variable = NULL;
	rsb_autofree const char **env = NULL;
	rsb_autoclose int ours = -1;
	rsb_autoclose int theirs = -1;
	rsb_autoclose int pidfd = -1;
	int pair[2];
	pid_t pid;
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	variable = rsb_str_printf("_FUSE_COMMFD=%d", theirs);
	env = variable ? env_with(variable) : NULL;
	if (!options || !env)
		return -ENOMEM;
	spawn.env = env;
	spawn.keep = &theirs;
	r = rsb_spawn(&spawn, &pid, &pidfd);
	if (r < 0)
		return rsb_diag_set(diag, r,
			"mounting takes the program " HELPER " (package fuse3): %s", strerror(-r));
	(void)close(rsb_steal_fd(&theirs));
	r = recv_device(ours, ret_fd);
	/* Its status says no more than whether the descriptor came. */
	(void)rsb_spawn_wait(pid);
	if (r < 0)
		return rsb_diag_set(diag, -EPERM,
			HELPER " did not mount at '%s'; its reason stands above", opts->mountpoint);
	return 0;
}

int
rsb_mount_do(const struct rsb_mount_opts *opts, int *ret_fd, struct rsb_diag *diag)
{
	return geteuid() == 0 ? mount_as_root(opts, ret_fd, diag)
			      : mount_by_helper(opts, ret_fd, diag);
}

int
rsb_mount_undo(const char *mountpoint, bool lazy)
{
	const char *argv[] = { HELPER, "-u", lazy ? "-z" : "-q", "--", mountpoint, NULL };
	const struct rsb_spawn spawn = { .argv = argv, .stdio = { -1, -1, -1 } };
	rsb_autoclose int pidfd = -1;
	pid_t pid;
	int r;

	if (geteuid() == 0) {
		if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : -errno;
		return 0;
	}
	r = rsb_spawn(&spawn, &pid, &pidfd);
	if (r < 0)
		return r;
	r = rsb_spawn_wait(pid);
	if (r < 0)
		return r;
	return r == 0 ? 0 : -EBUSY;
}
