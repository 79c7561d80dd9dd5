/* SPDX-License-Identifier: MIT */
#include "sidecar/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "sidecar/holder.h"
#include "sidecar/sess.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/list.h"
#include "util/thread.h"

#define RETRY_MIN_NS RSB_NSEC_PER_MSEC
#define RETRY_MAX_NS (50 * RSB_NSEC_PER_MSEC)
#define CHECK_NS RSB_NSEC_PER_SEC /* between looks for circles over processes here */
#define TEXT_MAX ((size_t)1 << 20)

struct waiter {
	struct rsb_list link;
	struct rsb_request *rq;
	struct rsb_fh_use use;
	struct rsb_lock lock;
	const struct rsb_root *root;
	int result; /* once it no longer waits */
};

struct rsb_locks {
	struct rsb_mutex lock;
	struct rsb_cond changed;
	struct rsb_list holders; /* {lock} */
	size_t n_holder;         /* {lock} */
	struct rsb_list waiters; /* {lock} the first came first */
	size_t n_waiter;         /* {lock} */
	uint64_t retry_ns;       /* {lock} */
	uint64_t check_ns;       /* {lock} when circles are looked for next */
	bool flocked;            /* {lock} some open file may have a lock of flock(2) */
	bool kicked;             /* {lock} something of ours was unlocked */
	bool stopping;           /* {lock} */
	pthread_t thread;        /* const */
};

static int
holder_locked(struct rsb_locks *locks, const struct rsb_root *root, const struct rsb_fh *file,
	uint64_t owner, struct rsb_holder **ret)
{
	struct rsb_holder *h = rsb_holder_find(&locks->holders, file, owner);

	if (h) {
		*ret = h;
		return 0;
	}
	if (locks->n_holder >= RSB_FHS_MAX)
		return -ENOLCK;
	int r = rsb_holder_new(root, file, owner, &h);
	if (r < 0)
		return r;
	rsb_list_append(&locks->holders, &h->link);
	locks->n_holder++;
	*ret = h;
	return 0;
}

static void
kick_locked(struct rsb_locks *locks)
{
	locks->kicked = true;
	rsb_cond_signal(&locks->changed);
}

/*
 * Unlocks at once, so that the owner may lock anew before the descriptor is closed; that is left to
 * rsb_holders_free().
 */
static void
retire_locked(struct rsb_locks *locks, struct rsb_holder *h, struct rsb_list *dead)
{
	struct flock fl = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	(void)fcntl(h->fd, F_OFD_SETLK, &fl); /* else it ends with the descriptor */
	rsb_list_remove(&h->link);
	locks->n_holder--;
	rsb_list_append(dead, &h->link);
	kick_locked(locks);
}

