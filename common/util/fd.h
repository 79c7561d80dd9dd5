/* SPDX-License-Identifier: MIT */
#ifndef RSB_FD_H
#define RSB_FD_H

/* Descriptors: born close-on-exec, read and written whole, passed over unix sockets. */

#include <stdbool.h>

#include "util/buf.h"

/* Retries EINTR and short counts. read: number of bytes, less only at end of file. */
rsb_nodiscard int rsb_fd_read_full(int fd, void *data, size_t size, size_t *ret_size);
rsb_nodiscard int rsb_fd_write_full(int fd, const void *data, size_t size);
/* Appends the file to its end. -EMSGSIZE when it is over the maximum of buf, which is full then. */
rsb_nodiscard int rsb_fd_read_all(int fd, struct rsb_buf *buf);
/*
 * The file at dir_fd/name as a C string (NUL added, caller frees), at most max bytes: -EMSGSIZE.
 * -EBADMSG if it holds a NUL. Never waits for a FIFO.
 */
rsb_nodiscard int rsb_fd_read_file(int dir_fd, const char *name, size_t max, char **ret_text);
/* Writes name by temporary file ("NAME.########~"), fsync and rename; mode as given, no umask. */
rsb_nodiscard int rsb_fd_replace_file(
	int dir_fd, const char *name, struct rsb_bytes data, unsigned int mode);

/*
 * Fills those of 0, 1 and 2 that are closed, before anything else gets their numbers: with what
 * can be neither read (0) nor written (1, 2), so that use of it fails as that of a closed one.
 */
rsb_nodiscard int rsb_fd_fill_standard(void);
rsb_nodiscard int rsb_fd_nonblock(int fd, bool on);
rsb_nodiscard int rsb_fd_cloexec(int fd, bool on);

/*
 * One message of size > 0 bytes with up to RSB_FD_PASS_MAX descriptors (SCM_RIGHTS), which stay the
 * caller's. Returns the bytes sent, fewer than size only on a non-blocking stream. No SIGPIPE.
 */
#define RSB_FD_PASS_MAX 8
rsb_nodiscard int rsb_fd_send(int sock, const void *data, size_t size, const int *fds, size_t n_fd);
/*
 * Received descriptors are close-on-exec and the caller's; *n_fd is in and out. Returns bytes, 0 at
 * end of stream. -EMSGSIZE when a packet or the descriptors do not fit: then all of it is dropped.
 */
rsb_nodiscard int rsb_fd_recv(int sock, void *data, size_t size, int *fds, size_t *n_fd);

/*
 * Unix socket at path (at most 107 bytes: -ENAMETOOLONG), type SOCK_STREAM or SOCK_SEQPACKET,
 * perhaps with SOCK_NONBLOCK. Both return the descriptor. listen replaces a socket that is there:
 * the caller holds the lock that says it is stale.
 */
rsb_nodiscard int rsb_fd_unix_listen(const char *path, int type, unsigned int mode);
rsb_nodiscard int rsb_fd_unix_connect(const char *path, int type);
/* SO_PEERCRED: the peer's uid equals ours or it is root. -EACCES. */
rsb_nodiscard int rsb_fd_check_peer(int sock);

/* mkdir -p: path itself too, with the given mode (under the umask) for new directories. */
rsb_nodiscard int rsb_fd_mkdir_parents(const char *path, unsigned int mode);
/*
 * The same with mode 0700, opened: the descriptor. -EPERM when it is somebody else's or others may
 * write to it, as where somebody else was first below /tmp; -ENOTDIR also for a link.
 */
rsb_nodiscard int rsb_fd_open_own_dir(const char *path);

/*
 * flock(2), exclusive, tried for wait_ns: who only looks holds it for a moment. -EBUSY. The lock is
 * that of the open file.
 */
rsb_nodiscard int rsb_fd_lock(int fd, uint64_t wait_ns);
#define RSB_FD_LOCK_PROBE_NS (200 * 1000 * 1000UL)

/*
 * As many descriptors for this process as it may have, up to wanted. Fewer than that is no error:
 * who runs out of them is told then.
 */
void rsb_fd_raise_limit(uint64_t wanted);

#endif
