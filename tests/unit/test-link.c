/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/call.h"
#include "proto/auth.h"
#include "tests/unit/link-host.h"
#include "tests/unit/unit.h"

#define SEC RSB_NSEC_PER_SEC
#define MS RSB_NSEC_PER_MSEC
#define ECHO_SIZE ((size_t)3 << 20)

static void
on_done(void *arg, int r, const void *rep)
{
	struct host *host = arg;
	const struct rsb_write_rep *written = rep;

	rsb_mutex_lock(&host->lock);
	host->n_done++;
	host->n_ok += r == 0;
	host->last_r = r;
	if (written) {
		host->disorder |= written->offset <= host->last;
		host->last = written->offset;
	}
	rsb_cond_broadcast(&host->cond);
	rsb_mutex_unlock(&host->lock);
}

static void
copy_ino(void *arg, const void *rep)
{
	const struct rsb_attr_rep *attr = rep;

	*(uint64_t *)arg = attr->attr.ino;
}

static int
getattr(struct host *host, uint64_t id, uint64_t *ret_ino)
{
	const struct rsb_getattr_req req = { .node = { .id = id } };
	const struct rsb_call_opts opts = { .timeout_ns = WAIT_NS };

	return rsb_call_getattr(host->link, &req, &opts, copy_ino, ret_ino);
}

static void
call_wait(struct host *host, uint64_t timeout_ns, uint64_t *ret_call)
{
	const struct rsb_wait_req req = { .proc = 1 };
	const struct rsb_call_opts opts = { .timeout_ns = timeout_ns };

	ck_assert_int_eq(rsb_call_wait_async(host->link, &req, &opts,
				 (struct rsb_call_done){ on_done, host }, ret_call),
		0);
}

START_TEST(answers_calls_and_says_who_is_there)
{
	struct rsb_link_stats stats;
	struct rsb_link_facts facts;
	struct host host;
	uint64_t ino = 0;

	host_init(&host, SEC);
	ck_assert_int_eq(rsb_link_facts(host.link, &facts), -ENOTCONN);
	ck_assert_int_eq(rsb_link_skew_ns(host.link), 0);
	dial_and_wait(&host);
	ck_assert_int_eq(getattr(&host, 42, &ino), 0);
	ck_assert_uint_eq(ino, 42);
	ck_assert_int_eq(rsb_link_facts(host.link, &facts), 0);
	ck_assert_str_eq(facts.workspace, "/w");
	ck_assert_uint_eq(facts.cmd_uid, 1000);
	ck_assert_int_gt(rsb_link_skew_ns(host.link), (FAKE_AHEAD_S - 30) * (int64_t)SEC);
	ck_assert_int_lt(rsb_link_skew_ns(host.link), (FAKE_AHEAD_S + 30) * (int64_t)SEC);
	rsb_link_stats(host.link, &stats);
	ck_assert_uint_eq(stats.calls, 1);
	ck_assert_uint_eq(stats.replies, 1);
	ck_assert_uint_eq(rsb_link_new_ids(host.link, 3), 2);
	ck_assert_uint_eq(rsb_link_new_ids(host.link, 1), 5);
	ck_assert_int_eq(rsb_call_statfs(host.link, NULL, NULL, NULL, NULL), -EOPNOTSUPP);
	ck_assert_int_eq(rsb_call_ctl_status(host.link, NULL, NULL, NULL, NULL), -EOPNOTSUPP);
	host_done(&host);
}
END_TEST

START_TEST(keeps_calls_until_there_is_a_connection)
{
	struct host host;

	host_init(&host, SEC);
	call_wait(&host, 0, NULL);
	ck_assert_int_eq(rsb_link_state(host.link), RSB_LINK_DOWN);
	ck_assert_int_eq(rsb_link_call(host.link, RSB_OP_statfs, NULL, NULL,
				 (struct rsb_call_done){ on_done, &host }, NULL),
		0);
	dial(&host);
	WAIT_UNTIL(&host, host.n_done == 1);
	ck_assert_int_eq(PEEK(&host, last_r), -EOPNOTSUPP);
	host_done(&host);
	/* the one that nobody answered */
	ck_assert_uint_eq(host.n_done, 2);
	ck_assert_int_eq(host.last_r, -ECANCELED);
}
END_TEST