static int
set_flock_locked(struct rsb_locks *locks, const struct rsb_fh *file, short type)
{
	int op = type == F_UNLCK ? LOCK_UN : type == F_RDLCK ? LOCK_SH : LOCK_EX;

	if (flock(file->fd, op | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	locks->flocked |= type != F_UNLCK;
	/* One that was exclusive may have become shared. */
	if (type != F_WRLCK)
		kick_locked(locks);
	return 0;
}

static int
set_locked(struct rsb_locks *locks, const struct rsb_root *root, const struct rsb_fh *file,
	const struct rsb_lock *lock)
{
	struct flock fl = rsb_holder_flock(lock);
	struct rsb_holder *h;
	int r;

	if (lock->kind == RSB_LOCK_FLOCK)
		return set_flock_locked(locks, file, lock->type);
	if (lock->type == F_UNLCK && !rsb_holder_find(&locks->holders, file, lock->owner))
		return 0;
	r = holder_locked(locks, root, file, lock->owner, &h);
	if (r < 0)
		return r;
	h->pid = lock->pid;
	if (fcntl(h->fd, F_OFD_SETLK, &fl) < 0)
		return errno == EACCES ? -EAGAIN : -errno;
	if (lock->type != F_WRLCK)
		kick_locked(locks);
	return 0;
}

/* ---- circles ---- */

/* Of the holders only those that wait themselves, and the owner, are of interest. */
static void
tell_locked(const struct rsb_locks *locks, uint64_t owner, struct rsb_lockgraph *graph)
{
	rsb_autofree char *text = NULL;
	struct rsb_list *pos;

	if (rsb_fd_read_file(AT_FDCWD, "/proc/locks", TEXT_MAX, &text) == 0)
		rsb_lockgraph_add_processes(graph, text);
	rsb_list_for_each (pos, &locks->waiters) {
		const struct waiter *w = rsb_list_entry(pos, struct waiter, link);
		const struct rsb_lockgraph_lock want = rsb_holder_want(w->use.file, &w->lock);

		if (w->lock.kind == RSB_LOCK_POSIX)
			rsb_lockgraph_add_wait(graph, w->lock.owner, &want);
	}
	rsb_list_for_each (pos, &locks->holders) {
		const struct rsb_holder *h = rsb_list_entry(pos, struct rsb_holder, link);

		if (h->owner == owner || rsb_lockgraph_waits(graph, h->owner))
			rsb_holder_tell(h, graph);
	}
}

static bool
closes_circle_locked(
	const struct rsb_locks *locks, const struct rsb_fh *file, const struct rsb_lock *lock)
{
	RSB_CLEANUP(rsb_lockgraph_done) struct rsb_lockgraph graph = { .n_hold = 0 };
	const struct rsb_lockgraph_lock want = rsb_holder_want(file, lock);

	if (lock->kind != RSB_LOCK_POSIX || rsb_lockgraph_init(&graph) < 0)
		return false;
	tell_locked(locks, lock->owner, &graph);
	return rsb_lockgraph_closes(&graph, lock->owner, &want);
}

/* ---- waiting ---- */

static void
answer(struct rsb_list *list)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, list) {
		struct waiter *w = rsb_list_entry(pos, struct waiter, link);

		rsb_fh_use_done(&w->use);
		rsb_request_reply(w->rq, w->result, NULL);
		free(w);
	}
}

/* It waits no longer; answer() follows after the lock was given back. */
static void
end_wait_locked(struct rsb_locks *locks, struct waiter *w, int result, struct rsb_list *ended)
{
	w->result = result;
	rsb_list_remove(&w->link);
	locks->n_waiter--;
	rsb_list_append(ended, &w->link);
}

/* A process of the sandbox closes a circle without a word to us. One wait ends at a time. */
static void
break_circle_locked(struct rsb_locks *locks, struct rsb_list *ended)
{
	RSB_CLEANUP(rsb_lockgraph_done) struct rsb_lockgraph graph = { .n_hold = 0 };
	struct rsb_list *pos;

	if (rsb_lockgraph_init(&graph) < 0)
		return;
	tell_locked(locks, 0, &graph);
	if (!rsb_lockgraph_process_waits(&graph))
		return;
	rsb_list_for_each (pos, &locks->waiters) {
		struct waiter *w = rsb_list_entry(pos, struct waiter, link);
		const struct rsb_lockgraph_lock want = rsb_holder_want(w->use.file, &w->lock);

		if (w->lock.kind != RSB_LOCK_POSIX ||
			!rsb_lockgraph_closes(&graph, w->lock.owner, &want))
			continue;
		end_wait_locked(locks, w, -EDEADLK, ended);
		return;
	}
}

static void
retry_locked(struct rsb_locks *locks, struct rsb_list *ended)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &locks->waiters) {
		struct waiter *w = rsb_list_entry(pos, struct waiter, link);
		int r = set_locked(locks, w->root, w->use.file, &w->lock);

		if (r != -EAGAIN)
			end_wait_locked(locks, w, r, ended);
	}
	if (rsb_list_empty(&locks->waiters) || rsb_now_ns() < locks->check_ns)
		return;
	locks->check_ns = rsb_now_ns() + CHECK_NS;
	break_circle_locked(locks, ended);
}

