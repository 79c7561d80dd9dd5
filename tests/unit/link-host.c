/* SPDX-License-Identifier: MIT */
#include "tests/unit/link-host.h"

#include "proto/auth.h"
#include "util/macro.h"

uint8_t
echo_byte(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 11);
}

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct host *host = arg;

	rsb_mutex_lock(&host->lock);
	host->state = state;
	host->reason = reason;
	host->n_epoch += new_epoch;
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct host *host = arg;
	size_t i;

	rsb_mutex_lock(&host->lock);
	for (i = 0; i < data.size; i++)
		host->damaged |= data.data[i] != echo_byte(host->received + i);
	host->received += data.size;
	host->fin |= fin;
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
	rsb_link_chan_consume(host->link, chan, data.size);
}

static void
on_writable(void *arg, rsb_unused uint64_t chan)
{
	struct host *host = arg;

	rsb_mutex_lock(&host->lock);
	host->writable = true;
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
}

static void
on_reset(void *arg, rsb_unused uint64_t chan, int r)
{
	struct host *host = arg;

	rsb_mutex_lock(&host->lock);
	host->reset = r;
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
}

static void
on_anew(void *arg, uint64_t fifo)
{
	struct host *host = arg;

	rsb_mutex_lock(&host->lock);
	host->n_anew++;
	host->fifo = fifo;
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
}

static uint32_t
on_early(void *arg, const struct rsb_call_head *head)
{
	struct host *host = arg;
	uint32_t op;

	rsb_mutex_lock(&host->lock);
	op = head->id == host->early_call ? RSB_OP_wait : 0;
	host->n_early += op != 0;
	host->early_r = head->error;
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
	return op;
}

static void
on_locks_lost(void *arg)
{
	struct host *host = arg;

	rsb_mutex_lock(&host->lock);
	ck_assert_int_ne(host->state, RSB_LINK_LIVE);
	host->n_locks_lost++;
	rsb_mutex_unlock(&host->lock);
}

static const struct rsb_link_ops link_ops = {
	.state = on_state,
	.anew = on_anew,
	.early = on_early,
	.locks_lost = on_locks_lost,
	.chan_data = on_data,
	.chan_writable = on_writable,
	.chan_reset = on_reset,
};

static void
make_link(struct host *host, uint64_t ping_ns, struct rsb_link_saved *saved)
{
	const struct rsb_link_config config = {
		.key = host->key,
		.sandbox_id = "isandbox",
		.ping_ns = ping_ns,
		.saved = saved,
		.ops = &link_ops,
		.arg = host,
	};

	ck_assert_int_eq(rsb_link_new(&config, &host->link), 0);
}

static void
init(struct host *host, uint64_t ping_ns, struct rsb_link_saved *saved)
{
	*host = (struct host){ 0 };
	rsb_mutex_init(&host->lock);
	rsb_cond_init(&host->cond);
	ck_assert_int_eq(rsb_secret_generate(&host->key, RSB_AUTH_KEY_SIZE), 0);
	host->fake = fake_sidecar_new(&host->key);
	make_link(host, ping_ns, saved);
}

void
host_init(struct host *host, uint64_t ping_ns)
{
	init(host, ping_ns, NULL);
}

void
host_init_saved(struct host *host, struct rsb_link_saved *saved)
{
	init(host, RSB_NSEC_PER_SEC, saved);
}

void
host_replace(struct host *host, struct rsb_link_saved *saved)
{
	rsb_link_free(host->link);
	make_link(host, RSB_NSEC_PER_SEC, saved);
}

void
host_done(struct host *host)
{
	rsb_link_free(host->link);
	fake_sidecar_free(host->fake);
	rsb_cond_done(&host->cond);
	rsb_mutex_done(&host->lock);
}

void
dial(struct host *host)
{
	const struct rsb_link_target target = { .fd = fake_sidecar_connect(host->fake) };

	rsb_mutex_lock(&host->lock);
	host->state = RSB_LINK_CONNECTING;
	rsb_mutex_unlock(&host->lock);
	ck_assert_int_eq(rsb_link_connect(host->link, &target), 0);
}

void
dial_and_wait(struct host *host)
{
	dial(host);
	WAIT_UNTIL(host, host->state == RSB_LINK_LIVE);
}
