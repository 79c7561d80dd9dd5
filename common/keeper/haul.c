/* SPDX-License-Identifier: MIT */
#include "keeper/haul.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/call.h"
#include "proto/errmap.h"
#include "util/clock.h"
#include "util/str.h"
#include "util/thread.h"

#define BUFFER_MAX ((size_t)4 << 20)
#define WINDOW_MAX ((size_t)4 << 20)

struct rsb_haul {
	struct rsb_link *link;
	const struct rsb_sync_far *far;
	uint64_t timeout_ns;
	uint64_t end_ns; /* 0: none */
	uint64_t proc;
	bool reads; /* this call has a stream to us */
	uint64_t since;
	uint64_t bytes;
	struct rsb_haul_said said; /* const once answered */

	struct rsb_mutex lock;
	struct rsb_cond moved;
	bool live;           /* {lock} */
	bool writable;       /* {lock} */
	bool answered;       /* {lock} */
	bool readable;       /* {lock} something is in came, or nothing will be */
	bool fin;            /* {lock} came is the rest */
	struct rsb_buf came; /* {lock} */
	int r;               /* {lock} negative once it cannot go on; after answered, the result */
	uint64_t steps;      /* {lock} anything moved: the deadline begins anew */
	char problem[RSB_DIAG_MAX]; /* {lock} what the far side says */
};

/* Under the lock. */
static void
step_locked(struct rsb_haul *haul) RSB_REQUIRES(haul->lock)
{
	haul->steps++;
	rsb_cond_broadcast(&haul->moved);
}

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct rsb_haul *haul = arg;

	rsb_mutex_lock(&haul->lock);
	if (state == RSB_LINK_LIVE)
		haul->live = true;
	/* The link is ours alone and nobody brings it back. */
	else if (state == RSB_LINK_DOWN && haul->r == 0)
		haul->r = reason < 0 ? reason : -ENOTCONN;
	(void)new_epoch;
	step_locked(haul);
	rsb_mutex_unlock(&haul->lock);
}

static void
on_writable(void *arg, uint64_t chan)
{
	struct rsb_haul *haul = arg;

	(void)chan;
	rsb_mutex_lock(&haul->lock);
	haul->writable = true;
	step_locked(haul);
	rsb_mutex_unlock(&haul->lock);
}

static void
on_reset(void *arg, uint64_t chan, int r)
{
	struct rsb_haul *haul = arg;

	/* The reply to the call tells why; this only wakes the writer. */
	rsb_mutex_lock(&haul->lock);
	haul->writable = true;
	if (chan == RSB_CHAN_STDOUT(haul->proc) && haul->r == 0)
		haul->r = r < 0 ? r : -EPIPE;
	step_locked(haul);
	rsb_mutex_unlock(&haul->lock);
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct rsb_haul *haul = arg;

	rsb_mutex_lock(&haul->lock);
	if (chan == RSB_CHAN_STDOUT(haul->proc)) {
		/* The credit bounds it. */
		if (rsb_buf_append(&haul->came, data.data, data.size) < 0 && haul->r == 0)
			haul->r = -ENOMEM;
		haul->fin = haul->fin || fin;
		haul->readable = true;
	}
	step_locked(haul);
	rsb_mutex_unlock(&haul->lock);
}

static const struct rsb_link_ops link_ops = {
	.state = on_state,
	.chan_data = on_data,
	.chan_writable = on_writable,
	.chan_reset = on_reset,
};

/* error and problem: as the far side says. */
static void
answer(struct rsb_haul *haul, int r, uint64_t error, struct rsb_bytes problem)
{
	rsb_mutex_lock(&haul->lock);
	haul->answered = true;
	/* The answer comes when we have everything, unless something went wrong. */
	if (haul->reads && !haul->fin && r == 0 && !error)
		r = -EPROTO;
	if (error)
		r = rsb_errmap_from_wire(error);
	if (r < 0)
		haul->r = r;
	rsb_str_escape(problem, haul->problem, sizeof haul->problem);
	step_locked(haul);
	rsb_mutex_unlock(&haul->lock);
}

static void
on_tar(void *arg, int r, const void *rep)
{
	const struct rsb_tar_in_rep *tar = rep;

	answer(arg, r, tar ? tar->error : 0, tar ? tar->problem : (struct rsb_bytes){ 0 });
}

