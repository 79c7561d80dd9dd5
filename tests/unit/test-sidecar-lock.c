/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/thread.h"

/* Long enough for a grant to show that should not come. */
#define GRACE_MS 120u
#define PATIENCE_MS 5000u

static struct rsb_lock_req
lock_req(uint64_t fh, uint64_t owner, enum rsb_lock_kind kind, short type)
{
	return (struct rsb_lock_req){
		.fh = fh,
		.owner = owner,
		.kind = kind,
		.type = (uint64_t)type,
	};
}

static int
lock(struct rig *rig, uint64_t fh, uint64_t owner, short type)
{
	const struct rsb_lock_req req = lock_req(fh, owner, RSB_LOCK_POSIX, type);

	return rig_do(rig, lock, &req, NULL);
}

static int
lock_file(struct rig *rig, uint64_t fh, uint64_t owner, short type)
{
	const struct rsb_lock_req req = lock_req(fh, owner, RSB_LOCK_FLOCK, type);

	return rig_do(rig, lock, &req, NULL);
}

static struct rig_call *
wait_for(struct rig *rig, uint64_t fh, uint64_t owner, enum rsb_lock_kind kind, short type)
{
	struct rsb_lock_req req = lock_req(fh, owner, kind, type);

	req.wait = 1;
	return rig_start(rig, RSB_OP_lock, &req);
}

static int
unlock_all(struct rig *rig, uint64_t fh, uint64_t owner)
{
	const struct rsb_unlock_all_req req = { .fh = fh, .owner = owner };

	return rig_do(rig, unlock_all, &req, NULL);
}

static struct rsb_locks_stats
stats(struct rig *rig)
{
	struct rsb_locks_stats s;

	rsb_locks_stats(rig->sess.locks, &s);
	return s;
}

static void
with_files(struct rig *rig, uint64_t *fh1, uint64_t *fh2)
{
	struct rsb_node node;

	rig_init(rig);
	rig_put(rig, "f", "0123456789");
	ck_assert_int_eq(rig_lookup(rig, &rig_root, "f", &node, NULL), 0);
	ck_assert_int_eq(rig_open(rig, &node, O_RDWR, fh1), 0);
	ck_assert_int_eq(rig_open(rig, &node, O_RDWR, fh2), 0);
}

START_TEST(keeps_owners_apart)
{
	struct rig rig;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	ck_assert_int_eq(lock(&rig, a, 1, F_WRLCK), 0);
	ck_assert_int_eq(lock(&rig, a, 2, F_WRLCK), -EAGAIN);
	ck_assert_int_eq(lock(&rig, b, 2, F_RDLCK), -EAGAIN);
	ck_assert_int_eq(lock(&rig, b, 1, F_WRLCK), 0);
	ck_assert_int_eq(lock(&rig, a, 1, F_RDLCK), 0);
	ck_assert_int_eq(lock(&rig, b, 2, F_RDLCK), 0);
	ck_assert_int_eq(lock(&rig, a, 1, F_WRLCK), -EAGAIN);
	/* One owner's unlock is not the other's. */
	ck_assert_int_eq(lock(&rig, b, 2, F_UNLCK), 0);
	ck_assert_int_eq(lock(&rig, b, 3, F_WRLCK), -EAGAIN);
	ck_assert_int_eq(lock(&rig, b, 3, F_UNLCK), 0);
	ck_assert_int_eq(unlock_all(&rig, b, 3), 0);
	ck_assert_int_eq(lock(&rig, b, 3, F_WRLCK), -EAGAIN);
	ck_assert_int_eq(unlock_all(&rig, b, 1), 0);
	ck_assert_int_eq(lock(&rig, b, 3, F_WRLCK), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(locks_ranges)
{
	struct rig rig;
	struct rsb_lock_req req;
	struct rsb_getlk_rep rep;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	req = lock_req(a, 1, RSB_LOCK_POSIX, F_WRLCK);
	req.start = 10;
	req.length = 5;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), 0);
	req.owner = 2;
	ck_assert_int_eq(rig_do(&rig, getlk, &req, &rep), 0);
	ck_assert_uint_eq(rep.type, F_WRLCK);
	ck_assert_uint_eq(rep.start, 10);
	ck_assert_uint_eq(rep.length, 5);
	req.start = 15;
	ck_assert_int_eq(rig_do(&rig, getlk, &req, &rep), 0);
	ck_assert_uint_eq(rep.type, F_UNLCK);
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), 0);
	/* One's own lock is in nobody's way. */
	req.owner = 1;
	req.start = 0;
	req.length = 15;
	ck_assert_int_eq(rig_do(&rig, getlk, &req, &rep), 0);
	ck_assert_uint_eq(rep.type, F_UNLCK);
	req.start = UINT64_C(1) << 40;
	req.length = 0;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(conflicts_with_processes_of_the_sandbox)
{
	struct rig rig;
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	uint64_t a, b;

	with_files(&rig, &a, &b);
	rsb_autoclose int fd = openat(rig.dir_fd, "f", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	ck_assert_int_eq(lock(&rig, a, 1, F_RDLCK), -EAGAIN);
	fl.l_type = F_UNLCK;
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	ck_assert_int_eq(lock(&rig, a, 1, F_RDLCK), 0);
	fl.l_type = F_WRLCK;
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &fl), -1);

	ck_assert_int_eq(lock_file(&rig, a, 1, F_WRLCK), 0);
	ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), -1);
	ck_assert_int_eq(lock_file(&rig, a, 1, F_UNLCK), 0);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	ck_assert_int_eq(lock_file(&rig, b, 1, F_RDLCK), -EAGAIN);
	rig_done(&rig);
}
END_TEST

