/* SPDX-License-Identifier: MIT */
#include "fuse/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fuse/notifier.h"
#include "proto/limits.h"
#include "util/fd.h"
#include "util/list.h"
#include "util/thread.h"

struct order {
	struct rsb_list link;
	struct rsb_buf packet;
	int fd; /* to go with it, or -1 */
	rsb_notify_fn done;
	void *arg;
};

struct rsb_notify {
	struct rsb_mutex lock;
	struct rsb_loop *loop;
	struct rsb_source *source; /* {loop} */
	struct rsb_task task;
	int sock;
	bool dead;             /* {lock} */
	bool expires;          /* {lock} */
	struct rsb_list queue; /* {lock} not sent yet */
	size_t n_queued;       /* {lock} */
	struct rsb_list sent;  /* {loop} sent, to be answered, in order */
};

static void
order_free(struct order *order)
{
	rsb_list_remove(&order->link);
	rsb_buf_done(&order->packet);
	if (order->fd >= 0)
		(void)close(order->fd);
	free(order);
}

/* The notifier is gone: whoever waits is told. */
static void
die(struct rsb_notify *notify)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_source_del(notify->source);
	notify->source = NULL;
	rsb_mutex_lock(&notify->lock);
	notify->dead = true;
	notify->n_queued = 0;
	while (!rsb_list_empty(&notify->queue)) {
		struct rsb_list *first = notify->queue.next;

		rsb_list_remove(first);
		rsb_list_append(&notify->sent, first);
	}
	rsb_mutex_unlock(&notify->lock);
	rsb_list_for_each_safe (pos, tmp, &notify->sent) {
		struct order *order = rsb_list_entry(pos, struct order, link);
		rsb_notify_fn done = order->done;
		void *arg = order->arg;

		order_free(order);
		if (done)
			done(arg, -EPIPE);
	}
}

/* The first of the queue, taken out; NULL: none. */
static struct order *
take_first(struct rsb_notify *notify)
{
	struct order *order = NULL;

	rsb_mutex_lock(&notify->lock);
	if (!rsb_list_empty(&notify->queue)) {
		order = rsb_list_entry(notify->queue.next, struct order, link);
		rsb_list_remove(&order->link);
		notify->n_queued--;
	}
	rsb_mutex_unlock(&notify->lock);
	return order;
}

static void
put_back(struct rsb_notify *notify, struct order *order)
{
	rsb_mutex_lock(&notify->lock);
	rsb_list_prepend(&notify->queue, &order->link);
	notify->n_queued++;
	rsb_mutex_unlock(&notify->lock);
}

static void
send_queued(struct rsb_notify *notify)
{
	struct order *order;

	while (notify->source && (order = take_first(notify))) {
		int r;

		r = rsb_fd_send(notify->sock, rsb_buf_head(&order->packet),
			rsb_buf_len(&order->packet), &order->fd, order->fd >= 0 ? 1 : 0);
		if (r == -EAGAIN) {
			put_back(notify, order);
			break;
		}
		if (order->done)
			rsb_list_append(&notify->sent, &order->link);
		else
			order_free(order);
		if (r < 0)
			die(notify);
	}
	if (notify->source) {
		bool more;

		rsb_mutex_lock(&notify->lock);
		more = !rsb_list_empty(&notify->queue);
		rsb_mutex_unlock(&notify->lock);
		if (rsb_source_set(notify->source, more ? EPOLLIN | EPOLLOUT : EPOLLIN) < 0)
			die(notify);
	}
}

static void
on_task(struct rsb_task *task)
{
	send_queued(rsb_container_of(task, struct rsb_notify, task));
}

static void
on_socket(void *arg, uint32_t events)
{
	struct rsb_notify *notify = arg;

	for (;;) {
		struct order *order;
		rsb_notify_fn done;
		void *done_arg;
		int32_t r;
		ssize_t n;

		n = recv(notify->sock, &r, sizeof(r), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n != sizeof(r) || rsb_list_empty(&notify->sent)) {
			die(notify);
			return;
		}
		order = rsb_list_entry(notify->sent.next, struct order, link);
		done = order->done;
		done_arg = order->arg;
		order_free(order);
		done(done_arg, r);
	}
	if (events & EPOLLOUT)
		send_queued(notify);
}

int
rsb_notify_new(struct rsb_loop *loop, int sock, struct rsb_notify **ret_notify)
{
	struct rsb_notify *notify = rsb_new(struct rsb_notify);
	int r = -ENOMEM;

	if (notify) {
		rsb_mutex_init(&notify->lock);
		rsb_list_init(&notify->queue);
		rsb_list_init(&notify->sent);
		notify->loop = loop;
		notify->sock = sock;
		notify->task.fn = on_task;
		r = rsb_fd_nonblock(sock, true);
		if (r >= 0)
			r = rsb_loop_add(loop, sock, EPOLLIN, on_socket, notify, &notify->source);
	}
	if (r < 0) {
		(void)close(sock);
		free(notify);
		return r;
	}
	*ret_notify = notify;
	return 0;
}

int
rsb_notify_revive(struct rsb_notify *notify, int sock, int fuse_fd)
{
	int r;

	die(notify);
	(void)close(notify->sock);
	notify->sock = sock;
	r = rsb_fd_nonblock(sock, true);
	if (r >= 0)
		r = rsb_loop_add(notify->loop, sock, EPOLLIN, on_socket, notify, &notify->source);
	if (r < 0)
		return r;
	rsb_mutex_lock(&notify->lock);
	notify->dead = false;
	rsb_mutex_unlock(&notify->lock);
	return rsb_notify_attach(notify, fuse_fd);
}