static void
on_tree(void *arg, int r, const void *rep)
{
	const struct rsb_tree_out_rep *tree = rep;
	struct rsb_haul *haul = arg;

	if (tree)
		haul->said = (struct rsb_haul_said){
			.entries = tree->entries, .since = tree->since, .kept = tree->kept
		};
	answer(arg, r, tree ? tree->error : 0, tree ? tree->problem : (struct rsb_bytes){ 0 });
}

static bool
is_over(const struct rsb_haul *haul)
{
	return haul->end_ns && rsb_now_ns() >= haul->end_ns;
}

/* Until *flag or an error; the deadline is renewed with every step. */
static int
wait_for(struct rsb_haul *haul, const bool *flag)
{
	uint64_t seen;
	int r = is_over(haul) ? -ETIMEDOUT : 0;

	rsb_mutex_lock(&haul->lock);
	seen = haul->steps;
	while (!*flag && haul->r == 0 && r == 0) {
		uint64_t until_ns = rsb_now_ns() + haul->timeout_ns;

		if (haul->end_ns)
			until_ns = rsb_min(until_ns, haul->end_ns);
		r = rsb_cond_wait_until(&haul->moved, &haul->lock, until_ns);
		if (r == -ETIMEDOUT && seen != haul->steps && !is_over(haul))
			r = 0;
		seen = haul->steps;
	}
	if (haul->r < 0)
		r = haul->r;
	rsb_mutex_unlock(&haul->lock);
	return r;
}

static int
connect_it(struct rsb_haul *haul, const struct rsb_sync_far *far)
{
	struct rsb_link_config config = {
		.ping_ns = RSB_PING_EXEC_MS * RSB_NSEC_PER_MSEC, .ops = &link_ops, .arg = haul
	};
	int r;

	if (strlen(far->sandbox_id) >= sizeof config.sandbox_id)
		return -EINVAL;
	(void)strcpy(config.sandbox_id, far->sandbox_id);
	config.key = *far->key;
	r = rsb_link_new(&config, &haul->link);
	rsb_secret_done(&config.key);
	if (r >= 0)
		r = rsb_link_connect(haul->link, far->target);
	return r < 0 ? r : wait_for(haul, &haul->live);
}

static int
call_tree(struct rsb_haul *haul, enum rsb_haul_what what)
{
	const struct rsb_tree_out_req req = {
		.proc = haul->proc, .what = what, .since = haul->since
	};
	int r;

	haul->reads = true;
	r = rsb_link_chan_open_receiver(haul->link, RSB_CHAN_STDOUT(haul->proc), WINDOW_MAX);
	if (r < 0)
		return r;
	return rsb_call_tree_out_async(
		haul->link, &req, NULL, (struct rsb_call_done){ on_tree, haul }, NULL);
}

int
rsb_haul_begin(struct rsb_haul *haul, enum rsb_haul_what what, struct rsb_diag *diag)
{
	struct rsb_tar_in_req req = { 0 };
	int r;

	rsb_mutex_lock(&haul->lock);
	haul->proc = rsb_link_new_ids(haul->link, 1);
	haul->answered = haul->readable = haul->fin = false;
	rsb_buf_clear(&haul->came);
	rsb_mutex_unlock(&haul->lock);
	haul->reads = false;
	req.proc = haul->proc;
	r = rsb_link_chan_open_sender(haul->link, RSB_CHAN_STDIN(haul->proc), BUFFER_MAX);
	if (r >= 0 && what != RSB_HAUL_IN)
		r = call_tree(haul, what);
	else if (r >= 0)
		r = rsb_call_tar_in_async(
			haul->link, &req, NULL, (struct rsb_call_done){ on_tar, haul }, NULL);
	if (r < 0)
		rsb_haul_explain(haul, r, diag);
	return r;
}

int
rsb_haul_new(const struct rsb_sync_far *far, struct rsb_haul **ret_haul)
{
	struct rsb_haul *haul = rsb_new(struct rsb_haul);

	if (!haul)
		return -ENOMEM;
	rsb_mutex_init(&haul->lock);
	rsb_cond_init(&haul->moved);
	haul->far = far;
	haul->timeout_ns = far->timeout_ns;
	haul->end_ns = far->whole_ns ? rsb_now_ns() + far->whole_ns : 0;
	rsb_buf_init(&haul->came, WINDOW_MAX + RSB_FRAME_MAX);
	*ret_haul = haul;
	return 0;
}

int
rsb_haul_connect(struct rsb_haul *haul, struct rsb_diag *diag)
{
	int r = connect_it(haul, haul->far);

	if (r < 0)
		rsb_haul_explain(haul, r, diag);
	return r;
}

