/* SPDX-License-Identifier: MIT */
#include "sidecar/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/str.h"

/* struct file_handle ends in an array of no size. */
union handle {
	struct file_handle h;
	uint8_t space[sizeof(struct file_handle) + RSB_HANDLE_MAX];
};

static int
open2(int dir_fd, const char *name, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };
	int fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));

	/* Old container filters answer EPERM for calls that they do not know. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dir_fd, name, (int)flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
open_proc(void)
{
	struct statfs fs;
	rsb_autoclose int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0)
		return -errno;
	if (fstatfs(proc, &fs) < 0)
		return -errno;
	if (fs.f_type != PROC_SUPER_MAGIC)
		return -ENOTSUP;
	return open2(proc, "self/fd", O_PATH | O_DIRECTORY, RESOLVE_NO_XDEV | RESOLVE_BENEATH);
}

static int
handle_of(int dir_fd, const char *name, union handle *ret, int *ret_mount_id)
{
	memset(ret, 0, sizeof(*ret));
	ret->h.handle_bytes = RSB_HANDLE_MAX;
	return name_to_handle_at(dir_fd, name, &ret->h, ret_mount_id, AT_EMPTY_PATH) < 0 ? -errno
											 : 0;
}

void
rsb_root_init(struct rsb_root *root, int fd)
{
	union handle h;
	int mount_id = 0;

	*root = (struct rsb_root){ .fd = fd, .proc_fd = open_proc(), .mount_fd = -1 };
	if (root->proc_fd < 0)
		root->proc_fd = -1;
	if (handle_of(fd, "", &h, &mount_id) < 0)
		return;
	root->mount_id = mount_id;

	/* Whether handles may be opened depends on privileges and user namespace: try. */
	rsb_autoclose int mount_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mount_fd < 0)
		return;
	rsb_autoclose int self = open_by_handle_at(mount_fd, &h.h, O_PATH | O_CLOEXEC);
	if (self >= 0)
		root->mount_fd = rsb_steal_fd(&mount_fd);
}

void
rsb_root_done(struct rsb_root *root)
{
	if (root->proc_fd >= 0)
		(void)close(root->proc_fd);
	if (root->mount_fd >= 0)
		(void)close(root->mount_fd);
	root->proc_fd = -1;
	root->mount_fd = -1;
}

int
rsb_root_name(struct rsb_bytes name, char ret_name[static RSB_NAME_MAX + 1])
{
	if (!rsb_str_is_component(name))
		return -EINVAL;
	memcpy(ret_name, name.data, name.size);
	ret_name[name.size] = '\0';
	return 0;
}

int
rsb_root_child(int dir_fd, const char *name)
{
	return open2(dir_fd, name, O_PATH | O_NOFOLLOW,
		RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
}

static int
open_handle(const struct rsb_root *root, int fd, int flags)
{
	union handle h;
	int mount_id = 0;
	int r = handle_of(fd, "", &h, &mount_id);

	if (r < 0 || root->mount_fd < 0 || mount_id != root->mount_id)
		return -EOPNOTSUPP;
	int new_fd = open_by_handle_at(root->mount_fd, &h.h, flags | O_CLOEXEC);
	return new_fd < 0 ? -errno : new_fd;
}

int
rsb_root_proc_link(const struct rsb_root *root, int fd, char ret_name[static RSB_PROC_NAME_SIZE])
{
	if (root->proc_fd < 0)
		return -EOPNOTSUPP;
	(void)snprintf(ret_name, RSB_PROC_NAME_SIZE, "%d", fd); /* cannot be cut */
	return root->proc_fd;
}

static int
reopen_any(const struct rsb_root *root, int fd, int flags)
{
	char name[RSB_PROC_NAME_SIZE];
	int proc_fd = rsb_root_proc_link(root, fd, name);

	if (proc_fd < 0)
		return open_handle(root, fd, flags);
	int new_fd = openat(proc_fd, name, flags | O_CLOEXEC);
	return new_fd < 0 ? -errno : new_fd;
}

int
rsb_root_reopen(const struct rsb_root *root, int fd, int flags)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR: {
		int new_fd = openat(fd, ".", flags | O_NOFOLLOW | O_CLOEXEC);
		return new_fd < 0 ? -errno : new_fd;
	}
	case S_IFREG:
		/* O_NONBLOCK: a lease that somebody holds must not stop us. */
		return reopen_any(root, fd, flags | O_NONBLOCK | O_NOCTTY);
	case S_IFLNK:
		return -ELOOP;
	case S_IFSOCK:
		return -ENXIO;
	default:
		return -EOPNOTSUPP;
	}
}

