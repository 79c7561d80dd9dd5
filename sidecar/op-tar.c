/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/errmap.h"
#include "sidecar/proc-stream.h"
#include "sidecar/request.h"
#include "sidecar/serve.h"
#include "sidecar/sess.h"
#include "util/cleanup.h"
#include "util/tar.h"
#include "util/thread.h"

#define WINDOW_MAX ((size_t)4 << 20)
#define PIPE_SIZE (1 << 20)
#define PROC_MAX (UINT64_MAX / 8)

/*
 * One archive on its way in: channel to pipe on the io thread, pipe to files on a thread of its
 * own.
 */
struct tar_in {
	struct rsb_request *rq;
	struct rsb_inflow in;
	int fd; /* {thread} the end that is read */
	pthread_t thread;
	bool running;
	bool cancelled;
	struct rsb_tar_result result; /* {thread, then io} */
	struct rsb_task done;
};

static void
finish(struct tar_in *job, int r)
{
	const struct rsb_tar_in_rep rep = {
		.files = job->result.n_file,
		.bytes = job->result.size,
		.problem = rsb_bytes_str(job->result.problem.text),
		.error = job->result.error < 0 ? rsb_errmap_to_wire(job->result.error) : 0,
	};

	rsb_inflow_close(&job->in);
	rsb_cleanup_close(&job->fd);
	rsb_request_reply(job->rq, r, &rep);
	free(job);
}

static void
done(struct rsb_task *task)
{
	struct tar_in *job = rsb_container_of(task, struct tar_in, done);
	int r = 0;

	(void)pthread_join(job->thread, NULL); /* it is ours, and ends now */
	if (job->cancelled)
		r = -EINTR;
	else if (job->result.error == 0 && job->in.cut)
		r = -EPIPE; /* what was cut off may end where an archive could */
	finish(job, r);
}

static void *
extract(void *arg)
{
	struct tar_in *job = arg;
	const struct rsb_sidecar_config *config = job->rq->sess->config;
	const struct rsb_extract_owner owner = {
		.set = config->is_root,
		.uid = config->cmd_uid,
		.gid = config->cmd_gid,
	};

	rsb_tar_extract(job->fd, config->root_fd, &owner, NULL, &job->result);
	rsb_loop_post(job->rq->sess->loop, &job->done);
	return NULL;
}

static int
start(struct tar_in *job)
{
	rsb_autoclose int in = -1;
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	job->fd = fds[0];
	in = fds[1];
	(void)fcntl(in, F_SETPIPE_SZ, PIPE_SIZE); /* less will do */
	if (fcntl(in, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = rsb_thread_start("rsb-tar", extract, job, &job->thread);
	if (r < 0)
		return r;
	job->running = true;
	return rsb_inflow_start(&job->in, rsb_steal_fd(&in));
}

/* The thread finds the end of its pipe, and what it makes of that does not count. */
static void
cancel(struct rsb_request *rq)
{
	struct tar_in *job = rq->priv;

	job->cancelled = true;
	if (job->running)
		rsb_inflow_close(&job->in);
	else
		finish(job, -EINTR);
}

static void
go(struct rsb_request *rq)
{
	struct tar_in *job = rq->priv;
	int r = start(job);

	if (r < 0 && !job->running)
		finish(job, r);
}

void
rsb_serve_tar_in(struct rsb_request *rq, const struct rsb_tar_in_req *req)
{
	struct tar_in *job = rsb_new(struct tar_in);
	int r = job ? 0 : -ENOMEM;

	if (r == 0 && (req->proc == 0 || req->proc > PROC_MAX || req->flags != 0))
		r = -EINVAL;
	if (r == 0)
		r = rsb_inflow_open(&job->in, rq->sess, RSB_CHAN_STDIN(req->proc), WINDOW_MAX);
	if (r < 0) {
		free(job);
		rsb_request_reply(rq, r, NULL);
		return;
	}
	rsb_sess_kick(rq->sess); /* the credit is news */
	job->rq = rq;
	job->fd = -1;
	job->done.fn = done;
	rq->priv = job;
	if (rsb_request_waits(rq, cancel) < 0)
		cancel(rq);
	else
		rsb_request_after(rq, go);
}
