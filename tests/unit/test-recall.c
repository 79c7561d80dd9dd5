/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "link/call.h"
#include "tests/unit/link-host.h"
#include "tests/unit/unit.h"

#define SEC RSB_NSEC_PER_SEC
#define MS RSB_NSEC_PER_MSEC
#define NEVER_ASKED 4242u

/* How one call ended. */
struct end {
	struct host *host;
	unsigned int n; /* {host->lock} */
	int r;          /* {host->lock} */
};

static void
on_end(void *arg, int r, rsb_unused const void *rep)
{
	struct end *end = arg;

	rsb_mutex_lock(&end->host->lock);
	end->n++;
	end->r = r;
	rsb_cond_broadcast(&end->host->cond);
	rsb_mutex_unlock(&end->host->lock);
}

/* Queues a call with an empty request. */
static uint64_t
queue(struct host *host, uint32_t op, struct end *ret_end)
{
	static const union {
		struct rsb_wait_req wait;
		struct rsb_write_req write;
		struct rsb_getattr_req getattr;
		struct rsb_fh_req fh;
		struct rsb_xattr_rep largest;
	} req;
	const struct rsb_call_opts opts = { .after = RSB_AFTER_ALL };
	uint64_t call;

	*ret_end = (struct end){ .host = host };
	ck_assert_int_eq(rsb_link_call(host->link, op, &req, &opts,
				 (struct rsb_call_done){ on_end, ret_end }, &call),
		0);
	return call;
}

static int
result(struct host *host, const struct end *end)
{
	WAIT_UNTIL(host, end->n == 1);
	return end->r;
}

/* Asks and waits for the answer, so that everything sent before was executed. */
static void
ask(struct host *host)
{
	struct end end;

	(void)queue(host, RSB_OP_getattr, &end);
	ck_assert_int_eq(result(host, &end), 0);
}

START_TEST(never_executes_what_was_withdrawn_before_it_was_sent)
{
	struct end first, gone, read, last;
	struct host host;
	uint64_t call;

	host_init(&host, SEC);
	(void)queue(&host, RSB_OP_write, &first);
	call = queue(&host, RSB_OP_write, &gone);
	rsb_link_withdraw(host.link, queue(&host, RSB_OP_getattr, &read));
	rsb_link_withdraw(host.link, call);
	ck_assert_int_eq(result(&host, &gone), -ECANCELED);
	ck_assert_int_eq(result(&host, &read), -ECANCELED);
	(void)queue(&host, RSB_OP_write, &last);
	dial_and_wait(&host);
	ck_assert_int_eq(result(&host, &last), 0);
	ask(&host);
	ck_assert_int_eq(result(&host, &first), 0);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_write), 2);
	/* its place in the order is kept: later requests count mutations */
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_skip), 1);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_getattr), 1);
	ck_assert_uint_eq(rsb_link_fifo(host.link), 3);
	host_done(&host);
}
END_TEST

START_TEST(calls_unknown_what_was_sent_and_swallows_its_late_reply)
{
	struct host host;
	struct end wait;
	uint64_t call;

	host_init(&host, SEC);
	dial_and_wait(&host);
	call = queue(&host, RSB_OP_wait, &wait);
	ask(&host);
	rsb_link_withdraw(host.link, call);
	ck_assert_int_eq(result(&host, &wait), -ENOTCONN);
	fake_sidecar_answer(host.fake, 0);
	ask(&host);
	ck_assert_uint_eq(PEEK(&host, n_epoch), 0);
	ck_assert_int_eq(rsb_link_state(host.link), RSB_LINK_LIVE);
	rsb_link_withdraw(host.link, call);
	ask(&host);
	ck_assert_uint_eq(wait.n, 1);
	host_done(&host);
}
END_TEST

START_TEST(closes_the_link_of_a_peer_that_invents_replies)
{
	struct host host;
	struct end wait;

	host_init(&host, SEC);
	dial_and_wait(&host);
	(void)queue(&host, RSB_OP_wait, &wait);
	ask(&host);
	fake_sidecar_answer(host.fake, NEVER_ASKED);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	ck_assert_int_eq(PEEK(&host, reason), -EBADMSG);
	/* the session bears it */
	dial_and_wait(&host);
	ask(&host);
	ck_assert_uint_eq(PEEK(&host, n_epoch), 0);
	fake_sidecar_answer(host.fake, 0);
	ck_assert_int_eq(result(&host, &wait), -EINTR);
	/* once more is made up, too */
	fake_sidecar_answer(host.fake, 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	ck_assert_int_eq(PEEK(&host, reason), -EBADMSG);
	host_done(&host);
}
END_TEST

START_TEST(withdraws_everything_when_it_fails)
{
	struct end sent, unsent, release, later;
	struct host host;

	host_init(&host, SEC);
	dial_and_wait(&host);
	(void)queue(&host, RSB_OP_wait, &sent);
	ask(&host);
	rsb_link_disconnect(host.link, -ECONNABORTED);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	(void)queue(&host, RSB_OP_write, &unsent);
	(void)queue(&host, RSB_OP_release, &release);
	rsb_link_fail(host.link, -EIO);
	ck_assert_int_eq(result(&host, &sent), -ENOTCONN);
	ck_assert_int_eq(result(&host, &unsent), -EIO);
	(void)result(&host, &release);
	rsb_link_fail(host.link, 0);
	dial_and_wait(&host);
	(void)queue(&host, RSB_OP_write, &later);
	ck_assert_int_eq(result(&host, &later), 0);
	ask(&host);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_write), 1);
	/* or the file would stay open over there for nobody */
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_release), 1);
	fake_sidecar_answer(host.fake, 0);
	ask(&host);
	ck_assert_int_eq(rsb_link_state(host.link), RSB_LINK_LIVE);
	host_done(&host);
}
END_TEST

START_TEST(cancels_what_was_not_sent_without_a_word)
{
	struct host host;
	struct end wait;

	host_init(&host, SEC);
	rsb_link_cancel(host.link, queue(&host, RSB_OP_wait, &wait));
	ck_assert_int_eq(result(&host, &wait), -EINTR);
	dial_and_wait(&host);
	ask(&host);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_wait), 0);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_cancel), 0);
	host_done(&host);
}
END_TEST

START_TEST(drops_what_was_not_sent_at_its_deadline)
{
	const struct rsb_call_opts opts = { .timeout_ns = 20 * MS };
	const struct rsb_wait_req req = { .proc = 1 };
	struct host host;
	struct end wait;

	host_init(&host, SEC);
	wait = (struct end){ .host = &host };
	ck_assert_int_eq(rsb_call_wait_async(host.link, &req, &opts,
				 (struct rsb_call_done){ on_end, &wait }, NULL),
		0);
	ck_assert_int_eq(result(&host, &wait), -ETIMEDOUT);
	dial_and_wait(&host);
	ask(&host);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_wait), 0);
	host_done(&host);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		never_executes_what_was_withdrawn_before_it_was_sent,
		calls_unknown_what_was_sent_and_swallows_its_late_reply,
		closes_the_link_of_a_peer_that_invents_replies,
		withdraws_everything_when_it_fails,
		cancels_what_was_not_sent_without_a_word,
		drops_what_was_not_sent_at_its_deadline,
	};

	return unit_run("recall", tests, RSB_ARRAY_SIZE(tests));
}