/* Until there is a reason to try again. */
static void
pause_locked(struct rsb_locks *locks) RSB_REQUIRES(locks->lock)
{
	uint64_t deadline_ns = rsb_now_ns() + locks->retry_ns;

	while (!locks->stopping && !locks->kicked) {
		if (rsb_list_empty(&locks->waiters))
			rsb_cond_wait(&locks->changed, &locks->lock);
		else if (rsb_cond_wait_until(&locks->changed, &locks->lock, deadline_ns) < 0)
			break;
	}
	locks->retry_ns = locks->kicked ? RETRY_MIN_NS : rsb_min(2 * locks->retry_ns, RETRY_MAX_NS);
	locks->kicked = false;
}

static void *
run(void *arg)
{
	struct rsb_locks *locks = arg;

	rsb_mutex_lock(&locks->lock);
	while (!locks->stopping) {
		struct rsb_list ended;

		pause_locked(locks);
		rsb_list_init(&ended);
		retry_locked(locks, &ended);
		if (rsb_list_empty(&ended))
			continue;
		rsb_mutex_unlock(&locks->lock);
		answer(&ended);
		rsb_mutex_lock(&locks->lock);
	}
	rsb_mutex_unlock(&locks->lock);
	return NULL;
}

int
rsb_locks_new(struct rsb_locks **ret_locks)
{
	struct rsb_locks *locks = rsb_new(struct rsb_locks);

	if (!locks)
		return -ENOMEM;
	rsb_mutex_init(&locks->lock);
	rsb_cond_init(&locks->changed);
	rsb_list_init(&locks->holders);
	rsb_list_init(&locks->waiters);
	locks->retry_ns = RETRY_MIN_NS;
	int r = rsb_thread_start("rsb-locks", run, locks, &locks->thread);
	if (r < 0) {
		rsb_cond_done(&locks->changed);
		rsb_mutex_done(&locks->lock);
		free(locks);
		return r;
	}
	*ret_locks = locks;
	return 0;
}

void
rsb_locks_free(struct rsb_locks *locks)
{
	struct rsb_list ended;

	if (!locks)
		return;
	rsb_mutex_lock(&locks->lock);
	locks->stopping = true;
	rsb_cond_signal(&locks->changed);
	rsb_mutex_unlock(&locks->lock);
	(void)pthread_join(locks->thread, NULL);

	rsb_list_init(&ended);
	while (!rsb_list_empty(&locks->waiters))
		end_wait_locked(locks, rsb_list_entry(locks->waiters.next, struct waiter, link),
			-EINTR, &ended);
	answer(&ended);
	rsb_holders_free(&locks->holders);
	rsb_cond_done(&locks->changed);
	rsb_mutex_done(&locks->lock);
	free(locks);
}

int
rsb_locks_set(struct rsb_locks *locks, const struct rsb_root *root, const struct rsb_fh *file,
	const struct rsb_lock *lock)
{
	rsb_mutex_lock(&locks->lock);
	int r = set_locked(locks, root, file, lock);
	rsb_mutex_unlock(&locks->lock);
	return r;
}

/* On the io thread. Not found: its answer is on the way. */
static void
cancel(struct rsb_request *rq)
{
	struct rsb_locks *locks = rq->sess->locks;
	struct rsb_list ended, *pos, *tmp;

	rsb_list_init(&ended);
	rsb_mutex_lock(&locks->lock);
	rsb_list_for_each_safe (pos, tmp, &locks->waiters) {
		struct waiter *w = rsb_list_entry(pos, struct waiter, link);

		if (w->rq == rq)
			end_wait_locked(locks, w, -EINTR, &ended);
	}
	rsb_mutex_unlock(&locks->lock);
	answer(&ended);
}

