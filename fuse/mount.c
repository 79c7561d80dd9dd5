/* SPDX-License-Identifier: MIT */
#include "fuse/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/buf.h"
#include "util/fd.h"
#include "util/spawn.h"
#include "util/str.h"

#define DEVICE "/dev/fuse"
#define MTAB "/etc/mtab"
#define DEVICE_MAJOR 10 /* both in admin-guide/devices.txt of the kernel */
#define DEVICE_MINOR 229
#define HELPER "fusermount3"

/* ---- what is mounted ---- */

/* Undoes the \ooo of proc(5) in place. */
static void
unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
			s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

/* The type and the source of the topmost mount at mountpoint. -ENOENT: none is there. */
static int
find_mount(const char *mountpoint, char **ret_type, char **ret_source)
{
	rsb_autofclose FILE *file = fopen("/proc/self/mountinfo", "re");
	rsb_autofree char *line = NULL;
	size_t cap = 0;
	int r = -ENOENT;

	if (!file)
		return -errno;
	while (getline(&line, &cap, file) >= 0) {
		char *save = NULL;
		char *field = strtok_r(line, " \n", &save);
		char *type;
		char *source;

		for (int i = 0; field && i < 4; i++)
			field = strtok_r(NULL, " \n", &save);
		if (!field)
			continue;
		unescape(field);
		if (strcmp(field, mountpoint) != 0)
			continue;
		while (field && strcmp(field, "-") != 0)
			field = strtok_r(NULL, " \n", &save);
		type = strtok_r(NULL, " \n", &save);
		source = strtok_r(NULL, " \n", &save);
		if (!type || !source)
			continue;
		unescape(source);
		free(*ret_type);
		free(*ret_source);
		*ret_type = strdup(type);
		*ret_source = strdup(source);
		r = *ret_type && *ret_source ? 0 : -ENOMEM;
	}
	return r;
}

int
rsb_mount_is_ours(const char *mountpoint, const char *name)
{
	rsb_autofree char *type = NULL;
	rsb_autofree char *source = NULL;

	return find_mount(mountpoint, &type, &source) == 0 && strcmp(type, "fuse.rsb") == 0 &&
	       strncmp(source, "rsb:", 4) == 0 && strcmp(source + 4, name) == 0;
}

int
rsb_mount_resolve(const char *path, char **ret_mountpoint, struct rsb_diag *diag)
{
	rsb_autofree char *copy = strdup(path);
	rsb_autofree char *parent = NULL;
	rsb_autofree char *candidate = NULL;
	rsb_autofree char *type = NULL;
	rsb_autofree char *source = NULL;
	char *slash;

	if (!copy || !*copy)
		return rsb_diag_set(diag, copy ? -ENOENT : -ENOMEM, "the mount point is empty");
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = 0;
	/* The parent first: what is mounted there may be dead, and must not be asked. */
	slash = strrchr(copy, '/');
	if (slash)
		*slash = 0;
	parent = realpath(!slash ? "." : *copy ? copy : "/", NULL);
	if (parent) {
		candidate = rsb_str_path(
			strcmp(parent, "/") == 0 ? "" : parent, slash ? slash + 1 : copy);
		if (!candidate)
			return -ENOMEM;
		if (find_mount(candidate, &type, &source) == 0) {
			*ret_mountpoint = rsb_steal(&candidate);
			return 0;
		}
	}
	*ret_mountpoint = realpath(path, NULL);
	if (*ret_mountpoint)
		return 0;
	if (errno == ENOENT)
		return rsb_diag_set(diag, -ENOENT, "the mount point '%s' does not exist", path);
	return rsb_diag_set(
		diag, -errno, "the mount point '%s' cannot be used: %s", path, strerror(errno));
}

static int
check_mounted(const char *mountpoint, struct rsb_diag *diag)
{
	rsb_autofree char *type = NULL;
	rsb_autofree char *source = NULL;

	if (find_mount(mountpoint, &type, &source) < 0)
		return 0;
	if (strcmp(type, "fuse.rsb") == 0 && strncmp(source, "rsb:", 4) == 0)
		return rsb_diag_set(diag, -EBUSY, "the sandbox '%s' is mounted at '%s' already",
			source + 4, mountpoint);
	return rsb_diag_set(
		diag, -EBUSY, "'%s' is the mount point of '%s' already", mountpoint, source);
}

static int
check_empty(const char *mountpoint, struct rsb_diag *diag)
{
	rsb_autoclosedir DIR *dir = opendir(mountpoint);
	const struct dirent *entry;

	if (!dir)
		return rsb_diag_set(diag, -errno, "the mount point '%s' cannot be used: %s",
			mountpoint, strerror(errno));
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return rsb_diag_set(
				diag, -ENOTEMPTY, "the mount point '%s' is not empty", mountpoint);
	}
	return 0;
}

int
rsb_mount_check(const char *mountpoint, struct rsb_diag *diag)
{
	struct stat st;
	int r;

	r = check_mounted(mountpoint, diag);
	if (r < 0)
		return r;
	if (stat(mountpoint, &st) < 0)
		return rsb_diag_set(diag, -errno, "the mount point '%s' cannot be used: %s",
			mountpoint, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return rsb_diag_set(
			diag, -ENOTDIR, "the mount point '%s' is not a directory", mountpoint);
	r = check_empty(mountpoint, diag);
	if (r < 0)
		return r;
	if (stat(DEVICE, &st) < 0)
		return rsb_diag_set(diag, -ENODEV,
			DEVICE " is not there: load the module 'fuse', or pass the device in");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(DEVICE_MAJOR, DEVICE_MINOR))
		return rsb_diag_set(diag, -ENODEV, DEVICE " is another thing than its name says");
	/* fusermount3(1) mounts without it, but looks there for the owner before it unmounts. */
	if (geteuid() != 0 && access(MTAB, R_OK) < 0)
		return rsb_diag_set(diag, -ENOENT,
			MTAB " is not there, so only root could unmount: let root run "
			     "'ln -s ../proc/self/mounts " MTAB "'");
	return 0;
}

/* ---- mounting ---- */

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
