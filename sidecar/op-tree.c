/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/errmap.h"
#include "sidecar/listdiff.h"
#include "sidecar/listkeep.h"
#include "sidecar/proc-stream.h"
#include "sidecar/request.h"
#include "sidecar/serve.h"
#include "sidecar/sess.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/pack.h"
#include "util/thread.h"
#include "util/walk.h"

#define WINDOW_MAX ((size_t)4 << 20)
#define PIPE_SIZE (1 << 20)
#define PROC_MAX (UINT64_MAX / 8)
#define BLOCK_SIZE 65536u
#define YOUNG_NS 20000000 /* two ticks of the coarsest clock of a file system */

/*
 * One list or archive on its way out: what is wanted comes by a channel and a pipe, and is read by
 * a thread of its own, which writes the answer into another pipe, and so to the other channel.
 */
struct tree_out {
	struct rsb_request *rq;
	uint64_t what;
	struct rsb_inflow in;
	struct rsb_outflow out;
	int in_fd;        /* {thread} */
	int out_fd;       /* {thread} closed by it at its end */
	int to_fd;        /* {thread} where leaves are written: that, or a file */
	uint64_t written; /* {thread} there */
	uint64_t since;
	pthread_t thread;
	bool running;
	bool ended; /* the thread */
	bool cancelled;
	struct rsb_tree_out_rep rep; /* {thread, then io} */
	char problem[512];           /* {thread, then io} */
	struct rsb_buf block;        /* {thread} not yet written */
	struct rsb_buf leaf;         /* {thread} encoded */
	struct timespec young;       /* {thread} what changed later is too young to tell */
	struct rsb_task done;
};

static void
finish(struct tree_out *job, int r)
{
	rsb_inflow_close(&job->in);
	rsb_outflow_close(&job->out);
	rsb_cleanup_close(&job->in_fd);
	rsb_cleanup_close(&job->out_fd);
	rsb_buf_done(&job->block);
	rsb_buf_done(&job->leaf);
	rsb_request_reply(job->rq, r, &job->rep);
	free(job);
}

/* The host has all of it, or wants no more. */
static void
check_end(struct tree_out *job)
{
	if (!job->ended || !(job->out.drained || job->out.cut || job->out.mute))
		return;
	finish(job, job->cancelled ? -EINTR : 0);
}

static void
moved(void *arg)
{
	check_end(arg);
}

static void
done(struct rsb_task *task)
{
	struct tree_out *job = rsb_container_of(task, struct tree_out, done);

	(void)pthread_join(job->thread, NULL); /* it is ours, and ends now */
	job->ended = true;
	if (job->cancelled)
		job->out.cut = true;
	check_end(job);
}

/* ---- on the thread ---- */

static int
flush(struct tree_out *job)
{
	int r = rsb_fd_write_full(job->to_fd, rsb_buf_head(&job->block), rsb_buf_len(&job->block));

	job->written += rsb_buf_len(&job->block);
	rsb_buf_clear(&job->block);
	if (r >= 0 && job->to_fd != job->out_fd && job->written > RSB_LISTKEEP_MAX)
		r = -EFBIG;
	return r;
}

static bool
is_young(const struct tree_out *job, const struct timespec *time)
{
	return time->tv_sec > job->young.tv_sec ||
	       (time->tv_sec == job->young.tv_sec && time->tv_nsec >= job->young.tv_nsec);
}

/* Left out where a change that follows in the same tick would not show. */
static struct rsb_time
change_time(const struct tree_out *job, const struct stat *st)
{
	if (is_young(job, &st->st_ctim) && is_young(job, &st->st_mtim))
		return (struct rsb_time){ 0 };
	return (struct rsb_time){ .sec = st->st_ctim.tv_sec,
		.nsec = (uint64_t)st->st_ctim.tv_nsec };
}

static int
send_record(void *arg, struct rsb_bytes record)
{
	struct tree_out *job = arg;
	uint8_t head[4];
	int r;

	for (size_t i = 0; i < sizeof(head); i++)
		head[i] = (uint8_t)(record.size >> (8 * i));
	r = rsb_buf_append(&job->block, head, sizeof(head));
	if (r >= 0)
		r = rsb_buf_append(&job->block, record.data, record.size);
	if (r < 0)
		return r;
	return rsb_buf_len(&job->block) < BLOCK_SIZE ? 0 : flush(job);
}