/* Every write is executed once, in order, and answered once, wherever the connection breaks. */
START_TEST(executes_once_over_any_number_of_broken_connections)
{
	static uint8_t data[3000];
	const unsigned int n = 400;
	struct rsb_link_stats stats;
	struct host host;
	unsigned int i;

	host_init(&host, SEC);
	for (i = 0; i < n; i++) {
		const struct rsb_write_req req = {
			.fh = 1, .offset = i, .data = { data, (i * 97) % sizeof(data) }
		};

		if (i % 10 == 0) {
			fake_sidecar_cut_after(host.fake, 1 + i % 17);
			if (PEEK(&host, state) == RSB_LINK_DOWN)
				dial(&host);
		}
		ck_assert_int_eq(rsb_link_call(host.link, RSB_OP_write, &req, NULL,
					 (struct rsb_call_done){ on_done, &host }, NULL),
			0);
		ck_assert_uint_eq(rsb_link_fifo(host.link), i + 1);
	}
	for (i = 0; PEEK(&host, n_done) < n; i++) {
		fake_sidecar_cut_after(host.fake, 3 + i);
		WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN || host.n_done == n);
		if (PEEK(&host, n_done) < n)
			dial_and_wait(&host);
	}
	rsb_link_stats(host.link, &stats);
	ck_assert_uint_gt(stats.reconnects, 0);
	ck_assert_uint_eq(PEEK(&host, n_ok), n);
	ck_assert_uint_eq(fake_sidecar_seen(host.fake, RSB_OP_write), n);
	ck_assert_uint_eq(PEEK(&host, last), n);
	ck_assert(!PEEK(&host, disorder));
	ck_assert_uint_eq(PEEK(&host, n_epoch), 0);
	ck_assert_uint_eq(rsb_link_fifo(host.link), n);
	host_done(&host);
}
END_TEST

START_TEST(gives_up_a_call_at_its_deadline)
{
	struct host host;
	uint64_t ino;

	host_init(&host, SEC);
	dial_and_wait(&host);
	call_wait(&host, 30 * MS, NULL);
	WAIT_UNTIL(&host, host.n_done == 1);
	ck_assert_int_eq(PEEK(&host, last_r), -ETIMEDOUT);
	/* its reply (cancelled over there) finds nobody, and nothing else is confused by it */
	ck_assert_int_eq(getattr(&host, 7, &ino), 0);
	ck_assert_uint_eq(PEEK(&host, n_done), 1);
	host_done(&host);
}
END_TEST

START_TEST(cancels_a_call_that_waits)
{
	struct host host;
	uint64_t call;

	host_init(&host, SEC);
	dial_and_wait(&host);
	call_wait(&host, 0, &call);
	rsb_link_cancel(host.link, call);
	WAIT_UNTIL(&host, host.n_done == 1);
	ck_assert_int_eq(PEEK(&host, last_r), -EINTR);
	rsb_link_cancel(host.link, call);
	host_done(&host);
}
END_TEST

