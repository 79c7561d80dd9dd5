/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/session.h"
#include "proto/version.h"
#include "sidecar/dispatch.h"
#include "sidecar/registry.h"
#include "sidecar/worker.h"
#include "tests/unit/unit.h"
#include "util/clock.h"

/* A registry, and hosts of which only the hello matters. */
struct house {
	struct rsb_sidecar_config config;
	struct rsb_loop *loop;
	struct rsb_workers *pool;
	struct rsb_registry *registry;
	uint64_t now_ns;
	struct rsb_clock clock;
	bool idle;
};

struct guest {
	struct rsb_carrier carrier;
	struct rsb_sess *sess;
	bool resumed;
	unsigned int n_lost;
	char epoch[65]; /* what welcome told it */
};

static uint64_t
now(void *arg)
{
	return ((struct house *)arg)->now_ns;
}

static void
house_init(struct house *house)
{
	*house = (struct house){ .now_ns = RSB_NSEC_PER_SEC };
	house->clock = (struct rsb_clock){ .now_ns = now, .arg = house };
	house->config.root_fd = open("/tmp", O_PATH | O_CLOEXEC);
	house->config.workspace = "/tmp";
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

static void
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

static int
join_registry(struct house *house, const struct rsb_join *join, struct guest *guest)
{
	struct rsb_joined joined;
	int r = rsb_registry_open(house->registry, join, &joined, NULL);

	if (r < 0)
		return r;
	guest->sess = joined.sess;
	guest->resumed = joined.resumed;
	return 0;
}

/* id: of the session, one character. */
static int
come(struct house *house, struct guest *guest, const char *sandbox, const char *id)
{
	const struct rsb_hello hello = {
		.sandbox_id = rsb_bytes_str(sandbox),
		.client_id = rsb_bytes_str("client"),
		.session_id = rsb_bytes_str(id),
		.epoch = rsb_bytes_str(guest->epoch),
		.window = RSB_HOST_WINDOW,
		.ping_ms = 1000,
	};
	const struct rsb_join join = {
		.hello = &hello,
		.version = RSB_PROTO_VERSION,
		.carrier = &guest->carrier,
	};
	int r;

	guest->carrier = (struct rsb_carrier){ .output = output, .lost = lost, .arg = guest };
	r = join_registry(house, &join, guest);
	if (r == 0)
		(void)strcpy(guest->epoch, rsb_registry_epoch(house->registry));
	return r;
}

static void
leave(struct guest *guest)
{
	rsb_sess_detach(guest->sess, &guest->carrier);
}

START_TEST(goes_on_with_the_session_of_before)
{
	struct guest guest = { .n_lost = 0 }, other = { .n_lost = 0 };
	struct rsb_sess *sess;
	struct house house;

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	sess = guest.sess;
	ck_assert_int_eq(come(&house, &other, "box", "2"), 0);
	ck_assert_ptr_ne(other.sess, sess);
	leave(&guest);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	ck_assert(guest.resumed);
	ck_assert_ptr_eq(guest.sess, sess);
	house_done(&house);
}
END_TEST

START_TEST(gives_the_session_to_the_newer_connection)
{
	struct guest old = { .n_lost = 0 }, new = { .n_lost = 0 };
	struct house house;

	house_init(&house);
	ck_assert_int_eq(come(&house, &old, "box", "1"), 0);
	(void)strcpy(new.epoch, old.epoch);
	ck_assert_int_eq(come(&house, &new, "box", "1"), 0);
	ck_assert(new.resumed);
	ck_assert_uint_eq(old.n_lost, 1);
	/* The old connection notices late, and takes nothing away. */
	rsb_sess_detach(new.sess, &old.carrier);
	ck_assert_ptr_eq(new.sess->carrier, &new.carrier);
	house_done(&house);
}
END_TEST

START_TEST(refuses_a_hello_that_was_held_up)
{
	struct guest guest = { .n_lost = 0 }, late = { .n_lost = 0 };
	const struct rsb_frame ack = { .type = RSB_FRAME_ACK, .a = 1, .b = RSB_HOST_WINDOW };
	struct rsb_stream *stream;
	struct rsb_frame frame;
	struct house house;

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	stream = rsb_session_stream(guest.sess->proto);
	ck_assert_int_eq(rsb_stream_send(stream, RSB_CLASS_READ, rsb_bytes_str("reply")), 0);
	ck_assert_int_eq(rsb_stream_output(stream, &frame), 1);
	ck_assert_int_eq(rsb_stream_input(stream, &ack), 0);
	/* It says that it has nothing, but on the connection that lives it said more. */
	(void)strcpy(late.epoch, guest.epoch);
	ck_assert_int_eq(come(&house, &late, "box", "1"), -EBUSY);
	ck_assert_uint_eq(guest.n_lost, 0);
	ck_assert_ptr_eq(guest.sess->carrier, &guest.carrier);
	house_done(&house);
}
END_TEST

START_TEST(begins_anew_for_a_host_that_knows_nothing)
{
	struct guest guest = { .n_lost = 0 };
	struct house house;

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	leave(&guest);
	guest.epoch[0] = 0;
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	leave(&guest);
	guest.sess->broken = true;
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	house_done(&house);
}
END_TEST

START_TEST(forgets_all_when_it_was_forked)
{
	struct guest guest = { .n_lost = 0 }, other = { .n_lost = 0 };
	struct house house;
	char before[65];

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	ck_assert_int_eq(come(&house, &other, "box", "2"), 0);
	(void)strcpy(before, guest.epoch);
	ck_assert_int_eq(come(&house, &guest, "copy of box", "1"), 0);
	ck_assert(!guest.resumed);
	ck_assert_str_ne(guest.epoch, before);
	ck_assert_uint_eq(other.n_lost, 1);
	ck_assert_int_eq(come(&house, &other, "copy of box", "2"), 0);
	ck_assert(!other.resumed);
	/* And from now on this is the copy's. */
	leave(&guest);
	ck_assert_int_eq(come(&house, &guest, "copy of box", "1"), 0);
	ck_assert(guest.resumed);
	house_done(&house);
}
END_TEST

START_TEST(forgets_all_when_it_was_rolled_back)
{
	struct guest guest = { .n_lost = 0 };
	struct rsb_hello hello = {
		.sandbox_id = rsb_bytes_str("box"),
		.client_id = rsb_bytes_str("client"),
		.session_id = rsb_bytes_str("1"),
		.window = RSB_HOST_WINDOW,
		.received = 1000,
		.acked = 1000,
	};
	const struct rsb_join join = {
		.hello = &hello, .version = RSB_PROTO_VERSION, .carrier = &guest.carrier
	};
	struct house house;
	char before[65];

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	(void)strcpy(before, guest.epoch);
	hello.epoch = rsb_bytes_str(before);
	leave(&guest);
	/* It acknowledged a thousand messages that this memory has never sent. */
	ck_assert_int_eq(join_registry(&house, &join, &guest), 0);
	ck_assert(!guest.resumed);
	ck_assert_str_ne(rsb_registry_epoch(house.registry), before);
	house_done(&house);
}
END_TEST

START_TEST(makes_room_by_the_session_that_was_left_first)
{
	struct guest guests[RSB_SESSIONS_MAX] = { 0 }, late = { .n_lost = 0 };
	struct house house;
	char id[2] = "a";

	house_init(&house);
	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++, id[0]++)
		ck_assert_int_eq(come(&house, &guests[i], "box", id), 0);
	ck_assert_int_eq(come(&house, &late, "box", "z"), -EMFILE);
	leave(&guests[5]);
	house.now_ns += RSB_NSEC_PER_SEC;
	leave(&guests[3]);
	ck_assert_int_eq(come(&house, &late, "box", "z"), 0);
	ck_assert_int_eq(come(&house, &guests[3], "box", "d"), 0);
	ck_assert(guests[3].resumed);
	leave(&guests[3]);
	ck_assert_int_eq(come(&house, &guests[5], "box", "f"), 0);
	ck_assert(!guests[5].resumed);
	house_done(&house);
}
END_TEST