static int
send_leaf(void *arg, const struct rsb_walk_entry *entry)
{
	const struct stat *st = &entry->st;
	const struct rsb_leaf leaf = {
		.path = rsb_bytes_str(entry->path),
		.mode = st->st_mode,
		.size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
		.ino = st->st_ino,
		.mtime = { .sec = st->st_mtim.tv_sec, .nsec = (uint64_t)st->st_mtim.tv_nsec },
		.ctime = change_time(arg, st),
		.target = rsb_bytes_str(entry->target),
		.error = entry->error < 0 ? rsb_errmap_to_wire(entry->error) : 0,
	};
	struct tree_out *job = arg;
	int r;

	rsb_buf_clear(&job->leaf);
	r = rsb_codec_encode(&rsb_desc_rsb_leaf, &leaf, job->rq->version, &job->leaf);
	if (r < 0)
		return r;
	job->rep.entries++;
	return send_record(job, rsb_buf_view(&job->leaf));
}

static int
list(struct tree_out *job, struct rsb_bytes patterns)
{
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	rsb_autoclose int root =
		openat(job->rq->sess->config->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno : rsb_ignore_new(&ignore);

	(void)clock_gettime(CLOCK_REALTIME, &job->young);
	job->young.tv_nsec -= YOUNG_NS;
	if (job->young.tv_nsec < 0) {
		job->young.tv_sec--;
		job->young.tv_nsec += 1000000000;
	}
	if (r >= 0)
		r = rsb_ignore_add_text(ignore, patterns);
	if (r >= 0)
		r = rsb_walk(root, ignore, send_leaf, job);
	return r < 0 ? r : flush(job);
}

/* The list is in a file first. Whatever is wrong with that, the whole list is right. */
static int
write_file(struct tree_out *job, struct rsb_bytes patterns, int fd)
{
	int r;

	job->to_fd = fd;
	r = list(job, patterns);
	job->to_fd = job->out_fd;
	rsb_buf_clear(&job->block);
	return r;
}

static int
copy_file(struct tree_out *job, int fd)
{
	rsb_autofree uint8_t *data = malloc(BLOCK_SIZE);
	size_t size = BLOCK_SIZE;
	int r = data ? 0 : -ENOMEM;

	if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	while (r >= 0 && size == BLOCK_SIZE) {
		r = rsb_fd_read_full(fd, data, BLOCK_SIZE, &size);
		if (r >= 0)
			r = rsb_fd_write_full(job->out_fd, data, size);
	}
	return r;
}

/* What differs from old_fd; the file in fd becomes what later ones differ from. */
static int
send_changes(struct tree_out *job, int old_fd, int fd)
{
	const struct rsb_listdiff diff = { .old_fd = old_fd,
		.new_fd = fd,
		.version = job->rq->version,
		.emit = send_record,
		.arg = job };
	int r = rsb_listdiff(&diff);

	job->rep.since = job->since;
	return r < 0 ? r : flush(job);
}

/* What changed before it was asked for is old enough to tell by then. */
static void
grow_older(void)
{
	const struct timespec young = { .tv_nsec = YOUNG_NS };

	(void)nanosleep(&young, NULL); /* an early end costs a file that is sent again */
}

static int
changes(struct tree_out *job, struct rsb_bytes patterns)
{
	struct rsb_listkeep *keep = job->rq->sess->config->lists;
	rsb_autoclose int fd = keep ? rsb_listkeep_file() : -ENOENT;
	rsb_autoclose int old_fd = -1;
	int r;

	grow_older();
	if (fd < 0 || write_file(job, patterns, fd) < 0) {
		job->rep.entries = 0;
		return list(job, patterns);
	}
	job->written = 0;
	old_fd = rsb_listkeep_get(keep, job->since);
	r = old_fd < 0 ? copy_file(job, fd) : send_changes(job, old_fd, fd);
	if (r < 0)
		return r;
	/* Nothing is different: the old one will do. */
	if (old_fd >= 0 && !job->written)
		job->rep.kept = job->since;
	else if (rsb_listkeep_add(keep, rsb_steal_fd(&fd), &job->rep.kept) < 0)
		job->rep.kept = 0;
	return 0;
}

static int
write_packed(void *arg, struct rsb_bytes data)
{
	struct tree_out *job = arg;

	return rsb_fd_write_full(job->out_fd, data.data, data.size);
}

static int
each_path(struct tree_out *job, struct rsb_bytes paths, int (*fn)(void *arg, const char *path),
	void *arg)
{
	int r = paths.size && paths.data[paths.size - 1] ? -EINVAL : 0;

	for (size_t at = 0; r >= 0 && at < paths.size;) {
		const char *path = (const char *)paths.data + at;

		r = fn(arg, path);
		at += strlen(path) + 1;
		job->rep.entries++;
	}
	return r;
}

static int
pack_one(void *arg, const char *path)
{
	return rsb_pack_add(arg, path);
}

static int
pack(struct tree_out *job, struct rsb_bytes paths)
{
	RSB_CLEANUP(rsb_pack_freep) struct rsb_pack *packing = NULL;
	int r;

	r = rsb_pack_new(job->rq->sess->config->root_fd, write_packed, job, &packing);
	if (r >= 0)
		r = each_path(job, paths, pack_one, packing);
	return r < 0 ? r : rsb_pack_finish(packing);
}

/* What is gone already is fine; a directory that is not empty stays. */
static int
remove_one(void *arg, const char *path)
{
	const struct tree_out *job = arg;
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(job->rq->sess->config->root_fd, path, &name);

	if (dir < 0)
		return dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP ? 0 : dir;
	if (unlinkat(dir, name, 0) < 0 && errno == EISDIR)
		(void)unlinkat(dir, name, AT_REMOVEDIR);
	return 0;
}

static int
answer(struct tree_out *job, struct rsb_bytes wanted)
{
	job->to_fd = job->out_fd;
	if (job->what == RSB_TREE_LIST)
		return list(job, wanted);
	if (job->what == RSB_TREE_CHANGES)
		return changes(job, wanted);
	return job->what == RSB_TREE_PACK ? pack(job, wanted)
					  : each_path(job, wanted, remove_one, job);
}

static void *
work(void *arg)
{
	struct tree_out *job = arg;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf wanted = { .max = RSB_TREE_WANTED_MAX };
	int r = rsb_fd_read_all(job->in_fd, &wanted);

	if (r >= 0)
		r = answer(job, rsb_buf_view(&wanted));
	if (r < 0) {
		job->rep.error = rsb_errmap_to_wire(r);
		(void)snprintf(job->problem, sizeof(job->problem), "%s", strerror(-r));
		job->rep.problem = rsb_bytes_str(job->problem);
	}
	rsb_cleanup_close(&job->out_fd);
	job->out_fd = -1;
	rsb_loop_post(job->rq->sess->loop, &job->done);
	return NULL;
}

/* ---- on the io thread ---- */

static int
make_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE); /* less will do */
	*ret_read = fds[0];
	*ret_write = fds[1];
	return 0;
}

