/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "registry"
#include "sidecar/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/secret.h"

#define ID_MAX 16u
#define SANDBOX_MAX 128u
#define EPOCH_SIZE 65
#define BOOT_ID_SIZE 37
#define DETACHED_MAX_NS (24 * 3600 * RSB_NSEC_PER_SEC)
#define SWEEP_NS (60 * RSB_NSEC_PER_SEC)
#define PING_MIN_MS 100u
#define PING_MAX_MS 60000u

struct entry {
	struct rsb_sess *sess; /* NULL: free */
	uint8_t client[ID_MAX];
	uint8_t session[ID_MAX];
	size_t client_size;
	size_t session_size;
};

struct rsb_registry {
	const struct rsb_sidecar_config *config; /* {const after new} */
	struct rsb_loop *loop;                   /* {const after new} */
	struct rsb_workers *pool;                /* {const after new} */
	struct rsb_timer *sweep;
	struct entry entries[RSB_SESSIONS_MAX];
	size_t n_ending; /* sessions that left the table and still clean up */
	uint8_t sandbox[SANDBOX_MAX];
	size_t sandbox_size;
	bool has_sandbox;
	uint32_t nonce;
	uint64_t generation;
	char boot_id[BOOT_ID_SIZE]; /* {const after new} */
	char epoch[EPOCH_SIZE];
	void (*idle)(void *arg);
	void *idle_arg;
};

static void
name_epoch(struct rsb_registry *registry)
{
	(void)snprintf(registry->epoch, sizeof(registry->epoch), "%s:%08" PRIx32 ":%" PRIu64,
		registry->boot_id, registry->nonce, registry->generation);
}

static void
read_boot_id(struct rsb_registry *registry)
{
	rsb_autofree char *text = NULL;

	/* A sandbox may hide it; then the nonce alone tells two starts apart. */
	if (rsb_fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text) < 0)
		return;
	text[strcspn(text, "\n")] = 0;
	if (strlen(text) == BOOT_ID_SIZE - 1)
		memcpy(registry->boot_id, text, BOOT_ID_SIZE);
}

static void
ended(void *arg)
{
	struct rsb_registry *registry = arg;

	registry->n_ending--;
	if (registry->n_ending == 0 && registry->idle)
		registry->idle(registry->idle_arg);
}

static void
end_entry(struct rsb_registry *registry, struct entry *entry)
{
	struct rsb_sess *sess = rsb_steal(&entry->sess);

	registry->n_ending++;
	rsb_sess_end(sess, ended, registry);
}

static void
end_all(struct rsb_registry *registry)
{
	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++)
		if (registry->entries[i].sess)
			end_entry(registry, &registry->entries[i]);
}

static void
sweep(void *arg)
{
	struct rsb_registry *registry = arg;
	uint64_t now_ns = rsb_loop_now(registry->loop);

	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++) {
		struct entry *entry = &registry->entries[i];

		if (entry->sess && !entry->sess->carrier &&
			now_ns - entry->sess->detached_ns > DETACHED_MAX_NS)
			end_entry(registry, entry);
	}
	rsb_timer_set(registry->sweep, now_ns + SWEEP_NS);
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
	r = rsb_random(&registry->nonce, sizeof(registry->nonce));
	if (r < 0)
		return r;
	read_boot_id(registry);
	name_epoch(registry);
	r = rsb_timer_new(loop, sweep, registry, &registry->sweep);
	if (r < 0)
		return r;
	rsb_timer_set(registry->sweep, rsb_loop_now(loop) + SWEEP_NS);
	*ret_registry = rsb_steal(&registry);
	return 0;
}

void
rsb_registry_free(struct rsb_registry *registry)
{
	if (!registry)
		return;
	rsb_timer_del(registry->sweep);
	free(registry);
}

const char *
rsb_registry_epoch(const struct rsb_registry *registry)
{
	return registry->epoch;
}

const char *
rsb_registry_boot_id(const struct rsb_registry *registry)
{
	return registry->boot_id;
}

/* This memory is not what any host knew. */
static void
next_generation(struct rsb_registry *registry)
{
	end_all(registry);
	registry->generation++;
	/* Two copies of one memory count alike; without randomness the count has to do. */
	(void)rsb_random(&registry->nonce, sizeof(registry->nonce));
	name_epoch(registry);
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
open_new(struct rsb_registry *registry, const struct rsb_hello *hello, struct entry **ret_entry,
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
	entry->sess->incarnation = hello->incarnation;
	copy_id(hello->client_id, entry->client, &entry->client_size);
	copy_id(hello->session_id, entry->session, &entry->session_size);
	*ret_entry = entry;
	return 0;
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
	return rsb_sess_restart(sess, hello->incarnation) < 0 ? -ESTALE : 1;
}

/* Goes on with the session of before: 1. 0: there is none, or nothing of it can be used. */
static int
resume(struct rsb_registry *registry, const struct rsb_join *join, struct rsb_sess **ret_sess,
	struct rsb_diag *diag)
{
	const struct rsb_hello *hello = join->hello;
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
	if (entry->sess->broken ||
		!same_id((const uint8_t *)registry->epoch, strlen(registry->epoch), hello->epoch)) {
		end_entry(registry, entry);
		return 0;
	}
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

int
rsb_registry_open(struct rsb_registry *registry, const struct rsb_join *join,
	struct rsb_sess **ret_sess, bool *ret_resumed, struct rsb_diag *diag)
{
	const struct rsb_stream_state fresh = { .limit = join->hello->window };
	struct entry *entry = NULL;
	int r;

	if (registry->idle)
		return rsb_diag_set(diag, -ESHUTDOWN, "the sidecar is ending");
	check_sandbox(registry, join->hello->sandbox_id);
	r = resume(registry, join, ret_sess, diag);
	if (r < 0)
		return r;
	if (r > 0) {
		*ret_resumed = true;
		return 0;
	}
	r = open_new(registry, join->hello, &entry, diag);
	if (r < 0)
		return r;
	r = rsb_sess_attach(entry->sess, join->carrier, join->version, &fresh, join->zip);
	if (r < 0) {
		end_entry(registry, entry);
		return rsb_diag_set(diag, r, "hello makes no sense");
	}
	*ret_sess = entry->sess;
	*ret_resumed = false;
	return 0;
}

void
rsb_registry_end(struct rsb_registry *registry, void (*idle)(void *arg), void *arg)
{
	registry->idle = idle;
	registry->idle_arg = arg;
	/* Counted as one more, so that a session that ends at once does not come first. */
	registry->n_ending++;
	end_all(registry);
	ended(registry);
}
