/* SPDX-License-Identifier: MIT */
#include "keeper/upload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/call.h"
#include "proto/errmap.h"
#include "util/clock.h"
#include "util/str.h"
#include "util/thread.h"

#define BUFFER_MAX ((size_t)4 << 20)

struct rsb_upload {
	struct rsb_link *link;
	uint64_t timeout_ns;
	uint64_t proc;

	struct rsb_mutex lock;
	struct rsb_cond moved;
	bool live;      /* {lock} */
	bool writable;  /* {lock} */
	bool answered;  /* {lock} */
	int r;          /* {lock} negative once it cannot go on; after answered, the result */
	uint64_t steps; /* {lock} anything moved: the deadline begins anew */
	char problem[RSB_DIAG_MAX]; /* {lock} what the far side says */
};

/* Under the lock. */
static void
step_locked(struct rsb_upload *upload) RSB_REQUIRES(upload->lock)
{
	upload->steps++;
	rsb_cond_broadcast(&upload->moved);
}

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct rsb_upload *upload = arg;

	rsb_mutex_lock(&upload->lock);
	if (state == RSB_LINK_LIVE)
		upload->live = true;
	/* The link is ours alone and nobody brings it back. */
	else if (state == RSB_LINK_DOWN && upload->r == 0)
		upload->r = reason < 0 ? reason : -ENOTCONN;
	(void)new_epoch;
	step_locked(upload);
	rsb_mutex_unlock(&upload->lock);
}

static void
on_writable(void *arg, uint64_t chan)
{
	struct rsb_upload *upload = arg;

	(void)chan;
	rsb_mutex_lock(&upload->lock);
	upload->writable = true;
	step_locked(upload);
	rsb_mutex_unlock(&upload->lock);
}

static void
on_reset(void *arg, uint64_t chan, int r)
{
	struct rsb_upload *upload = arg;

	/* The reply to the call tells why; this only wakes the writer. */
	(void)chan;
	(void)r;
	rsb_mutex_lock(&upload->lock);
	upload->writable = true;
	step_locked(upload);
	rsb_mutex_unlock(&upload->lock);
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	(void)arg;
	(void)chan;
	(void)data;
	(void)fin;
}

static const struct rsb_link_ops link_ops = {
	.state = on_state,
	.chan_data = on_data,
	.chan_writable = on_writable,
	.chan_reset = on_reset,
};

static void
on_answer(void *arg, int r, const void *rep)
{
	const struct rsb_tar_in_rep *tar = rep;
	struct rsb_upload *upload = arg;

	rsb_mutex_lock(&upload->lock);
	upload->answered = true;
	if (tar && tar->error)
		r = rsb_errmap_from_wire(tar->error);
	if (r < 0)
		upload->r = r;
	if (tar)
		rsb_str_escape(tar->problem, upload->problem, sizeof upload->problem);
	step_locked(upload);
	rsb_mutex_unlock(&upload->lock);
}

/* Until *flag or an error; the deadline is renewed with every step. */
static int
wait_for(struct rsb_upload *upload, const bool *flag)
{
	uint64_t seen;
	int r = 0;

	rsb_mutex_lock(&upload->lock);
	seen = upload->steps;
	while (!*flag && upload->r == 0 && r == 0) {
		r = rsb_cond_wait_until(
			&upload->moved, &upload->lock, rsb_now_ns() + upload->timeout_ns);
		if (r == -ETIMEDOUT && seen != upload->steps)
			r = 0;
		seen = upload->steps;
	}
	if (upload->r < 0)
		r = upload->r;
	rsb_mutex_unlock(&upload->lock);
	return r;
}

