/* SPDX-License-Identifier: MIT */
#include "tests/unit/house.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/version.h"
#include "sidecar/dispatch.h"
#include "sidecar/worker.h"

static uint64_t
now(void *arg)
{
	return ((struct house *)arg)->now_ns;
}

void
house_init(struct house *house, const char *journal)
{
	*house = (struct house){ .now_ns = RSB_NSEC_PER_SEC };
	house->clock = (struct rsb_clock){ .now_ns = now, .arg = house };
	house->config.root_fd = open("/tmp", O_PATH | O_CLOEXEC);
	house->config.workspace = "/tmp";
	house->config.journal = journal;
	ck_assert_int_eq(rsb_loop_new(&house->clock, &house->loop), 0);
	ck_assert_int_eq(rsb_workers_new("pool", 1, rsb_dispatch_run, &house->pool), 0);
	ck_assert_int_eq(
		rsb_registry_new(&house->config, house->loop, house->pool, &house->registry), 0);
}

static void
idle(void *arg)
{
	((struct house *)arg)->idle = true;
}

void
house_done(struct house *house)
{
	rsb_registry_end(house->registry, idle, house);
	ck_assert(house->idle);
	rsb_registry_free(house->registry);
	rsb_workers_free(house->pool);
	rsb_loop_free(house->loop);
	(void)close(house->config.root_fd);
}

static void
output(void *arg rsb_unused)
{
}

static void
lost(void *arg, int r rsb_unused)
{
	struct guest *guest = arg;

	guest->n_lost++;
	guest->sess = NULL;
}

int
house_join(struct house *house, const struct rsb_join *join, struct guest *guest)
{
	struct rsb_joined joined;
	int r = rsb_registry_open(house->registry, join, &joined, NULL);

	if (r < 0)
		return r;
	guest->sess = joined.sess;
	guest->resumed = joined.resumed;
	guest->anew = joined.anew;
	return 0;
}

int
house_come(struct house *house, struct guest *guest, const char *sandbox, const char *id)
{
	const struct rsb_hello hello = {
		.sandbox_id = rsb_bytes_str(sandbox),
		.client_id = rsb_bytes_str("client"),
		.session_id = rsb_bytes_str(id),
		.epoch = rsb_bytes_str(guest->epoch),
		.window = RSB_HOST_WINDOW,
		.ping_ms = 1000,
		.calls = guest->calls,
		.fifo = guest->fifo,
	};
	const struct rsb_join join = {
		.hello = &hello,
		.version = RSB_PROTO_VERSION,
		.carrier = &guest->carrier,
	};
	int r;

	guest->carrier = (struct rsb_carrier){ .output = output, .lost = lost, .arg = guest };
	r = house_join(house, &join, guest);
	if (r == 0)
		(void)strcpy(guest->epoch, rsb_registry_epoch(house->registry));
	return r;
}

void
house_leave(struct guest *guest)
{
	rsb_sess_detach(guest->sess, &guest->carrier);
}

int
house_come_again(struct house *house, struct guest *guest, uint64_t incarnation, uint64_t fifo_done)
{
	const struct rsb_hello hello = {
		.sandbox_id = rsb_bytes_str("box"),
		.client_id = rsb_bytes_str("client"),
		.session_id = rsb_bytes_str("1"),
		.epoch = rsb_bytes_str(guest->epoch),
		.window = RSB_HOST_WINDOW,
		.incarnation = incarnation,
		.fifo = 7,
		.fifo_done = fifo_done,
	};
	const struct rsb_join join = {
		.hello = &hello,
		.version = RSB_PROTO_VERSION,
		.carrier = &guest->carrier,
	};

	guest->carrier = (struct rsb_carrier){ .output = output, .lost = lost, .arg = guest };
	return house_join(house, &join, guest);
}
