/* SPDX-License-Identifier: MIT */
#include "util/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "util/clock.h"
#include "util/secret.h"
#include "util/str.h"

#define CHUNK ((size_t)65536)
#define BACKLOG 64
#define LOCK_POLL_NS (50 * 1000 * 1000L)

int
rsb_fd_read_full(int fd, void *data, size_t size, size_t *ret_size)
{
	uint8_t *p = data;
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = read(fd, p + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*ret_size = done;
	return 0;
}

int
rsb_fd_write_full(int fd, const void *data, size_t size)
{
	const uint8_t *p = data;
	ssize_t n;

	while (size > 0) {
		n = write(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

int
rsb_fd_read_all(int fd, struct rsb_buf *buf)
{
	size_t max = buf->max > 0 ? buf->max : RSB_BUF_MAX_DEFAULT;
	size_t room, size;
	uint8_t *tail;
	uint8_t extra;
	int r;

	do {
		room = rsb_min(max - rsb_buf_len(buf), CHUNK);
		if (room == 0) {
			/* Full: fine only if the file ends here too. */
			r = rsb_fd_read_full(fd, &extra, 1, &size);
			if (r < 0)
				return r;
			return size > 0 ? -EMSGSIZE : 0;
		}
		r = rsb_buf_reserve(buf, room, &tail);
		if (r < 0)
			return r;
		r = rsb_fd_read_full(fd, tail, room, &size);
		if (r < 0)
			return r;
		rsb_buf_commit(buf, size);
	} while (size == room);
	return 0;
}

int
rsb_fd_read_file(int dir_fd, const char *name, size_t max, char **ret_text)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = rsb_max(max, (size_t)1) };
	rsb_autoclose int fd = -1;
	char *text;
	int r;

	/* O_NONBLOCK: a FIFO of that name must not hold the caller. */
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = rsb_fd_read_all(fd, &buf);
	if (r < 0)
		return r;
	/* What comes after a NUL would be there for others, but not for the caller. */
	if (rsb_buf_len(&buf) > 0 && memchr(rsb_buf_head(&buf), '\0', rsb_buf_len(&buf)))
		return -EBADMSG;
	text = rsb_buf_steal_str(&buf);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	return 0;
}

static int
write_new(int dir_fd, const char *name, struct rsb_bytes data, unsigned int mode)
{
	rsb_autoclose int fd = -1;
	int r;

	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = rsb_fd_write_full(fd, data.data, data.size);
	if (r < 0)
		return r;
	/* After the data, and not by open(2), which would apply the umask. */
	if (fchmod(fd, mode & 07777) < 0)
		return -errno;
	if (fsync(fd) < 0)
		return -errno;
	return 0;
}

/* Makes the new entry itself durable, see fsync(2). */
static int
sync_parent(int dir_fd, const char *name)
{
	const char *slash = strrchr(name, '/');
	rsb_autofree char *dir = NULL;
	rsb_autoclose int fd = -1;

	dir = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
	if (!dir)
		return -ENOMEM;
	fd = openat(dir_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

int
rsb_fd_replace_file(int dir_fd, const char *name, struct rsb_bytes data, unsigned int mode)
{
	rsb_autofree char *tmp = NULL;
	uint64_t nonce;
	int r;

	r = rsb_random(&nonce, sizeof(nonce));
	if (r < 0)
		return r;
	tmp = rsb_str_printf("%s.%08x~", name, (unsigned int)nonce);
	if (!tmp)
		return -ENOMEM;
	r = write_new(dir_fd, tmp, data, mode);
	if (r == -EEXIST)
		return r; /* somebody else's */
	if (r == 0 && renameat(dir_fd, tmp, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, tmp, 0); /* r says what matters */
		return r;
	}
	return sync_parent(dir_fd, name);
}

static int
set_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);

	if (flags < 0)
		return -errno;
	if (fcntl(fd, set, on ? flags | flag : flags & ~flag) < 0)
		return -errno;
	return 0;
}

int
rsb_fd_fill_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int got;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* the lowest that is free, hence fd; for children too */
		got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
		if (got != fd)
			return got < 0 ? -errno : -EBADF;
	}
	return 0;
}

int
rsb_fd_nonblock(int fd, bool on)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int
rsb_fd_cloexec(int fd, bool on)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

