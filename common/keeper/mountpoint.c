/* SPDX-License-Identifier: MIT */
#include "keeper/mountpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "proto/limits.h"
#include "util/cleanup.h"
#include "util/spawn.h"
#include "util/str.h"

#define DEVICE "/dev/fuse"
#define DEVICE_MAJOR 10 /* both in admin-guide/devices.txt of the kernel */
#define DEVICE_MINOR 229
#define HELPER "fusermount3"
#define MTAB "/etc/mtab"

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

/* Where a line of proc(5)'s mountinfo says that something is mounted; NULL: it says nothing. */
static char *
take_point(char *line, char **save)
{
	char *field = strtok_r(line, " \n", save);

	for (int i = 0; field && i < 4; i++)
		field = strtok_r(NULL, " \n", save);
	if (field)
		unescape(field);
	return field;
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
		char *field = take_point(line, &save);
		char *type;
		char *source;

		if (!field || strcmp(field, mountpoint) != 0)
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
rsb_mountpoint_is_ours(const char *mountpoint, const char *name)
{
	rsb_autofree char *type = NULL;
	rsb_autofree char *source = NULL;

	return find_mount(mountpoint, &type, &source) == 0 && strcmp(type, "fuse.rsb") == 0 &&
	       strncmp(source, "rsb:", 4) == 0 && (!name || strcmp(source + 4, name) == 0);
}

char *
rsb_mountpoint_inner(const char *mountpoint)
{
	rsb_autofclose FILE *file = fopen("/proc/self/mountinfo", "re");
	rsb_autofree char *line = NULL;
	size_t cap = 0;

	while (file && getline(&line, &cap, file) >= 0) {
		char *save = NULL;
		const char *point = take_point(line, &save);

		if (point && rsb_str_is_below(point, mountpoint))
			return strdup(point);
	}
	return NULL;
}

bool
rsb_mountpoint_covers(const char *path)
{
	rsb_autofree char *at = strdup(path);
	char *slash;

	while (at && *at) {
		rsb_autofree char *type = NULL;
		rsb_autofree char *source = NULL;

		/* Another one may be mounted in it, and we be in that. */
		if (find_mount(at, &type, &source) == 0 && strcmp(type, "fuse.rsb") == 0)
			return true;
		slash = strrchr(at, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return false;
}

int
rsb_mountpoint_resolve(const char *path, char **ret_mountpoint, struct rsb_diag *diag)
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

/* A container may have the device without the right to use it. */
static const char *
cure_of(int error)
{
	if (error == EACCES)
		return "; root lets all users open it by 'chmod 666 " DEVICE "'";
	return error == EPERM ? "; the container needs it passed in, as by '--device " DEVICE "'"
			      : "";
}

int
rsb_mountpoint_check_fuse(struct rsb_diag *diag)
{
	rsb_autoclose int fd = -1;
	struct stat st;

	if (stat(DEVICE, &st) < 0)
		return rsb_diag_set(diag, -ENODEV,
			DEVICE " is not there: load the module by 'modprobe fuse', or pass the "
			       "device into the container, as by '--device " DEVICE "'");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(DEVICE_MAJOR, DEVICE_MINOR))
		return rsb_diag_set(diag, -ENODEV, DEVICE " is another thing than its name says");
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return 0;
	return rsb_diag_set(
		diag, -errno, DEVICE " cannot be opened: %s%s", strerror(errno), cure_of(errno));
}

static int
check_helper(struct rsb_diag *diag)
{
	if (!rsb_spawn_on_path(getenv("PATH"), HELPER))
		return rsb_diag_set(
			diag, -ENOENT, "mounting takes the program " HELPER " (package fuse3)");
	/* fusermount3(1) mounts without it, but looks there for the owner before it unmounts. */
	if (access(MTAB, R_OK) < 0)
		return rsb_diag_set(diag, -ENOENT,
			MTAB " is not there, so only root could unmount: let root run "
			     "'ln -s ../proc/self/mounts " MTAB "'");
	return 0;
}

int
rsb_mountpoint_check(const char *mountpoint, struct rsb_diag *diag)
{
	struct stat st;
	int r;

	r = check_mounted(mountpoint, diag);
	if (r < 0)
		return r;
	/* It would keep that one from being unmounted, and the sandbox could move it. */
	if (rsb_mountpoint_covers(mountpoint))
		return rsb_diag_set(diag, -EINVAL,
			"the mount point '%s' lies in the mount of a sandbox; choose another",
			mountpoint);
	if (stat(mountpoint, &st) < 0)
		return rsb_diag_set(diag, -errno, "the mount point '%s' cannot be used: %s",
			mountpoint, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return rsb_diag_set(
			diag, -ENOTDIR, "the mount point '%s' is not a directory", mountpoint);
	r = check_empty(mountpoint, diag);
	if (r < 0)
		return r;
	/* fusermount3(1) opens it as who calls it. */
	r = rsb_mountpoint_check_fuse(diag);
	return r < 0 || geteuid() == 0 ? r : check_helper(diag);
}

/* As the state keeps it, in JSON, so below INT64_MAX; 0: it cannot be told. */
static uint64_t
id_of(const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME,
		    &st) < 0)
		return 0;
	if (!(st.stx_mask & STATX_BTIME))
		st.stx_btime = (struct statx_timestamp){ 0 };
	return (st.stx_ino * UINT64_C(0x9e3779b97f4a7c15) +
		       (uint64_t)st.stx_btime.tv_sec * RSB_NSEC_PER_SEC + st.stx_btime.tv_nsec) &
	       INT64_MAX;
}

void
rsb_mountpoint_remove(const char *mountpoint, uint64_t made)
{
	rsb_autofree char *type = NULL;
	rsb_autofree char *source = NULL;

	/* What is mounted there must not be asked: nobody may answer for it. */
	if (made && find_mount(mountpoint, &type, &source) == -ENOENT && id_of(mountpoint) == made)
		(void)rmdir(mountpoint);
}

int
rsb_mountpoint_make(
	const char *path, char **ret_mountpoint, uint64_t *ret_made, struct rsb_diag *diag)
{
	bool made = mkdir(path, 0755) == 0;
	int r;

	if (!made && errno != EEXIST)
		return rsb_diag_set(diag, -errno, "the mount point '%s' cannot be made: %s", path,
			strerror(errno));
	r = rsb_mountpoint_resolve(path, ret_mountpoint, diag);
	if (r >= 0)
		*ret_made = made ? id_of(*ret_mountpoint) : 0;
	else if (made)
		(void)rmdir(path);
	return r;
}

int
rsb_mountpoint_outside(const char *mountpoint, const char *dir, struct rsb_diag *diag)
{
	size_t n = strlen(dir);

	if (n == 0 || strncmp(mountpoint, dir, n) != 0 ||
		(mountpoint[n] != '/' && mountpoint[n] != '\0'))
		return 0;
	return rsb_diag_set(diag, -EINVAL,
		"the mount point '%s' lies in the directory that is synced; choose another",
		mountpoint);
}

int
rsb_mountpoint_prepare(const char *path, const char *dir, char **ret_mountpoint, uint64_t *ret_made,
	struct rsb_diag *diag)
{
	rsb_autofree char *mountpoint = NULL;
	uint64_t made = 0;
	int r;

	r = rsb_mountpoint_make(path, &mountpoint, &made, diag);
	if (r < 0)
		return r;
	r = rsb_mountpoint_outside(mountpoint, dir, diag);
	if (r >= 0)
		r = rsb_mountpoint_check(mountpoint, diag);
	if (r >= 0 && strlen(mountpoint) > RSB_PATH_MAX)
		r = rsb_diag_set(diag, -ENAMETOOLONG, "the mount point's path is too long");
	if (r < 0) {
		rsb_mountpoint_remove(mountpoint, made);
		return r;
	}
	*ret_mountpoint = rsb_steal(&mountpoint);
	*ret_made = made;
	return 0;
}