START_TEST(tells_everybody_when_the_session_is_gone)
{
	const struct rsb_call_opts after = { .after = 1000, .timeout_ns = WAIT_NS };
	const struct rsb_getattr_req req = { .node = { .id = 3 } };
	struct host host;
	uint64_t ino = 0;

	host_init(&host, SEC);
	dial_and_wait(&host);
	ck_assert_int_eq(rsb_link_chan_open_receiver(host.link, RSB_CHAN_STDOUT(9), 0), 0);
	call_wait(&host, 0, NULL);
	ck_assert_int_eq(getattr(&host, 1, &ino), 0);
	fake_sidecar_forget(host.fake);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	ck_assert_uint_eq(PEEK(&host, n_done), 0);
	dial(&host);
	WAIT_UNTIL(&host, host.n_epoch == 1);
	ck_assert_int_eq(PEEK(&host, state), RSB_LINK_DOWN);
	ck_assert_int_eq(PEEK(&host, reason), -ESTALE);
	ck_assert_uint_eq(PEEK(&host, n_done), 1);
	ck_assert_int_eq(PEEK(&host, last_r), -ENOTCONN);
	ck_assert_int_eq(PEEK(&host, reset), -ENOTCONN);
	dial_and_wait(&host);
	/* a FIFO number of the old session is not waited for */
	ck_assert_int_eq(rsb_call_getattr(host.link, &req, &after, copy_ino, &ino), 0);
	ck_assert_uint_eq(ino, 3);
	host_done(&host);
}
END_TEST

/* Killed after the session was lost and before there is another one. */
START_TEST(a_later_process_knows_the_peer_of_a_lost_session)
{
	struct rsb_link_saved saved = {
		.next_id = 100, .facts.cmd_uid = 7, .facts.workspace = "/w"
	};
	struct host host;
	static const struct rsb_link_ops nobody;
	struct rsb_link_config config = { .ping_ns = SEC, .saved = &saved, .ops = &nobody };
	struct rsb_link_facts facts;
	struct rsb_link *link;

	host_init(&host, SEC);
	config.key = host.key;
	ck_assert_int_eq(rsb_link_new(&config, &link), 0);
	ck_assert_int_eq(rsb_link_facts(link, &facts), 0);
	ck_assert_uint_eq(facts.cmd_uid, 7);
	ck_assert_uint_eq(rsb_link_new_ids(link, 1), 100);
	rsb_link_free(link);
	saved.facts.workspace[0] = '\0';
	ck_assert_int_eq(rsb_link_new(&config, &link), 0);
	ck_assert_int_eq(rsb_link_facts(link, &facts), -ENOTCONN);
	rsb_link_free(link);
	host_done(&host);
}
END_TEST

START_TEST(refuses_what_comes_after_its_end_until_it_is_freed)
{
	const struct rsb_spawn_req req = { .proc = 5 };
	const struct rsb_call_opts opts = { .timeout_ns = SEC };
	const uint64_t in = RSB_CHAN_STDIN(5);
	const uint64_t out = RSB_CHAN_STDOUT(5);
	struct host host;
	uint64_t call;

	host_init(&host, SEC);
	dial_and_wait(&host);
	ck_assert_int_eq(rsb_link_chan_open_sender(host.link, in, 300000), 0);
	ck_assert_int_eq(rsb_link_chan_open_receiver(host.link, out, 1 << 20), 0);
	call_wait(&host, 0, &call);
	rsb_link_stop(host.link);
	ck_assert_uint_eq(PEEK(&host, n_done), 1);
	ck_assert_int_eq(PEEK(&host, last_r), -ECANCELED);
	ck_assert_int_eq(rsb_call_spawn(host.link, &req, &opts, NULL, NULL), -ECANCELED);
	ck_assert_int_eq(rsb_link_chan_open_receiver(host.link, out + 4, 1), -ECANCELED);
	rsb_link_cancel(host.link, call);
	rsb_link_chan_consume(host.link, out, 1);
	rsb_link_chan_reset(host.link, in, -EPIPE);
	rsb_link_chan_close(host.link, out);
	rsb_link_stop(host.link);
	host_done(&host);
}
END_TEST

START_TEST(notices_a_peer_that_fell_silent)
{
	struct host host;

	host_init(&host, 20 * MS);
	dial_and_wait(&host);
	fake_sidecar_freeze(host.fake, true);
	WAIT_UNTIL(&host, host.state == RSB_LINK_SUSPECT);
	fake_sidecar_freeze(host.fake, false);
	WAIT_UNTIL(&host, host.state == RSB_LINK_LIVE);
	fake_sidecar_freeze(host.fake, true);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	ck_assert_int_eq(PEEK(&host, reason), -ETIMEDOUT);
	dial_and_wait(&host);
	ck_assert_uint_eq(PEEK(&host, n_epoch), 0);
	host_done(&host);
}
END_TEST

