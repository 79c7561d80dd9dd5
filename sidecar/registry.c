/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "registry"
#include "sidecar/registry.h"

#include <errno.h>
#include <string.h>

#include "sidecar/epoch.h"
#include "sidecar/journal.h"
#include "sidecar/lock.h"
#include "util/cleanup.h"
#include "util/log.h"

#define ID_MAX 16u
#define SANDBOX_MAX 128u
#define SWEEP_NS (60 * RSB_NSEC_PER_SEC)
/* In sweeps, which are none while the sandbox is paused, whatever its clock says afterwards. */
#define AWAY_MAX (24 * 3600 * RSB_NSEC_PER_SEC / SWEEP_NS)
#define LOCKS_AWAY_MAX (RSB_LOCKS_AWAY_MS * RSB_NSEC_PER_MSEC / SWEEP_NS)
#define PING_MIN_MS 100u
#define PING_MAX_MS 60000u

struct entry {
	struct rsb_sess *sess; /* NULL: free */
	uint8_t client[ID_MAX];
	uint8_t session[ID_MAX];
	size_t client_size;
	size_t session_size;
	bool has_anew;       /* hosts that name the next one may not have heard of this epoch */
	uint64_t epoch_anew; /* in which it was before it went on anew */
};

struct rsb_registry {
	const struct rsb_sidecar_config *config; /* {const after new} */
	struct rsb_loop *loop;                   /* {const after new} */
	struct rsb_workers *pool;                /* {const after new} */
	struct rsb_timer *sweep;
	struct rsb_journal *journal; /* NULL: none */
	struct entry entries[RSB_SESSIONS_MAX];
	size_t n_ending; /* sessions that left the table and still clean up */
	uint8_t sandbox[SANDBOX_MAX];
	size_t sandbox_size;
	bool has_sandbox;
	struct rsb_epoch epoch;
	void (*idle)(void *arg);
	void *idle_arg;
};

static void
ended(void *arg)
{
	struct rsb_registry *registry = arg;

	registry->n_ending--;
	if (registry->n_ending == 0 && registry->idle)
		registry->idle(registry->idle_arg);
}

/* Its process goes on in the journal, if it has one. */
static void
drop_entry(struct rsb_registry *registry, struct entry *entry)
{
	struct rsb_sess *sess = rsb_steal(&entry->sess);

	registry->n_ending++;
	rsb_sess_end(sess, ended, registry);
}

static void
end_entry(struct rsb_registry *registry, struct entry *entry)
{
	rsb_journal_forget(entry->sess->part);
	drop_entry(registry, entry);
}

static void
drop_all(struct rsb_registry *registry)
{
	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++)
		if (registry->entries[i].sess)
			drop_entry(registry, &registry->entries[i]);
}

static void
sweep_entry(struct rsb_registry *registry, struct entry *entry)
{
	struct rsb_sess *sess = entry->sess;

	if (!sess || sess->carrier)
		return;
	sess->n_away++;
	if (sess->n_away > AWAY_MAX)
		end_entry(registry, entry);
	else if (sess->n_away > LOCKS_AWAY_MAX && rsb_locks_give_up(sess->locks, sess->fhs))
		sess->lock_losses++;
}

static void
sweep(void *arg)
{
	struct rsb_registry *registry = arg;

	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++)
		sweep_entry(registry, &registry->entries[i]);
	rsb_timer_set(registry->sweep, rsb_loop_now(registry->loop) + SWEEP_NS);
}

/* Without one it serves as well, but sessions end with this process. */
static void
open_journal(struct rsb_registry *registry)
{
	const struct rsb_sidecar_config *config = registry->config;
	struct rsb_bytes sandbox;
	int r;

	if (!config->journal)
		return;
	r = rsb_journal_open(
		config->journal, registry->epoch.boot_id, config->root_fd, &registry->journal);
	if (r < 0) {
		rsb_info("no journal in %s: %s", config->journal, strerror(-r));
		return;
	}
	sandbox = rsb_journal_sandbox(registry->journal);
	registry->has_sandbox = sandbox.size > 0;
	registry->sandbox_size = sandbox.size;
	if (sandbox.size > 0)
		memcpy(registry->sandbox, sandbox.data, sandbox.size);
}

