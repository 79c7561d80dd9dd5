/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/keeper.h"
#include "link/call.h"
#include "proto/auth.h"
#include "tests/unit/fake-backend.h"
#include "tests/unit/fake-sidecar.h"
#include "tests/unit/unit.h"
#include "util/clock.h"

#define WAIT_NS (15 * RSB_NSEC_PER_SEC)
#define TICK_MS 5
#define NEVER_ASKED 4242u

/* A keeper and its link, a control plane, and a sidecar behind a port that can be closed. */
struct world {
	char root[64];
	char sidecar_env[64];
	char *env[2];
	struct rsb_config config;
	struct fake_backend fake;
	struct fake_sidecar *sidecar;
	struct rsb_keeper_env keeper_env;
	struct rsb_state state;
	struct rsb_link *link;
	struct rsb_keeper *keeper; /* {lock} for others than the main thread */
	pthread_t thread;
	struct rsb_mutex lock;
	struct rsb_cond cond;
	int listener;        /* {lock} -1: nobody listens */
	bool stop;           /* {lock} */
	bool breaks;         /* {lock} the sidecar breaks the rules after each welcome */
	unsigned int n_live; /* {lock} */
	char kinds[1024];    /* {lock} of events, in order */
};

static void
open_port(void *arg)
{
	struct world *world = arg;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	FAKE_SET(&world->fake, port, ntohs(addr.sin_port));
	rsb_mutex_lock(&world->lock);
	world->listener = fd;
	rsb_mutex_unlock(&world->lock);
}

static void
close_port(struct world *world)
{
	rsb_mutex_lock(&world->lock);
	close(world->listener);
	world->listener = -1;
	rsb_mutex_unlock(&world->lock);
	fake_sidecar_cut(world->sidecar);
}

/* Hands every connection to the sidecar. */
static void *
run(void *arg)
{
	struct world *world = arg;
	bool stop = false;
	int fd;

	while (!stop) {
		rsb_mutex_lock(&world->lock);
		struct pollfd pfd = { .fd = world->listener, .events = POLLIN };

		fd = poll(&pfd, 1, 0) > 0 ? accept4(pfd.fd, NULL, NULL, SOCK_CLOEXEC) : -1;
		stop = world->stop;
		rsb_mutex_unlock(&world->lock);
		if (fd >= 0)
			fake_sidecar_serve(world->sidecar, fd);
		else
			(void)poll(NULL, 0, TICK_MS);
	}
	return NULL;
}

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct world *world = arg;

	rsb_mutex_lock(&world->lock);
	world->n_live += state == RSB_LINK_LIVE;
	if (state == RSB_LINK_LIVE && world->breaks)
		fake_sidecar_answer(world->sidecar, NEVER_ASKED);
	if (world->keeper)
		rsb_keeper_link_state(world->keeper, state, reason, new_epoch);
	rsb_mutex_unlock(&world->lock);
}

static const struct rsb_link_ops link_ops = { .state = on_state };

static void
on_event(void *arg, const char *kind, const char *text)
{
	struct world *world = arg;

	ck_assert_str_ne(text, "");
	rsb_mutex_lock(&world->lock);
	ck_assert_uint_lt(strlen(world->kinds) + strlen(kind) + 2, sizeof(world->kinds));
	strcat(world->kinds, kind);
	strcat(world->kinds, " ");
	rsb_cond_broadcast(&world->cond);
	rsb_mutex_unlock(&world->lock);
}

static bool
has_event(struct world *world, const char *kind)
{
	bool has;

	rsb_mutex_lock(&world->lock);
	has = strstr(world->kinds, kind) != NULL;
	rsb_mutex_unlock(&world->lock);
	return has;
}

static void
wait_event(struct world *world, const char *kind)
{
	uint64_t deadline_ns = rsb_now_ns() + WAIT_NS;

	rsb_mutex_lock(&world->lock);
	while (!strstr(world->kinds, kind))
		ck_assert_int_eq(rsb_cond_wait_until(&world->cond, &world->lock, deadline_ns), 0);
	world->kinds[0] = '\0';
	rsb_mutex_unlock(&world->lock);
}

