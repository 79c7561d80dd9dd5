/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/children.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "util/cleanup.h"

#include "sidecar/envd/child.h"

static struct rsb_child *
find_locked(struct rsb_children *children, const struct rsb_children_key *key)
	RSB_REQUIRES(children->lock)
{
	struct rsb_list *pos;

	/* The newest first: a remembered process may have had the same pid. */
	for (pos = children->list.prev; pos != &children->list; pos = pos->prev) {
		struct rsb_child *p = rsb_list_entry(pos, struct rsb_child, node);

		if (key->tag ? p->tag && strcmp(p->tag, key->tag) == 0 : p->pid == key->pid)
			return p;
	}
	return NULL;
}

static struct rsb_child *
find_ref(struct rsb_children *children, const struct rsb_children_key *key)
{
	struct rsb_child *p;

	rsb_mutex_lock(&children->lock);
	p = find_locked(children, key);
	if (p)
		p->refs++;
	rsb_mutex_unlock(&children->lock);
	return p;
}

/* ---- calls, on the connections' threads ---- */

static void *
run_loop(void *arg)
{
	struct rsb_children *children = arg;

	(void)!rsb_loop_run(children->loop); /* nobody stops it */
	return NULL;
}

int
rsb_children_new(struct rsb_children **ret_procs)
{
	rsb_autofree struct rsb_children *children = rsb_new(struct rsb_children);
	pthread_t thread;
	int r;

	if (!children)
		return -ENOMEM;
	rsb_mutex_init(&children->lock);
	rsb_cond_init(&children->idle_stdin);
	rsb_list_init(&children->list);
	r = rsb_loop_new(rsb_clock_monotonic(), &children->loop);
	if (r < 0)
		return r;
	r = rsb_thread_start("output", run_loop, children, &thread);
	if (r < 0) {
		rsb_loop_free(children->loop);
		return r;
	}
	*ret_procs = rsb_steal(&children);
	return 0;
}

static int
new_stream(struct rsb_child *p, uint64_t keepalive_ns, struct rsb_watcher **ret_stream)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf first = { 0 };
	int r = rsb_event_start(&first, p->pid);

	if (r < 0)
		return r;
	return rsb_watcher_new(p->fanout, keepalive_ns, rsb_buf_view(&first), ret_stream);
}

int
rsb_children_start(struct rsb_children *children, struct rsb_children_start *start,
	struct rsb_watcher **ret_stream)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *config = rsb_steal(&start->config);
	struct rsb_child *p;
	int r;

	r = rsb_child_new(children, start->tag, &p);
	if (r < 0)
		return r;
	p->deadline_ns = start->deadline_ns;
	p->config = rsb_steal(&config);
	r = rsb_child_launch(p, &start->launch, RSB_CHILDREN_MAX);
	if (r == 0) {
		/* Before its output is read, so that the stream has all of it. */
		r = new_stream(p, start->keepalive_ns, ret_stream);
		rsb_loop_post(children->loop, &p->start_task);
	}
	rsb_child_unref(p);
	return r;
}

int
rsb_children_attach(struct rsb_children *children, const struct rsb_children_key *key,
	uint64_t keepalive_ns, struct rsb_watcher **ret_stream)
{
	struct rsb_child *p = find_ref(children, key);
	int r;

	if (!p)
		return -ESRCH;
	r = new_stream(p, keepalive_ns, ret_stream);
	rsb_child_unref(p);
	return r;
}

/* ---- standard input ---- */

/* One writer at a time has the descriptor, and nobody closes it meanwhile. */
static int
take_stdin(struct rsb_child *p, int *ret_fd)
{
	struct rsb_children *children = p->children;
	int r = 0;

	rsb_mutex_lock(&children->lock);
	while (p->stdin_busy)
		rsb_cond_wait(&children->idle_stdin, &children->lock);
	if (p->stdin_fd < 0 || p->stdin_closing) {
		r = -EPIPE;
	} else {
		p->stdin_busy = true;
		*ret_fd = p->stdin_fd;
	}
	rsb_mutex_unlock(&children->lock);
	return r;
}

static void
give_stdin(struct rsb_child *p)
{
	struct rsb_children *children = p->children;

	rsb_mutex_lock(&children->lock);
	p->stdin_busy = false;
	if (p->stdin_closing) {
		(void)close(p->stdin_fd);
		p->stdin_fd = -1;
	}
	rsb_cond_broadcast(&children->idle_stdin);
	rsb_mutex_unlock(&children->lock);
}