int
rsb_registry_new(const struct rsb_sidecar_config *config, struct rsb_loop *loop,
	struct rsb_workers *pool, struct rsb_registry **ret_registry)
{
	rsb_autofree struct rsb_registry *registry = rsb_new(struct rsb_registry);
	int r;

	if (!registry)
		return -ENOMEM;
	registry->config = config;
	registry->loop = loop;
	registry->pool = pool;
	r = rsb_epoch_init(&registry->epoch);
	if (r < 0)
		return r;
	r = rsb_timer_new(loop, sweep, registry, &registry->sweep);
	if (r < 0)
		return r;
	rsb_timer_set(registry->sweep, rsb_loop_now(loop) + SWEEP_NS);
	open_journal(registry);
	*ret_registry = rsb_steal(&registry);
	return 0;
}

void
rsb_registry_free(struct rsb_registry *registry)
{
	if (!registry)
		return;
	rsb_timer_del(registry->sweep);
	rsb_journal_close(registry->journal);
	free(registry);
}

const char *
rsb_registry_epoch(const struct rsb_registry *registry)
{
	return registry->epoch.text;
}

const char *
rsb_registry_boot_id(const struct rsb_registry *registry)
{
	return registry->epoch.boot_id;
}

/* This memory is not what any host knew. */
static void
next_generation(struct rsb_registry *registry)
{
	if (registry->journal)
		rsb_journal_forget_all(registry->journal);
	drop_all(registry);
	rsb_epoch_next(&registry->epoch);
}

static void
check_sandbox(struct rsb_registry *registry, struct rsb_bytes id)
{
	if (registry->has_sandbox && registry->sandbox_size == id.size &&
		memcmp(registry->sandbox, id.data, id.size) == 0)
		return;
	if (registry->has_sandbox) {
		rsb_info("another sandbox id: this is a fork, all sessions end");
		next_generation(registry);
	}
	registry->has_sandbox = true;
	registry->sandbox_size = rsb_min(id.size, SANDBOX_MAX);
	if (id.size > 0)
		memcpy(registry->sandbox, id.data, registry->sandbox_size);
	if (registry->journal)
		rsb_journal_set_sandbox(registry->journal, id);
}

static bool
same_id(const uint8_t *have, size_t size, struct rsb_bytes id)
{
	return size == id.size && (size == 0 || memcmp(have, id.data, size) == 0);
}

static struct entry *
find(struct rsb_registry *registry, const struct rsb_hello *hello)
{
	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++) {
		struct entry *entry = &registry->entries[i];

		if (entry->sess && same_id(entry->client, entry->client_size, hello->client_id) &&
			same_id(entry->session, entry->session_size, hello->session_id))
			return entry;
	}
	return NULL;
}

/* A free place, if need be that of the session detached longest; NULL: all are attached. */
static struct entry *
find_free(struct rsb_registry *registry)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++) {
		struct entry *entry = &registry->entries[i];

		if (!entry->sess)
			return entry;
		if (!entry->sess->carrier &&
			(!oldest || entry->sess->detached_ns < oldest->sess->detached_ns))
			oldest = entry;
	}
	if (oldest)
		end_entry(registry, oldest);
	return oldest;
}

static void
copy_id(struct rsb_bytes id, uint8_t *out, size_t *ret_size)
{
	*ret_size = rsb_min(id.size, ID_MAX);
	if (id.size > 0)
		memcpy(out, id.data, *ret_size);
}

static int
make_entry(struct rsb_registry *registry, const struct rsb_hello *hello, struct entry **ret_entry,
	struct rsb_diag *diag)
{
	uint64_t ping_ms = hello->ping_ms
				   ? rsb_min(rsb_max(hello->ping_ms, PING_MIN_MS), PING_MAX_MS)
				   : RSB_PING_EXEC_MS;
	struct entry *entry = find_free(registry);
	int r;

	if (!entry)
		return rsb_diag_set(
			diag, -EMFILE, "%u sessions are connected already", RSB_SESSIONS_MAX);
	r = rsb_sess_new(registry->config, registry->loop, registry->pool,
		ping_ms * RSB_NSEC_PER_MSEC, &entry->sess);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot make a session");
	entry->has_anew = false;
	entry->sess->incarnation = hello->incarnation;
	copy_id(hello->client_id, entry->client, &entry->client_size);
	copy_id(hello->session_id, entry->session, &entry->session_size);
	*ret_entry = entry;
	return 0;
}