START_TEST(is_refused_with_another_key)
{
	struct rsb_secret other;
	struct rsb_diag why;
	struct host host;
	uint64_t ino;

	host_init(&host, SEC);
	ck_assert_int_eq(rsb_secret_generate(&other, RSB_AUTH_KEY_SIZE), 0);
	ck_assert_int_eq(rsb_link_reset(host.link, "isandbox", &other), 0);
	dial(&host);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN && host.reason == -EACCES);
	rsb_link_why(host.link, &why);
	ck_assert_ptr_nonnull(strstr(why.text, "key"));
	ck_assert_int_eq(rsb_link_reset(host.link, "isandbox", &host.key), 0);
	dial_and_wait(&host);
	ck_assert_int_eq(getattr(&host, 1, &ino), 0);
	host_done(&host);
}
END_TEST

START_TEST(fails_everything_when_told_to_and_goes_on_when_told_so)
{
	struct host host;
	uint64_t ino;

	host_init(&host, SEC);
	ck_assert_int_eq(rsb_link_call(host.link, RSB_OP_statfs, NULL, NULL,
				 (struct rsb_call_done){ on_done, &host }, NULL),
		0);
	rsb_link_fail(host.link, -EIO);
	WAIT_UNTIL(&host, host.n_done == 1);
	ck_assert_int_eq(PEEK(&host, last_r), -EIO);
	ck_assert_int_eq(rsb_link_state(host.link), RSB_LINK_FAILED);
	ck_assert_int_eq(getattr(&host, 1, &ino), -EIO);
	dial_and_wait(&host);
	ck_assert_int_eq(getattr(&host, 1, &ino), -EIO);
	rsb_link_fail(host.link, 0);
	ck_assert_int_eq(getattr(&host, 1, &ino), 0);
	host_done(&host);
}
END_TEST

/* Writes size bytes of the pattern; redials whenever the connection is gone. */
static void
write_all(struct host *host, uint64_t chan, size_t size)
{
	static uint8_t block[100000];
	size_t done = 0;
	size_t i, n;
	int r;

	while (done < size) {
		n = rsb_min(sizeof(block), size - done);
		for (i = 0; i < n; i++)
			block[i] = echo_byte(done + i);
		rsb_mutex_lock(&host->lock);
		host->writable = false;
		rsb_mutex_unlock(&host->lock);
		r = rsb_link_chan_write(host->link, chan, (struct rsb_bytes){ block, n });
		ck_assert_int_ge(r, 0);
		done += (size_t)r;
		if ((size_t)r < n)
			WAIT_UNTIL(host, host->writable || host->state == RSB_LINK_DOWN);
		if (rsb_link_state(host->link) == RSB_LINK_DOWN)
			dial_and_wait(host);
	}
}

START_TEST(carries_streams_both_ways_over_broken_connections)
{
	const struct rsb_spawn_req req = { .proc = 5 };
	const uint64_t in = RSB_CHAN_STDIN(5);
	const uint64_t out = RSB_CHAN_STDOUT(5);
	struct host host;
	unsigned int n_cut;

	host_init(&host, SEC);
	dial_and_wait(&host);
	ck_assert_int_eq(rsb_link_chan_open_sender(host.link, in, 300000), 0);
	ck_assert_int_eq(rsb_link_chan_open_sender(host.link, in, 1), -EEXIST);
	ck_assert_int_eq(rsb_link_chan_open_receiver(host.link, out, 1 << 20), 0);
	ck_assert_int_eq(rsb_call_spawn(host.link, &req, NULL, NULL, NULL), 0);
	fake_sidecar_cut_after(host.fake, 20);
	write_all(&host, in, ECHO_SIZE);
	ck_assert_int_eq(rsb_link_chan_finish(host.link, in), 0);
	ck_assert_int_eq(rsb_link_chan_write(host.link, in, rsb_bytes_str("late")), -EPIPE);
	for (n_cut = 0; !PEEK(&host, fin); n_cut++) {
		fake_sidecar_cut_after(host.fake, n_cut < 4 ? 10 : 0);
		WAIT_UNTIL(&host, host.fin || host.state == RSB_LINK_DOWN);
		if (PEEK(&host, state) == RSB_LINK_DOWN)
			dial_and_wait(&host);
	}
	ck_assert_uint_eq(PEEK(&host, received), ECHO_SIZE);
	ck_assert(!PEEK(&host, damaged));
	ck_assert_int_eq(PEEK(&host, reset), 0);
	rsb_link_chan_close(host.link, in);
	rsb_link_chan_close(host.link, out);
	host_done(&host);
}
END_TEST

