/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_SIZE ((size_t)64 << 10)
#define LOOK_NS (250 * RSB_NSEC_PER_MSEC)

struct rsb_input {
	struct rsb_loop *loop;
	struct rsb_source *source; /* NULL: not watched, or always ready */
	struct rsb_task task;      /* the next read of what is always ready */
	struct rsb_timer *look;    /* while we are in the background of our terminal */
	const struct rsb_input_ops *ops;
	void *arg;
	int fd;
	bool always;
	bool ended;
};

/* Who reads the terminal there is stopped (SIGTTIN), and the command would be as well. */
static bool
in_background(int fd)
{
	pid_t front = tcgetpgrp(fd);

	return front > 0 && front != getpgrp();
}

static void
read_once(struct rsb_input *input)
{
	uint8_t data[READ_SIZE];
	size_t room = input->ops->room(input->arg);
	ssize_t n;

	if (room == 0) {
		/* A hang-up is reported whatever is asked for: not watching is the only rest. */
		rsb_source_del(input->source);
		input->source = NULL;
		return;
	}
	if (in_background(input->fd)) {
		rsb_source_del(input->source);
		input->source = NULL;
		rsb_timer_set(input->look, rsb_loop_now(input->loop) + LOOK_NS);
		return;
	}
	n = read(input->fd, data, rsb_min(room, sizeof data));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		int r = n < 0 ? -errno : 0;

		input->ended = true;
		rsb_source_del(input->source);
		input->source = NULL;
		input->ops->data(input->arg, (struct rsb_bytes){ 0 }, r);
		return;
	}
	if (input->always)
		rsb_loop_post(input->loop, &input->task);
	input->ops->data(input->arg, (struct rsb_bytes){ data, (size_t)n }, 0);
}

static void
on_ready(void *arg, uint32_t events)
{
	(void)events;
	read_once(arg);
}

static void
on_look(void *arg)
{
	rsb_input_resume(arg);
}

static void
on_task(struct rsb_task *task)
{
	read_once(rsb_container_of(task, struct rsb_input, task));
}

int
rsb_input_new(struct rsb_loop *loop, int fd, const struct rsb_input_ops *ops, void *arg,
	struct rsb_input **ret_input)
{
	struct rsb_input *input = rsb_new(struct rsb_input);
	int r;

	if (!input)
		return -ENOMEM;
	input->loop = loop;
	input->fd = fd;
	input->ops = ops;
	input->arg = arg;
	input->task.fn = on_task;
	r = rsb_timer_new(loop, on_look, input, &input->look);
	if (r == 0)
		r = rsb_loop_add(loop, fd, EPOLLIN, on_ready, input, &input->source);
	if (r == -EPERM) {
		input->always = true;
		rsb_loop_post(loop, &input->task);
	} else if (r < 0) {
		rsb_timer_del(input->look);
		free(input);
		return r;
	}
	*ret_input = input;
	return 0;
}

void
rsb_input_free(struct rsb_input *input)
{
	if (!input)
		return;
	rsb_loop_unpost(input->loop, &input->task);
	rsb_source_del(input->source);
	rsb_timer_del(input->look);
	free(input);
}

void
rsb_input_resume(struct rsb_input *input)
{
	if (input->ended)
		return;
	if (input->always) {
		rsb_loop_post(input->loop, &input->task);
	} else if (!input->source) {
		/* It was taken once before: only memory can fail, and then input stands still. */
		(void)rsb_loop_add(
			input->loop, input->fd, EPOLLIN, on_ready, input, &input->source);
	}
}
