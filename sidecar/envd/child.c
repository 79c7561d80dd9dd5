/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/child.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#include "util/cleanup.h"
#include "util/str.h"

/* ---- life ---- */

static void
proc_free(struct rsb_child *p)
{
	rsb_fanout_free(p->fanout);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(p->out); i++) {
		if (p->out[i].fd >= 0)
			(void)close(p->out[i].fd);
	}
	if (p->stdin_fd >= 0)
		(void)close(p->stdin_fd);
	rsb_json_free(p->config);
	free(p->tag);
	free(p);
}

void
rsb_child_unref(struct rsb_child *p)
{
	struct rsb_children *children = p->children;
	size_t left;

	rsb_mutex_lock(&children->lock);
	left = --p->refs;
	rsb_mutex_unlock(&children->lock);
	if (left == 0)
		proc_free(p);
}

/* Out of the table; nobody finds it any more. */
static void
forget(struct rsb_child *p)
{
	struct rsb_children *children = p->children;

	rsb_mutex_lock(&children->lock);
	rsb_list_remove(&p->node);
	children->n--;
	rsb_mutex_unlock(&children->lock);
	rsb_child_unref(p);
}

/* ---- output, on the loop's thread ---- */

static void
close_output(struct rsb_child_output *o)
{
	rsb_source_del(o->source);
	o->source = NULL;
	if (o->fd >= 0)
		(void)close(o->fd);
	o->fd = -1;
}

/* Bytes, 0 when there are none now, -EPIPE at the end. */
static int
read_output(struct rsb_child_output *o)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf event = { 0 };
	uint8_t chunk[RSB_CHILD_CHUNK];
	ssize_t n = read(o->fd, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	/* Without memory for the event its bytes are lost to the clients, not the process. */
	if (rsb_event_data(&event, o->kind, (struct rsb_bytes){ chunk, (size_t)n }) == 0)
		rsb_fanout_push(o->proc->fanout, rsb_buf_view(&event));
	return (int)n;
}

static void
end_streams(struct rsb_child *p, int status, bool overdue)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	if (overdue) {
		r = rsb_connectrpc_end(&text, RSB_CONNECTRPC_DEADLINE_EXCEEDED,
			"the process ran into its deadline");
	} else {
		r = rsb_event_end(&text, status);
		if (r == 0)
			r = rsb_connectrpc_end(&text, RSB_CONNECTRPC_OK, NULL);
	}
	/* Without it the streams break off, which is never a success to a client. */
	if (r < 0)
		rsb_buf_clear(&text);
	rsb_fanout_end(p->fanout, rsb_buf_view(&text));
}

static void
check_end(struct rsb_child *p)
{
	struct rsb_children *children = p->children;
	bool exited, hasty, overdue;
	int status;

	rsb_mutex_lock(&children->lock);
	exited = p->exited;
	hasty = p->hasty;
	overdue = p->overdue;
	status = p->status;
	rsb_mutex_unlock(&children->lock);
	/* Without a timer on_start() has yet to come. */
	if (p->ended || !exited || !p->timer)
		return;
	for (size_t i = 0; hasty && i < RSB_ARRAY_SIZE(p->out); i++) {
		while (p->out[i].fd >= 0 && !rsb_fanout_full(p->fanout) &&
			read_output(&p->out[i]) > 0)
			;
		close_output(&p->out[i]);
	}
	if (p->out[0].fd >= 0 || p->out[1].fd >= 0)
		return;
	p->ended = true;
	rsb_source_del(p->drain);
	p->drain = NULL;
	end_streams(p, status, overdue);
	rsb_timer_set(p->timer, rsb_loop_now(children->loop) + RSB_CHILD_REMEMBER_NS);
}

static void on_output(void *arg, uint32_t events);

/*
 * Not by an empty event mask: a hang-up would still come, again and again. An output that cannot be
 * watched any more is given up.
 */
static void
set_reading(struct rsb_child *p, bool on)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(p->out); i++) {
		struct rsb_child_output *o = &p->out[i];

		if (!on) {
			rsb_source_del(o->source);
			o->source = NULL;
		} else if (o->fd >= 0 && !o->source &&
			   rsb_loop_add(p->children->loop, o->fd, EPOLLIN, on_output, o,
				   &o->source) < 0) {
			close_output(o);
		}
	}
}

static void
on_output(void *arg, uint32_t events)
{
	struct rsb_child_output *o = arg;

	(void)events;
	if (rsb_fanout_full(o->proc->fanout))
		set_reading(o->proc, false);
	else if (read_output(o) < 0)
		close_output(o);
	check_end(o->proc);
}

