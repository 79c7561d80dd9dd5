/* SPDX-License-Identifier: MIT */
#include "tests/unit/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/version.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/thread.h"

/* Nothing here may take so long. */
#define PATIENCE_MS 10000u
#define OP_FILES_MAX 35

const struct rsb_node rig_root = { .id = RSB_NODE_ROOT };

struct rig_call {
	struct rsb_mutex lock;
	struct rsb_cond changed;
	bool answered;        /* {lock} */
	struct rsb_buf reply; /* {lock} */
	struct rsb_request rq;
};

void
rig_init(struct rig *rig)
{
	*rig = (struct rig){ .path = "/tmp/rsb-test-XXXXXX", .next = 100 };
	ck_assert_ptr_nonnull(mkdtemp(rig->path));
	rig->dir_fd = open(rig->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(rig->dir_fd, 0);
	(void)umask(0);
	rig->config = (struct rsb_sidecar_config){
		.root_fd = open(rig->path, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.workspace = rig->path,
		.cmd_uid = geteuid() ? geteuid() : 1234,
		.cmd_gid = geteuid() ? getegid() : 2345,
		.is_root = geteuid() == 0,
	};
	ck_assert_int_ge(rig->config.root_fd, 0);
	rig->sess.config = &rig->config;
	ck_assert_int_eq(rsb_nodes_new(&rig->config, &rig->sess.nodes), 0);
	ck_assert_int_eq(rsb_fhs_new(&rig->sess.fhs), 0);
	ck_assert_int_eq(rsb_locks_new(&rig->sess.locks), 0);
}

void
rig_done(struct rig *rig)
{
	rsb_locks_free(rig->sess.locks);
	rsb_fhs_free(rig->sess.fhs);
	rsb_nodes_free(rig->sess.nodes);
	rsb_buf_done(&rig->last);
	(void)close(rig->config.root_fd);
	(void)close(rig->dir_fd);
	unit_remove_tree(rig->path);
}

void
rsb_request_reply(struct rsb_request *rq, int error, const void *rep)
{
	struct rig_call *call = rsb_container_of(rq, struct rig_call, rq);
	int r;

	rsb_mutex_lock(&call->lock);
	ck_assert(!call->answered);
	r = rsb_codec_reply(rq->op, rq->id, error, rep, rq->version, &call->reply);
	ck_assert_int_eq(r, 0);
	call->answered = true;
	rsb_cond_broadcast(&call->changed);
	rsb_mutex_unlock(&call->lock);
}

int
rsb_request_waits(struct rsb_request *rq, void (*cancel)(struct rsb_request *rq))
{
	struct rig_call *call = rsb_container_of(rq, struct rig_call, rq);
	int r;

	rsb_mutex_lock(&call->lock);
	r = rq->cancelled ? -EINTR : 0;
	rq->cancel = cancel;
	rsb_mutex_unlock(&call->lock);
	return r;
}

static void
serve(struct rsb_request *rq, const void *req)
{
	/* clang-format off */
	switch ((enum rsb_op_number)rq->op) {
/* The linker is not asked for what a constant condition leaves out. */
#define OP(op, number, reqtype, reptype, since, flags) \
	case RSB_OP_##op: \
		if ((number) <= OP_FILES_MAX) \
			rsb_serve_##op(rq, req); \
		break;
#include "proto/ops.def" /* IWYU pragma: keep */
	}
	/* clang-format on */
}

struct rig_call *
rig_start(struct rig *rig, enum rsb_op_number op, const void *req)
{
	struct rig_call *call = rsb_new(struct rig_call);

	ck_assert_ptr_nonnull(call);
	ck_assert_uint_le(op, OP_FILES_MAX);
	rsb_mutex_init(&call->lock);
	rsb_cond_init(&call->changed);
	rsb_buf_init(&call->reply, RSB_MESSAGE_MAX);
	call->rq.sess = &rig->sess;
	call->rq.op = op;
	call->rq.version = RSB_PROTO_VERSION;
	call->rq.id = 1;
	serve(&call->rq, req);
	return call;
}

bool
rig_answered(struct rig_call *call, unsigned int timeout_ms)
{
	uint64_t deadline_ns = rsb_now_ns() + timeout_ms * RSB_NSEC_PER_MSEC;
	bool answered;

	rsb_mutex_lock(&call->lock);
	while (!call->answered &&
		rsb_cond_wait_until(&call->changed, &call->lock, deadline_ns) == 0)
		;
	answered = call->answered;
	rsb_mutex_unlock(&call->lock);
	return answered;
}

void
rig_cancel(struct rig_call *call)
{
	void (*cancel)(struct rsb_request * rq);

	rsb_mutex_lock(&call->lock);
	call->rq.cancelled = true;
	cancel = call->rq.cancel;
	rsb_mutex_unlock(&call->lock);
	if (cancel)
		cancel(&call->rq);
}

int
rig_finish(struct rig_call *call, void *ret_rep, struct rsb_buf *buf)
{
	struct rsb_call_head head;
	int r;

	ck_assert(rig_answered(call, PATIENCE_MS));
	rsb_buf_done(buf);
	/* The thread that answered has to be out of the lock. */
	rsb_mutex_lock(&call->lock);
	*buf = call->reply;
	rsb_mutex_unlock(&call->lock);
	r = rsb_codec_head(rsb_buf_view(buf), &head);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_le(rsb_buf_len(buf), rsb_codec_reply_max(call->rq.op));
	if (head.error == 0 && ret_rep) {
		r = rsb_codec_decode(rsb_ops[call->rq.op].rep, head.body, ret_rep);
		ck_assert_int_eq(r, 0);
	}
	rsb_cond_done(&call->changed);
	rsb_mutex_done(&call->lock);
	free(call);
	return head.error;
}

int
rig_run(struct rig *rig, enum rsb_op_number op, const void *req, void *ret_rep)
{
	struct rig_call *call = rig_start(rig, op, req);

	return rig_finish(call, ret_rep, &rig->last);
}

struct rsb_node
rig_node_of(const struct rsb_entry_rep *entry)
{
	return (struct rsb_node){
		.id = entry->id,
		.ino = entry->attr.ino,
		.btime = entry->attr.btime,
	};
}

int
rig_lookup(struct rig *rig, const struct rsb_node *dir, const char *name, struct rsb_node *ret_node,
	struct rsb_attr *ret_attr)
{
	const struct rsb_lookup_req req = {
		.parent = *dir,
		.name = rsb_bytes_str(name),
		.id = rig->next++,
	};
	struct rsb_entry_rep rep;
	int r = rig_do(rig, lookup, &req, &rep);

	if (r < 0)
		return r;
	*ret_node = rig_node_of(&rep);
	if (ret_attr)
		*ret_attr = rep.attr;
	return 0;
}

int
rig_mkdir(struct rig *rig, const struct rsb_node *dir, const char *name, struct rsb_node *ret_node)
{
	const struct rsb_mkdir_req req = {
		.parent = *dir,
		.name = rsb_bytes_str(name),
		.id = rig->next++,
		.mode = 0755,
	};
	struct rsb_entry_rep rep;
	int r = rig_do(rig, mkdir, &req, &rep);

	if (r == 0)
		*ret_node = rig_node_of(&rep);
	return r;
}

int
rig_getattr(struct rig *rig, const struct rsb_node *node, struct rsb_attr *ret_attr)
{
	const struct rsb_getattr_req req = { .node = *node };
	struct rsb_attr_rep rep;
	int r = rig_do(rig, getattr, &req, &rep);

	if (r == 0 && ret_attr)
		*ret_attr = rep.attr;
	return r;
}

int
rig_open(struct rig *rig, const struct rsb_node *node, uint64_t flags, uint64_t *ret_fh)
{
	const struct rsb_open_req req = { .node = *node, .fh = rig->next++, .flags = flags };
	struct rsb_attr_rep rep;
	int r = rig_do(rig, open, &req, &rep);

	if (r == 0)
		*ret_fh = req.fh;
	return r;
}

int
rig_release(struct rig *rig, uint64_t fh)
{
	const struct rsb_fh_req req = { .fh = fh };

	return rig_do(rig, release, &req, NULL);
}

int
rig_write(struct rig *rig, uint64_t fh, uint64_t offset, const char *text)
{
	const struct rsb_write_req req = {
		.fh = fh,
		.offset = offset,
		.data = rsb_bytes_str(text),
	};
	struct rsb_write_rep rep;

	return rig_do(rig, write, &req, &rep);
}

bool
rig_reads(struct rig *rig, uint64_t fh, uint64_t offset, const char *text)
{
	const struct rsb_read_req req = { .fh = fh, .offset = offset, .size = RSB_IO_MAX };
	struct rsb_read_rep rep;

	return rig_do(rig, read, &req, &rep) == 0 && rep.data.size == strlen(text) &&
	       (rep.data.size == 0 || memcmp(rep.data.data, text, rep.data.size) == 0);
}

void
rig_put(struct rig *rig, const char *name, const char *text)
{
	rsb_autoclose int fd =
		openat(rig->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}