static int
start(struct tree_out *job)
{
	rsb_autoclose int in = -1;
	rsb_autoclose int out = -1;
	int r;

	r = make_pipe(&job->in_fd, &in);
	if (r >= 0)
		r = make_pipe(&out, &job->out_fd);
	if (r >= 0)
		r = rsb_fd_nonblock(in, true);
	if (r >= 0)
		r = rsb_fd_nonblock(out, true);
	if (r >= 0)
		r = rsb_thread_start("rsb-tree", work, job, &job->thread);
	if (r < 0)
		return r;
	job->running = true;
	r = rsb_inflow_start(&job->in, rsb_steal_fd(&in));
	if (r >= 0)
		r = rsb_outflow_start(&job->out, rsb_steal_fd(&out));
	/* Without memory: the thread ends as when nobody reads. */
	if (r < 0)
		job->cancelled = true;
	return 0;
}

/* The thread finds the end of one pipe, and nobody at the other. */
static void
cancel(struct rsb_request *rq)
{
	struct tree_out *job = rq->priv;

	job->cancelled = true;
	if (!job->running) {
		finish(job, -EINTR);
		return;
	}
	rsb_inflow_close(&job->in);
	rsb_outflow_close(&job->out);
	job->out.cut = true;
	check_end(job);
}

static void
go(struct rsb_request *rq)
{
	struct tree_out *job = rq->priv;
	int r = start(job);

	if (r < 0)
		finish(job, r);
}

void
rsb_serve_tree_out(struct rsb_request *rq, const struct rsb_tree_out_req *req)
{
	struct tree_out *job = rsb_new(struct tree_out);
	int r = job ? 0 : -ENOMEM;

	if (r == 0 && (req->proc == 0 || req->proc > PROC_MAX || req->what < RSB_TREE_LIST ||
			      req->what > RSB_TREE_CHANGES))
		r = -EINVAL;
	if (r == 0)
		r = rsb_inflow_open(&job->in, rq->sess, RSB_CHAN_STDIN(req->proc), WINDOW_MAX);
	if (r == 0) {
		r = rsb_outflow_open(&job->out, rq->sess, RSB_CHAN_STDOUT(req->proc), moved, job);
		if (r < 0)
			rsb_inflow_close(&job->in);
	}
	if (r < 0) {
		free(job);
		rsb_request_reply(rq, r, NULL);
		return;
	}
	rsb_sess_kick(rq->sess); /* the credit is news */
	job->rq = rq;
	job->what = req->what;
	job->since = req->since;
	job->in_fd = -1;
	job->out_fd = -1;
	job->done.fn = done;
	rsb_buf_init(&job->block, RSB_MESSAGE_MAX);
	rsb_buf_init(&job->leaf, RSB_MESSAGE_MAX);
	rq->priv = job;
	if (rsb_request_waits(rq, cancel) < 0)
		cancel(rq);
	else
		rsb_request_after(rq, go);
}
