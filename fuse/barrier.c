/* SPDX-License-Identifier: MIT */
#include "fuse/barrier.h"

#include <errno.h>

#include "fuse/push.h"
#include "fuse/send.h"
#include "fuse/sizes.h"
#include "util/clock.h"
#include "util/list.h"

#define DRAIN_POLL_NS (5 * RSB_NSEC_PER_MSEC)
#define SETTLE_NS RSB_NSEC_PER_SEC

/* One barrier under way: a step ends when the notifier has answered its fence. */
struct rite {
	struct rsb_barrier *barrier;
	struct rsb_list link;
	struct rsb_timer *timer;
	void (*next)(struct rite *rite); /* the step after the fence; NULL: the last was done */
	rsb_barrier_fn done;             /* NULL: told already */
	struct rsb_sizes *sizes;         /* asked for and not there */
	void *arg;
	uint64_t deadline_ns;
	uint64_t forced_ns; /* the deadline without a live link */
	bool failed;
};

struct rsb_barrier {
	struct rsb_fs *fs;
	struct rsb_notify *notify;
	struct rsb_loop *loop;
	struct rsb_list rites;
};

int
rsb_barrier_new(struct rsb_fs *fs, struct rsb_notify *notify, struct rsb_loop *loop,
	struct rsb_barrier **ret_barrier)
{
	struct rsb_barrier *barrier = rsb_new(struct rsb_barrier);

	if (!barrier)
		return -ENOMEM;
	barrier->fs = fs;
	barrier->notify = notify;
	barrier->loop = loop;
	rsb_list_init(&barrier->rites);
	*ret_barrier = barrier;
	return 0;
}

static void
rite_free(struct rite *rite)
{
	rsb_list_remove(&rite->link);
	rsb_sizes_forget(rite->sizes);
	rsb_timer_del(rite->timer);
	free(rite);
}

void
rsb_barrier_free(struct rsb_barrier *barrier)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (!barrier)
		return;
	rsb_list_for_each_safe (pos, tmp, &barrier->rites)
		rite_free(rsb_list_entry(pos, struct rite, link));
	free(barrier);
}

static void
tell(struct rite *rite, bool late)
{
	rsb_barrier_fn done = rite->done;

	rite->done = NULL;
	rsb_timer_set(rite->timer, 0);
	if (done)
		done(rite->arg, late);
}

static void
finish(struct rite *rite)
{
	tell(rite, rite->failed);
	rite_free(rite);
}

static void
on_late(void *arg)
{
	tell(arg, true);
}

static int
rite_new(struct rsb_barrier *barrier, rsb_barrier_fn done, void *arg, struct rite **ret_rite)
{
	struct rite *rite = rsb_new(struct rite);
	int r;

	if (!rite)
		return -ENOMEM;
	r = rsb_timer_new(barrier->loop, on_late, rite, &rite->timer);
	if (r < 0) {
		free(rite);
		return r;
	}
	rite->barrier = barrier;
	rite->done = done;
	rite->arg = arg;
	rite->deadline_ns = rsb_loop_now(barrier->loop) + RSB_BARRIER_MAX_S * RSB_NSEC_PER_SEC;
	rsb_timer_set(rite->timer, rite->deadline_ns);
	rsb_list_append(&barrier->rites, &rite->link);
	*ret_rite = rite;
	return 0;
}

static void
on_fence(void *arg, int r)
{
	struct rite *rite = arg;

	/* The kernel was not told: whoever waits for this is to know. */
	if (r < 0)
		rite->failed = true;
	rite->next(rite);
}

/* next runs when the notifier has done all that was posted so far. */
static void
fence(struct rite *rite, void (*next)(struct rite *rite))
{
	rite->next = next;
	if (!rite->barrier->notify || rsb_notify_fence(rite->barrier->notify, on_fence, rite) < 0)
		next(rite);
}

static void
reclaim_name(void *arg, uint64_t parent_nodeid, struct rsb_bytes name)
{
	/* Over the queue's maximum the fence behind fails as well. */
	(void)rsb_notify_entry(arg, parent_nodeid, name.data, name.size);
}