int
rsb_locks_wait(struct rsb_locks *locks, const struct rsb_root *root, struct rsb_fh_use *use,
	const struct rsb_lock *lock, struct rsb_request *rq)
{
	rsb_autofree struct waiter *w = rsb_new(struct waiter);

	if (!w)
		return -ENOMEM;
	*w = (struct waiter){ .rq = rq, .use = *use, .lock = *lock, .root = root };
	rsb_list_init(&w->link);
	rsb_mutex_lock(&locks->lock);
	int r = set_locked(locks, root, use->file, lock);
	if (r == -EAGAIN && locks->n_waiter >= RSB_LOCKS_WAITING_MAX)
		r = -ENOLCK;
	else if (r == -EAGAIN && closes_circle_locked(locks, use->file, lock))
		r = -EDEADLK;
	else if (r == -EAGAIN)
		r = rsb_request_waits(rq, cancel);
	else if (r == 0)
		r = 1;
	if (r == 0) {
		rsb_list_append(&locks->waiters, &w->link);
		locks->n_waiter++;
		use->file = NULL;
		(void)rsb_steal(&w);
		kick_locked(locks);
	}
	rsb_mutex_unlock(&locks->lock);
	return r;
}

int
rsb_locks_test(struct rsb_locks *locks, const struct rsb_fh *file, const struct rsb_lock *lock,
	struct rsb_getlk_rep *ret_rep)
{
	if (lock->kind != RSB_LOCK_POSIX || lock->type == F_UNLCK)
		return -EINVAL;
	rsb_mutex_lock(&locks->lock);
	int r = rsb_holder_test(&locks->holders, file, lock, ret_rep);
	rsb_mutex_unlock(&locks->lock);
	return r;
}

void
rsb_locks_drop(struct rsb_locks *locks, const struct rsb_fh *file, uint64_t owner)
{
	struct rsb_list dead;

	rsb_list_init(&dead);
	rsb_mutex_lock(&locks->lock);
	struct rsb_holder *h = rsb_holder_find(&locks->holders, file, owner);
	if (h)
		retire_locked(locks, h, &dead);
	rsb_mutex_unlock(&locks->lock);
	rsb_holders_free(&dead);
}

/* What was locked through file, or (NULL) at all, and what waits, which is answered with result. */
static void
end_locked(struct rsb_locks *locks, const struct rsb_fh *file, int result, struct rsb_list *dead,
	struct rsb_list *ended)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &locks->waiters) {
		struct waiter *w = rsb_list_entry(pos, struct waiter, link);

		if (!file || w->use.file == file)
			end_wait_locked(locks, w, result, ended);
	}
	rsb_list_for_each_safe (pos, tmp, &locks->holders) {
		struct rsb_holder *h = rsb_list_entry(pos, struct rsb_holder, link);

		if (!file || h->fh == file->fh)
			retire_locked(locks, h, dead);
	}
	kick_locked(locks);
}

void
rsb_locks_release(struct rsb_locks *locks, const struct rsb_fh *file)
{
	struct rsb_list dead, ended;

	rsb_list_init(&dead);
	rsb_list_init(&ended);
	rsb_mutex_lock(&locks->lock);
	/* It would end when the file is closed, without anybody being told. */
	(void)flock(file->fd, LOCK_UN);
	end_locked(locks, file, -EBADF, &dead, &ended);
	rsb_mutex_unlock(&locks->lock);
	rsb_holders_free(&dead);
	answer(&ended);
}

bool
rsb_locks_give_up(struct rsb_locks *locks, struct rsb_fhs *fhs)
{
	struct rsb_list dead, ended;

	rsb_mutex_lock(&locks->lock);
	bool flocked = locks->flocked;
	locks->flocked = false;
	rsb_mutex_unlock(&locks->lock);
	if (flocked)
		rsb_fhs_unlock_all(fhs);
	rsb_list_init(&dead);
	rsb_list_init(&ended);
	rsb_mutex_lock(&locks->lock);
	bool any = flocked || locks->n_holder > 0;
	end_locked(locks, NULL, -EAGAIN, &dead, &ended);
	rsb_mutex_unlock(&locks->lock);
	rsb_holders_free(&dead);
	answer(&ended);
	return any;
}

void
rsb_locks_stats(struct rsb_locks *locks, struct rsb_locks_stats *ret_stats)
{
	rsb_mutex_lock(&locks->lock);
	*ret_stats = (struct rsb_locks_stats){
		.n_holder = locks->n_holder,
		.n_waiting = locks->n_waiter,
	};
	rsb_mutex_unlock(&locks->lock);
}
