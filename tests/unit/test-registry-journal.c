/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "proto/session.h"
#include "proto/version.h"
#include "sidecar/fh.h"
#include "sidecar/journal.h"
#include "sidecar/lock.h"
#include "tests/unit/house.h"

/* One process of the sidecar after the other, on one journal. */
struct street {
	char path[64];
	struct house house;
};

static void
street_init(struct street *street)
{
	int fd;

	(void)strcpy(street->path, "/tmp/rsb-street-XXXXXX");
	fd = mkstemp(street->path);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	house_init(&street->house, street->path);
}

static void
next_process(struct street *street)
{
	house_done(&street->house);
	house_init(&street->house, street->path);
}

static void
street_done(struct street *street)
{
	house_done(&street->house);
	ck_assert_int_eq(unlink(street->path), 0);
}

static struct guest
new_guest(void)
{
	return (struct guest){ .calls = 1 };
}

/* It makes some. */
static void
mutate(struct guest *guest, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		const struct rsb_journal_call call = {
			.fifo = ++guest->fifo,
			.id = ++guest->calls,
			.op = RSB_OP_mkdir,
		};

		rsb_journal_begin(guest->sess->part, &call);
		rsb_journal_end(guest->sess->part, call.fifo, rsb_bytes_str("reply"));
	}
}

static int
come(struct street *street, struct guest *guest)
{
	return house_come(&street->house, guest, "box", "1");
}

START_TEST(goes_on_with_a_session_of_the_process_before)
{
	struct guest guest = new_guest(), stranger = new_guest();
	struct street street;
	char before[65];

	street_init(&street);
	ck_assert_int_eq(come(&street, &guest), 0);
	ck_assert(!guest.resumed && !guest.anew);
	mutate(&guest, 5);
	for (int i = 0; i < 3; i++) {
		(void)strcpy(before, guest.epoch);
		next_process(&street);
		ck_assert_int_eq(come(&street, &guest), 0);
		ck_assert(!guest.resumed && guest.anew);
		ck_assert_str_ne(guest.epoch, before);
		ck_assert_uint_eq(guest.sess->fifo_seen, 5);
		ck_assert_uint_eq(guest.sess->fifo_done, 5);
	}
	house_leave(&guest);
	ck_assert_int_eq(come(&street, &guest), 0);
	ck_assert(guest.resumed && !guest.anew);
	ck_assert_int_eq(house_come(&street.house, &stranger, "box", "2"), 0);
	ck_assert(!stranger.resumed && !stranger.anew);
	street_done(&street);
}
END_TEST

START_TEST(says_it_again_to_a_host_that_did_not_hear_it)
{
	struct guest guest = new_guest();
	struct street street;
	char before[65];

	street_init(&street);
	ck_assert_int_eq(come(&street, &guest), 0);
	mutate(&guest, 5);
	(void)strcpy(before, guest.epoch);
	/* Two processes say it, the second one twice, and none of it arrives. */
	for (int i = 0; i < 3; i++) {
		if (i != 1)
			next_process(&street);
		(void)strcpy(guest.epoch, before);
		ck_assert_int_eq(come(&street, &guest), 0);
		ck_assert(guest.anew);
		ck_assert_uint_eq(guest.sess->fifo_seen, 5);
	}
	street_done(&street);
}
END_TEST

START_TEST(refuses_hosts_that_were_held_up)
{
	const struct rsb_frame msg = {
		.type = RSB_FRAME_MESSAGE, .a = 1, .payload = rsb_bytes_str("call")
	};
	struct guest guest = new_guest(), late;
	struct street street;

	street_init(&street);
	ck_assert_int_eq(come(&street, &guest), 0);
	mutate(&guest, 5);
	late = guest;
	next_process(&street);
	ck_assert_int_eq(come(&street, &guest), 0);
	ck_assert_int_eq(rsb_stream_input(rsb_session_stream(guest.sess->proto), &msg), 0);
	guest.n_lost = 0;
	ck_assert_int_eq(come(&street, &late), -EBUSY);
	ck_assert_uint_eq(guest.n_lost, 0);
	/* The process of the host that a newer one has replaced. */
	(void)strcpy(late.epoch, guest.epoch);
	ck_assert_int_eq(house_come_again(&street.house, &late, 2, 0), 0);
	next_process(&street);
	late = guest;
	ck_assert_int_eq(come(&street, &late), -EBUSY);
	street_done(&street);
}
END_TEST

