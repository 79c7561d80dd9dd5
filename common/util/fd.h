/* SPDX-License-Identifier: MIT */
#ifndef RSB_FD_H
#define RSB_FD_H

/* Descriptors: born close-on-exec, read and written whole, passed over unix sockets. */

#include "util/buf.h"

#include <stdbool.h>

/* Retries EINTR and short counts. read: number of bytes, less only at end of file. */
rsb_nodiscard int rsb_fd_read_full(int fd, void *data, size_t size, size_t *ret_size);
rsb_nodiscard int rsb_fd_write_full(int fd, const void *data, size_t size);
/* Appends the file to its end. -EMSGSIZE when it is over the maximum of buf. */
rsb_nodiscard int rsb_fd_read_all(int fd, struct rsb_buf *buf);
/* The file at dir_fd/name as a C string (NUL added, caller frees), at most max bytes. */
rsb_nodiscard int rsb_fd_read_file(int dir_fd, const char *name, size_t max, char **ret_text);
/* Writes name by temporary file, fsync and rename, mode as given. */
rsb_nodiscard int rsb_fd_replace_file(
	int dir_fd, const char *name, struct rsb_bytes data, unsigned int mode);

rsb_nodiscard int rsb_fd_nonblock(int fd, bool on);
rsb_nodiscard int rsb_fd_cloexec(int fd, bool on);

/* One message with up to n_fd descriptors (SCM_RIGHTS). */
#define RSB_FD_PASS_MAX 8
rsb_nodiscard int rsb_fd_send(int sock, const void *data, size_t size, const int *fds, size_t n_fd);
/* Received descriptors are close-on-exec and the caller's; *n_fd is in and out. Returns bytes, 0 at end of stream. */
rsb_nodiscard int rsb_fd_recv(int sock, void *data, size_t size, int *fds, size_t *n_fd);

/* Unix socket at path (at most 107 bytes: -ENAMETOOLONG), type SOCK_STREAM or SOCK_SEQPACKET. */
rsb_nodiscard int rsb_fd_unix_listen(const char *path, int type, unsigned int mode);
rsb_nodiscard int rsb_fd_unix_connect(const char *path, int type);
/* SO_PEERCRED: the peer's uid equals ours or it is root. -EACCES. */
rsb_nodiscard int rsb_fd_check_peer(int sock);

/* mkdir -p with the given mode for new directories. */
rsb_nodiscard int rsb_fd_mkdir_parents(const char *path, unsigned int mode);

#endif