static void
setup(struct world *world)
{
	const struct rsb_config_source source = { .env = world->env, .etc = "/nonexistent" };
	struct rsb_link_config config = {
		.sandbox_id = "ifake1", .ping_ns = RSB_NSEC_PER_SEC, .ops = &link_ops, .arg = world
	};

	*world = (struct world){ .root = "/tmp/rsb-keeper.XXXXXX", .listener = -1 };
	ck_assert_ptr_nonnull(mkdtemp(world->root));
	strcpy(world->sidecar_env, "RSB_SIDECAR=/proc/self/exe");
	world->env[0] = world->sidecar_env;
	rsb_mutex_init(&world->lock);
	rsb_cond_init(&world->cond);
	ck_assert_int_eq(rsb_config_load(&source, &world->config, NULL), 0);
	fake_backend_init(&world->fake);
	world->fake.exists = true;
	world->fake.uploaded = true;
	world->fake.deployed = open_port;
	world->fake.arg = world;
	strcpy(world->state.name, "one");
	strcpy(world->state.sandbox_id, "ifake1");
	strcpy(world->state.runtime_dir, "/opt/rsb");
	world->state.port = 49201;
	world->state.ttl_ns = 300 * RSB_NSEC_PER_SEC;
	world->keeper_env.config = &world->config;
	world->keeper_env.environ = world->env;
	world->keeper_env.backend = &world->fake.backend;
	ck_assert_int_eq(rsb_state_open(world->root, "one", true, &world->keeper_env.dir, NULL), 0);
	ck_assert_int_eq(rsb_state_key(world->keeper_env.dir, &config.key), 0);
	world->sidecar = fake_sidecar_new(&config.key);
	open_port(world);
	ck_assert_int_eq(rsb_thread_start("accept", run, world, &world->thread), 0);
	ck_assert_int_eq(rsb_link_new(&config, &world->link), 0);
}

static void
start(struct world *world)
{
	const struct rsb_keeper_config config = {
		.env = world->keeper_env,
		.state = &world->state,
		.link = world->link,
		.event = on_event,
		.arg = world,
	};

	struct rsb_keeper *keeper;

	ck_assert_int_eq(rsb_keeper_start(&config, &keeper), 0);
	rsb_mutex_lock(&world->lock);
	world->keeper = keeper;
	rsb_mutex_unlock(&world->lock);
	ck_assert_int_eq(rsb_keeper_wait(world->keeper, WAIT_NS, NULL), 0);
}

static void
teardown(struct world *world, enum rsb_keeper_end end)
{
	struct rsb_keeper *keeper;
	char command[96];

	rsb_mutex_lock(&world->lock);
	keeper = world->keeper;
	world->keeper = NULL;
	rsb_mutex_unlock(&world->lock);
	ck_assert_int_eq(rsb_keeper_stop(keeper, end, NULL), 0);
	rsb_link_free(world->link);
	rsb_mutex_lock(&world->lock);
	world->stop = true;
	rsb_mutex_unlock(&world->lock);
	pthread_join(world->thread, NULL);
	fake_sidecar_free(world->sidecar);
	if (world->listener >= 0)
		close(world->listener);
	rsb_state_close(world->keeper_env.dir);
	rsb_config_done(&world->config);
	fake_backend_done(&world->fake);
	rsb_cond_done(&world->cond);
	rsb_mutex_done(&world->lock);
	(void)snprintf(command, sizeof(command), "rm -rf %s", world->root);
	ck_assert_int_eq(system(command), 0);
}

static int
call(struct world *world)
{
	const struct rsb_getattr_req req = { .node = { .id = 1 } };
	const struct rsb_call_opts opts = { .timeout_ns = WAIT_NS };

	return rsb_call_getattr(world->link, &req, &opts, NULL, NULL);
}

