/* SPDX-License-Identifier: MIT */
#ifndef RSB_ROOT_H
#define RSB_ROOT_H

/*
 * The few ways in which the sidecar gets from a descriptor to another one. Nothing here takes a
 * path: a step is one component below a directory descriptor, and never follows a link at its end.
 * What was reached is told apart by a struct rsb_ident, since an inode number alone is used again.
 *
 * Any thread. All functions that return a descriptor return it close-on-exec and as the caller's.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "proto/limits.h"
#include "util/buf.h"

/* Ours, of the bytes that name_to_handle_at(2) gives; file systems with longer ones go without. */
#define RSB_HANDLE_MAX 32

struct rsb_ident {
	uint64_t dev; /* makedev(3) */
	uint64_t ino;
	int64_t btime_sec;
	uint32_t btime_nsec;
	uint32_t type; /* S_IFMT of the mode */
	int mount_id;
	int handle_type;
	uint32_t handle_size; /* 0: the file system has none */
	uint8_t handle[RSB_HANDLE_MAX];
};

struct rsb_root {
	int fd;       /* O_PATH of the workspace, borrowed */
	int proc_fd;  /* /proc/self/fd; -1: not there, or not procfs */
	int mount_fd; /* readable descriptor of the workspace, for handles; -1: not permitted */
	int mount_id;
};

/* Looks once what this system allows. fd is borrowed until rsb_root_done(). */
void rsb_root_init(struct rsb_root *root, int fd);
void rsb_root_done(struct rsb_root *root);

/* name as a C string if it is one path component, else -EINVAL. */
rsb_nodiscard int rsb_root_name(struct rsb_bytes name, char ret_name[static RSB_NAME_MAX + 1]);

/* O_PATH of one component, itself if it is a link. The negative errno of openat2(2). */
rsb_nodiscard int rsb_root_child(int dir_fd, const char *name);
/*
 * The file behind any descriptor, opened anew with flags. Only regular files and directories, since
 * others can block or act on being opened: -ELOOP for links, -ENXIO for sockets, else -EOPNOTSUPP.
 */
rsb_nodiscard int rsb_root_reopen(const struct rsb_root *root, int fd, int flags);
/* Another O_PATH descriptor of the same file. */
rsb_nodiscard int rsb_root_path_fd(const struct rsb_root *root, int fd);

/* name "": dir_fd itself. ret_st may be NULL. */
rsb_nodiscard int rsb_root_ident(const struct rsb_root *root, int dir_fd, const char *name,
	struct rsb_ident *ret_ident, struct statx *ret_st);
bool rsb_ident_same(const struct rsb_ident *a, const struct rsb_ident *b);
/* O_PATH of what ident says, wherever it was moved. -ESTALE: gone, or it cannot be reached so. */
rsb_nodiscard int rsb_root_by_ident(const struct rsb_root *root, const struct rsb_ident *ident);

/*
 * The magic link of fd, for calls that take no O_PATH descriptor: its name in the directory whose
 * descriptor is returned (borrowed). -EOPNOTSUPP without /proc.
 */
#define RSB_PROC_NAME_SIZE 16
rsb_nodiscard int rsb_root_proc_link(
	const struct rsb_root *root, int fd, char ret_name[static RSB_PROC_NAME_SIZE]);
/* The same as a path, for calls that have no other form. */
#define RSB_PROC_PATH_SIZE 32
rsb_nodiscard int rsb_root_proc_path(
	const struct rsb_root *root, int fd, char ret_path[static RSB_PROC_PATH_SIZE]);

#endif