/* For its mutations to be known to the next process. */
static void
enter_journal(struct rsb_registry *registry, const struct rsb_hello *hello, struct rsb_sess *sess)
{
	const struct rsb_journal_session session = {
		.client = hello->client_id,
		.id = hello->session_id,
	};

	if (!registry->journal || !hello->calls)
		return;
	sess->part = rsb_journal_new_part(registry->journal, &session, registry->epoch.number);
	if (!sess->part) {
		rsb_info("no room in the journal: the session ends with this process");
		return;
	}
	rsb_journal_hold(sess->part, true);
	rsb_journal_set_incarnation(sess->part, hello->incarnation);
}

/*
 * The host knew less when it sent this than when it spoke on the connection that is there: the
 * hello was held up on its way, and its connection was given up since.
 */
static bool
is_late(const struct entry *entry, const struct rsb_stream_state *peer)
{
	struct rsb_stream_state mine;

	rsb_stream_state(rsb_session_stream(entry->sess->proto), &mine);
	return entry->sess->carrier && peer->received < mine.acked;
}

/*
 * 1: this process of the host is another one than before, and begins anew with what it has here.
 * 0: the same one. Its counts of mutations tell whether this memory is the one that it knew.
 */
static int
change_host(struct entry *entry, const struct rsb_hello *hello, struct rsb_diag *diag)
{
	struct rsb_sess *sess = entry->sess;

	if (hello->incarnation == sess->incarnation)
		return 0;
	if (hello->incarnation < sess->incarnation)
		return rsb_diag_set(diag, -EBUSY, "a newer process has taken over this session");
	if (sess->fifo_seen < hello->fifo_done || sess->fifo_seen > hello->fifo)
		return -ESTALE;
	rsb_info("the host's process is another one: its session goes on");
	if (sess->part)
		rsb_journal_set_incarnation(sess->part, hello->incarnation);
	return rsb_sess_restart(sess, hello->incarnation) < 0 ? -ESTALE : 1;
}

/*
 * Of another epoch. It went on anew already, but the host has not heard of it: then it comes again,
 * and nothing was done since: 0. -EBUSY: the hello was held up.
 */
static int
leave_epoch(struct rsb_registry *registry, struct entry *entry, const struct rsb_hello *hello,
	struct rsb_diag *diag)
{
	struct rsb_stream_state state;

	rsb_stream_state(rsb_session_stream(entry->sess->proto), &state);
	if (!entry->has_anew || !rsb_epoch_is(&registry->epoch, entry->epoch_anew, hello->epoch)) {
		end_entry(registry, entry);
		return 0;
	}
	if (state.received > 0)
		return rsb_diag_set(diag, -EBUSY, "a newer connection of this session is there");
	/* Given back at once: the end may come later. */
	rsb_journal_hold(rsb_steal(&entry->sess->part), false);
	drop_entry(registry, entry);
	return 0;
}

/* Goes on with the session of before: 1. 0: there is none, or nothing of it can be used. */
static int
resume(struct rsb_registry *registry, const struct rsb_join *join, struct rsb_sess **ret_sess,
	struct rsb_diag *diag)
{
	const struct rsb_hello *hello = join->hello;
	const struct rsb_epoch *epoch = &registry->epoch;
	struct rsb_stream_state peer = {
		.received = hello->received,
		.acked = hello->acked,
		.limit = hello->window,
		.digest = hello->digest,
	};
	struct entry *entry = find(registry, hello);
	int r;

	if (!entry)
		return 0;
	if (entry->sess->broken) {
		end_entry(registry, entry);
		return 0;
	}
	if (!rsb_epoch_is(epoch, epoch->number, hello->epoch))
		return leave_epoch(registry, entry, hello, diag);
	r = change_host(entry, hello, diag);
	if (r < 0 && r != -ESTALE)
		return r;
	if (r == 0 && is_late(entry, &peer))
		return rsb_diag_set(diag, -EBUSY, "a newer connection of this session is there");
	if (r >= 0)
		r = rsb_sess_attach(entry->sess, join->carrier, join->version, &peer, join->zip);
	if (r < 0) {
		rsb_info("the host and this memory do not fit together: all sessions end");
		next_generation(registry);
		return 0;
	}
	*ret_sess = entry->sess;
	return 1;
}