int
rsb_haul_open(const struct rsb_sync_far *far, struct rsb_haul **ret_haul, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_haul_freep) struct rsb_haul *haul = NULL;
	int r = rsb_haul_new(far, &haul);

	if (r >= 0)
		r = rsb_haul_connect(haul, diag);
	if (r < 0)
		return r;
	*ret_haul = rsb_steal(&haul);
	return 0;
}

void
rsb_haul_abort(struct rsb_haul *haul, int r)
{
	rsb_mutex_lock(&haul->lock);
	if (haul->r == 0)
		haul->r = r;
	step_locked(haul);
	rsb_mutex_unlock(&haul->lock);
}

void
rsb_haul_free(struct rsb_haul *haul)
{
	if (!haul)
		return;
	rsb_link_free(haul->link);
	rsb_buf_done(&haul->came);
	rsb_cond_done(&haul->moved);
	rsb_mutex_done(&haul->lock);
	free(haul);
}

int
rsb_haul_write(struct rsb_haul *haul, struct rsb_bytes data)
{
	uint64_t chan = RSB_CHAN_STDIN(haul->proc);

	while (data.size) {
		int n;
		int r;

		rsb_mutex_lock(&haul->lock);
		haul->writable = false;
		r = haul->r;
		rsb_mutex_unlock(&haul->lock);
		if (r < 0)
			return r;
		n = rsb_link_chan_write(haul->link, chan, data);
		/* It gave up: its answer, which says why, is on its way. */
		if (n < 0) {
			r = wait_for(haul, &haul->answered);
			return r < 0 ? r : n;
		}
		data.data += n;
		data.size -= (size_t)n;
		if (data.size) {
			r = wait_for(haul, &haul->writable);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int
rsb_haul_end_writing(struct rsb_haul *haul)
{
	int r = rsb_link_chan_finish(haul->link, RSB_CHAN_STDIN(haul->proc));

	/* -EPIPE: it gave up before the end; the answer says why. */
	return r == -EPIPE ? 0 : r;
}

int
rsb_haul_read(struct rsb_haul *haul, struct rsb_buf *out)
{
	size_t size;
	int r;

	r = wait_for(haul, &haul->readable);
	if (r < 0)
		return r;
	rsb_mutex_lock(&haul->lock);
	size = rsb_buf_len(&haul->came);
	r = rsb_buf_append(out, rsb_buf_head(&haul->came), size);
	rsb_buf_clear(&haul->came);
	haul->readable = haul->fin;
	rsb_mutex_unlock(&haul->lock);
	if (r < 0)
		return r;
	haul->bytes += size;
	if (size)
		rsb_link_chan_consume(haul->link, RSB_CHAN_STDOUT(haul->proc), size);
	return size > 0;
}

uint64_t
rsb_haul_bytes(const struct rsb_haul *haul)
{
	return haul->bytes;
}

int
rsb_haul_finish(struct rsb_haul *haul, struct rsb_diag *diag)
{
	int r = wait_for(haul, &haul->answered);

	if (haul->reads)
		rsb_link_chan_close(haul->link, RSB_CHAN_STDOUT(haul->proc));
	if (r < 0)
		rsb_haul_explain(haul, r, diag);
	return r;
}

void
rsb_haul_set_since(struct rsb_haul *haul, uint64_t since)
{
	haul->since = since;
}

void
rsb_haul_said(const struct rsb_haul *haul, struct rsb_haul_said *ret_said)
{
	*ret_said = haul->said;
}

const char *
rsb_haul_remark(const struct rsb_haul *haul)
{
	return haul->problem;
}

void
rsb_haul_explain(struct rsb_haul *haul, int r, struct rsb_diag *diag)
{
	struct rsb_diag why = { 0 };

	if (haul->link)
		rsb_link_why(haul->link, &why);
	rsb_mutex_lock(&haul->lock);
	if (haul->problem[0])
		(void)rsb_diag_set(diag, r,
			haul->reads ? "the sandbox cannot give its files: %s"
				    : "the sandbox cannot take %s",
			haul->problem);
	else if (!haul->answered && why.text[0])
		(void)rsb_diag_set(diag, r, "%s", why.text);
	else
		(void)rsb_diag_set(diag, r,
			haul->reads ? "the sandbox does not give its files: %s"
				    : "the sandbox does not take the files: %s",
			strerror(-r));
	rsb_mutex_unlock(&haul->lock);
}