START_TEST(unlocks_what_is_closed_and_nothing_else)
{
	struct rig rig;
	struct rsb_node node;
	uint64_t a, b, c;

	with_files(&rig, &a, &b);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &node, NULL), 0);
	ck_assert_int_eq(rig_open(&rig, &node, O_RDWR, &c), 0);
	ck_assert_int_eq(lock(&rig, a, 1, F_RDLCK), 0);
	ck_assert_int_eq(lock(&rig, b, 2, F_RDLCK), 0);
	ck_assert_int_eq(lock_file(&rig, a, 1, F_WRLCK), 0);
	ck_assert_int_eq(rig_release(&rig, b), 0);
	ck_assert_uint_eq(stats(&rig).n_holder, 1);
	ck_assert_int_eq(lock(&rig, c, 3, F_WRLCK), -EAGAIN);
	ck_assert_int_eq(lock_file(&rig, c, 3, F_RDLCK), -EAGAIN);
	ck_assert_int_eq(rig_release(&rig, a), 0);
	ck_assert_int_eq(lock(&rig, c, 3, F_WRLCK), 0);
	ck_assert_int_eq(lock_file(&rig, c, 3, F_RDLCK), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(grants_a_waiting_request_as_soon_as_it_can)
{
	struct rig rig;
	struct rig_call *first, *second;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	ck_assert_int_eq(lock(&rig, a, 1, F_WRLCK), 0);
	first = wait_for(&rig, b, 2, RSB_LOCK_POSIX, F_WRLCK);
	second = wait_for(&rig, b, 3, RSB_LOCK_POSIX, F_WRLCK);
	ck_assert_uint_eq(stats(&rig).n_waiting, 2);
	ck_assert(!rig_answered(first, GRACE_MS));
	ck_assert_int_eq(lock(&rig, a, 1, F_UNLCK), 0);
	ck_assert_int_eq(rig_finish(first, NULL, &rig.last), 0);
	ck_assert(!rig_answered(second, GRACE_MS));
	ck_assert_int_eq(unlock_all(&rig, a, 2), 0);
	ck_assert_int_eq(rig_finish(second, NULL, &rig.last), 0);
	ck_assert_uint_eq(stats(&rig).n_waiting, 0);

	ck_assert_int_eq(lock_file(&rig, a, 1, F_WRLCK), 0);
	first = wait_for(&rig, b, 2, RSB_LOCK_FLOCK, F_WRLCK);
	ck_assert(!rig_answered(first, GRACE_MS));
	ck_assert_int_eq(rig_release(&rig, a), 0);
	ck_assert_int_eq(rig_finish(first, NULL, &rig.last), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(notices_that_a_process_of_the_sandbox_unlocked)
{
	struct rig rig;
	struct rig_call *call;
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	uint64_t a, b;

	with_files(&rig, &a, &b);
	rsb_autoclose int fd = openat(rig.dir_fd, "f", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	call = wait_for(&rig, a, 1, RSB_LOCK_POSIX, F_WRLCK);
	ck_assert(!rig_answered(call, GRACE_MS));
	fl.l_type = F_UNLCK;
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	ck_assert(rig_answered(call, PATIENCE_MS));
	ck_assert_int_eq(rig_finish(call, NULL, &rig.last), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(gives_a_free_lock_at_once_to_one_that_would_wait)
{
	struct rig rig;
	struct rig_call *call;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	call = wait_for(&rig, a, 1, RSB_LOCK_POSIX, F_WRLCK);
	ck_assert(rig_answered(call, 0));
	ck_assert_int_eq(rig_finish(call, NULL, &rig.last), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(ends_a_wait_when_it_is_cancelled_or_its_file_closed)
{
	struct rig rig;
	struct rig_call *call;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	ck_assert_int_eq(lock(&rig, a, 1, F_WRLCK), 0);
	call = wait_for(&rig, b, 2, RSB_LOCK_POSIX, F_WRLCK);
	rig_cancel(call);
	ck_assert_int_eq(rig_finish(call, NULL, &rig.last), -EINTR);
	call = wait_for(&rig, b, 2, RSB_LOCK_POSIX, F_WRLCK);
	ck_assert_int_eq(rig_release(&rig, b), 0);
	ck_assert_int_eq(rig_finish(call, NULL, &rig.last), -EBADF);
	ck_assert_uint_eq(stats(&rig).n_waiting, 0);
	/* What was cancelled left no lock. */
	ck_assert_int_eq(unlock_all(&rig, a, 1), 0);
	ck_assert_int_eq(lock(&rig, a, 3, F_WRLCK), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(bounds_the_number_of_waiting_requests)
{
	struct rig rig;
	struct rig_call **calls = calloc(RSB_LOCKS_WAITING_MAX, sizeof(*calls));
	struct rig_call *over;
	uint64_t a, b;

	ck_assert_ptr_nonnull(calls);
	with_files(&rig, &a, &b);
	ck_assert_int_eq(lock_file(&rig, a, 1, F_WRLCK), 0);
	for (unsigned int i = 0; i < RSB_LOCKS_WAITING_MAX; i++)
		calls[i] = wait_for(&rig, b, 2, RSB_LOCK_FLOCK, F_WRLCK);
	over = wait_for(&rig, b, 2, RSB_LOCK_FLOCK, F_WRLCK);
	ck_assert_int_eq(rig_finish(over, NULL, &rig.last), -ENOLCK);
	/* The session ends. */
	for (unsigned int i = 0; i < RSB_LOCKS_WAITING_MAX; i++) {
		rig_cancel(calls[i]);
		ck_assert_int_eq(rig_finish(calls[i], NULL, &rig.last), -EINTR);
	}
	free(calls);
	rig_done(&rig);
}
END_TEST

START_TEST(answers_what_waits_when_the_session_ends)
{
	struct rig rig;
	struct rig_call *calls[3];
	struct rsb_buf buf = { .max = 0 };
	uint64_t a, b;

	with_files(&rig, &a, &b);
	ck_assert_int_eq(lock(&rig, a, 1, F_WRLCK), 0);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(calls); i++)
		calls[i] = wait_for(&rig, b, 2 + i, RSB_LOCK_POSIX, F_RDLCK);
	rig_done(&rig);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(calls); i++)
		ck_assert_int_eq(rig_finish(calls[i], NULL, &buf), -EINTR);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(gives_up_what_an_absent_host_has_locked)
{
	struct rig rig;
	struct rig_call *waiting;
	struct rsb_buf buf;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	rsb_buf_init(&buf, RSB_MESSAGE_MAX);
	ck_assert(!rsb_locks_give_up(rig.sess.locks, rig.sess.fhs));
	ck_assert_int_eq(lock(&rig, a, 1, F_WRLCK), 0);
	ck_assert_int_eq(lock_file(&rig, b, 1, F_WRLCK), 0);
	waiting = wait_for(&rig, b, 2, RSB_LOCK_POSIX, F_WRLCK);
	ck_assert(!rig_answered(waiting, GRACE_MS));
	ck_assert(rsb_locks_give_up(rig.sess.locks, rig.sess.fhs));
	ck_assert_int_eq(rig_finish(waiting, NULL, &buf), -EAGAIN);
	ck_assert_uint_eq(stats(&rig).n_holder, 0);
	/* Others have both kinds now, and the files are open as before. */
	ck_assert_int_eq(lock(&rig, b, 3, F_WRLCK), 0);
	ck_assert_int_eq(lock_file(&rig, a, 3, F_WRLCK), 0);
	ck_assert_int_eq(rig_write(&rig, a, 0, "x"), 0);
	ck_assert_int_eq(rig_release(&rig, a), 0);
	ck_assert_int_eq(unlock_all(&rig, b, 3), 0);
	/* A lock of flock(2) alone counts too. */
	ck_assert_int_eq(lock_file(&rig, b, 1, F_RDLCK), 0);
	ck_assert(rsb_locks_give_up(rig.sess.locks, rig.sess.fhs));
	ck_assert(!rsb_locks_give_up(rig.sess.locks, rig.sess.fhs));
	rsb_buf_done(&buf);
	rig_done(&rig);
}
END_TEST

START_TEST(refuses_locks_that_are_none)
{
	struct rig rig;
	struct rsb_lock_req req;
	struct rsb_getlk_rep rep;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	req = lock_req(a, 1, RSB_LOCK_POSIX, F_WRLCK);
	req.kind = 2;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), -EINVAL);
	req = lock_req(a, 1, RSB_LOCK_POSIX, 77);
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), -EINVAL);
	req = lock_req(a, 1, RSB_LOCK_POSIX, F_WRLCK);
	req.start = UINT64_MAX;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), -EINVAL);
	req.start = 2;
	req.length = INT64_MAX;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), -EINVAL);
	req.start = 0;
	req.length = UINT64_C(1) << 63;
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), 0);
	req = lock_req(a, 1, RSB_LOCK_POSIX, F_UNLCK);
	ck_assert_int_eq(rig_do(&rig, getlk, &req, &rep), -EINVAL);
	req = lock_req(a, 1, RSB_LOCK_FLOCK, F_WRLCK);
	ck_assert_int_eq(rig_do(&rig, getlk, &req, &rep), -EINVAL);
	req = lock_req(4711, 1, RSB_LOCK_POSIX, F_WRLCK);
	ck_assert_int_eq(rig_do(&rig, lock, &req, NULL), -EBADF);
	ck_assert_int_eq(unlock_all(&rig, 4711, 1), -EBADF);
	rig_done(&rig);
}
END_TEST

