/* SPDX-License-Identifier: MIT */
#include "fuse/guest.h"

#include <errno.h>
#include <string.h>

#include "fuse/giveway.h"
#include "fuse/guard.h"
#include "fuse/judge.h"
#include "fuse/losses.h"
#include "fuse/pipe.h"
#include "fuse/relay.h"
#include "link/ctl.h"
#include "proto/version.h"
#include "util/json.h"
#include "util/str.h"

struct rsb_guest {
	struct rsb_control *control;
	uint64_t serial;
	struct rsb_ctl *ctl;
	struct rsb_chans *chans;
	struct rsb_list procs; /* the relay's */
	struct rsb_task kick;
	bool hello;
	bool kicked;
};

/* ---- out ---- */

void
rsb_guest_send(struct rsb_guest *client, struct rsb_bytes msg)
{
	if (rsb_ctl_send(client->ctl, msg) < 0)
		rsb_guest_kick(client);
}

void
rsb_guest_reply(struct rsb_guest *client, uint32_t op, uint64_t call, int error, const void *rep)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };

	if (rsb_codec_reply(op, call, error, rep, RSB_PROTO_VERSION, &buf) < 0)
		rsb_guest_kick(client);
	else
		rsb_guest_send(client, rsb_buf_view(&buf));
}

/* 1: a frame went out, 0: there is none or no room for it. */
static int
pump_one(struct rsb_guest *client, enum rsb_chans_urge urge)
{
	struct rsb_frame frame;
	int r;

	if (client->kicked || rsb_ctl_queued(client->ctl) >= RSB_GUEST_QUEUE_MAX)
		return 0;
	r = rsb_chans_output(client->chans, urge, SIZE_MAX, &frame);
	if (r > 0 && rsb_ctl_send_frame(client->ctl, &frame) < 0)
		r = -EPIPE;
	if (r < 0)
		rsb_guest_kick(client);
	return r > 0;
}

void
rsb_guest_pump(struct rsb_guest *client)
{
	while (pump_one(client, RSB_CHANS_STREAM))
		continue;
	while (pump_one(client, RSB_CHANS_CREDIT))
		continue;
}

static void
on_kick(struct rsb_task *task)
{
	struct rsb_guest *client = rsb_container_of(task, struct rsb_guest, kick);

	rsb_control_drop(client->control, client);
}

void
rsb_guest_kick(struct rsb_guest *client)
{
	if (client->kicked)
		return;
	/* Not at once: whoever calls may be in the middle of its streams. */
	client->kicked = true;
	client->kick.fn = on_kick;
	rsb_loop_post(rsb_control_config(client->control)->loop, &client->kick);
}

/* ---- messages ---- */

static void
answer_hello(struct rsb_guest *client, const struct rsb_call_head *head)
{
	const struct rsb_control_config *config = rsb_control_config(client->control);
	struct rsb_fs *fs = config->fs;
	struct rsb_ctl_hello_req req;
	struct rsb_ctl_hello_rep rep = {
		.version = RSB_PROTO_VERSION,
		.pid = (uint64_t)getpid(),
		.sandbox = rsb_bytes_str(config->sandbox),
		.mountpoint = rsb_bytes_str(config->mountpoint),
	};

	if (rsb_codec_decode(&rsb_desc_rsb_ctl_hello_req, head->body, &req) < 0) {
		rsb_guest_kick(client);
		return;
	}
	/* Both programs are of one package: another table means a daemon from before an update. */
	if (req.version != RSB_PROTO_VERSION || req.table_hash != rsb_op_table_hash()) {
		rsb_guest_reply(client, head->op, head->id, -EPROTONOSUPPORT, NULL);
		return;
	}
	client->hello = true;
	rsb_mutex_lock(&fs->lock);
	rep.workspace = rsb_bytes_str(fs->workspace ? fs->workspace : "");
	rsb_mutex_unlock(&fs->lock);
	rsb_guest_reply(client, head->op, head->id, 0, &rep);
}