/* Files that somebody has open may have pages, dirty ones when they can be written. */
static void
post_open_files(struct rsb_barrier *barrier, bool writers_only)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	if (!barrier->notify)
		return;
	while ((handle = rsb_handle_next(barrier->fs->handles, &cursor))) {
		const struct rsb_inode *inode = handle->inode;

		if (S_ISREG(inode->attr.mode) && (!writers_only || rsb_handle_writes(handle)))
			(void)rsb_notify_inode(barrier->notify, inode->nodeid, true);
	}
}

/*
 * Who had an expired name looked up again takes the answer's lifetime without a lock, perhaps only
 * after we told that the name has expired: so names given a moment ago are told once more with the
 * next barrier. What is invalidated is gone, whatever lifetime it gets.
 */
static void
post_names(struct rsb_barrier *barrier)
{
	struct rsb_fs *fs = barrier->fs;
	uint64_t until_ns = fs->kernel_expires ? rsb_now_ns() - SETTLE_NS : UINT64_MAX;

	if (barrier->notify)
		rsb_names_reclaim(fs->names, until_ns, reclaim_name, barrier->notify);
}

/* Everything that the kernel was told it might keep. */
static void
post_all_kept(struct rsb_barrier *barrier)
{
	struct rsb_fs *fs = barrier->fs;
	struct rsb_inode *inode;
	size_t cursor = 0;

	if (!barrier->notify)
		return;
	post_names(barrier);
	while ((inode = rsb_inode_next(fs->inodes, &cursor))) {
		if (!inode->kernel_gen)
			continue;
		inode->kernel_gen = 0;
		/* A directory's pages are its cached listing. */
		(void)rsb_notify_inode(barrier->notify, inode->nodeid, S_ISDIR(inode->attr.mode));
	}
}

/* ---- enter ---- */

static void
enter_sent(struct rite *rite)
{
	struct rsb_fs *fs = rite->barrier->fs;

	/* What was written while the kernel was told. */
	rsb_mutex_lock(&fs->lock);
	rsb_push_all(fs);
	rsb_mutex_unlock(&fs->lock);
	finish(rite);
}

static void
enter_written_back(struct rite *rite)
{
	struct rsb_fs *fs = rite->barrier->fs;

	rsb_mutex_lock(&fs->lock);
	rsb_push_all(fs);
	post_all_kept(rite->barrier);
	rsb_mutex_unlock(&fs->lock);
	fence(rite, enter_sent);
}

int
rsb_barrier_enter(struct rsb_barrier *barrier, rsb_barrier_fn done, void *arg)
{
	struct rsb_fs *fs = barrier->fs;
	struct rite *rite;
	int r;

	r = rite_new(barrier, done, arg, &rite);
	if (r < 0)
		return r;
	rsb_mutex_lock(&fs->lock);
	/* First of all: what is told from now on is not to be kept. */
	rsb_fs_foreign_begin_locked(fs);
	post_open_files(barrier, true);
	rsb_mutex_unlock(&fs->lock);
	fence(rite, enter_written_back);
	return 0;
}

/* ---- show, leave ---- */

static void
on_sizes(void *arg)
{
	struct rite *rite = arg;

	rite->sizes = NULL;
	fence(rite, finish);
}

/* The last step but one. */
static void
ask_sizes(struct rite *rite)
{
	struct rsb_barrier *barrier = rite->barrier;

	/* Without memory for it the kernel learns them when it asks. */
	if (!barrier->notify ||
		rsb_sizes_ask(barrier->fs, barrier->loop, on_sizes, rite, &rite->sizes) < 0)
		fence(rite, finish);
}

static void
left(struct rite *rite)
{
	struct rsb_fs *fs = rite->barrier->fs;

	rsb_mutex_lock(&fs->lock);
	rsb_fs_foreign_end_locked(fs);
	rsb_mutex_unlock(&fs->lock);
	ask_sizes(rite);
}

int
rsb_barrier_show(struct rsb_barrier *barrier, rsb_barrier_fn done, void *arg)
{
	struct rite *rite;
	int r;

	r = rite_new(barrier, done, arg, &rite);
	if (r < 0)
		return r;
	rsb_mutex_lock(&barrier->fs->lock);
	post_open_files(barrier, false);
	rsb_mutex_unlock(&barrier->fs->lock);
	ask_sizes(rite);
	return 0;
}

