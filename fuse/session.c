/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "session"

#include "fuse/session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "fuse/ledger.h"
#include "fuse/notify.h"
#include "fuse/ops.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"

#define WATCH_MS 50
#define USUAL_REQUEST (((size_t)1 << 20) + 4096) /* of the largest write, with pages of 4 KiB */

struct rsb_fuse_session {
	struct rsb_fs *fs;
	struct fuse_session *se;
	struct fuse_buf buf; /* {fuse thread} */
	int fd;              /* se's */
	int stop_fd;
	uint64_t watched_ns; /* {fuse thread} */
	bool started;
	pthread_t thread;
	void (*ended)(void *arg, int r);
	void *arg;
	uint64_t init_unique; /* {fuse thread} of the INIT under way; 0: none */
	uint32_t init_flags;  /* what the kernel offered in it */
	bool resuming;        /* its answer is known to the kernel */
	bool ready;           /* {fs->lock} */
};

/* libfuse hands fs to the hooks; the session is found through it. */
static struct rsb_fuse_session *
session_of(void *userdata)
{
	return ((struct rsb_fs *)userdata)->session;
}

/* ---- what comes from the kernel ---- */

static void
look_at_expire(struct rsb_fs *fs, const uint8_t *data, size_t size)
{
	struct fuse_init_in init;
	uint64_t flags;

	if (size < sizeof(struct fuse_in_header) + offsetof(struct fuse_init_in, unused))
		return;
	memcpy(&init, data + sizeof(struct fuse_in_header), offsetof(struct fuse_init_in, unused));
	flags = init.flags | (uint64_t)init.flags2 << 32;
	fs->kernel_expires =
		flags & FUSE_INIT_EXT && flags & FUSE_HAS_EXPIRE_ONLY && !fs->config.no_expire;
	if (fs->notify)
		rsb_notify_set_expires(fs->notify, fs->kernel_expires);
}

static void
look_at_init(struct rsb_fuse_session *session, const uint8_t *data, size_t size)
{
	struct fuse_in_header head;
	struct fuse_init_in init;

	memcpy(&head, data, sizeof(head));
	/* Only the fields that every version has. */
	if (size < sizeof(head) + offsetof(struct fuse_init_in, flags2))
		return;
	memcpy(&init, data + sizeof(head), offsetof(struct fuse_init_in, flags2));
	session->init_unique = head.unique;
	session->init_flags = init.flags;
	look_at_expire(session->fs, data, size);
	if (size > RSB_SHARED_INIT_MAX)
		return;
	memcpy(session->fs->shared->head.init, data, size);
	session->fs->shared->head.init_size = (uint32_t)size;
}

/* The flags by which the kernel asks to drop set-user-ID, which libfuse 3.14 does not pass on. */
static uint32_t
kill_flag(const uint8_t *data, size_t size, uint32_t opcode)
{
	const uint8_t *arg = data + sizeof(struct fuse_in_header);
	size_t left = size - sizeof(struct fuse_in_header);
	struct fuse_write_in write_in;
	struct fuse_setattr_in setattr_in;
	struct fuse_open_in open_in;
	struct fuse_create_in create_in;

	switch (opcode) {
	case FUSE_WRITE:
		if (left < sizeof(write_in))
			return 0;
		memcpy(&write_in, arg, sizeof(write_in));
		return write_in.write_flags & FUSE_WRITE_KILL_SUIDGID;
	case FUSE_SETATTR:
		if (left < sizeof(setattr_in))
			return 0;
		memcpy(&setattr_in, arg, sizeof(setattr_in));
		return setattr_in.valid & FATTR_KILL_SUIDGID;
	case FUSE_OPEN:
		if (left < sizeof(open_in))
			return 0;
		memcpy(&open_in, arg, sizeof(open_in));
		return open_in.open_flags & FUSE_OPEN_KILL_SUIDGID;
	case FUSE_CREATE:
		if (left < sizeof(create_in))
			return 0;
		memcpy(&create_in, arg, sizeof(create_in));
		return create_in.open_flags & FUSE_OPEN_KILL_SUIDGID;
	default:
		return 0;
	}
}