union control {
	char bytes[CMSG_SPACE(RSB_FD_PASS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int
rsb_fd_send(int sock, const void *data, size_t size, const int *fds, size_t n_fd)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = { 0 };
	struct cmsghdr *cmsg;
	ssize_t n;

	/* unix(7): on a stream, descriptors need a byte to travel with. */
	if (size == 0 || size > INT_MAX || n_fd > RSB_FD_PASS_MAX)
		return -EINVAL;
	if (n_fd > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fd * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fd * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n_fd * sizeof(int));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

/* Copies the descriptors of msg to all[RSB_FD_PASS_MAX]; returns their number. */
static size_t
take_fds(struct msghdr *msg, int *all)
{
	struct cmsghdr *cmsg;
	size_t n = 0;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
			/* The kernel makes one such header, and control bounds it. */
			n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			n = rsb_min(n, (size_t)RSB_FD_PASS_MAX);
			memcpy(all, CMSG_DATA(cmsg), n * sizeof(int));
		}
	return n;
}

int
rsb_fd_recv(int sock, void *data, size_t size, int *fds, size_t *n_fd)
{
	struct iovec iov = { .iov_base = data, .iov_len = rsb_min(size, (size_t)INT_MAX) };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	int all[RSB_FD_PASS_MAX];
	size_t n_all, i;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	n_all = take_fds(&msg, all);
	if (n_all > *n_fd || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		for (i = 0; i < n_all; i++)
			(void)close(all[i]); /* nobody wants them */
		return -EMSGSIZE;
	}
	if (n_all > 0)
		memcpy(fds, all, n_all * sizeof(int));
	*n_fd = n_all;
	return (int)n;
}

static int
unix_address(const char *path, struct sockaddr_un *ret_addr)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, n);
	*ret_addr = addr;
	return 0;
}

int
rsb_fd_unix_listen(const char *path, int type, unsigned int mode)
{
	rsb_autoclose int fd = -1;
	struct sockaddr_un addr;
	struct stat st;
	int r;

	r = unix_address(path, &addr);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && unlink(path) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	/* Nobody can connect before listen(2), so the mode is never too wide. */
	if (chmod(path, mode & 0777) < 0)
		return -errno;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	return rsb_steal_fd(&fd);
}

int
rsb_fd_unix_connect(const char *path, int type)
{
	rsb_autoclose int fd = -1;
	struct sockaddr_un addr;
	int r;

	r = unix_address(path, &addr);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		if (errno != EINTR)
			return -errno;
	return rsb_steal_fd(&fd);
}

int
rsb_fd_check_peer(int sock)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	return cred.uid == geteuid() || cred.uid == 0 ? 0 : -EACCES;
}

/* mkdir(2) that is content with a directory, or a link to one. */
static int
make_dir(const char *path, unsigned int mode)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int
rsb_fd_mkdir_parents(const char *path, unsigned int mode)
{
	rsb_autofree char *copy = strdup(path);
	char *slash;
	int r;

	if (!copy)
		return -ENOMEM;
	/* As a rule it is there: each start of a program asks. */
	r = make_dir(path, mode);
	if (r != -ENOENT)
		return r;
	for (slash = copy; (slash = strchr(slash + (*slash != '\0'), '/'));) {
		*slash = '\0';
		r = make_dir(copy, mode);
		*slash = '/';
		if (r < 0)
			return r;
	}
	return make_dir(copy, mode);
}

int
rsb_fd_open_own_dir(const char *path)
{
	rsb_autoclose int fd = -1;
	struct stat st;
	int r;

	r = rsb_fd_mkdir_parents(path, 0700);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 0022))
		return -EPERM;
	return rsb_steal_fd(&fd);
}

int
rsb_fd_lock(int fd, uint64_t wait_ns)
{
	const struct timespec pause = { .tv_nsec = LOCK_POLL_NS };
	const uint64_t deadline_ns = rsb_now_ns() + wait_ns;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (rsb_now_ns() > deadline_ns)
			return -EBUSY;
		(void)nanosleep(&pause, NULL); /* an early end is fine */
	}
	return 0;
}

void
rsb_fd_raise_limit(uint64_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = rsb_min(limit.rlim_max, (rlim_t)wanted);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}