static void
answer_status(struct rsb_guest *client, const struct rsb_call_head *head)
{
	const struct rsb_control_config *config = rsb_control_config(client->control);
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf json = { .max = 65536 };
	struct rsb_ctl_status_rep rep;
	int r;

	r = config->status(config->arg, &json);
	rep.json = rsb_buf_view(&json);
	rsb_guest_reply(client, head->op, head->id, r, &rep);
}

/* What was accepted, as a JSON array. */
static int
trust(struct rsb_fs *fs, struct rsb_bytes path, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	rsb_autofree char *text = rsb_str_dup(path);
	int r;

	if (!array || !text)
		return -ENOMEM;
	rsb_mutex_lock(&fs->lock);
	r = rsb_judge_trust(fs->judge, text, array);
	rsb_guard_forget(fs);
	rsb_mutex_unlock(&fs->lock);
	return r < 0 ? r : rsb_json_write(array, false, out);
}

static void
answer_trust(struct rsb_guest *client, const struct rsb_call_head *head)
{
	struct rsb_fs *fs = rsb_control_config(client->control)->fs;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf json = { .max = 65536 };
	struct rsb_ctl_status_rep rep;
	struct rsb_ctl_trust_req req;
	int r;

	if (rsb_codec_decode(&rsb_desc_rsb_ctl_trust_req, head->body, &req) < 0) {
		rsb_guest_kick(client);
		return;
	}
	r = trust(fs, req.path, &json);
	rep.json = rsb_buf_view(&json);
	rsb_guest_reply(client, head->op, head->id, r, &rep);
}

/* What nobody was told of yet: whoever asks tells it. */
static void
answer_losses(struct rsb_guest *client, const struct rsb_call_head *head)
{
	struct rsb_fs *fs = rsb_control_config(client->control)->fs;
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *object = rsb_json_new_object();
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf json = { .max = 65536 };
	struct rsb_ctl_status_rep rep;
	int r = -ENOMEM;

	rsb_mutex_lock(&fs->lock);
	if (object)
		r = rsb_losses_tell(fs->shared, object);
	rsb_mutex_unlock(&fs->lock);
	if (r >= 0)
		r = rsb_json_write(object, false, &json);
	rep.json = rsb_buf_view(&json);
	rsb_guest_reply(client, head->op, head->id, r, &rep);
}

static void
answer_stop(struct rsb_guest *client, const struct rsb_call_head *head)
{
	struct rsb_ctl_stop_req req;

	if (rsb_codec_decode(&rsb_desc_rsb_ctl_stop_req, head->body, &req) < 0)
		rsb_guest_kick(client);
	else
		rsb_control_ask_stop(client->control, client, head->id, &req);
}

static void
answer_upgrade(struct rsb_guest *client, const struct rsb_call_head *head)
{
	struct rsb_ctl_upgrade_rep rep = { .pid = (uint64_t)getpid() };
	struct rsb_ctl_upgrade_req req;
	int program = -1;
	int r = 0;

	if (rsb_codec_decode(&rsb_desc_rsb_ctl_upgrade_req, head->body, &req) < 0) {
		rsb_guest_kick(client);
		return;
	}
	if (req.program.size)
		r = rsb_giveway_check(client->control, &req, &program);
	rep.outcome = rsb_giveway_outcome(client->control);
	rsb_guest_reply(client, head->op, head->id, r, &rep);
	if (program >= 0)
		rsb_giveway_go(client->control, program);
}