static int
connect_it(struct rsb_upload *upload, const struct rsb_sync_far *far)
{
	struct rsb_link_config config = {
		.ping_ns = RSB_PING_EXEC_MS * RSB_NSEC_PER_MSEC, .ops = &link_ops, .arg = upload
	};
	int r;

	if (strlen(far->sandbox_id) >= sizeof config.sandbox_id)
		return -EINVAL;
	(void)strcpy(config.sandbox_id, far->sandbox_id);
	config.key = *far->key;
	r = rsb_link_new(&config, &upload->link);
	rsb_secret_done(&config.key);
	if (r >= 0)
		r = rsb_link_connect(upload->link, far->target);
	return r < 0 ? r : wait_for(upload, &upload->live);
}

static int
call_it(struct rsb_upload *upload)
{
	struct rsb_tar_in_req req = { 0 };
	int r;

	upload->proc = rsb_link_new_ids(upload->link, 1);
	req.proc = upload->proc;
	r = rsb_link_chan_open_sender(upload->link, RSB_CHAN_STDIN(upload->proc), BUFFER_MAX);
	if (r < 0)
		return r;
	return rsb_call_tar_in_async(
		upload->link, &req, NULL, (struct rsb_call_done){ on_answer, upload }, NULL);
}

int
rsb_upload_open(
	const struct rsb_sync_far *far, struct rsb_upload **ret_upload, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_upload_freep) struct rsb_upload *upload = rsb_new(struct rsb_upload);
	int r;

	if (!upload)
		return -ENOMEM;
	rsb_mutex_init(&upload->lock);
	rsb_cond_init(&upload->moved);
	upload->timeout_ns = far->timeout_ns;
	r = connect_it(upload, far);
	if (r >= 0)
		r = call_it(upload);
	if (r < 0) {
		rsb_upload_explain(upload, r, diag);
		return r;
	}
	*ret_upload = rsb_steal(&upload);
	return 0;
}

void
rsb_upload_free(struct rsb_upload *upload)
{
	if (!upload)
		return;
	rsb_link_free(upload->link);
	rsb_cond_done(&upload->moved);
	rsb_mutex_done(&upload->lock);
	free(upload);
}

int
rsb_upload_write(struct rsb_upload *upload, struct rsb_bytes data)
{
	uint64_t chan = RSB_CHAN_STDIN(upload->proc);

	while (data.size) {
		int n;
		int r;

		rsb_mutex_lock(&upload->lock);
		upload->writable = false;
		r = upload->r;
		rsb_mutex_unlock(&upload->lock);
		if (r < 0)
			return r;
		n = rsb_link_chan_write(upload->link, chan, data);
		/* It gave up: its answer, which says why, is on its way. */
		if (n < 0) {
			r = wait_for(upload, &upload->answered);
			return r < 0 ? r : n;
		}
		data.data += n;
		data.size -= (size_t)n;
		if (data.size) {
			r = wait_for(upload, &upload->writable);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int
rsb_upload_finish(struct rsb_upload *upload, struct rsb_diag *diag)
{
	int r;

	r = rsb_link_chan_finish(upload->link, RSB_CHAN_STDIN(upload->proc));
	/* -EPIPE: it gave up before the end; the answer says why. */
	if (r >= 0 || r == -EPIPE)
		r = wait_for(upload, &upload->answered);
	if (r < 0)
		rsb_upload_explain(upload, r, diag);
	return r;
}

const char *
rsb_upload_remark(const struct rsb_upload *upload)
{
	return upload->problem;
}

void
rsb_upload_explain(struct rsb_upload *upload, int r, struct rsb_diag *diag)
{
	struct rsb_diag why = { 0 };

	if (upload->link)
		rsb_link_why(upload->link, &why);
	rsb_mutex_lock(&upload->lock);
	if (upload->problem[0])
		(void)rsb_diag_set(diag, r, "the sandbox cannot take %s", upload->problem);
	else if (!upload->answered && why.text[0])
		(void)rsb_diag_set(diag, r, "%s", why.text);
	else
		(void)rsb_diag_set(
			diag, r, "the sandbox does not take the files: %s", strerror(-r));
	rsb_mutex_unlock(&upload->lock);
}