/* What the journal has of the session that hello names, if that is what the host knows. */
static struct rsb_journal_part *
find_part(struct rsb_registry *registry, const struct rsb_hello *hello)
{
	const struct rsb_journal_session session = {
		.client = hello->client_id,
		.id = hello->session_id,
	};
	const struct rsb_epoch *epoch = &registry->epoch;
	struct rsb_journal_part *part;
	uint64_t begun;

	part = registry->journal ? rsb_journal_find(registry->journal, &session) : NULL;
	if (!part)
		return NULL;
	begun = rsb_journal_begun(part);
	if (hello->calls && begun >= hello->fifo_done && begun <= hello->fifo &&
		(rsb_epoch_is(epoch, rsb_journal_epoch(part), hello->epoch) ||
			rsb_epoch_is(epoch, rsb_journal_epoch_before(part), hello->epoch)))
		return part;
	rsb_journal_forget(part);
	return NULL;
}

/* Goes on with the session of a process before this one: 1. 0: there is none. */
static int
come_anew(struct rsb_registry *registry, const struct rsb_join *join, struct rsb_sess **ret_sess,
	struct rsb_diag *diag)
{
	/* Its limit is of the stream of before; that of the new one comes with its first ACK. */
	const struct rsb_stream_state unknown = { .limit = 0 };
	struct rsb_journal_part *part = find_part(registry, join->hello);
	const struct rsb_epoch *epoch = &registry->epoch;
	struct entry *entry;
	int r;

	if (!part)
		return 0;
	if (join->hello->incarnation < rsb_journal_incarnation(part))
		return rsb_diag_set(diag, -EBUSY, "a newer process has taken over this session");
	r = make_entry(registry, join->hello, &entry, diag);
	if (r < 0)
		return r;
	r = rsb_sess_revive(entry->sess, part, join->hello->calls);
	if (r == 0)
		r = rsb_sess_attach(entry->sess, join->carrier, join->version, &unknown, join->zip);
	if (r < 0) {
		drop_entry(registry, entry);
		return rsb_diag_set(diag, r, "cannot go on with the session");
	}
	entry->has_anew = true;
	entry->epoch_anew = rsb_journal_epoch(part);
	if (!rsb_epoch_is(epoch, entry->epoch_anew, join->hello->epoch))
		entry->epoch_anew = rsb_journal_epoch_before(part);
	rsb_journal_set_incarnation(part, join->hello->incarnation);
	rsb_journal_set_epoch(part, entry->epoch_anew, epoch->number);
	rsb_info("a session of the process before goes on");
	*ret_sess = entry->sess;
	return 1;
}

int
rsb_registry_open(struct rsb_registry *registry, const struct rsb_join *join,
	struct rsb_joined *ret_joined, struct rsb_diag *diag)
{
	const struct rsb_stream_state fresh = { .limit = join->hello->window };
	struct entry *entry = NULL;
	int r;

	*ret_joined = (struct rsb_joined){ .resumed = false };

	if (registry->idle)
		return rsb_diag_set(diag, -ESHUTDOWN, "the sidecar is ending");
	check_sandbox(registry, join->hello->sandbox_id);
	r = resume(registry, join, &ret_joined->sess, diag);
	ret_joined->resumed = r > 0;
	if (r == 0) {
		r = come_anew(registry, join, &ret_joined->sess, diag);
		ret_joined->anew = r > 0;
	}
	if (r != 0)
		return rsb_min(r, 0);
	r = make_entry(registry, join->hello, &entry, diag);
	if (r < 0)
		return r;
	enter_journal(registry, join->hello, entry->sess);
	r = rsb_sess_attach(entry->sess, join->carrier, join->version, &fresh, join->zip);
	if (r < 0) {
		end_entry(registry, entry);
		return rsb_diag_set(diag, r, "hello makes no sense");
	}
	ret_joined->sess = entry->sess;
	return 0;
}

void
rsb_registry_end(struct rsb_registry *registry, void (*idle)(void *arg), void *arg)
{
	registry->idle = idle;
	registry->idle_arg = arg;
	/* Counted as one more, so that a session that ends at once does not come first. */
	registry->n_ending++;
	drop_all(registry);
	ended(registry);
}