START_TEST(begins_anew_only_with_what_fits)
{
	for (int i = 0; i < 6; i++) {
		struct guest guest = new_guest();
		struct street street;
		int r;

		street_init(&street);
		ck_assert_int_eq(come(&street, &guest), 0);
		mutate(&guest, 5);
		if (i == 5) /* the session ended while that process lived */
			guest.sess->broken = true;
		if (i == 5)
			ck_assert_int_eq(come(&street, &guest), 0);
		next_process(&street);
		switch (i) {
		case 0: /* it knows of more than was begun */
			ck_assert_int_eq(house_come_again(&street.house, &guest, 1, 6), 0);
			break;
		case 1: /* it has sent less */
			guest.fifo = 4;
			break;
		case 2: /* it cannot */
			guest.calls = 0;
			break;
		case 3: /* another epoch of this boot */
			guest.epoch[40] ^= 1;
			break;
		default:
			break;
		}
		if (i == 4) /* a fork of the sandbox, whose first host this is */
			r = house_come(&street.house, &guest, "copy of box", "1");
		else
			r = i == 0 ? 0 : come(&street, &guest);
		ck_assert_int_eq(r, 0);
		ck_assert_msg(!guest.resumed || i == 5, "%d", i);
		ck_assert_msg(!guest.anew || i == 5, "%d", i);
		if (i == 5)
			ck_assert_uint_eq(guest.sess->fifo_seen, 0);
		street_done(&street);
	}
}
END_TEST

START_TEST(does_without_a_journal)
{
	struct guest guest = new_guest();
	struct house house;

	house_init(&house, "/nowhere/at/all");
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert_ptr_null(guest.sess->part);
	house_done(&house);
}
END_TEST

static void
lock(struct guest *guest, int fd)
{
	const struct rsb_lock whole = { .owner = 1, .kind = RSB_LOCK_FLOCK, .type = F_WRLCK };
	struct rsb_fh *file;

	ck_assert_int_eq(rsb_fhs_add_file(guest->sess->fhs, 5, 0, fd, O_RDWR), 0);
	ck_assert_int_eq(rsb_fhs_get(guest->sess->fhs, 5, RSB_FH_FILE, &file), 0);
	ck_assert_int_eq(rsb_locks_set(guest->sess->locks, NULL, file, &whole), 0);
	rsb_fhs_put(guest->sess->fhs, file);
}

START_TEST(gives_up_the_locks_of_a_host_that_is_away)
{
	struct guest guest = new_guest();
	struct street street;
	int other;

	street_init(&street);
	other = open(street.path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(come(&street, &guest), 0);
	lock(&guest, open(street.path, O_RDWR | O_CLOEXEC));
	street.house.now_ns += 3600 * RSB_NSEC_PER_SEC;
	ck_assert_int_eq(rsb_loop_step(street.house.loop, 0), 0);
	ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), -1); /* it is there */
	house_leave(&guest);
	/* A minute and an hour: it was paused meanwhile. */
	for (unsigned int i = 0; i < 5; i++) {
		street.house.now_ns += (i == 2 ? 3600 : 60) * RSB_NSEC_PER_SEC;
		ck_assert_int_eq(rsb_loop_step(street.house.loop, 0), 0);
		ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), -1);
	}
	street.house.now_ns += 60 * RSB_NSEC_PER_SEC;
	ck_assert_int_eq(rsb_loop_step(street.house.loop, 0), 0);
	ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
	ck_assert_int_eq(come(&street, &guest), 0);
	ck_assert(guest.resumed);
	ck_assert_uint_eq(guest.sess->lock_losses, 1);
	(void)close(other);
	street_done(&street);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		goes_on_with_a_session_of_the_process_before,
		says_it_again_to_a_host_that_did_not_hear_it,
		refuses_hosts_that_were_held_up,
		begins_anew_only_with_what_fits,
		does_without_a_journal,
		gives_up_the_locks_of_a_host_that_is_away,
	};

	return unit_run("registry-journal", tests, RSB_ARRAY_SIZE(tests));
}