static void
on_message(void *arg, const struct rsb_call_head *head)
{
	struct rsb_guest *client = arg;

	if (client->kicked)
		return;
	/* Replies are not expected here: we ask nothing. */
	if (head->op == 0 || (!client->hello && head->op != RSB_OP_ctl_hello &&
				     head->op != RSB_OP_ctl_upgrade)) {
		rsb_guest_kick(client);
		return;
	}
	switch (head->op) {
	case RSB_OP_ctl_hello:
		answer_hello(client, head);
		break;
	case RSB_OP_ctl_status:
		answer_status(client, head);
		break;
	case RSB_OP_ctl_trust:
		answer_trust(client, head);
		break;
	case RSB_OP_ctl_losses:
		answer_losses(client, head);
		break;
	case RSB_OP_ctl_stop:
		answer_stop(client, head);
		break;
	case RSB_OP_ctl_upgrade:
		answer_upgrade(client, head);
		break;
	case RSB_OP_spawn:
	case RSB_OP_wait:
	case RSB_OP_signal:
	case RSB_OP_kill:
	case RSB_OP_proc_free:
	case RSB_OP_tar_in:
		rsb_relay_call(rsb_control_relay(client->control), client, head);
		break;
	default:
		rsb_guest_reply(client, head->op, head->id, -EOPNOTSUPP, NULL);
		break;
	}
}

static void
on_frame(void *arg, const struct rsb_frame *frame)
{
	struct rsb_guest *client = arg;

	if (client->kicked)
		return;
	if (!client->hello || rsb_chans_input(client->chans, frame) < 0) {
		rsb_guest_kick(client);
		return;
	}
	rsb_guest_pump(client);
	rsb_relay_credit(client);
}

static void
on_closed(void *arg, int r)
{
	struct rsb_guest *client = arg;

	(void)r;
	rsb_guest_kick(client);
}

/* ---- streams ---- */

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct rsb_pipe *pipe = rsb_relay_pipe(arg, chan);

	if (pipe)
		rsb_pipe_stdin(pipe, data, fin);
}

static void
on_writable(void *arg, uint64_t chan)
{
	/* What the link has sent always fits: its window is as large as our buffer. */
	(void)arg;
	(void)chan;
}

static void
on_reset(void *arg, uint64_t chan, int r)
{
	struct rsb_pipe *pipe = rsb_relay_pipe(arg, chan);

	if (pipe)
		rsb_pipe_near_reset(pipe, chan, r);
}

/* ---- life ---- */

int
rsb_guest_new(struct rsb_control *control, uint64_t serial, int fd, struct rsb_guest **ret_client)
{
	static const struct rsb_ctl_ops ctl_ops = {
		.message = on_message,
		.frame = on_frame,
		.closed = on_closed,
	};
	static const struct rsb_chan_ops chan_ops = {
		.data = on_data,
		.writable = on_writable,
		.reset = on_reset,
	};
	struct rsb_guest *client = rsb_new(struct rsb_guest);
	int r;

	if (!client) {
		(void)close(fd);
		return -ENOMEM;
	}
	client->control = control;
	client->serial = serial;
	rsb_list_init(&client->procs);
	r = rsb_ctl_new(rsb_control_config(control)->loop, fd, &ctl_ops, client, &client->ctl);
	if (r >= 0)
		r = rsb_chans_new(&chan_ops, client, &client->chans);
	if (r < 0) {
		rsb_ctl_free(client->ctl);
		free(client);
		return r;
	}
	rsb_chans_attach(client->chans);
	*ret_client = client;
	return 0;
}

void
rsb_guest_free(struct rsb_guest *client)
{
	rsb_relay_drop_client(client);
	/* At the end of all it may be kicked, and not dropped yet. */
	rsb_loop_unpost(rsb_control_config(client->control)->loop, &client->kick);
	rsb_ctl_free(client->ctl);
	rsb_chans_free(client->chans);
	free(client);
}

uint64_t
rsb_guest_serial(const struct rsb_guest *client)
{
	return client->serial;
}

struct rsb_control *
rsb_guest_control(const struct rsb_guest *client)
{
	return client->control;
}

struct rsb_chans *
rsb_guest_chans(struct rsb_guest *client)
{
	return client->chans;
}

struct rsb_list *
rsb_guest_procs(struct rsb_guest *client)
{
	return &client->procs;
}
