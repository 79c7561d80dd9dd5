/* SPDX-License-Identifier: MIT */
/* A session that goes on although the sidecar's process is another one. */

#include <errno.h>

#include "link/call.h"
#include "tests/unit/link-host.h"
#include "tests/unit/unit.h"

struct ending {
	struct host *host;
	unsigned int n; /* {host->lock} */
	int r;          /* {host->lock} */
};

static void
on_end(void *arg, int r, const void *rep)
{
	struct ending *ending = arg;

	(void)rep;
	rsb_mutex_lock(&ending->host->lock);
	ending->n++;
	ending->r = r;
	rsb_cond_broadcast(&ending->host->cond);
	rsb_mutex_unlock(&ending->host->lock);
}

static void
go_on(void *arg, int r, const void *rep)
{
	struct ending *ending = arg;

	rsb_link_go_on(ending->host->link);
	on_end(arg, r, rep);
}

static int
call_wait(struct ending *ending, const struct rsb_call_opts *opts)
{
	const struct rsb_wait_req req = { .proc = 1 };

	return rsb_call_wait_async(
		ending->host->link, &req, opts, (struct rsb_call_done){ on_end, ending }, NULL);
}

static int
getattr(struct ending *ending, rsb_call_fn fn, const struct rsb_call_opts *opts)
{
	const struct rsb_getattr_req req = { .node = { .id = 7 } };

	return rsb_call_getattr_async(
		ending->host->link, &req, opts, (struct rsb_call_done){ fn, ending }, NULL);
}

START_TEST(hands_back_what_was_under_way_and_waits_for_it)
{
	struct rsb_link_saved saved = { 0 };
	struct host host;
	struct ending revived = { .host = &host }, other = { .host = &host };
	struct ending first = { .host = &host }, last = { .host = &host };

	host_init_saved(&host, &saved);
	dial_and_wait(&host);
	ck_assert_int_eq(call_wait(&revived, &(struct rsb_call_opts){ .revives = true }), 0);
	ck_assert_int_eq(call_wait(&other, NULL), 0);
	fake_sidecar_anew(host.fake, 5);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	dial(&host);
	WAIT_UNTIL(&host, host.n_anew == 1 && host.state == RSB_LINK_RESYNC);
	ck_assert_uint_eq(host.fifo, 5);
	ck_assert_uint_eq(saved.reviving, 6);
	WAIT_UNTIL(&host, revived.n == 1 && other.n == 1);
	ck_assert_int_eq(revived.r, -ERESTART);
	ck_assert_int_eq(other.r, -EOWNERDEAD);

	/* Nothing else goes before what is made again. */
	ck_assert_int_eq(getattr(&last, on_end, NULL), -EAGAIN);
	ck_assert_int_eq(getattr(&first, on_end, &(struct rsb_call_opts){ .first = true }), 0);
	WAIT_UNTIL(&host, first.n == 1);
	ck_assert_int_eq(first.r, 0);
	/* A connection that breaks meanwhile is nothing of interest. */
	fake_sidecar_cut(host.fake);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	dial(&host);
	ck_assert_int_eq(getattr(&first, go_on, &(struct rsb_call_opts){ .first = true }), 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_LIVE);
	ck_assert_int_eq(getattr(&last, on_end, NULL), 0);
	WAIT_UNTIL(&host, last.n == 1);
	ck_assert_int_eq(last.r, 0);
	ck_assert_uint_eq(saved.reviving, 0);
	ck_assert_uint_eq(host.n_anew, 1);
	ck_assert_uint_eq(host.n_epoch, 0);
	host_done(&host);
}
END_TEST

START_TEST(begins_once_more_with_a_third_process)
{
	struct rsb_link_saved saved = { 0 };
	struct host host;
	struct ending first = { .host = &host };

	host_init_saved(&host, &saved);
	dial_and_wait(&host);
	for (unsigned int i = 1; i <= 3; i++) {
		fake_sidecar_anew(host.fake, i);
		WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
		dial(&host);
		WAIT_UNTIL(&host, host.n_anew == i);
		ck_assert_uint_eq(PEEK(&host, fifo), i);
	}
	ck_assert_int_eq(getattr(&first, go_on, &(struct rsb_call_opts){ .first = true }), 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_LIVE);
	host_done(&host);
}
END_TEST