static void
look_at_request(struct rsb_fuse_session *session, const uint8_t *data, size_t size)
{
	struct rsb_fs *fs = session->fs;
	struct fuse_in_header head;

	if (size < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	fs->kernel_kill = kill_flag(data, size, head.opcode);
	fs->stats.requests++;
	if (head.opcode == FUSE_INIT)
		look_at_init(session, data, size);
}

/* The request in shared->request is in hand from now on. */
static void
take_in_hand(struct rsb_fs *fs)
{
	struct rsb_shared *shared = fs->shared;
	struct fuse_in_header head;

	memcpy(&head, shared->request, sizeof(head));
	shared->hand = (struct rsb_shared_flight){ .unique = head.unique };
	rsb_shared_publish(&shared->hand.state, 1);
	fs->hand = &shared->hand;
	fs->n_hand_id = 0;
}

void
rsb_fuse_session_let_go(struct rsb_fuse_session *session)
{
	struct rsb_fs *fs = session->fs;
	struct fuse_in_header *head = (struct fuse_in_header *)(void *)fs->shared->request;

	rsb_shared_publish(&head->unique, 0);
	rsb_shared_publish(&fs->shared->hand.state, 0);
	fs->hand = &fs->shared->hand;
}

/*
 * The kernel tells of one signal for each request: whether a later one killed has to be looked for.
 * How long to wait for the next request, in ms.
 */
static int
watch_callers(struct rsb_fuse_session *session)
{
	struct rsb_fs *fs = session->fs;
	uint64_t now_ns = rsb_now_ns();
	bool watch;

	rsb_mutex_lock(&fs->lock);
	if (fs->watch && now_ns >= session->watched_ns + WATCH_MS * RSB_NSEC_PER_MSEC) {
		session->watched_ns = now_ns;
		rsb_fop_check_interrupted(fs);
	}
	watch = fs->watch;
	rsb_mutex_unlock(&fs->lock);
	return watch ? WATCH_MS : -1;
}

static ssize_t
hook_read(int fd, void *buf, size_t size, void *userdata)
{
	struct rsb_fuse_session *session = session_of(userdata);
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = session->stop_fd, .events = POLLIN },
	};
	int n;

	do
		n = poll(fds, 2, watch_callers(session));
	while (n == 0);
	if (n < 0)
		return -1;
	if (fds[1].revents) {
		errno = ENODEV;
		return -1;
	}
	return read(fd, buf, size);
}

/* ---- what goes to the kernel ---- */

static void
patch_init(const struct rsb_fuse_session *session, const struct iovec *iov, int count)
{
	const uint32_t wanted = FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2;
	struct fuse_init_out *out;

	if (count < 2 || iov[1].iov_len < offsetof(struct fuse_init_out, max_background))
		return;
	out = iov[1].iov_base;
	out->flags |= session->init_flags & wanted;
}

static struct rsb_shared_flight *
flight_of(struct rsb_fs *fs, uint64_t unique)
{
	struct rsb_shared_flight *flight = rsb_ledger_flight_of(fs->ledger, unique);

	return !flight && fs->hand->unique == unique ? fs->hand : flight;
}

static ssize_t
total(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (int i = 0; i < count; i++)
		size += iov[i].iov_len;
	return (ssize_t)size;
}

/*
 * The kernel knows no request of that number: it was answered. If the process before was about to
 * say that it went well, then it did say so, and what that gave the kernel is the kernel's.
 */
static bool
was_said(const struct rsb_shared_flight *flight)
{
	return errno == ENOENT && flight && flight->said_before == RSB_SHARED_SAID_OK;
}

/* Replies are made under the lock of fs. */
static ssize_t
hook_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct rsb_fuse_session *session = session_of(userdata);
	struct rsb_shared_flight *flight = NULL;
	struct fuse_out_header head;
	ssize_t n;

	if (count < 1 || iov[0].iov_len < sizeof(head)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&head, iov[0].iov_base, sizeof(head));
	if (head.unique && head.unique == session->init_unique) {
		session->init_unique = 0;
		if (!head.error) {
			patch_init(session, iov, count);
			session->ready = true;
		}
		if (session->resuming)
			return total(iov, count);
	}
	if (head.unique)
		flight = flight_of(session->fs, head.unique);
	if (flight)
		rsb_shared_publish(
			&flight->said, head.error ? RSB_SHARED_SAID_ERROR : RSB_SHARED_SAID_OK);
	n = writev(fd, iov, count);
	return n < 0 && was_said(flight) ? total(iov, count) : n;
}

/* ---- life ---- */

/*
 * A page that is not there when the kernel copies a request to it has to be got, and who is being
 * killed gets none: then the kernel answers the request with EIO.
 */