void
rsb_notify_free(struct rsb_notify *notify)
{
	if (!notify)
		return;
	die(notify);
	(void)close(notify->sock);
	rsb_mutex_done(&notify->lock);
	free(notify);
}

/* Adds an order. body goes behind the head. fd is taken. */
static int
post(struct rsb_notify *notify, const struct rsb_notifier_head *head, struct rsb_bytes body,
	struct order *order)
{
	int r = 0;

	rsb_buf_init(&order->packet, RSB_NOTIFIER_PACKET_MAX);
	rsb_list_init(&order->link);
	r = rsb_buf_append(&order->packet, head, sizeof(*head));
	if (r >= 0)
		r = rsb_buf_append(&order->packet, body.data, body.size);
	if (r >= 0) {
		rsb_mutex_lock(&notify->lock);
		if (notify->dead)
			r = -EPIPE;
		else if (notify->n_queued >= RSB_NOTIFY_QUEUED_MAX)
			r = -ENOBUFS;
		if (r >= 0) {
			rsb_list_append(&notify->queue, &order->link);
			notify->n_queued++;
		}
		rsb_mutex_unlock(&notify->lock);
	}
	if (r < 0) {
		order_free(order);
		return r;
	}
	rsb_loop_post(notify->loop, &notify->task);
	return 0;
}

static int
post_new(struct rsb_notify *notify, const struct rsb_notifier_head *head, struct rsb_bytes body,
	rsb_notify_fn done, void *arg)
{
	struct order *order = rsb_new(struct order);

	if (!order)
		return -ENOMEM;
	order->fd = -1;
	order->done = done;
	order->arg = arg;
	return post(notify, head, body, order);
}

int
rsb_notify_attach(struct rsb_notify *notify, int fuse_fd)
{
	const struct rsb_notifier_head head = { .type = RSB_NOTIFIER_ATTACH };
	struct order *order = rsb_new(struct order);

	if (!order)
		return -ENOMEM;
	order->fd = fcntl(fuse_fd, F_DUPFD_CLOEXEC, 3);
	if (order->fd < 0) {
		free(order);
		return -errno;
	}
	return post(notify, &head, (struct rsb_bytes){ .size = 0 }, order);
}

/* Into the last packet of the queue, if it is of the same kind and has room. */
static bool
join_last(struct rsb_notify *notify, const struct rsb_notifier_head *like, struct rsb_bytes body)
{
	struct rsb_notifier_head head;
	struct order *last;
	bool joined = false;

	rsb_mutex_lock(&notify->lock);
	if (!rsb_list_empty(&notify->queue)) {
		last = rsb_list_entry(notify->queue.prev, struct order, link);
		memcpy(&head, rsb_buf_head(&last->packet), sizeof(head));
		joined = head.type == like->type && head.how == like->how &&
			 rsb_buf_append(&last->packet, body.data, body.size) >= 0;
	}
	rsb_mutex_unlock(&notify->lock);
	return joined;
}

/* One of many of its kind. */
static int
post_some(struct rsb_notify *notify, const struct rsb_notifier_head *head, struct rsb_bytes body)
{
	return join_last(notify, head, body) ? 0 : post_new(notify, head, body, NULL, NULL);
}

int
rsb_notify_inode(struct rsb_notify *notify, uint64_t nodeid, bool pages)
{
	const struct rsb_notifier_head head = { .type = RSB_NOTIFIER_INODES, .how = pages };
	const struct rsb_bytes body = { .data = (const uint8_t *)&nodeid, .size = sizeof(nodeid) };

	return post_some(notify, &head, body);
}

int
rsb_notify_size(struct rsb_notify *notify, uint64_t nodeid, uint64_t size)
{
	const struct rsb_notifier_head head = { .type = RSB_NOTIFIER_SIZES };
	const struct rsb_notifier_size file = { .nodeid = nodeid, .size = size };

	return post_some(notify, &head,
		(struct rsb_bytes){ .data = (const uint8_t *)&file, .size = sizeof(file) });
}

void
rsb_notify_set_expires(struct rsb_notify *notify, bool expires)
{
	rsb_mutex_lock(&notify->lock);
	notify->expires = expires;
	rsb_mutex_unlock(&notify->lock);
}

int
rsb_notify_entry(struct rsb_notify *notify, uint64_t parent, const void *name, size_t size)
{
	const struct rsb_notifier_name entry = { .parent = parent, .size = size };
	struct rsb_notifier_head head = { .type = RSB_NOTIFIER_NAMES };
	uint8_t body[sizeof(entry) + RSB_NAME_MAX + 1];

	if (size > RSB_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(body, &entry, sizeof(entry));
	memcpy(body + sizeof(entry), name, size);
	body[sizeof(entry) + size] = 0;
	rsb_mutex_lock(&notify->lock);
	head.how = notify->expires;
	rsb_mutex_unlock(&notify->lock);
	return post_some(notify, &head,
		(struct rsb_bytes){ .data = body, .size = sizeof(entry) + size + 1 });
}

int
rsb_notify_epoch(struct rsb_notify *notify, rsb_notify_fn done, void *arg)
{
	const struct rsb_notifier_head head = { .type = RSB_NOTIFIER_EPOCH };

	return post_new(notify, &head, (struct rsb_bytes){ .size = 0 }, done, arg);
}

int
rsb_notify_fence(struct rsb_notify *notify, rsb_notify_fn done, void *arg)
{
	const struct rsb_notifier_head head = { .type = RSB_NOTIFIER_FENCE };

	return post_new(notify, &head, (struct rsb_bytes){ .size = 0 }, done, arg);
}