START_TEST(is_gone_on_with_by_the_next_process_of_the_host)
{
	struct rsb_link_saved saved = { 0 };
	struct host host;
	struct ending first = { .host = &host };

	host_init_saved(&host, &saved);
	dial_and_wait(&host);
	fake_sidecar_anew(host.fake, 9);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	dial(&host);
	WAIT_UNTIL(&host, host.n_anew == 1);
	host_replace(&host, &saved);
	dial(&host);
	WAIT_UNTIL(&host, host.n_anew == 2);
	ck_assert_uint_eq(host.fifo, 9);
	ck_assert_int_eq(getattr(&first, go_on, &(struct rsb_call_opts){ .first = true }), 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_LIVE);
	host_replace(&host, &saved);
	dial_and_wait(&host);
	ck_assert_uint_eq(host.n_anew, 2);
	ck_assert_uint_eq(host.n_epoch, 0);
	host_done(&host);
}
END_TEST

/* The process before had made the call again, and the reply had not come to it. */
START_TEST(takes_the_reply_to_what_was_handed_back)
{
	struct rsb_link_saved saved = { 0 };
	struct host host;
	struct ending revived = { .host = &host };
	struct rsb_call_opts opts = { .revives = true };

	host_init_saved(&host, &saved);
	dial_and_wait(&host);
	fake_sidecar_anew(host.fake, 9);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	dial(&host);
	WAIT_UNTIL(&host, host.n_anew == 1);
	opts.call = rsb_link_new_call(host.link);
	host_replace(&host, &saved);
	host.early_call = opts.call;
	ck_assert_int_eq(call_wait(&revived, &opts), 0);
	dial(&host);
	WAIT_UNTIL(&host, host.n_anew == 2 && revived.n == 1);
	ck_assert_int_eq(revived.r, -ERESTART);
	fake_sidecar_answer(host.fake, opts.call);
	WAIT_UNTIL(&host, host.n_early == 1);
	ck_assert_int_eq(PEEK(&host, early_r), -EINTR);
	ck_assert_int_eq(PEEK(&host, state), RSB_LINK_RESYNC);
	host_done(&host);
}
END_TEST

START_TEST(is_over_when_the_session_is_gone_after_all)
{
	struct rsb_link_saved saved = { 0 };
	struct host host;
	struct ending last = { .host = &host };

	host_init_saved(&host, &saved);
	dial_and_wait(&host);
	fake_sidecar_anew(host.fake, 1);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	dial(&host);
	WAIT_UNTIL(&host, host.n_anew == 1);
	fake_sidecar_forget(host.fake);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	dial(&host);
	WAIT_UNTIL(&host, host.n_epoch == 1);
	ck_assert_int_eq(getattr(&last, on_end, NULL), 0);
	dial_and_wait(&host);
	WAIT_UNTIL(&host, last.n == 1);
	ck_assert_uint_eq(saved.reviving, 0);
	host_done(&host);
}
END_TEST

START_TEST(tells_of_lost_locks_once_and_before_anything_else)
{
	struct rsb_link_saved saved = { 0 };
	struct host host;

	host_init_saved(&host, &saved);
	dial_and_wait(&host);
	for (unsigned int i = 0; i < 2; i++) {
		fake_sidecar_lose_locks(host.fake);
		WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
		dial_and_wait(&host);
		ck_assert_uint_eq(PEEK(&host, n_locks_lost), i + 1);
		fake_sidecar_cut(host.fake);
		WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
		dial_and_wait(&host);
		ck_assert_uint_eq(PEEK(&host, n_locks_lost), i + 1);
	}
	host_done(&host);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		hands_back_what_was_under_way_and_waits_for_it,
		begins_once_more_with_a_third_process,
		is_gone_on_with_by_the_next_process_of_the_host,
		takes_the_reply_to_what_was_handed_back,
		is_over_when_the_session_is_gone_after_all,
		tells_of_lost_locks_once_and_before_anything_else,
	};

	return unit_run("anew", tests, RSB_ARRAY_SIZE(tests));
}
