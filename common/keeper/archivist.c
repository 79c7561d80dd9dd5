/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "archivist"

#include "keeper/archivist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/snapshot.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

#define TIMEOUT_NS (30 * RSB_NSEC_PER_SEC) /* without any progress */
#define NEWS_NS (3 * RSB_NSEC_PER_SEC)     /* for the next news, at the end of one */

struct rsb_archivist {
	struct rsb_archivist_config config; /* const after new */
	pthread_t thread;                   /* const after new */

	struct rsb_mutex lock;
	struct rsb_cond cond;
	struct rsb_snapdue due; /* {lock} */
	uint64_t n_news;        /* {lock} */
	struct rsb_haul *haul;  /* {lock} of the one that is being taken; NULL: none */
	bool stop;              /* {lock} */

	struct rsb_snapdue_news then; /* {archivist} when the one that is being taken began */
	bool begun;                   /* {archivist} it was asked already whether commands run */
	uint64_t waited_ns;           /* {archivist} for news, which costs nothing */
	struct rsb_diag said;         /* {archivist} the last that was told */
};

/* ---- one ---- */

/*
 * At its end only news of later count. Who gets none in time cannot say that nothing ran.
 */
static bool
is_busy(void *arg)
{
	struct rsb_archivist *archivist = arg;
	const uint64_t now_ns = rsb_now_ns();
	uint64_t seen;
	bool busy;
	int r = 0;

	if (!archivist->begun) {
		archivist->begun = true;
		return archivist->then.commands > 0;
	}
	rsb_mutex_lock(&archivist->lock);
	seen = archivist->n_news;
	while (archivist->n_news == seen && !archivist->stop && r == 0)
		r = rsb_cond_wait_until(&archivist->cond, &archivist->lock, now_ns + NEWS_NS);
	busy = archivist->n_news == seen || archivist->due.news.commands > 0 ||
	       archivist->due.news.change != archivist->then.change;
	rsb_mutex_unlock(&archivist->lock);
	archivist->waited_ns += rsb_now_ns() - now_ns;
	return busy;
}

/* From now on it is ended with us. -ECANCELED: that was before. */
static int
set_haul(struct rsb_archivist *archivist, struct rsb_haul *haul)
{
	int r;

	rsb_mutex_lock(&archivist->lock);
	archivist->haul = haul;
	r = archivist->stop ? -ECANCELED : 0;
	rsb_mutex_unlock(&archivist->lock);
	return r;
}

static int
take_with(struct rsb_archivist *archivist, const struct rsb_snapshot *snapshot,
	const struct rsb_sync_far *far, struct rsb_snappoint *ret_point, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_haul_freep) struct rsb_haul *haul = NULL;
	int r = rsb_haul_new(far, &haul);

	if (r >= 0)
		r = set_haul(archivist, haul);
	if (r >= 0)
		r = rsb_haul_connect(haul, diag);
	if (r >= 0)
		r = rsb_snapshot_take(snapshot, haul, ret_point, diag);
	(void)set_haul(archivist, NULL);
	return r;
}

static int
take(struct rsb_archivist *archivist, bool *ret_fuzzy, struct rsb_diag *diag)
{
	const struct rsb_archivist_config *config = &archivist->config;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf patterns = { .max = RSB_SNAPSHOT_PATTERNS_MAX };
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	char id[RSB_SANDBOX_ID_MAX + 1];
	const struct rsb_sync_far far = { .target = &target.target,
		.sandbox_id = id,
		.key = config->key,
		.timeout_ns = TIMEOUT_NS,
		.whole_ns = RSB_SNAPSHOT_WHOLE_NS };
	struct rsb_snapshot snapshot = { .sandbox_id = id,
		.max = config->config->sync.snapshot_max,
		.why = archivist->then.commands ? "running" : "interval",
		.busy = is_busy,
		.arg = archivist };
	struct rsb_snappoint point;
	int r;

	r = rsb_snapstore_open(config->state_dir, 0, &store, diag);
	if (r >= 0)
		r = config->target(config->arg, &target, id);
	if (r >= 0)
		r = rsb_snapshot_patterns(config->config, config->local_dir, &patterns, diag);
	if (r < 0)
		return r;
	snapshot.store = store;
	snapshot.patterns = rsb_buf_view(&patterns);
	archivist->begun = false;
	r = take_with(archivist, &snapshot, &far, &point, diag);
	if (r < 0)
		return r;
	*ret_fuzzy = point.fuzzy > 0;
	rsb_dbg("snapshot %llu: %llu changed, %llu removed, %llu bytes",
		(unsigned long long)point.number, (unsigned long long)point.changed,
		(unsigned long long)point.removed, (unsigned long long)point.moved);
	return 0;
}