struct rival {
	struct rig *rig;
	uint64_t fh;
	uint64_t owner;
	unsigned int *counter; /* under the lock of the file alone */
	int failures;
};

static void *
rival_locks(void *arg)
{
	struct rival *rival = arg;
	struct rsb_buf buf = { .max = 0 };

	for (int i = 0; i < 50; i++) {
		struct rsb_lock_req req =
			lock_req(rival->fh, rival->owner, RSB_LOCK_POSIX, F_WRLCK);
		unsigned int was;

		req.wait = 1;
		rival->failures +=
			rig_finish(rig_start(rival->rig, RSB_OP_lock, &req), NULL, &buf) != 0;
		was = __atomic_fetch_add(rival->counter, 1, __ATOMIC_RELAXED);
		rival->failures += was != 0;
		(void)__atomic_fetch_sub(rival->counter, 1, __ATOMIC_RELAXED);
		req.wait = 0;
		req.type = F_UNLCK;
		rival->failures +=
			rig_finish(rig_start(rival->rig, RSB_OP_lock, &req), NULL, &buf) != 0;
	}
	rsb_buf_done(&buf);
	return NULL;
}

START_TEST(lets_one_rival_in_at_a_time)
{
	struct rig rig;
	struct rival rivals[4];
	pthread_t threads[RSB_ARRAY_SIZE(rivals)];
	unsigned int counter = 0;
	uint64_t a, b;

	with_files(&rig, &a, &b);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(rivals); i++) {
		rivals[i] = (struct rival){
			.rig = &rig,
			.fh = i % 2 ? a : b,
			.owner = i,
			.counter = &counter,
		};
		ck_assert_int_eq(
			rsb_thread_start("rival", rival_locks, &rivals[i], &threads[i]), 0);
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(rivals); i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(rivals[i].failures, 0);
	}
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		keeps_owners_apart,
		locks_ranges,
		conflicts_with_processes_of_the_sandbox,
		unlocks_what_is_closed_and_nothing_else,
		grants_a_waiting_request_as_soon_as_it_can,
		notices_that_a_process_of_the_sandbox_unlocked,
		gives_a_free_lock_at_once_to_one_that_would_wait,
		ends_a_wait_when_it_is_cancelled_or_its_file_closed,
		bounds_the_number_of_waiting_requests,
		answers_what_waits_when_the_session_ends,
		gives_up_what_an_absent_host_has_locked,
		refuses_locks_that_are_none,
		lets_one_rival_in_at_a_time,
	};

	return unit_run("sidecar-lock", tests, RSB_ARRAY_SIZE(tests));
}