int
rsb_root_path_fd(const struct rsb_root *root, int fd)
{
	int new_fd = reopen_any(root, fd, O_PATH);

	if (new_fd >= 0)
		return new_fd;
	new_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return new_fd < 0 ? -errno : new_fd;
}

int
rsb_root_ident(const struct rsb_root *root, int dir_fd, const char *name,
	struct rsb_ident *ret_ident, struct statx *ret_st)
{
	struct statx st;
	union handle h;
	int mount_id = root->mount_id;

	if (statx(dir_fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		    STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
		return -errno;
	*ret_ident = (struct rsb_ident){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.type = st.stx_mode & (uint32_t)S_IFMT,
	};
	if (st.stx_mask & STATX_BTIME) {
		ret_ident->btime_sec = st.stx_btime.tv_sec;
		ret_ident->btime_nsec = st.stx_btime.tv_nsec;
	}
	/*
	 * The handle holds the generation: birth times have the grain of a clock tick, and ext4
	 * gives the number of a file removed a moment ago to the next one.
	 */
	if (handle_of(dir_fd, name, &h, &mount_id) == 0) {
		ret_ident->mount_id = mount_id;
		ret_ident->handle_type = h.h.handle_type;
		ret_ident->handle_size = h.h.handle_bytes;
		memcpy(ret_ident->handle, h.space + sizeof(struct file_handle), h.h.handle_bytes);
	}
	if (ret_st)
		*ret_st = st;
	return 0;
}

bool
rsb_ident_same(const struct rsb_ident *a, const struct rsb_ident *b)
{
	if (a->dev != b->dev || a->ino != b->ino || a->type != b->type ||
		a->btime_sec != b->btime_sec || a->btime_nsec != b->btime_nsec)
		return false;
	if (!a->handle_size || !b->handle_size)
		return true;
	return a->handle_type == b->handle_type && a->handle_size == b->handle_size &&
	       memcmp(a->handle, b->handle, a->handle_size) == 0;
}

int
rsb_root_by_ident(const struct rsb_root *root, const struct rsb_ident *ident)
{
	union handle h;
	struct rsb_ident found;

	if (root->mount_fd < 0 || !ident->handle_size || ident->mount_id != root->mount_id)
		return -ESTALE;
	memset(&h, 0, sizeof(h));
	h.h.handle_bytes = ident->handle_size;
	h.h.handle_type = ident->handle_type;
	memcpy(h.space + sizeof(struct file_handle), ident->handle, ident->handle_size);

	rsb_autoclose int fd = open_by_handle_at(root->mount_fd, &h.h, O_PATH | O_CLOEXEC);
	/* ENOMEM, too, is said of a file that is just being removed. */
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ESTALE;
	int r = rsb_root_ident(root, fd, "", &found, NULL);
	if (r < 0)
		return r;
	return rsb_ident_same(ident, &found) ? rsb_steal_fd(&fd) : -ESTALE;
}

int
rsb_root_proc_path(const struct rsb_root *root, int fd, char ret_path[static RSB_PROC_PATH_SIZE])
{
	if (root->proc_fd < 0)
		return -EOPNOTSUPP;
	(void)snprintf(ret_path, RSB_PROC_PATH_SIZE, "/proc/self/fd/%d", fd); /* cannot be cut */
	return 0;
}
