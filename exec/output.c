/* SPDX-License-Identifier: MIT */
#include "exec/output.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct rsb_output {
	struct rsb_loop *loop;
	struct rsb_source *source; /* NULL: a file that epoll(7) does not take; always ready */
	struct rsb_buf waiting;
	rsb_output_fn fn;
	void *arg;
	int fd;
	int error;
	bool is_file;
	bool no_nowait; /* this descriptor's driver refuses RWF_NOWAIT */
};

/*
 * Never waits: RWF_NOWAIT where it is known (pipes, sockets); elsewhere at most PIPE_BUF bytes once
 * poll says that there is room, which a pipe then takes at once (pipe(7)).
 */
static ssize_t
write_some(struct rsb_output *output, struct rsb_bytes data, bool ready)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data.data, .iov_len = data.size };
	ssize_t n;

	if (output->is_file)
		return writev(output->fd, &iov, 1);
	if (!output->no_nowait) {
		n = pwritev2(output->fd, &iov, 1, -1, RWF_NOWAIT);
		if (n >= 0 || (errno != EOPNOTSUPP && errno != ESPIPE && errno != EINVAL))
			return n;
		output->no_nowait = true;
	}
	if (!ready) {
		errno = EAGAIN;
		return -1;
	}
	iov.iov_len = rsb_min(iov.iov_len, (size_t)PIPE_BUF);
	return writev(output->fd, &iov, 1);
}

/* Bytes that went out, or negative errno; EAGAIN and EINTR are 0. */
static ssize_t
push(struct rsb_output *output, struct rsb_bytes data, bool ready)
{
	ssize_t n = write_some(output, data, ready);

	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	output->error = -errno;
	return output->error;
}

static void
on_ready(void *arg, uint32_t events)
{
	struct rsb_output *output = arg;
	ssize_t n;

	(void)events;
	n = push(output, rsb_buf_view(&output->waiting), true);
	if (n < 0) {
		rsb_source_del(output->source);
		output->source = NULL;
		rsb_buf_clear(&output->waiting);
		output->fn(output->arg, 0, (int)n);
		return;
	}
	rsb_buf_consume(&output->waiting, (size_t)n);
	/* Interest in hang-ups alone would spin: nothing waits, nothing is watched. */
	if (rsb_output_empty(output)) {
		rsb_source_del(output->source);
		output->source = NULL;
	}
	if (n > 0)
		output->fn(output->arg, (size_t)n, 0);
}

int
rsb_output_new(struct rsb_loop *loop, int fd, size_t max, rsb_output_fn fn, void *arg,
	struct rsb_output **ret_output)
{
	struct rsb_output *output = rsb_new(struct rsb_output);
	struct stat st;

	if (!output)
		return -ENOMEM;
	output->loop = loop;
	output->fd = fd;
	output->fn = fn;
	output->arg = arg;
	rsb_buf_init(&output->waiting, max);
	output->is_file = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
	*ret_output = output;
	return 0;
}

void
rsb_output_free(struct rsb_output *output)
{
	if (!output)
		return;
	rsb_source_del(output->source);
	rsb_buf_done(&output->waiting);
	free(output);
}

int
rsb_output_write(struct rsb_output *output, struct rsb_bytes data)
{
	size_t written = 0;
	ssize_t n = 0;
	int r;

	if (output->error)
		return output->error;
	while (rsb_output_empty(output) && data.size > 0) {
		n = push(output, data, false);
		if (n <= 0)
			break;
		data.data += n;
		data.size -= (size_t)n;
		written += (size_t)n;
	}
	if (written)
		output->fn(output->arg, written, 0);
	if (n < 0)
		return (int)n;
	if (data.size == 0)
		return 0;
	r = rsb_buf_append(&output->waiting, data.data, data.size);
	if (r == 0 && !output->source)
		r = rsb_loop_add(
			output->loop, output->fd, EPOLLOUT, on_ready, output, &output->source);
	if (r == 0)
		return 0;
	/* What nobody will push must not wait. */
	rsb_buf_clear(&output->waiting);
	if (r == -EPERM && !output->is_file) {
		/* A device that epoll(7) does not take is ready at all times, as a file is. */
		output->is_file = true;
		return rsb_output_write(output, data);
	}
	output->error = r;
	return r;
}

bool
rsb_output_empty(const struct rsb_output *output)
{
	return rsb_buf_len(&output->waiting) == 0;
}
