/* SPDX-License-Identifier: MIT */
#include "util/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "util/cleanup.h"
#include "util/list.h"
#include "util/thread.h"

#define BATCH 64
#define HEAP_MIN ((size_t)16)
#define HEAP_NONE SIZE_MAX

struct rsb_source {
	struct rsb_loop *loop;
	struct rsb_list node; /* in sources, or in dead once deleted */
	int fd;
	uint32_t events; /* as epoll has them */
	bool deleted;
	rsb_source_fn fn;
	void *arg;
};

struct rsb_timer {
	struct rsb_loop *loop;
	struct rsb_list node;
	struct rsb_list due; /* linked between the heap and the call */
	uint64_t deadline_ns;
	size_t at; /* index in the heap; HEAP_NONE: not armed */
	rsb_timer_fn fn;
	void *arg;
};

/*
 * A batch of epoll_wait(2) may name a source that an earlier callback of the same batch
 * deleted. So a deleted source stays readable until no dispatch is on the stack. Timers need no
 * such care: nothing refers to one when it fires.
 *
 * The heap has a place for every timer that exists, so that arming one cannot fail.
 */
struct rsb_loop {
	const struct rsb_clock *clock; /* {const after new} */
	int epoll_fd;                  /* {const after new} */
	int wake_fd;                   /* {const after new} eventfd: a first task, or stop */
	bool stop;                     /* atomic */
	uintptr_t runner;              /* atomic: the thread that dispatches; 0: none */
	unsigned int depth;            /* {loop thread} dispatches on the stack */
	struct rsb_list sources;       /* {loop thread} */
	struct rsb_list dead;          /* {loop thread} */
	struct rsb_list timers;        /* {loop thread} */
	struct rsb_list due;           /* {loop thread} */
	struct rsb_timer **heap;       /* {loop thread} */
	size_t n_heap;                 /* {loop thread} */
	size_t n_timer;                /* {loop thread} */
	size_t cap_heap;               /* {loop thread} >= n_timer */
	struct rsb_mutex lock;
	struct rsb_task *first; /* {lock} */
	struct rsb_task *last;  /* {lock} */
	size_t n_task;          /* {lock} */
};

int
rsb_loop_new(const struct rsb_clock *clock, struct rsb_loop **ret_loop)
{
	RSB_CLEANUP(rsb_loop_freep) struct rsb_loop *loop = rsb_new(struct rsb_loop);
	struct epoll_event event = { .events = EPOLLIN };

	if (!loop)
		return -ENOMEM;
	loop->clock = clock;
	loop->epoll_fd = -1;
	loop->wake_fd = -1;
	rsb_list_init(&loop->sources);
	rsb_list_init(&loop->dead);
	rsb_list_init(&loop->timers);
	rsb_list_init(&loop->due);
	rsb_mutex_init(&loop->lock);

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake_fd < 0)
		return -errno;
	/* data.ptr NULL: no source, the wake descriptor */
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) < 0)
		return -errno;
	*ret_loop = rsb_steal(&loop);
	return 0;
}

static void
free_sources(struct rsb_list *list)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, list)
		free(rsb_list_entry(pos, struct rsb_source, node));
	rsb_list_init(list);
}

void
rsb_loop_free(struct rsb_loop *loop)
{
	struct rsb_list *pos, *tmp;

	if (!loop)
		return;
	assert(loop->depth == 0);
	free_sources(&loop->sources);
	free_sources(&loop->dead);
	rsb_list_for_each_safe (pos, tmp, &loop->timers)
		free(rsb_list_entry(pos, struct rsb_timer, node));
	free(loop->heap);
	rsb_cleanup_close(&loop->wake_fd);
	rsb_cleanup_close(&loop->epoll_fd);
	rsb_mutex_done(&loop->lock);
	free(loop);
}

uint64_t
rsb_loop_now(const struct rsb_loop *loop)
{
	return rsb_clock_now(loop->clock);
}

int
rsb_loop_add(struct rsb_loop *loop, int fd, uint32_t events, rsb_source_fn fn, void *arg,
	struct rsb_source **ret_source)
{
	rsb_autofree struct rsb_source *source = rsb_new(struct rsb_source);
	struct epoll_event event = { .events = events };

	if (!source)
		return -ENOMEM;
	event.data.ptr = source;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	source->loop = loop;
	source->fd = fd;
	source->events = events;
	source->fn = fn;
	source->arg = arg;
	rsb_list_append(&loop->sources, &source->node);
	*ret_source = rsb_steal(&source);
	return 0;
}