static int
write_input(int fd, int client_fd, struct rsb_bytes data)
{
	struct pollfd fds[2] = {
		{ .fd = fd, .events = POLLOUT },
		{ .fd = client_fd, .events = POLLRDHUP },
	};

	while (data.size > 0) {
		ssize_t n = write(fd, data.data, data.size);

		if (n >= 0) {
			data.data += n;
			data.size -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -EPIPE;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return -ECANCELED;
	}
	return 0;
}

int
rsb_children_input(struct rsb_children *children, const struct rsb_children_key *key, int client_fd,
	struct rsb_bytes data)
{
	struct rsb_child *p = find_ref(children, key);
	int fd, r;

	if (!p)
		return -ESRCH;
	r = take_stdin(p, &fd);
	if (r == 0) {
		r = write_input(fd, client_fd, data);
		give_stdin(p);
	}
	rsb_child_unref(p);
	return r;
}

int
rsb_children_close_stdin(struct rsb_children *children, const struct rsb_children_key *key)
{
	struct rsb_child *p;

	rsb_mutex_lock(&children->lock);
	p = find_locked(children, key);
	if (p) {
		p->stdin_closing = true;
		if (!p->stdin_busy && p->stdin_fd >= 0) {
			(void)close(p->stdin_fd);
			p->stdin_fd = -1;
		}
	}
	rsb_mutex_unlock(&children->lock);
	return p ? 0 : -ESRCH;
}

/* ---- signals, list, exits ---- */

int
rsb_children_signal(struct rsb_children *children, const struct rsb_children_key *key, int sig)
{
	struct rsb_child *p;
	int r = -ESRCH;

	rsb_mutex_lock(&children->lock);
	p = find_locked(children, key);
	if (p)
		r = rsb_child_kill_locked(children, p, sig);
	rsb_mutex_unlock(&children->lock);
	return r;
}

static int
describe(const struct rsb_child *p, struct rsb_json *array)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *entry = rsb_json_new_object();
	int r;

	if (!entry)
		return -ENOMEM;
	r = rsb_json_set(entry, "config", rsb_json_ref(p->config));
	if (r == 0)
		r = rsb_json_set_i64(entry, "pid", p->pid);
	if (r == 0 && p->tag)
		r = rsb_json_set_str(entry, "tag", p->tag);
	if (r < 0)
		return r;
	return rsb_json_set(array, NULL, rsb_steal(&entry));
}

int
rsb_children_list(struct rsb_children *children, struct rsb_json *array)
{
	struct rsb_list *pos;
	int r = 0;

	rsb_mutex_lock(&children->lock);
	rsb_list_for_each (pos, &children->list) {
		struct rsb_child *p = rsb_list_entry(pos, struct rsb_child, node);

		if (r == 0 && !p->exited)
			r = describe(p, array);
	}
	rsb_mutex_unlock(&children->lock);
	return r;
}

static struct rsb_child *
find_running_locked(struct rsb_children *children, pid_t pid) RSB_REQUIRES(children->lock)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &children->list) {
		struct rsb_child *p = rsb_list_entry(pos, struct rsb_child, node);

		if (p->pid == pid && !p->exited)
			return p;
	}
	return NULL;
}

/* Waited for under the lock, so that a signal never goes to a pid that is another's already. */
static bool
reap_one(struct rsb_children *children)
{
	struct rsb_child *p;
	pid_t pid;
	int status;

	rsb_mutex_lock(&children->lock);
	pid = waitpid(-1, &status, WNOHANG);
	p = pid > 0 ? find_running_locked(children, pid) : NULL;
	if (p) {
		p->exited = true;
		p->status = status;
		p->refs++; /* the exit task's */
	}
	rsb_mutex_unlock(&children->lock);
	if (p)
		rsb_loop_post(children->loop, &p->exit_task);
	return pid > 0;
}

int
rsb_children_reap(struct rsb_children *children)
{
	sigset_t chld;

	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	for (;;) {
		/* Before the first wait, too: a signal may have been there before us. */
		while (reap_one(children))
			;
		if (sigwaitinfo(&chld, NULL) < 0 && errno != EINTR)
			return -errno;
	}
}