void
rsb_barrier_leave(struct rsb_barrier *barrier)
{
	struct rsb_fs *fs = barrier->fs;
	struct rite *rite;

	/* What a process left behind by a command did after its status was told. */
	if (rite_new(barrier, NULL, NULL, &rite) < 0) {
		/* Without memory for the barrier the cache stays off, which is never wrong. */
		return;
	}
	rsb_mutex_lock(&fs->lock);
	post_open_files(barrier, false);
	post_names(barrier);
	rsb_mutex_unlock(&fs->lock);
	fence(rite, left);
}

void
rsb_barrier_reset(struct rsb_barrier *barrier)
{
	struct rsb_fs *fs = barrier->fs;

	rsb_mutex_lock(&fs->lock);
	rsb_fs_drop_locked(fs);
	post_open_files(barrier, false);
	post_all_kept(barrier);
	rsb_mutex_unlock(&fs->lock);
}

static void
ignore_epoch(void *arg, int r)
{
	(void)arg;
	(void)r;
}

void
rsb_barrier_revived(struct rsb_barrier *barrier)
{
	/* Which names were told by the one before nobody knows. */
	if (barrier->notify && !barrier->fs->shared->head.no_epoch)
		(void)rsb_notify_epoch(barrier->notify, ignore_epoch, NULL);
	rsb_barrier_reset(barrier);
}

/* ---- attach ---- */

static void
on_epoch_probed(void *arg, int r)
{
	struct rsb_fs *fs = arg;

	rsb_mutex_lock(&fs->lock);
	fs->shared->head.no_epoch = r < 0;
	rsb_mutex_unlock(&fs->lock);
}

void
rsb_barrier_attach(struct rsb_barrier *barrier)
{
	/* It makes directories unreachable for a moment: once is enough in the life of a mount. */
	if (barrier->notify && barrier->fs->shared->head.no_epoch)
		(void)rsb_notify_epoch(barrier->notify, on_epoch_probed, barrier->fs);
}

/* ---- drain ---- */

static void
on_drain_poll(void *arg)
{
	struct rite *rite = arg;
	struct rsb_fs *fs = rite->barrier->fs;
	uint64_t now_ns = rsb_loop_now(rite->barrier->loop);
	bool idle, hope;

	rsb_mutex_lock(&fs->lock);
	rsb_push_all(fs);
	rsb_send_flush_forgets(fs->send);
	idle = rsb_fs_idle_locked(fs);
	hope = now_ns < (fs->cache.link_live ? rite->deadline_ns : rite->forced_ns);
	rsb_mutex_unlock(&fs->lock);
	/* What the keeper gave up will not arrive, however long one waits. */
	if (!idle && hope && rsb_link_state(fs->link) != RSB_LINK_FAILED) {
		rsb_timer_set(rite->timer, now_ns + DRAIN_POLL_NS);
		return;
	}
	tell(rite, !idle);
	rite_free(rite);
}

int
rsb_barrier_drain(struct rsb_barrier *barrier, bool forced, rsb_barrier_fn done, void *arg)
{
	uint64_t now_ns = rsb_loop_now(barrier->loop);
	struct rite *rite = rsb_new(struct rite);
	int r;

	if (!rite)
		return -ENOMEM;
	rsb_list_init(&rite->link);
	r = rsb_timer_new(barrier->loop, on_drain_poll, rite, &rite->timer);
	if (r < 0) {
		free(rite);
		return r;
	}
	rite->barrier = barrier;
	rite->done = done;
	rite->arg = arg;
	rite->deadline_ns = now_ns + RSB_BARRIER_DRAIN_S * RSB_NSEC_PER_SEC;
	rite->forced_ns =
		forced ? now_ns + RSB_BARRIER_FORCED_S * RSB_NSEC_PER_SEC : rite->deadline_ns;
	rsb_list_append(&barrier->rites, &rite->link);
	rsb_timer_set(rite->timer, now_ns + 1);
	return 0;
}
