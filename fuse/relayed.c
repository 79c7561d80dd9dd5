/* SPDX-License-Identifier: MIT */
#include "fuse/relayed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuse/losses.h"
#include "fuse/pipe.h"
#include "fuse/send.h"
#include "proto/codec.h"
#include "util/str.h"

/* At our end, which those that wait for it do not wait for without limit. */
#define GRACE_MAX_MS UINT64_C(20000)
#define KILLED_NS (5 * RSB_NSEC_PER_SEC) /* over the grace: SIGKILL, the way there and back */

struct rsb_relayed *
rsb_relayed_find(struct rsb_guest *client, uint64_t near)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, rsb_guest_procs(client)) {
		struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, of_client);

		if (proc->near == near && !proc->freed)
			return proc;
	}
	return NULL;
}

/* There is one: the relay counts as many as the table has. */
static struct rsb_shared_proc *
free_entry(struct rsb_shared *shared)
{
	struct rsb_shared_proc *entry = shared->procs;

	while (entry->far)
		entry++;
	return entry;
}

int
rsb_relayed_new(struct rsb_relay *relay, struct rsb_guest *client, uint64_t near,
	unsigned int streams, struct rsb_relayed **ret_proc)
{
	struct rsb_relayed *proc;
	int r;

	if (rsb_relayed_find(client, near))
		return -EEXIST;
	if (relay->n_proc >= RSB_RELAY_PROCS_MAX)
		return -ENFILE;
	proc = rsb_new(struct rsb_relayed);
	if (!proc)
		return -ENOMEM;
	proc->relay = relay;
	proc->client = rsb_guest_serial(client);
	proc->near = near;
	proc->spare = relay->n_proc >= RSB_RELAY_PROCS_MAX - RSB_RELAY_SPARE;
	proc->far = rsb_link_new_ids(relay->fs->link, 1);
	r = rsb_pipe_new(relay->pipes, client, near, proc->far, streams, &proc->pipe);
	if (r < 0) {
		free(proc);
		return r;
	}
	proc->shared = free_entry(relay->fs->shared);
	proc->shared->left = 0;
	proc->shared->what[0] = '\0';
	rsb_shared_publish(&proc->shared->far, proc->far);
	rsb_list_append(&relay->procs, &proc->all);
	rsb_list_append(rsb_guest_procs(client), &proc->of_client);
	relay->n_proc++;
	*ret_proc = proc;
	return 0;
}

int
rsb_relayed_restore(
	struct rsb_relay *relay, struct rsb_shared_proc *shared, struct rsb_relayed **ret_proc)
{
	struct rsb_relayed *proc = rsb_new(struct rsb_relayed);

	if (!proc)
		return -ENOMEM;
	proc->relay = relay;
	proc->far = shared->far;
	proc->shared = shared;
	proc->alive = true;
	proc->sent = true;
	proc->started = true;
	proc->freed = true;
	proc->before = true;
	rsb_list_init(&proc->of_client);
	rsb_list_append(&relay->procs, &proc->all);
	relay->n_proc++;
	*ret_proc = proc;
	return 0;
}

void
rsb_relayed_describe(struct rsb_relayed *proc, const struct rsb_spawn_req *spawn)
{
	struct rsb_seq argv = spawn->argv;
	struct rsb_bytes word;
	char *what = proc->shared->what;
	size_t at = 0;

	while (at + 1 < RSB_SHARED_WHAT_MAX && rsb_seq_next_bytes(&argv, &word) > 0) {
		if (at)
			what[at++] = ' ';
		rsb_str_escape(word, what + at, RSB_SHARED_WHAT_MAX - at);
		at += strlen(what + at);
	}
}

/* What a daemon that died had not sent yet is unknown to the same sidecar. */
static bool
is_lost(const struct rsb_relayed *proc, int r)
{
	if (!proc->started)
		return r == -EOWNERDEAD;
	return r == -EOWNERDEAD || r == -ERESTART || (r == -ESRCH && !proc->before);
}

void
rsb_relayed_note_end(struct rsb_relayed *proc, int r)
{
	const char *what = proc->shared->what[0] ? proc->shared->what : "(not known)";
	enum rsb_loss kind = proc->started ? RSB_LOSS_LOST : RSB_LOSS_UNKNOWN;
	struct rsb_fs *fs = proc->relay->fs;
	char text[RSB_SHARED_LOSS_MAX];

	if (!proc->alive || !is_lost(proc, r))
		return;
	if (!proc->started)
		(void)snprintf(text, sizeof(text),
			"the sidecar ended before it said whether the command %s began", what);
	else if (proc->shared->left)
		(void)snprintf(text, sizeof(text),
			"what the command %s had left running ended with the sidecar", what);
	else
		(void)snprintf(text, sizeof(text), "the command %s ended with the sidecar", what);
	rsb_mutex_lock(&fs->lock);
	rsb_losses_add(fs->shared, kind, text, proc->client != 0);
	rsb_mutex_unlock(&fs->lock);
}

void
rsb_relay_anew(struct rsb_relay *relay)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &relay->procs) {
		struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, all);

		proc->cut = !proc->sent;
	}
}

void
rsb_relayed_leave(struct rsb_relayed *proc)
{
	if (!proc->alive)
		return;
	proc->alive = false;
	proc->relay->last_ns = rsb_loop_now(proc->relay->loop);
	rsb_barrier_leave(proc->relay->barrier);
}

