/* SPDX-License-Identifier: MIT */
#include "sidecar/local/sandboxes.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/secret.h"
#include "util/thread.h"

struct rsb_sandboxes {
	struct rsb_mutex lock;
	struct rsb_cond changed;
	struct rsb_sandbox *list[RSB_SANDBOXES_MAX]; /* {lock} */
	size_t n;                                    /* {lock} */
	size_t n_place;                              /* {lock} held */
	uint32_t next_slot;                          /* {lock} */
	bool closed;                                 /* {lock} */
	size_t max;                                  /* const after new */
};

int
rsb_sandboxes_new(size_t max, struct rsb_sandboxes **ret_sandboxes)
{
	rsb_autofree struct rsb_sandboxes *sandboxes = rsb_new(struct rsb_sandboxes);
	int r;

	if (!sandboxes)
		return -ENOMEM;
	/* At random, so that the ids of two servers on one machine hardly meet. */
	r = rsb_random(&sandboxes->next_slot, sizeof(sandboxes->next_slot));
	if (r < 0)
		return r;
	sandboxes->max = rsb_min(max, (size_t)RSB_SANDBOXES_MAX);
	rsb_mutex_init(&sandboxes->lock);
	rsb_cond_init(&sandboxes->changed);
	*ret_sandboxes = rsb_steal(&sandboxes);
	return 0;
}

void
rsb_sandboxes_free(struct rsb_sandboxes *sandboxes)
{
	if (!sandboxes)
		return;
	rsb_cond_done(&sandboxes->changed);
	rsb_mutex_done(&sandboxes->lock);
	free(sandboxes);
}

int
rsb_sandboxes_reserve(struct rsb_sandboxes *sandboxes, uint32_t *ret_slot)
{
	int r = 0;

	rsb_mutex_lock(&sandboxes->lock);
	if (sandboxes->closed) {
		r = -ESHUTDOWN;
	} else if (sandboxes->n_place >= sandboxes->max) {
		r = -EAGAIN;
	} else {
		sandboxes->n_place++;
		*ret_slot = sandboxes->next_slot++;
	}
	rsb_mutex_unlock(&sandboxes->lock);
	return r;
}

void
rsb_sandboxes_release(struct rsb_sandboxes *sandboxes)
{
	rsb_mutex_lock(&sandboxes->lock);
	sandboxes->n_place--;
	rsb_cond_broadcast(&sandboxes->changed);
	rsb_mutex_unlock(&sandboxes->lock);
}

int
rsb_sandboxes_add(struct rsb_sandboxes *sandboxes, struct rsb_sandbox *sandbox)
{
	struct rsb_sandbox *ref = rsb_sandbox_ref(sandbox);
	int r = -ESHUTDOWN;

	rsb_mutex_lock(&sandboxes->lock);
	/* Each has a place, of which there are no more than in the list. */
	if (!sandboxes->closed) {
		sandboxes->list[sandboxes->n++] = ref;
		r = 0;
	}
	rsb_mutex_unlock(&sandboxes->lock);
	if (r < 0)
		rsb_sandbox_unref(ref);
	else if (!rsb_sandbox_alive(sandbox))
		rsb_sandboxes_remove(sandboxes, sandbox); /* it left before it came in */
	return r;
}

struct rsb_sandbox *
rsb_sandboxes_find(struct rsb_sandboxes *sandboxes, const char *id)
{
	struct rsb_sandbox *list[RSB_SANDBOXES_MAX];
	struct rsb_sandbox *found = NULL;
	size_t n = rsb_sandboxes_list(sandboxes, list);

	for (size_t i = 0; i < n; i++) {
		if (!found && strcmp(rsb_sandbox_id(list[i]), id) == 0)
			found = list[i];
		else
			rsb_sandbox_unref(list[i]);
	}
	return found;
}

/* The list's reference, or NULL. */
static struct rsb_sandbox *
take_locked(struct rsb_sandboxes *sandboxes, const char *id) RSB_REQUIRES(sandboxes->lock)
{
	for (size_t i = 0; i < sandboxes->n; i++) {
		struct rsb_sandbox *sandbox = sandboxes->list[i];

		if (strcmp(rsb_sandbox_id(sandbox), id) != 0)
			continue;
		sandboxes->n--;
		for (; i < sandboxes->n; i++)
			sandboxes->list[i] = sandboxes->list[i + 1];
		return sandbox;
	}
	return NULL;
}

struct rsb_sandbox *
rsb_sandboxes_take(struct rsb_sandboxes *sandboxes, const char *id)
{
	struct rsb_sandbox *sandbox;

	rsb_mutex_lock(&sandboxes->lock);
	sandbox = take_locked(sandboxes, id);
	rsb_mutex_unlock(&sandboxes->lock);
	return sandbox;
}

void
rsb_sandboxes_remove(struct rsb_sandboxes *sandboxes, struct rsb_sandbox *sandbox)
{
	rsb_sandbox_unref(rsb_sandboxes_take(sandboxes, rsb_sandbox_id(sandbox)));
}

size_t
rsb_sandboxes_list(
	struct rsb_sandboxes *sandboxes, struct rsb_sandbox *list[static RSB_SANDBOXES_MAX])
{
	size_t n;

	rsb_mutex_lock(&sandboxes->lock);
	n = sandboxes->n;
	/* The sandbox's own lock is taken inside, and never the other way round. */
	for (size_t i = 0; i < n; i++)
		list[i] = rsb_sandbox_ref(sandboxes->list[i]);
	rsb_mutex_unlock(&sandboxes->lock);
	return n;
}

size_t
rsb_sandboxes_len(struct rsb_sandboxes *sandboxes)
{
	size_t n;

	rsb_mutex_lock(&sandboxes->lock);
	n = sandboxes->n_place;
	rsb_mutex_unlock(&sandboxes->lock);
	return n;
}

size_t
rsb_sandboxes_max(const struct rsb_sandboxes *sandboxes)
{
	return sandboxes->max;
}

void
rsb_sandboxes_close(struct rsb_sandboxes *sandboxes)
{
	struct rsb_sandbox *list[RSB_SANDBOXES_MAX];
	size_t n;

	rsb_mutex_lock(&sandboxes->lock);
	sandboxes->closed = true;
	rsb_mutex_unlock(&sandboxes->lock);
	n = rsb_sandboxes_list(sandboxes, list);
	for (size_t i = 0; i < n; i++) {
		rsb_sandboxes_remove(sandboxes, list[i]);
		rsb_sandbox_kill(list[i]);
		rsb_sandbox_unref(list[i]);
	}
	rsb_mutex_lock(&sandboxes->lock);
	while (sandboxes->n_place > 0)
		rsb_cond_wait(&sandboxes->changed, &sandboxes->lock);
	rsb_mutex_unlock(&sandboxes->lock);
}