static void
populate(struct rsb_shared *shared)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)shared->request & ~(page - 1);
	uintptr_t to = ((uintptr_t)shared->request + USUAL_REQUEST + page - 1) & ~(page - 1);

	/* Before Linux 5.14 it is left to chance. */
	(void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

int
rsb_fuse_session_new(struct rsb_fs *fs, int fd, struct rsb_fuse_session **ret_session)
{
	static const struct fuse_custom_io io = { .read = hook_read, .writev = hook_writev };
	char *argv[] = { (char *)(uintptr_t) "rsb-mount", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	RSB_CLEANUP(rsb_fuse_session_freep)
	struct rsb_fuse_session *session = rsb_new(struct rsb_fuse_session);
	rsb_autoclose int own_fd = fd;
	int r;

	if (!session)
		return -ENOMEM;
	session->fs = fs;
	session->fd = -1;
	session->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->stop_fd < 0)
		return -errno;
	r = rsb_fd_nonblock(own_fd, true);
	if (r < 0)
		return r;
	session->se = fuse_session_new(&args, &rsb_ops_table, sizeof(rsb_ops_table), fs);
	/* What it took is replaced by a copy of its own. */
	fuse_opt_free_args(&args);
	if (!session->se)
		return -ENOMEM;
	r = fuse_session_custom_io(session->se, &io, own_fd);
	if (r != 0)
		return r < 0 ? r : -EINVAL;
	session->fd = rsb_steal_fd(&own_fd);
	session->buf.mem = fs->shared->request;
	populate(fs->shared);
	fs->session = session;
	*ret_session = rsb_steal(&session);
	return 0;
}

static void *
fuse_thread(void *arg)
{
	struct rsb_fuse_session *session = arg;
	struct rsb_fs *fs = session->fs;
	int r = 0;

	while (!fuse_session_exited(session->se)) {
		r = fuse_session_receive_buf(session->se, &session->buf);
		if (r == -EINTR || r == -EAGAIN)
			continue;
		if (r <= 0)
			break;
		rsb_mutex_lock(&fs->lock);
		look_at_request(session, session->buf.mem, session->buf.size);
		take_in_hand(fs);
		fuse_session_process_buf(session->se, &session->buf);
		/* Still under the lock: it may be over at once, and must not be begun again. */
		rsb_fuse_session_let_go(session);
		rsb_mutex_unlock(&fs->lock);
	}
	session->ended(session->arg, r < 0 ? r : 0);
	return NULL;
}

void
rsb_fuse_session_resume(struct rsb_fuse_session *session)
{
	struct rsb_shared_head *head = &session->fs->shared->head;
	struct fuse_buf buf = { .mem = head->init, .size = head->init_size };

	session->resuming = true;
	look_at_init(session, head->init, head->init_size);
	fuse_session_process_buf(session->se, &buf);
	session->resuming = false;
}

void
rsb_fuse_session_again(struct rsb_fuse_session *session, struct rsb_shared_flight *hand,
	uint8_t *data, size_t size)
{
	struct rsb_fs *fs = session->fs;
	struct fuse_buf buf = { .mem = data, .size = size };

	look_at_request(session, data, size);
	fs->hand = hand;
	fs->n_hand_id = 0;
	fuse_session_process_buf(session->se, &buf);
	if (hand == &fs->shared->hand)
		rsb_fuse_session_let_go(session);
	fs->hand = &fs->shared->hand;
}

int
rsb_fuse_session_fd(const struct rsb_fuse_session *session)
{
	return session->fd;
}

void
rsb_fuse_session_refuse(struct rsb_fuse_session *session, uint64_t unique, int error)
{
	const struct fuse_out_header head = {
		.len = sizeof(head),
		.error = -error,
		.unique = unique,
	};

	/* ENOENT: it was answered. */
	(void)!write(session->fd, &head, sizeof(head));
}

int
rsb_fuse_session_start(struct rsb_fuse_session *session, void (*ended)(void *arg, int r), void *arg)
{
	int r;

	session->ended = ended;
	session->arg = arg;
	r = rsb_thread_start("rsb-fuse", fuse_thread, session, &session->thread);
	if (r >= 0)
		session->started = true;
	return r;
}

bool
rsb_fuse_session_ready(struct rsb_fuse_session *session)
{
	bool ready;

	rsb_mutex_lock(&session->fs->lock);
	ready = session->ready;
	rsb_mutex_unlock(&session->fs->lock);
	return ready;
}

void
rsb_fuse_session_free(struct rsb_fuse_session *session)
{
	const uint64_t one = 1;

	if (!session)
		return;
	if (session->started) {
		/* Fails only when it was written before. */
		(void)!write(session->stop_fd, &one, sizeof(one));
		(void)pthread_join(session->thread, NULL);
	}
	if (session->se) {
		/* Replies that come from now on have nobody to go to. */
		rsb_mutex_lock(&session->fs->lock);
		rsb_fop_fail_all(session->fs, -EIO);
		rsb_mutex_unlock(&session->fs->lock);
		fuse_session_destroy(session->se);
		session->fs->session = NULL;
	}
	if (session->stop_fd >= 0)
		(void)close(session->stop_fd);
	free(session);
}