static void
on_drain(void *arg, uint32_t events)
{
	struct rsb_child *p = arg;
	uint64_t count;

	(void)events;
	(void)!read(rsb_fanout_drain_fd(p->fanout), &count, sizeof(count)); /* resets it */
	set_reading(p, true);
	check_end(p);
}

/* ---- tasks and timers, on the loop's thread ---- */

/* By number, and only while it was not waited for: else it may be another's. */
int
rsb_child_kill_locked(struct rsb_children *children, struct rsb_child *p, int sig)
{
	(void)children; /* named for the lock alone */
	if (p->exited)
		return -ECHILD;
	if (sig == SIGKILL || sig == SIGTERM)
		p->hasty = true;
	return kill(p->pid, sig) < 0 ? -errno : 0;
}

static void
on_timer(void *arg)
{
	struct rsb_child *p = arg;
	struct rsb_children *children = p->children;

	if (p->ended) {
		rsb_timer_del(p->timer);
		p->timer = NULL;
		forget(p);
		return;
	}
	rsb_mutex_lock(&children->lock);
	p->overdue = true;
	p->hasty = true;
	if (!p->exited)
		(void)kill(p->pid, SIGKILL); /* it is there until it is waited for */
	rsb_mutex_unlock(&children->lock);
	check_end(p);
}

/* Without the means to watch it, a process is not left running unseen. */
static void
give_up(struct rsb_child *p)
{
	struct rsb_children *children = p->children;

	rsb_mutex_lock(&children->lock);
	(void)rsb_child_kill_locked(children, p, SIGKILL);
	rsb_mutex_unlock(&children->lock);
	p->ended = true;
	rsb_timer_del(p->timer);
	rsb_source_del(p->drain);
	rsb_fanout_end(p->fanout, (struct rsb_bytes){ 0 });
	forget(p);
}

static void
on_start(struct rsb_task *task)
{
	struct rsb_child *p = rsb_container_of(task, struct rsb_child, start_task);
	struct rsb_loop *loop = p->children->loop;

	if (rsb_timer_new(loop, on_timer, p, &p->timer) < 0 ||
		rsb_loop_add(loop, rsb_fanout_drain_fd(p->fanout), EPOLLIN, on_drain, p,
			&p->drain) < 0) {
		give_up(p);
	} else {
		if (p->deadline_ns)
			rsb_timer_set(p->timer, p->deadline_ns);
		set_reading(p, true);
		check_end(p);
	}
	rsb_child_unref(p);
}

static void
on_exit_task(struct rsb_task *task)
{
	struct rsb_child *p = rsb_container_of(task, struct rsb_child, exit_task);

	check_end(p);
	rsb_child_unref(p);
}

int
rsb_child_new(struct rsb_children *children, const char *tag, struct rsb_child **ret_proc)
{
	struct rsb_child *p = rsb_new(struct rsb_child);
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->children = children;
	p->refs = 1;
	p->stdin_fd = -1;
	p->start_task.fn = on_start;
	p->exit_task.fn = on_exit_task;
	p->out[0] = (struct rsb_child_output){ .proc = p, .kind = RSB_EVENT_STDOUT, .fd = -1 };
	p->out[1] = (struct rsb_child_output){ .proc = p, .kind = RSB_EVENT_STDERR, .fd = -1 };
	rsb_list_init(&p->node);
	if (tag) {
		p->tag = rsb_str_dup(rsb_bytes_str(tag));
		r = p->tag ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = rsb_fanout_new(&p->fanout);
	if (r < 0) {
		proc_free(p);
		return r;
	}
	*ret_proc = p;
	return 0;
}

/* Under the lock from fork to table, or the reaper would take a quick one for an orphan. */
int
rsb_child_launch(struct rsb_child *p, const struct rsb_launch *spec, size_t max)
{
	struct rsb_children *children = p->children;
	struct rsb_launched launched;
	int r;

	rsb_mutex_lock(&children->lock);
	r = children->n < max ? rsb_launch(spec, &launched) : -EAGAIN;
	if (r == 0) {
		p->pid = launched.pid;
		p->stdin_fd = launched.in;
		p->out[0].fd = launched.out;
		p->out[1].fd = launched.err;
		rsb_list_append(&children->list, &p->node);
		children->n++;
		p->refs += 2; /* the table's and the start task's */
	}
	rsb_mutex_unlock(&children->lock);
	return r;
}