START_TEST(forgets_a_session_that_nobody_comes_back_to)
{
	struct guest guest = { .n_lost = 0 };
	struct house house;

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	house.now_ns += 48 * 3600 * RSB_NSEC_PER_SEC;
	ck_assert_int_eq(rsb_loop_step(house.loop, 0), 0);
	ck_assert_uint_eq(guest.n_lost, 0);
	leave(&guest);
	house.now_ns += 25 * 3600 * RSB_NSEC_PER_SEC;
	ck_assert_int_eq(rsb_loop_step(house.loop, 0), 0);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	house_done(&house);
}
END_TEST

/* The same session, of another process of the host. */
static int
come_again(struct house *house, struct guest *guest, uint64_t incarnation, uint64_t fifo_done)
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
	return join_registry(house, &join, guest);
}

START_TEST(hands_a_session_on_to_the_next_process)
{
	struct guest guest = { .n_lost = 0 }, next, old;
	struct rsb_sess *sess;
	struct house house;

	house_init(&house);
	ck_assert_int_eq(come(&house, &guest, "box", "1"), 0);
	sess = guest.sess;
	sess->fifo_seen = 5;
	next = guest;
	ck_assert_int_eq(come_again(&house, &next, 1, 3), 0);
	ck_assert_uint_eq(guest.n_lost, 1);
	ck_assert(next.resumed);
	ck_assert_ptr_eq(next.sess, sess);
	/* A hello of the dead one that was held up. */
	old = next;
	ck_assert_int_eq(come(&house, &old, "box", "1"), -EBUSY);
	/* The process after that knows a reply that this memory never gave. */
	ck_assert_int_eq(come_again(&house, &old, 2, 6), 0);
	ck_assert(!old.resumed);
	ck_assert_uint_eq(next.n_lost, 1);
	house_done(&house);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		goes_on_with_the_session_of_before,
		gives_the_session_to_the_newer_connection,
		refuses_a_hello_that_was_held_up,
		hands_a_session_on_to_the_next_process,
		begins_anew_for_a_host_that_knows_nothing,
		forgets_all_when_it_was_forked,
		forgets_all_when_it_was_rolled_back,
		makes_room_by_the_session_that_was_left_first,
		forgets_a_session_that_nobody_comes_back_to,
	};

	return unit_run("registry", tests, RSB_ARRAY_SIZE(tests));
}