void
rsb_relay_give_up(struct rsb_relay *relay)
{
	struct rsb_list *pos;

	relay->given_up = true;
	rsb_list_for_each (pos, &relay->procs) {
		struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, all);

		if (proc->pipe)
			rsb_pipe_give_up(proc->pipe);
		rsb_relayed_leave(proc);
	}
}

void
rsb_relayed_free(struct rsb_relayed *proc)
{
	rsb_shared_publish(&proc->shared->far, 0);
	rsb_list_remove(&proc->all);
	rsb_list_remove(&proc->of_client);
	rsb_pipe_free(proc->pipe);
	proc->relay->n_proc--;
	free(proc);
}

void
rsb_relayed_collect(struct rsb_relayed *proc)
{
	struct rsb_fs *fs = proc->relay->fs;
	const struct rsb_proc_req req = { .proc = proc->far };

	if (!proc->freed || proc->alive || proc->n_order)
		return;
	if (proc->started) {
		rsb_mutex_lock(&fs->lock);
		rsb_send_post(fs->send, RSB_OP_proc_free, &req);
		rsb_mutex_unlock(&fs->lock);
	}
	rsb_relayed_free(proc);
}

size_t
rsb_relay_count(const struct rsb_relay *relay, bool attended)
{
	struct rsb_list *pos;
	size_t n = 0;

	rsb_list_for_each (pos, &relay->procs) {
		const struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, all);

		n += attended ? proc->client != 0 : proc->alive;
	}
	return n;
}

/* From here on its end counts as our doing, unless the sandbox has told it. */
static bool
mark_end(struct rsb_relayed *proc)
{
	struct rsb_fs *fs = proc->relay->fs;

	rsb_mutex_lock(&fs->lock);
	proc->ends = !proc->over;
	rsb_mutex_unlock(&fs->lock);
	return proc->ends;
}

static void
end_attended(struct rsb_relay *relay)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &relay->procs) {
		struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, all);

		if (!proc->client || proc->ends || !mark_end(proc))
			continue;
		if (proc->started && proc->alive)
			rsb_relayed_end(proc);
	}
}

void
rsb_relay_close(struct rsb_relay *relay, int r, bool force)
{
	const uint64_t now_ns = rsb_loop_now(relay->loop);

	relay->closed = r;
	if (force)
		relay->grace_ms = rsb_min(relay->grace_ms, GRACE_MAX_MS);
	relay->ends_ns = now_ns + relay->grace_ms * RSB_NSEC_PER_MSEC + KILLED_NS;
	relay->cut_ns = now_ns + RSB_BARRIER_FORCED_S * RSB_NSEC_PER_SEC;
	if (force)
		end_attended(relay);
}

void
rsb_relay_open(struct rsb_relay *relay)
{
	relay->closed = 0;
}

bool
rsb_relay_ends(const struct rsb_relay *relay)
{
	const bool live = rsb_link_state(relay->fs->link) == RSB_LINK_LIVE;
	struct rsb_list *pos;

	if (rsb_loop_now(relay->loop) >= (live ? relay->ends_ns : relay->cut_ns))
		return false;
	rsb_list_for_each (pos, &relay->procs) {
		const struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, all);

		if (proc->ends && proc->sent && proc->alive)
			return true;
	}
	return false;
}

int
rsb_relay_tell(const struct rsb_relay *relay, struct rsb_json *array)
{
	struct rsb_list *pos;
	int r = 0;

	rsb_list_for_each (pos, &relay->procs) {
		const struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, all);

		if (r < 0 || rsb_json_len(array) == RSB_RELAY_TOLD_MAX)
			return r;
		if (proc->client)
			r = rsb_json_set_str(array, NULL, proc->shared->what);
	}
	return r;
}

uint64_t
rsb_relay_idle_ns(const struct rsb_relay *relay)
{
	return rsb_relay_count(relay, false) ? 0 : rsb_loop_now(relay->loop) - relay->last_ns;
}

struct rsb_pipes *
rsb_relay_pipes(struct rsb_relay *relay)
{
	return relay->pipes;
}

struct rsb_pipe *
rsb_relay_pipe(struct rsb_guest *client, uint64_t chan)
{
	struct rsb_relayed *proc = rsb_relayed_find(client, RSB_CHAN_PROC(chan));

	return proc ? proc->pipe : NULL;
}

void
rsb_relay_credit(struct rsb_guest *client)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, rsb_guest_procs(client)) {
		struct rsb_relayed *proc = rsb_list_entry(pos, struct rsb_relayed, of_client);

		if (proc->pipe)
			rsb_pipe_credit(proc->pipe);
	}
}

void
rsb_relayed_part(struct rsb_relayed *proc)
{
	rsb_list_remove(&proc->of_client);
	proc->client = 0;
	proc->freed = true;
}

bool
rsb_relayed_leaves_too_much(struct rsb_relayed *proc)
{
	struct rsb_fs *fs = proc->relay->fs;
	char text[RSB_SHARED_LOSS_MAX];

	if (!proc->spare || !proc->started || !proc->alive)
		return false;
	(void)snprintf(text, sizeof(text),
		"what the command %s had left running was ended: %u others have left something running",
		proc->shared->what, RSB_RELAY_PROCS_MAX - RSB_RELAY_SPARE);
	rsb_mutex_lock(&fs->lock);
	rsb_losses_add(fs->shared, RSB_LOSS_LOST, text, false);
	rsb_mutex_unlock(&fs->lock);
	return true;
}