static int
listen_somewhere(char *ret_url, size_t size)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	ck_assert_int_lt(
		snprintf(ret_url, size, "ws://127.0.0.1:%u/rsb", ntohs(addr.sin_port)), (int)size);
	return fd;
}

START_TEST(connects_by_url)
{
	const char *const headers[] = { "E2b-Sandbox-Id: isandbox", "E2b-Sandbox-Port: 1", NULL };
	char url[64];
	const struct rsb_link_target target = {
		.url = url, .headers = headers, .timeout_ns = 5 * SEC
	};
	struct host host;
	uint64_t ino = 0;
	int fd = listen_somewhere(url, sizeof(url));

	host_init(&host, SEC);
	ck_assert_int_eq(rsb_link_connect(host.link, &target), 0);
	ck_assert_int_eq(rsb_link_connect(host.link, &target), -EALREADY);
	fake_sidecar_serve(host.fake, accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	WAIT_UNTIL(&host, host.state == RSB_LINK_LIVE);
	ck_assert_int_eq(getattr(&host, 6, &ino), 0);
	ck_assert_uint_eq(ino, 6);
	rsb_link_disconnect(host.link, -ECONNABORTED);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN);
	ck_assert_int_eq(PEEK(&host, reason), -ECONNABORTED);
	host_done(&host);
	close(fd);
}
END_TEST

START_TEST(says_why_it_cannot_connect)
{
	char url[64];
	struct rsb_link_target target = { .url = url, .timeout_ns = 100 * MS };
	struct host host;
	int fd = listen_somewhere(url, sizeof(url));

	host_init(&host, SEC);
	/* accepted by the kernel, never answered */
	ck_assert_int_eq(rsb_link_connect(host.link, &target), 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN && host.reason != 0);
	ck_assert_int_eq(PEEK(&host, reason), -ETIMEDOUT);
	close(fd);
	ck_assert_int_eq(rsb_link_connect(host.link, &target), 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN && host.reason != -ETIMEDOUT);
	ck_assert_int_eq(PEEK(&host, reason), -ECONNREFUSED);
	target.url = "http://127.0.0.1/";
	ck_assert_int_eq(rsb_link_connect(host.link, &target), 0);
	WAIT_UNTIL(&host, host.state == RSB_LINK_DOWN && host.reason != -ECONNREFUSED);
	ck_assert_int_eq(PEEK(&host, reason), -EINVAL);
	host_done(&host);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		answers_calls_and_says_who_is_there,
		keeps_calls_until_there_is_a_connection,
		executes_once_over_any_number_of_broken_connections,
		gives_up_a_call_at_its_deadline,
		cancels_a_call_that_waits,
		tells_everybody_when_the_session_is_gone,
		a_later_process_knows_the_peer_of_a_lost_session,
		refuses_what_comes_after_its_end_until_it_is_freed,
		notices_a_peer_that_fell_silent,
		is_refused_with_another_key,
		fails_everything_when_told_to_and_goes_on_when_told_so,
		carries_streams_both_ways_over_broken_connections,
		connects_by_url,
		says_why_it_cannot_connect,
	};

	return unit_run("link", tests, RSB_ARRAY_SIZE(tests));
}