static void
wait_extended(struct world *world, unsigned int n)
{
	uint64_t deadline_ns = rsb_now_ns() + WAIT_NS;

	rsb_mutex_lock(&world->fake.lock);
	while (world->fake.n_extend < n)
		ck_assert_int_eq(
			rsb_cond_wait_until(&world->fake.cond, &world->fake.lock, deadline_ns), 0);
	rsb_mutex_unlock(&world->fake.lock);
}

START_TEST(connects_and_extends_the_life)
{
	struct world world;

	setup(&world);
	world.config.keeper.heartbeat_ns = 20 * RSB_NSEC_PER_MSEC;
	start(&world);
	ck_assert_int_eq(call(&world), 0);
	wait_extended(&world, 2);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(extends_a_life_that_is_shorter_than_the_heartbeat_in_time)
{
	struct world world;

	setup(&world);
	world.state.ttl_ns = RSB_NSEC_PER_SEC;
	start(&world);
	wait_extended(&world, 2);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(reconnects_without_a_word_to_the_control_plane)
{
	struct world world;
	int i;

	setup(&world);
	start(&world);
	for (i = 0; i < 3; i++) {
		fake_sidecar_cut(world.sidecar);
		wait_event(&world, "live");
		ck_assert_int_eq(call(&world), 0);
	}
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_get), 1);
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_start), 0);
	ck_assert(!has_event(&world, "epoch"));
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(starts_a_sidecar_that_is_gone_anew)
{
	struct world world;

	setup(&world);
	start(&world);
	close_port(&world);
	fake_sidecar_forget(world.sidecar);
	wait_event(&world, "epoch");
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_start), 1);
	ck_assert_int_eq(rsb_keeper_wait(world.keeper, WAIT_NS, NULL), 0);
	ck_assert_int_eq(call(&world), 0);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(resumes_a_sandbox_that_was_paused)
{
	struct world world;

	setup(&world);
	start(&world);
	FAKE_SET(&world.fake, state, RSB_SANDBOX_PAUSED);
	close_port(&world);
	wait_event(&world, "resuming");
	open_port(&world);
	wait_event(&world, "live");
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_connect), 1);
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_start), 0);
	ck_assert_int_eq(call(&world), 0);
	teardown(&world, RSB_KEEPER_END_PAUSE);
}
END_TEST

START_TEST(gives_up_a_sandbox_that_is_gone)
{
	struct rsb_diag diag = { 0 };
	struct world world;

	setup(&world);
	start(&world);
	FAKE_SET(&world.fake, exists, false);
	close_port(&world);
	wait_event(&world, "lost");
	ck_assert_int_eq(call(&world), -EIO);
	ck_assert_int_eq(rsb_keeper_wait(world.keeper, WAIT_NS, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "does not exist any more"));
	ck_assert_int_eq(rsb_keeper_state(world.keeper), RSB_KEEPER_LOST);
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_create), 0);
	teardown(&world, RSB_KEEPER_END_KILL);
}
END_TEST

