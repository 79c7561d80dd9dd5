/* SPDX-License-Identifier: MIT */
#include "link/attempt.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/thread.h"

#define HEADERS_MAX 16
#define TIMEOUT_DEFAULT_NS (20 * RSB_NSEC_PER_SEC)

struct rsb_attempt {
	struct rsb_link_target target; /* strings are ours */
	char *headers[HEADERS_MAX + 1];
	int abort_fd;
	pthread_t thread;
	struct rsb_loop *loop;
	struct rsb_task task;
	rsb_attempt_fn fn;
	void *arg;
	uint64_t deadline_ns;
	struct rsb_connect *connect;
	int r;
	struct rsb_diag diag;
};

void
rsb_attempt_free(struct rsb_attempt *attempt)
{
	size_t i;

	if (!attempt)
		return;
	rsb_connect_free(attempt->connect);
	rsb_cleanup_close(&attempt->target.fd);
	rsb_cleanup_close(&attempt->abort_fd);
	for (i = 0; attempt->headers[i]; i++)
		free(attempt->headers[i]);
	free((char *)attempt->target.url);
	free((char *)attempt->target.ca_file);
	free(attempt);
}

static int
copy_strings(struct rsb_attempt *attempt, const struct rsb_link_target *target)
{
	size_t i;

	if (target->url) {
		attempt->target.url = strdup(target->url);
		if (!attempt->target.url)
			return -ENOMEM;
	}
	if (target->ca_file) {
		attempt->target.ca_file = strdup(target->ca_file);
		if (!attempt->target.ca_file)
			return -ENOMEM;
	}
	for (i = 0; target->headers && target->headers[i]; i++) {
		if (i == HEADERS_MAX)
			return -E2BIG;
		attempt->headers[i] = strdup(target->headers[i]);
		if (!attempt->headers[i])
			return -ENOMEM;
	}
	return 0;
}

int
rsb_attempt_new(const struct rsb_link_target *target, struct rsb_attempt **ret_attempt)
{
	rsb_autoclose int fd = target->url ? -1 : target->fd;
	RSB_CLEANUP(rsb_attempt_freep) struct rsb_attempt *attempt = rsb_new(struct rsb_attempt);
	int r;

	if (!attempt)
		return -ENOMEM;
	attempt->target.fd = rsb_steal_fd(&fd);
	attempt->target.timeout_ns = target->timeout_ns ? target->timeout_ns : TIMEOUT_DEFAULT_NS;
	attempt->r = -ECANCELED;
	attempt->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (attempt->abort_fd < 0)
		return -errno;
	r = copy_strings(attempt, target);
	if (r < 0)
		return r;
	*ret_attempt = rsb_steal(&attempt);
	return 0;
}

static void *
run(void *arg)
{
	struct rsb_attempt *attempt = arg;
	struct rsb_link_target target = attempt->target;

	attempt->target.fd = -1; /* rsb_connect_open() takes it */
	attempt->r =
		rsb_connect_open(&target, attempt->abort_fd, &attempt->connect, &attempt->diag);
	rsb_loop_post(attempt->loop, &attempt->task);
	return NULL;
}

static void
on_end(struct rsb_task *task)
{
	struct rsb_attempt *attempt = rsb_container_of(task, struct rsb_attempt, task);

	/* the thread has nothing left to do but to return */
	(void)pthread_join(attempt->thread, NULL);
	attempt->fn(attempt->arg, attempt);
}

int
rsb_attempt_start(struct rsb_attempt *attempt, struct rsb_loop *loop, rsb_attempt_fn fn, void *arg)
{
	attempt->loop = loop;
	attempt->fn = fn;
	attempt->arg = arg;
	attempt->task.fn = on_end;
	attempt->deadline_ns = rsb_loop_now(loop) + attempt->target.timeout_ns;
	return rsb_thread_start("rsb-connect", run, attempt, &attempt->thread);
}

void
rsb_attempt_abort(struct rsb_attempt *attempt)
{
	/* EAGAIN: it was aborted very often already */
	(void)eventfd_write(attempt->abort_fd, 1);
}

int
rsb_attempt_result(struct rsb_attempt *attempt, struct rsb_connect **ret_connect)
{
	if (attempt->r < 0)
		return attempt->r;
	*ret_connect = rsb_steal(&attempt->connect);
	return 0;
}

const char *
rsb_attempt_text(const struct rsb_attempt *attempt)
{
	return rsb_diag_text(&attempt->diag, attempt->r);
}

const char *const *
rsb_attempt_headers(const struct rsb_attempt *attempt)
{
	return (const char *const *)attempt->headers;
}

uint64_t
rsb_attempt_deadline(const struct rsb_attempt *attempt)
{
	return attempt->deadline_ns;
}