int
rsb_source_set(struct rsb_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (events == source->events)
		return 0;
	if (epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0)
		return -errno;
	source->events = events;
	return 0;
}

void
rsb_source_del(struct rsb_source *source)
{
	struct rsb_loop *loop;

	if (!source)
		return;
	loop = source->loop;
	assert(!source->deleted);
	/* EBADF when the caller closed it first: then epoll has forgotten it already */
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	rsb_list_remove(&source->node);
	if (loop->depth == 0) {
		free(source);
		return;
	}
	source->deleted = true;
	rsb_list_append(&loop->dead, &source->node);
}

static void
heap_put(struct rsb_loop *loop, size_t at, struct rsb_timer *timer)
{
	loop->heap[at] = timer;
	timer->at = at;
}

static void
heap_up(struct rsb_loop *loop, struct rsb_timer *timer)
{
	size_t at = timer->at;

	while (at > 0 && loop->heap[(at - 1) / 2]->deadline_ns > timer->deadline_ns) {
		heap_put(loop, at, loop->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(loop, at, timer);
}

static void
heap_down(struct rsb_loop *loop, struct rsb_timer *timer)
{
	size_t at = timer->at;
	size_t child;

	for (;;) {
		child = 2 * at + 1;
		if (child >= loop->n_heap)
			break;
		if (child + 1 < loop->n_heap &&
			loop->heap[child + 1]->deadline_ns < loop->heap[child]->deadline_ns)
			child++;
		if (loop->heap[child]->deadline_ns >= timer->deadline_ns)
			break;
		heap_put(loop, at, loop->heap[child]);
		at = child;
	}
	heap_put(loop, at, timer);
}

static void
disarm(struct rsb_timer *timer)
{
	struct rsb_loop *loop = timer->loop;
	struct rsb_timer *last;

	rsb_list_remove(&timer->due);
	if (timer->at == HEAP_NONE)
		return;
	last = loop->heap[--loop->n_heap];
	if (last != timer) {
		heap_put(loop, timer->at, last);
		heap_up(loop, last);
		heap_down(loop, last);
	}
	timer->at = HEAP_NONE;
}

int
rsb_timer_new(struct rsb_loop *loop, rsb_timer_fn fn, void *arg, struct rsb_timer **ret_timer)
{
	rsb_autofree struct rsb_timer *timer = rsb_new(struct rsb_timer);
	struct rsb_timer **heap;
	size_t cap;

	if (!timer)
		return -ENOMEM;
	if (loop->n_timer == loop->cap_heap) {
		cap = rsb_max(HEAP_MIN, loop->cap_heap * 2);
		heap = reallocarray(loop->heap, cap, sizeof(struct rsb_timer *));
		if (!heap)
			return -ENOMEM;
		loop->heap = heap;
		loop->cap_heap = cap;
	}
	timer->loop = loop;
	timer->at = HEAP_NONE;
	rsb_list_init(&timer->due);
	timer->fn = fn;
	timer->arg = arg;
	rsb_list_append(&loop->timers, &timer->node);
	loop->n_timer++;
	*ret_timer = rsb_steal(&timer);
	return 0;
}

void
rsb_timer_set(struct rsb_timer *timer, uint64_t deadline_ns)
{
	struct rsb_loop *loop = timer->loop;

	disarm(timer);
	timer->deadline_ns = deadline_ns;
	if (deadline_ns == 0)
		return;
	timer->at = loop->n_heap++;
	heap_up(loop, timer);
}

void
rsb_timer_del(struct rsb_timer *timer)
{
	if (!timer)
		return;
	disarm(timer);
	timer->loop->n_timer--;
	rsb_list_remove(&timer->node);
	free(timer);
}

static void
wake(struct rsb_loop *loop)
{
	/* EAGAIN: the counter is full, so the loop will wake all the same */
	(void)eventfd_write(loop->wake_fd, 1);
}

static uintptr_t
self(void)
{
	return (uintptr_t)pthread_self();
}

void
rsb_loop_post(struct rsb_loop *loop, struct rsb_task *task)
{
	bool first;

	rsb_mutex_lock(&loop->lock);
	first = !loop->first;
	if (!task->posted) {
		task->posted = true;
		task->next = NULL;
		if (first)
			loop->first = task;
		else
			loop->last->next = task;
		loop->last = task;
		loop->n_task++;
	}
	rsb_mutex_unlock(&loop->lock);
	/* Whoever dispatches looks for tasks before it waits. */
	if (first && __atomic_load_n(&loop->runner, __ATOMIC_RELAXED) != self())
		wake(loop);
}

void
rsb_loop_unpost(struct rsb_loop *loop, struct rsb_task *task)
{
	struct rsb_task *prev = NULL;
	struct rsb_task *pos;

	rsb_mutex_lock(&loop->lock);
	for (pos = loop->first; pos && pos != task; pos = pos->next)
		prev = pos;
	if (pos) {
		if (prev)
			prev->next = task->next;
		else
			loop->first = task->next;
		if (loop->last == task)
			loop->last = prev;
		task->posted = false;
		loop->n_task--;
	}
	rsb_mutex_unlock(&loop->lock);
}

static struct rsb_task *
take_task(struct rsb_loop *loop)
{
	struct rsb_task *task;

	rsb_mutex_lock(&loop->lock);
	task = loop->first;
	if (task) {
		loop->first = task->next;
		if (!loop->first)
			loop->last = NULL;
		loop->n_task--;
		task->posted = false;
	}
	rsb_mutex_unlock(&loop->lock);
	return task;
}

static size_t
count_tasks(struct rsb_loop *loop)
{
	size_t n;

	rsb_mutex_lock(&loop->lock);
	n = loop->n_task;
	rsb_mutex_unlock(&loop->lock);
	return n;
}

/* Only as many as there were: one that posts itself must not keep the descriptors waiting. */
static void
run_tasks(struct rsb_loop *loop)
{
	struct rsb_task *task;
	size_t n;

	for (n = count_tasks(loop); n > 0; n--) {
		task = take_task(loop);
		if (!task)
			return;
		task->fn(task);
	}
}

/* Likewise: one that is set again to a time that has passed fires in the next round. */
static void
run_timers(struct rsb_loop *loop)
{
	uint64_t now_ns = rsb_clock_now(loop->clock);
	struct rsb_timer *timer;

	while (loop->n_heap > 0 && loop->heap[0]->deadline_ns <= now_ns) {
		timer = loop->heap[0];
		disarm(timer);
		rsb_list_append(&loop->due, &timer->due);
	}
	while (!rsb_list_empty(&loop->due)) {
		timer = rsb_list_entry(loop->due.next, struct rsb_timer, due);
		rsb_list_remove(&timer->due);
		timer->fn(timer->arg);
	}
}

/* timeout_ms, or less if a task or a timer comes first. */
static int
wait_ms(struct rsb_loop *loop, int timeout_ms)
{
	uint64_t now_ns, left_ms;

	/* A task posted after this look finds the list empty and so writes to wake_fd. */
	if (count_tasks(loop) > 0)
		return 0;
	if (loop->n_heap == 0)
		return timeout_ms;
	now_ns = rsb_clock_now(loop->clock);
	if (loop->heap[0]->deadline_ns <= now_ns)
		return 0;
	/* Rounded up, else the loop would spin through the last fraction. */
	left_ms = (loop->heap[0]->deadline_ns - now_ns - 1) / RSB_NSEC_PER_MSEC + 1;
	if (timeout_ms >= 0 && (uint64_t)timeout_ms < left_ms)
		return timeout_ms;
	return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static void
run_sources(struct rsb_loop *loop, const struct epoll_event *events, int n)
{
	struct rsb_source *source;
	eventfd_t count;
	int i;

	for (i = 0; i < n; i++) {
		source = events[i].data.ptr;
		if (!source)
			(void)eventfd_read(loop->wake_fd, &count); /* level-triggered: reset it */
		else if (!source->deleted)
			source->fn(source->arg, events[i].events);
	}
}

int
rsb_loop_step(struct rsb_loop *loop, int timeout_ms)
{
	struct epoll_event events[BATCH];
	int n;

	n = epoll_wait(loop->epoll_fd, events, BATCH, wait_ms(loop, timeout_ms));
	if (n < 0 && errno != EINTR)
		return -errno;
	loop->depth++;
	__atomic_store_n(&loop->runner, self(), __ATOMIC_RELAXED);
	run_sources(loop, events, n);
	run_timers(loop);
	run_tasks(loop);
	loop->depth--;
	if (loop->depth == 0) {
		__atomic_store_n(&loop->runner, 0, __ATOMIC_RELAXED);
		free_sources(&loop->dead);
	}
	return 0;
}

int
rsb_loop_run(struct rsb_loop *loop)
{
	int r;

	while (!__atomic_exchange_n(&loop->stop, false, __ATOMIC_ACQ_REL)) {
		r = rsb_loop_step(loop, -1);
		if (r < 0)
			return r;
	}
	return 0;
}

void
rsb_loop_stop(struct rsb_loop *loop)
{
	__atomic_store_n(&loop->stop, true, __ATOMIC_RELEASE);
	wake(loop);
}
