/* SPDX-License-Identifier: MIT */
#include "fuse/sizes.h"

#include <errno.h>

#include "fuse/guard.h"
#include "fuse/notify.h"
#include "fuse/push.h"
#include "fuse/send.h"

struct rsb_sizes {
	struct rsb_fs *fs;
	struct rsb_loop *loop;
	struct rsb_task task; /* all is there */
	rsb_sizes_fn done;    /* {fs->lock} NULL: forgotten */
	void *arg;
	size_t n_call;      /* {fs->lock} under way */
	size_t next;        /* {fs->lock} of nodeids */
	size_t n;           /* const */
	uint64_t nodeids[]; /* const */
};

struct question {
	struct rsb_sizes *sizes;
	struct rsb_inode *inode; /* referenced */
	uint64_t since;
};

static void ask_more(struct rsb_sizes *sizes);

static void
take(struct rsb_fs *fs, const struct question *question, const struct rsb_attr *attr)
{
	struct rsb_inode *inode = question->inode;

	rsb_fs_learn(fs, inode, attr, question->since);
	if (inode->changed > question->since || inode->dirty || rsb_inode_check(inode) < 0 ||
		rsb_attr_check(attr) < 0 || !attr->size)
		return;
	/* Over the queue's maximum the fence behind fails as well. */
	(void)rsb_notify_size(fs->notify, inode->nodeid, attr->size);
}

/* {io} */
static void
on_attr(void *arg, int r, const void *rep)
{
	struct question *question = arg;
	struct rsb_sizes *sizes = question->sizes;
	const struct rsb_attr_rep *got = rep;

	if (r >= 0)
		take(sizes->fs, question, &got->attr);
	rsb_inode_unref(question->inode);
	free(question);
	sizes->n_call--;
	ask_more(sizes);
}

/* What cannot be asked about the kernel learns when it asks. */
static void
ask_one(struct rsb_sizes *sizes, struct rsb_inode *inode)
{
	struct rsb_fs *fs = sizes->fs;
	struct rsb_getattr_req msg = { .node = inode->wire, .fh = rsb_handle_any_fh(inode) };
	struct question *question;

	/* What is shown of these is not the file; and what nobody has open is not mapped. */
	if (!msg.fh || rsb_guard_watches(fs, inode))
		return;
	question = rsb_new(struct question);
	if (!question)
		return;
	rsb_push_inode(fs, inode);
	question->sizes = sizes;
	question->since = fs->seq;
	question->inode = rsb_inode_ref(inode);
	if (rsb_send_call(fs->send, RSB_OP_getattr, &msg, on_attr, question, NULL) < 0) {
		rsb_inode_unref(question->inode);
		free(question);
		return;
	}
	sizes->n_call++;
}

static void
ask_more(struct rsb_sizes *sizes)
{
	while (sizes->done && sizes->next < sizes->n && sizes->n_call < RSB_SIZES_MAX) {
		struct rsb_inode *inode =
			rsb_inode_by_nodeid(sizes->fs->inodes, sizes->nodeids[sizes->next++]);

		if (inode)
			ask_one(sizes, inode);
	}
	if (sizes->n_call)
		return;
	if (sizes->done)
		rsb_loop_post(sizes->loop, &sizes->task);
	else
		free(sizes);
}

static void
on_all(struct rsb_task *task)
{
	struct rsb_sizes *sizes = rsb_container_of(task, struct rsb_sizes, task);
	rsb_sizes_fn done = sizes->done;
	void *arg = sizes->arg;

	free(sizes);
	done(arg);
}

int
rsb_sizes_ask(struct rsb_fs *fs, struct rsb_loop *loop, rsb_sizes_fn done, void *arg,
	struct rsb_sizes **ret_sizes)
{
	struct rsb_sizes *sizes;
	struct rsb_handle *handle;
	size_t cursor = 0;

	rsb_mutex_lock(&fs->lock);
	sizes = calloc(1, sizeof(*sizes) + rsb_handles_count(fs->handles) * sizeof(uint64_t));
	if (sizes) {
		*sizes = (struct rsb_sizes){
			.fs = fs,
			.loop = loop,
			.task = { .fn = on_all },
			.done = done,
			.arg = arg,
		};
		while ((handle = rsb_handle_next(fs->handles, &cursor))) {
			/* Each node by the one that names it. */
			if (rsb_handle_any_fh(handle->inode) == handle->fh)
				sizes->nodeids[sizes->n++] = handle->inode->nodeid;
		}
		ask_more(sizes);
		*ret_sizes = sizes;
	}
	rsb_mutex_unlock(&fs->lock);
	return sizes ? 0 : -ENOMEM;
}

void
rsb_sizes_forget(struct rsb_sizes *sizes)
{
	struct rsb_fs *fs;

	if (!sizes)
		return;
	fs = sizes->fs;
	rsb_mutex_lock(&fs->lock);
	sizes->done = NULL;
	if (!sizes->n_call) {
		rsb_loop_unpost(sizes->loop, &sizes->task);
		free(sizes);
	}
	rsb_mutex_unlock(&fs->lock);
}