START_TEST(lets_calls_fail_after_a_while_and_goes_on_trying)
{
	struct world world;

	setup(&world);
	world.config.keeper.recover_wait_ns = 300 * RSB_NSEC_PER_MSEC;
	start(&world);
	FAKE_SET(&world.fake, get_r, -EREMOTEIO);
	close_port(&world);
	wait_event(&world, "down");
	ck_assert_int_eq(call(&world), -EIO);
	ck_assert_int_eq(call(&world), -EIO);
	wait_event(&world, "failing");
	open_port(&world);
	wait_event(&world, "live");
	ck_assert_int_eq(call(&world), 0);
	ck_assert_uint_eq(FAKE_GET(&world.fake, n_start), 0);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

/* Nothing but abort ends what asks the control plane. */
START_TEST(does_not_wait_for_the_control_plane_to_reconnect)
{
	uint64_t deadline_ns = rsb_now_ns() + WAIT_NS;
	struct world world;

	setup(&world);
	world.config.keeper.heartbeat_ns = 20 * RSB_NSEC_PER_MSEC;
	start(&world);
	wait_event(&world, "live");
	FAKE_SET(&world.fake, hangs, true);
	rsb_mutex_lock(&world.fake.lock);
	while (world.fake.n_extend < 1)
		ck_assert_int_eq(
			rsb_cond_wait_until(&world.fake.cond, &world.fake.lock, deadline_ns), 0);
	rsb_mutex_unlock(&world.fake.lock);
	fake_sidecar_cut(world.sidecar);
	wait_event(&world, "live");
	ck_assert_int_eq(call(&world), 0);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(lets_calls_fail_in_time_while_the_control_plane_does_not_answer)
{
	uint64_t deadline_ns = rsb_now_ns() + WAIT_NS;
	struct world world;

	setup(&world);
	world.config.keeper.recover_wait_ns = 300 * RSB_NSEC_PER_MSEC;
	start(&world);
	FAKE_SET(&world.fake, hangs, true);
	close_port(&world);
	while (!has_event(&world, "failing")) {
		ck_assert_uint_lt(rsb_now_ns(), deadline_ns);
		rsb_keeper_tick(world.keeper);
		(void)poll(NULL, 0, TICK_MS);
	}
	ck_assert_int_eq(call(&world), -EIO);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(is_not_kept_waiting_by_a_sidecar_that_breaks_the_rules_after_each_welcome)
{
	const struct rsb_wait_req req = { .proc = 1 };
	struct world world;
	int r;

	setup(&world);
	world.config.keeper.recover_wait_ns = RSB_NSEC_PER_SEC;
	start(&world);
	ck_assert_int_eq(call(&world), 0);
	rsb_mutex_lock(&world.lock);
	world.breaks = true;
	world.n_live = 0;
	rsb_mutex_unlock(&world.lock);
	fake_sidecar_cut(world.sidecar);
	r = rsb_call_wait(world.link, &req, NULL, NULL, NULL);
	ck_assert(r == -ENOTCONN || r == -EIO);
	wait_event(&world, "failing");
	/* and it is not asked again at once each time */
	rsb_mutex_lock(&world.lock);
	ck_assert_uint_ge(world.n_live, 2);
	ck_assert_uint_le(world.n_live, 6);
	world.breaks = false;
	world.kinds[0] = '\0';
	rsb_mutex_unlock(&world.lock);
	wait_event(&world, "live");
	ck_assert_int_eq(call(&world), 0);
	teardown(&world, RSB_KEEPER_END_LEAVE);
}
END_TEST

START_TEST(does_with_the_sandbox_what_it_is_told_at_the_end)
{
	static const enum rsb_keeper_end ends[] = { RSB_KEEPER_END_LEAVE, RSB_KEEPER_END_PAUSE,
		RSB_KEEPER_END_KILL };
	struct world world;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(ends); i++) {
		setup(&world);
		start(&world);
		teardown(&world, ends[i]);
		ck_assert_uint_eq(world.fake.n_pause, ends[i] == RSB_KEEPER_END_PAUSE);
		ck_assert_uint_eq(world.fake.n_kill, ends[i] == RSB_KEEPER_END_KILL);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		connects_and_extends_the_life,
		extends_a_life_that_is_shorter_than_the_heartbeat_in_time,
		reconnects_without_a_word_to_the_control_plane,
		starts_a_sidecar_that_is_gone_anew,
		resumes_a_sandbox_that_was_paused,
		gives_up_a_sandbox_that_is_gone,
		lets_calls_fail_after_a_while_and_goes_on_trying,
		does_not_wait_for_the_control_plane_to_reconnect,
		lets_calls_fail_in_time_while_the_control_plane_does_not_answer,
		is_not_kept_waiting_by_a_sidecar_that_breaks_the_rules_after_each_welcome,
		does_with_the_sandbox_what_it_is_told_at_the_end,
	};

	return unit_run("keeper", tests, RSB_ARRAY_SIZE(tests));
}
