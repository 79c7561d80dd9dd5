/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/provision.h"
#include "tests/unit/fake-backend.h"
#include "tests/unit/unit.h"

struct world {
	char root[64];
	char sidecar_env[64];
	char *env[2];
	struct rsb_config config;
	struct fake_backend fake;
	struct rsb_keeper_env keeper;
	struct rsb_state state;
	struct rsb_diag diag;
};

static const struct rsb_keeper_create create_req = {
	.local_dir = "/src",
	.mountpoint = "/mnt",
	.ttl_ns = 300 * RSB_NSEC_PER_SEC,
	.pause_on_expire = true,
};

static void
open_dir(struct world *world, const char *name)
{
	rsb_state_close(world->keeper.dir);
	ck_assert_int_eq(
		rsb_state_open(world->root, name, true, &world->keeper.dir, &world->diag), 0);
	ck_assert_int_eq(rsb_state_lock(world->keeper.dir, RSB_STATE_LOCK, false), 0);
}

static void
setup(struct world *world)
{
	const struct rsb_config_source source = { .env = world->env, .etc = "/nonexistent" };

	*world = (struct world){ .root = "/tmp/rsb-provision.XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(world->root));
	strcpy(world->sidecar_env, "RSB_SIDECAR=/proc/self/exe");
	world->env[0] = world->sidecar_env;
	ck_assert_int_eq(rsb_config_load(&source, &world->config, NULL), 0);
	fake_backend_init(&world->fake);
	world->keeper.config = &world->config;
	world->keeper.environ = world->env;
	world->keeper.backend = &world->fake.backend;
	open_dir(world, "one");
}

static void
teardown(struct world *world)
{
	char command[96];

	rsb_state_close(world->keeper.dir);
	rsb_config_done(&world->config);
	fake_backend_done(&world->fake);
	(void)snprintf(command, sizeof(command), "rm -rf %s", world->root);
	ck_assert_int_eq(system(command), 0);
}

static int
create(struct world *world)
{
	return rsb_keeper_create(&world->keeper, &create_req, &world->state, &world->diag);
}

START_TEST(creates_deploys_and_remembers)
{
	char intent[RSB_INTENT_SIZE + 1];
	struct rsb_state saved;
	struct rsb_secret key;
	struct world world;

	setup(&world);
	ck_assert_int_eq(create(&world), 0);
	ck_assert_str_eq(world.state.sandbox_id, "ifake1");
	ck_assert_str_eq(world.state.intent, world.fake.intent);
	ck_assert_str_eq(world.state.mountpoint, "/mnt");
	ck_assert_int_eq(rsb_state_load(world.keeper.dir, &saved, NULL), 0);
	ck_assert_str_eq(saved.sandbox_id, "ifake1");
	ck_assert_int_eq(rsb_state_intent_pending(world.keeper.dir, intent), -ENOENT);
	/* the program was not there: uploaded once, started again */
	ck_assert_uint_eq(world.fake.n_upload, 1);
	ck_assert_uint_eq(world.fake.n_start, 2);
	ck_assert_int_eq(rsb_state_key(world.keeper.dir, &key), 0);
	ck_assert_int_eq(
		rsb_secret_equal(key.data, key.size, world.fake.input.data, world.fake.input.size),
		1);
	/* and is there now */
	ck_assert_int_eq(rsb_keeper_deploy(&world.keeper, &world.state,
				 &(struct rsb_sandbox){ .id = "ifake1" }, &world.diag),
		0);
	ck_assert_uint_eq(world.fake.n_upload, 1);
	teardown(&world);
}
END_TEST

START_TEST(adopts_the_sandbox_of_a_lost_reply)
{
	struct world world;

	setup(&world);
	world.fake.create_r = -EREMOTEIO;
	ck_assert_int_eq(create(&world), 0);
	ck_assert_uint_eq(world.fake.n_create, 1);
	ck_assert_uint_eq(world.fake.n_kill, 0);
	ck_assert_str_eq(world.state.sandbox_id, "ifake1");
	teardown(&world);
}
END_TEST

START_TEST(creates_nothing_twice_while_the_end_of_a_create_is_unknown)
{
	char intent[RSB_INTENT_SIZE + 1];
	struct world world;

	setup(&world);
	world.fake.create_r = -EREMOTEIO;
	world.fake.list_hides = true;
	ck_assert_int_eq(create(&world), -EREMOTEIO);
	ck_assert_int_eq(rsb_state_intent_pending(world.keeper.dir, intent), 0);
	ck_assert_int_eq(rsb_state_remove(world.keeper.dir), -EBUSY);
	/* later it shows up: the next create takes it */
	world.fake.list_hides = false;
	world.fake.state = RSB_SANDBOX_PAUSED;
	ck_assert_int_eq(create(&world), 0);
	ck_assert_uint_eq(world.fake.n_create, 1);
	ck_assert_uint_eq(world.fake.n_connect, 1);
	ck_assert_str_eq(world.state.intent, intent);
	teardown(&world);
}
END_TEST

START_TEST(leaves_nothing_behind_when_nothing_was_made)
{
	static const int errors[] = { -EINVAL, -EACCES, -EDQUOT, -EAGAIN, -ENOTCONN };
	char intent[RSB_INTENT_SIZE + 1];
	struct world world;
	size_t i;

	setup(&world);
	world.fake.create_works = false;
	for (i = 0; i < RSB_ARRAY_SIZE(errors); i++) {
		world.fake.create_r = errors[i];
		ck_assert_int_eq(create(&world), errors[i]);
		ck_assert_int_eq(rsb_state_intent_pending(world.keeper.dir, intent), -ENOENT);
		ck_assert_int_eq(rsb_state_load(world.keeper.dir, &world.state, NULL), -ENOENT);
	}
	ck_assert_uint_eq(world.fake.n_list, 0);
	teardown(&world);
}
END_TEST

START_TEST(makes_no_more_than_the_maximum)
{
	struct world world;

	setup(&world);
	world.config.sandbox.max = 1;
	ck_assert_int_eq(create(&world), 0);
	open_dir(&world, "two");
	ck_assert_int_eq(create(&world), -EDQUOT);
	ck_assert_ptr_nonnull(strstr(world.diag.text, "sandbox.max"));
	ck_assert_uint_eq(world.fake.n_create, 1);
	/* The host knows the other one no more. */
	world.fake.exists = false;
	ck_assert_int_eq(create(&world), 0);
	teardown(&world);
}
END_TEST

START_TEST(destroys_what_the_sidecar_does_not_start_in)
{
	struct world world;

	setup(&world);
	world.fake.start_r = -EIO;
	ck_assert_int_eq(create(&world), -EPROTO);
	ck_assert_str_eq(world.diag.text, "the sidecar did not start (status 1): reason ?");
	ck_assert_uint_eq(world.fake.n_kill, 1);
	ck_assert(!world.fake.exists);
	ck_assert_int_eq(access(rsb_state_path(world.keeper.dir), F_OK), -1);
	teardown(&world);
}
END_TEST

START_TEST(brings_back_and_destroys)
{
	struct rsb_sandbox sandbox;
	struct world world;

	setup(&world);
	ck_assert_int_eq(create(&world), 0);
	ck_assert_int_eq(rsb_keeper_resume(&world.keeper, &world.state, &sandbox, &world.diag), 0);
	ck_assert_uint_eq(world.fake.n_extend, 1);
	world.fake.state = RSB_SANDBOX_PAUSED;
	ck_assert_int_eq(rsb_keeper_resume(&world.keeper, &world.state, &sandbox, &world.diag), 1);
	ck_assert_uint_eq(world.fake.n_connect, 1);
	ck_assert_int_eq(rsb_keeper_destroy(&world.keeper, &world.state, &world.diag), 0);
	ck_assert_int_eq(access(rsb_state_path(world.keeper.dir), F_OK), -1);
	/* gone already is as good */
	ck_assert_int_eq(rsb_keeper_destroy(&world.keeper, &world.state, &world.diag), 0);
	ck_assert_int_eq(
		rsb_keeper_resume(&world.keeper, &world.state, &sandbox, &world.diag), -ENOENT);
	teardown(&world);
}
END_TEST

START_TEST(destroys_nothing_that_a_daemon_serves)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *daemon = NULL;
	struct world world;

	setup(&world);
	ck_assert_int_eq(create(&world), 0);
	ck_assert_int_eq(rsb_state_open(world.root, rsb_state_name(world.keeper.dir), false,
				 &daemon, &world.diag),
		0);
	ck_assert_int_eq(rsb_state_lock(daemon, RSB_STATE_LOCK_DAEMON, false), 0);
	ck_assert_int_eq(rsb_keeper_destroy(&world.keeper, &world.state, &world.diag), -EBUSY);
	ck_assert(world.fake.exists);
	ck_assert_int_eq(access(rsb_state_path(world.keeper.dir), F_OK), 0);
	rsb_state_unlock(daemon, RSB_STATE_LOCK_DAEMON);
	ck_assert_int_eq(rsb_keeper_destroy(&world.keeper, &world.state, &world.diag), 0);
	teardown(&world);
}
END_TEST

START_TEST(leads_the_link_to_the_sidecar)
{
	struct rsb_keeper_target target;
	struct world world;

	setup(&world);
	ck_assert_int_eq(create(&world), 0);
	ck_assert_int_eq(rsb_keeper_target(&world.keeper, &world.state,
				 &(struct rsb_sandbox){ .id = "ifake1" }, &target),
		0);
	ck_assert_str_eq(target.target.url, "ws://127.0.0.1:1/rsb");
	rsb_keeper_target_done(&target);
	teardown(&world);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		creates_deploys_and_remembers,
		adopts_the_sandbox_of_a_lost_reply,
		creates_nothing_twice_while_the_end_of_a_create_is_unknown,
		leaves_nothing_behind_when_nothing_was_made,
		makes_no_more_than_the_maximum,
		destroys_what_the_sidecar_does_not_start_in,
		brings_back_and_destroys,
		destroys_nothing_that_a_daemon_serves,
		leads_the_link_to_the_sidecar,
	};

	return unit_run("provision", tests, RSB_ARRAY_SIZE(tests));
}