/* ---- all of them ---- */

/* A link that breaks, and somebody else who takes one, are no news: the next time, then. */
static void
tell(struct rsb_archivist *archivist, int r, const struct rsb_diag *diag)
{
	const char *why = rsb_diag_text(diag, r);

	if (r >= 0) {
		archivist->said.text[0] = '\0';
		return;
	}
	rsb_dbg("no snapshot: %s", why);
	if (r != -EFBIG && r != -EBADMSG && r != -ENOSPC && r != -EDQUOT && r != -EROFS &&
		r != -EACCES)
		return;
	if (strcmp(archivist->said.text, why) == 0)
		return;
	(void)rsb_diag_set(&archivist->said, r, "%s", why);
	archivist->config.say(archivist->config.arg, archivist->said.text);
}

/* Until one is due. False: the end. */
static bool
wait_due(struct rsb_archivist *archivist)
{
	bool stop;

	rsb_mutex_lock(&archivist->lock);
	for (;;) {
		uint64_t at_ns = rsb_snapdue_at(&archivist->due);

		if (archivist->stop || (at_ns && at_ns <= rsb_now_ns()))
			break;
		if (at_ns)
			(void)rsb_cond_wait_until(&archivist->cond, &archivist->lock, at_ns);
		else
			rsb_cond_wait(&archivist->cond, &archivist->lock);
	}
	stop = archivist->stop;
	archivist->then = archivist->due.news;
	rsb_mutex_unlock(&archivist->lock);
	return !stop;
}

static void *
run(void *arg)
{
	struct rsb_archivist *archivist = arg;

	while (wait_due(archivist)) {
		struct rsb_snapdue_end end = { .then = archivist->then, .begun_ns = rsb_now_ns() };
		struct rsb_diag diag = { 0 };

		archivist->waited_ns = 0;
		end.r = take(archivist, &end.fuzzy, &diag);
		end.begun_ns += archivist->waited_ns;
		end.now_ns = rsb_now_ns();
		rsb_mutex_lock(&archivist->lock);
		rsb_snapdue_ended(&archivist->due, &end);
		rsb_mutex_unlock(&archivist->lock);
		tell(archivist, end.r, &diag);
	}
	return NULL;
}

int
rsb_archivist_new(const struct rsb_archivist_config *config, struct rsb_archivist **ret_archivist)
{
	struct rsb_archivist *archivist = rsb_new(struct rsb_archivist);
	int r;

	if (!archivist)
		return -ENOMEM;
	archivist->config = *config;
	rsb_mutex_init(&archivist->lock);
	rsb_cond_init(&archivist->cond);
	rsb_snapdue_init(&archivist->due, config->config->sync.interval_ns);
	r = rsb_thread_start("archivist", run, archivist, &archivist->thread);
	if (r < 0) {
		rsb_cond_done(&archivist->cond);
		rsb_mutex_done(&archivist->lock);
		free(archivist);
		return r;
	}
	*ret_archivist = archivist;
	return 0;
}

void
rsb_archivist_tell(struct rsb_archivist *archivist, const struct rsb_snapdue_news *news)
{
	rsb_mutex_lock(&archivist->lock);
	rsb_snapdue_tell(&archivist->due, news, rsb_now_ns());
	archivist->n_news++;
	rsb_cond_broadcast(&archivist->cond);
	rsb_mutex_unlock(&archivist->lock);
}

void
rsb_archivist_free(struct rsb_archivist *archivist)
{
	if (!archivist)
		return;
	rsb_mutex_lock(&archivist->lock);
	archivist->stop = true;
	if (archivist->haul)
		rsb_haul_abort(archivist->haul, -ECANCELED);
	rsb_cond_broadcast(&archivist->cond);
	rsb_mutex_unlock(&archivist->lock);
	(void)pthread_join(archivist->thread, NULL); /* it ends by that order alone */
	rsb_cond_done(&archivist->cond);
	rsb_mutex_done(&archivist->lock);
	free(archivist);
}
