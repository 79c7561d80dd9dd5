/* SPDX-License-Identifier: MIT */
/*
 * The keeper with everything real behind it: rsb-local ($RSB_LOCAL) as the control plane, a
 * sandbox, the sidecar ($RSB_SIDECAR) brought into it as in the cloud.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "keeper/keeper.h"
#include "keeper/sync.h"
#include "link/call.h"
#include "proto/codec.h"
#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/gzip.h"
#include "util/json.h"
#include "util/thread.h"

#define WAIT_NS (60 * RSB_NSEC_PER_SEC)
#define BULK ((uint64_t)64 << 20)

struct world {
	char dir[64];
	char vars[8][1024];
	char *env[9];
	struct rsb_config config;
	struct rsb_backend *backend;
	struct rsb_keeper_env keeper_env;
	struct rsb_state state;
	struct rsb_link *link;
	struct rsb_mutex lock;
	struct rsb_cond cond;
	struct rsb_keeper *keeper;  /* {lock} for others than the main thread */
	char kinds[1024];           /* {lock} of events, in order */
	char out[256];              /* {lock} the first bytes of a command's output */
	uint64_t received;          /* {lock} */
	unsigned int n_fin;         /* {lock} */
	struct rsb_backend_ops ops; /* for the_world: with another upload */
	unsigned int n_upload;      /* by upload_packed(), on the keeper's thread */
};

/* For what a table of functions without an argument leads back to. */
static struct world *the_world;

static void
wait_for(struct world *world, bool (*met)(struct world *world))
{
	uint64_t deadline_ns = rsb_now_ns() + WAIT_NS;

	rsb_mutex_lock(&world->lock);
	while (!met(world))
		ck_assert_int_eq(rsb_cond_wait_until(&world->cond, &world->lock, deadline_ns), 0);
	rsb_mutex_unlock(&world->lock);
}

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct world *world = arg;

	rsb_mutex_lock(&world->lock);
	if (world->keeper)
		rsb_keeper_link_state(world->keeper, state, reason, new_epoch);
	rsb_mutex_unlock(&world->lock);
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct world *world = arg;
	size_t at;

	rsb_mutex_lock(&world->lock);
	if (world->received < sizeof(world->out) - 1) {
		at = (size_t)world->received;
		memcpy(world->out + at, data.data, rsb_min(data.size, sizeof(world->out) - 1 - at));
	}
	world->received += data.size;
	world->n_fin += fin;
	rsb_cond_broadcast(&world->cond);
	rsb_mutex_unlock(&world->lock);
	rsb_link_chan_consume(world->link, chan, data.size);
}

static const struct rsb_link_ops link_ops = { .state = on_state, .chan_data = on_data };

static void
on_event(void *arg, const char *kind, const char *text)
{
	struct world *world = arg;

	(void)text;
	rsb_mutex_lock(&world->lock);
	ck_assert_uint_lt(strlen(world->kinds) + strlen(kind) + 2, sizeof(world->kinds));
	strcat(world->kinds, kind);
	strcat(world->kinds, " ");
	rsb_cond_broadcast(&world->cond);
	rsb_mutex_unlock(&world->lock);
}

static void
set_env(struct world *world)
{
	static const char *const dirs[] = { "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
		"HOME" };
	static const char *const kept[] = { "RSB_LOCAL", "RSB_SIDECAR", "PATH" };
	size_t n = 0;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(dirs); i++, n++)
		(void)snprintf(
			world->vars[n], sizeof(world->vars[n]), "%s=%s", dirs[i], world->dir);
	for (i = 0; i < RSB_ARRAY_SIZE(kept); i++, n++) {
		ck_assert_ptr_nonnull(getenv(kept[i]));
		ck_assert_int_lt(snprintf(world->vars[n], sizeof(world->vars[n]), "%s=%s", kept[i],
					 getenv(kept[i])),
			sizeof(world->vars[n]));
	}
	for (i = 0; i < n; i++)
		world->env[i] = world->vars[i];
}

/* As an agent that stores a compressed body as it is: what the real one unpacks is packed twice. */
static int
upload_packed(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, const char *path,
	int fd, struct rsb_diag *diag)
{
	rsb_autoclose int packed = memfd_create("packed", MFD_CLOEXEC);
	struct rsb_backend *other;
	int r;

	(void)backend;
	ck_assert_int_eq(rsb_gzip_fd(fd, packed), 0);
	ck_assert_int_eq(
		rsb_keeper_backend(&the_world->config, the_world->env, "local", &other, NULL), 0);
	r = other->ops->upload(other, sandbox, path, packed, diag);
	rsb_backend_free(other);
	the_world->n_upload++;
	return r;
}

static void
setup(struct world *world)
{
	const struct rsb_keeper_create req = { .ttl_ns = 300 * RSB_NSEC_PER_SEC };
	struct rsb_config_source source = { .env = world->env, .etc = "/nonexistent" };
	struct rsb_diag diag = { 0 };
	char *root;
	int r;

	*world = (struct world){ .dir = "/tmp/rsb-e2e-keeper.XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(world->dir));
	set_env(world);
	rsb_mutex_init(&world->lock);
	rsb_cond_init(&world->cond);
	ck_assert_int_eq(rsb_config_load(&source, &world->config, NULL), 0);
	ck_assert_int_eq(rsb_state_root(world->env, &root, NULL), 0);
	world->keeper_env.config = &world->config;
	world->keeper_env.environ = world->env;
	ck_assert_int_eq(rsb_state_open(root, "one", true, &world->keeper_env.dir, NULL), 0);
	free(root);
	r = rsb_keeper_backend(&world->config, world->env, "local", &world->backend, &diag);
	ck_assert_msg(r == 0, "%s", diag.text);
	if (the_world == world) {
		world->ops = *world->backend->ops;
		world->ops.upload = upload_packed;
		world->backend->ops = &world->ops;
	}
	world->keeper_env.backend = world->backend;
	r = rsb_keeper_create(&world->keeper_env, &req, &world->state, &diag);
	ck_assert_msg(r == 0, "%d: %s", r, diag.text);
}

static void
start(struct world *world)
{
	struct rsb_link_config link_config = {
		.ping_ns = RSB_NSEC_PER_SEC, .ops = &link_ops, .arg = world
	};
	const struct rsb_keeper_config config = {
		.env = world->keeper_env,
		.state = &world->state,
		.event = on_event,
		.arg = world,
	};
	struct rsb_keeper_config with_link = config;
	struct rsb_keeper *keeper;
	struct rsb_diag diag = { 0 };
	int r;

	ck_assert_int_eq(rsb_state_key(world->keeper_env.dir, &link_config.key), 0);
	strcpy(link_config.sandbox_id, world->state.sandbox_id);
	ck_assert_int_eq(rsb_link_new(&link_config, &world->link), 0);
	with_link.link = world->link;
	ck_assert_int_eq(rsb_keeper_start(&with_link, &keeper), 0);
	rsb_mutex_lock(&world->lock);
	world->keeper = keeper;
	rsb_mutex_unlock(&world->lock);
	r = rsb_keeper_wait(keeper, WAIT_NS, &diag);
	ck_assert_msg(r == 0, "%s", diag.text);
}

/* The server that this world started ends, too, and nothing is left of it. */
static void
teardown(struct world *world)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	rsb_autofree char *text = NULL;
	struct rsb_keeper *keeper;
	char command[160];
	int64_t pid;

	rsb_mutex_lock(&world->lock);
	keeper = rsb_steal(&world->keeper);
	rsb_mutex_unlock(&world->lock);
	ck_assert_int_eq(rsb_keeper_stop(keeper, RSB_KEEPER_END_KILL, NULL), 0);
	rsb_link_free(world->link);
	rsb_backend_free(world->backend);
	rsb_state_close(world->keeper_env.dir);
	rsb_config_done(&world->config);
	(void)snprintf(command, sizeof(command), "%s/rsb/.local/server/port.json", world->dir);
	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, command, 4096, &text), 0);
	ck_assert_int_eq(rsb_json_parse(rsb_bytes_str(text), &json, NULL), 0);
	ck_assert_int_eq(rsb_json_i64(json, "pid", &pid), 0);
	ck_assert_int_eq(kill((pid_t)pid, SIGTERM), 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", world->dir);
	ck_assert_int_eq(system(command), 0);
	rsb_cond_done(&world->cond);
	rsb_mutex_done(&world->lock);
}

static void
copy_wait(void *arg, const void *rep)
{
	*(struct rsb_wait_rep *)arg = *(const struct rsb_wait_rep *)rep;
}

static bool
both_ended(struct world *world)
{
	return world->n_fin == 2;
}

/* The exit status; all of the output has come then. */
static uint64_t
run(struct world *world, const char *script)
{
	const struct rsb_call_opts opts = { .timeout_ns = WAIT_NS };
	uint64_t proc = rsb_link_new_ids(world->link, 1);
	struct rsb_spawn_req spawn = { .proc = proc, .flags = RSB_SPAWN_STDIN_NULL, .umask = 022 };
	struct rsb_wait_rep end = { 0 };
	struct rsb_buf argv = { 0 };

	world->received = 0;
	world->n_fin = 0;
	memset(world->out, 0, sizeof(world->out));
	ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str("sh"), &argv), 0);
	ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str("-c"), &argv), 0);
	ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str(script), &argv), 0);
	spawn.argv = rsb_seq_of(&argv, 3);
	ck_assert_int_eq(
		rsb_link_chan_open_receiver(world->link, RSB_CHAN_STDOUT(proc), 1 << 20), 0);
	ck_assert_int_eq(
		rsb_link_chan_open_receiver(world->link, RSB_CHAN_STDERR(proc), 1 << 20), 0);
	ck_assert_int_eq(rsb_call_spawn(world->link, &spawn, &opts, NULL, NULL), 0);
	ck_assert_int_eq(rsb_call_wait(world->link, &(struct rsb_wait_req){ .proc = proc }, &opts,
				 copy_wait, &end),
		0);
	rsb_buf_done(&argv);
	wait_for(world, both_ended);
	ck_assert_uint_eq(end.exited, 1);
	return end.code;
}

static int
getattr(struct world *world)
{
	const struct rsb_getattr_req req = { .node = { .id = 1 } };
	const struct rsb_call_opts opts = { .timeout_ns = WAIT_NS };

	return rsb_call_getattr(world->link, &req, &opts, NULL, NULL);
}

static void
sync_in(struct world *world)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	struct rsb_sandbox sandbox = { 0 };
	struct rsb_sync_stats stats = { 0 };
	struct rsb_diag diag = { 0 };
	struct rsb_secret key;
	char path[128];
	int fd, r;

	(void)snprintf(path, sizeof(path), "%s/src", world->dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(rsb_fd_replace_file(fd, "hello", rsb_bytes_str("from here"), 0644), 0);
	close(fd);
	ck_assert_int_eq(rsb_state_key(world->keeper_env.dir, &key), 0);
	ck_assert_int_eq(rsb_keeper_resume(&world->keeper_env, &world->state, &sandbox, NULL), 0);
	ck_assert_int_eq(
		rsb_keeper_target(&world->keeper_env, &world->state, &sandbox, &target), 0);
	r = rsb_sync_in(&(struct rsb_sync){ .dir = path },
		&(struct rsb_sync_far){ .target = &target.target,
			.sandbox_id = world->state.sandbox_id,
			.key = &key,
			.timeout_ns = WAIT_NS },
		&stats, &diag);
	ck_assert_msg(r == 0, "%s", diag.text);
	ck_assert_uint_ge(stats.files, 1);
	rsb_sandbox_done(&sandbox);
}

START_TEST(brings_a_directory_and_commands_into_a_fresh_sandbox)
{
	struct world world;

	setup(&world);
	sync_in(&world);
	start(&world);
	ck_assert_uint_eq(run(&world, "cat hello; id -un; exit 7"), 7);
	ck_assert_str_eq(world.out, "from hereuser\n");
	/* more than any window on the way */
	ck_assert_uint_eq(run(&world, "head -c 67108864 /dev/zero"), 0);
	ck_assert_uint_eq(world.received, BULK);
	teardown(&world);
}
END_TEST

static int
ignore_start(void *arg, uint64_t pid)
{
	(void)arg;
	(void)pid;
	return 0;
}

static int
ignore_output(void *arg, bool is_stderr, struct rsb_bytes data)
{
	(void)arg;
	(void)is_stderr;
	(void)data;
	return 0;
}

static bool
has_new_epoch(struct world *world)
{
	return strstr(world->kinds, "epoch ") != NULL;
}

/*
 * By the agent in the sandbox, as something there may do; the keeper's own backend stays its
 * own.
 */
static void
kill_sidecar(struct world *world)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"for p in /proc/[0-9]*; do case $(readlink $p/exe) in */rsb-sidecar-*) "
		"kill -9 ${p#/proc/};; esac; done",
		NULL };
	const struct rsb_backend_start req = {
		.user = "root",
		.argv = argv,
		.started = ignore_start,
		.output = ignore_output,
		.timeout_ns = WAIT_NS,
	};
	struct rsb_sandbox sandbox = { 0 };
	struct rsb_backend_end end;
	struct rsb_backend *other;

	ck_assert_int_eq(rsb_keeper_backend(&world->config, world->env, "local", &other, NULL), 0);
	ck_assert_int_eq(other->ops->get(other, world->state.sandbox_id, &sandbox, NULL), 0);
	ck_assert_int_eq(other->ops->start(other, &sandbox, &req, &end, NULL), 0);
	rsb_sandbox_done(&sandbox);
	rsb_backend_free(other);
}

START_TEST(brings_back_a_sidecar_that_died)
{
	struct world world;

	setup(&world);
	start(&world);
	ck_assert_int_eq(getattr(&world), 0);
	kill_sidecar(&world);
	wait_for(&world, has_new_epoch);
	ck_assert_int_eq(rsb_keeper_wait(world.keeper, WAIT_NS, NULL), 0);
	ck_assert_int_eq(getattr(&world), 0);
	ck_assert_uint_eq(run(&world, "exit 3"), 3);
	teardown(&world);
}
END_TEST

START_TEST(uploads_once_and_over_an_agent_that_does_not_unpack)
{
	struct world world;

	the_world = &world;
	setup(&world);
	ck_assert_uint_eq(world.n_upload, 1);
	start(&world);
	ck_assert_int_eq(getattr(&world), 0);
	kill_sidecar(&world);
	wait_for(&world, has_new_epoch);
	ck_assert_int_eq(rsb_keeper_wait(world.keeper, WAIT_NS, NULL), 0);
	ck_assert_uint_eq(world.n_upload, 1);
	teardown(&world);
}
END_TEST

static bool
is_lost(struct world *world)
{
	return strstr(world->kinds, "lost ") != NULL;
}

START_TEST(says_so_when_the_sandbox_was_killed_behind_its_back)
{
	struct rsb_backend *other;
	struct rsb_diag diag = { 0 };
	struct world world;

	setup(&world);
	start(&world);
	ck_assert_int_eq(rsb_keeper_backend(&world.config, world.env, "local", &other, NULL), 0);
	ck_assert_int_eq(other->ops->kill(other, world.state.sandbox_id, NULL), 0);
	rsb_backend_free(other);
	wait_for(&world, is_lost);
	ck_assert_int_eq(getattr(&world), -EIO);
	ck_assert_int_eq(rsb_keeper_wait(world.keeper, WAIT_NS, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, world.state.sandbox_id));
	teardown(&world);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		brings_a_directory_and_commands_into_a_fresh_sandbox,
		brings_back_a_sidecar_that_died,
		uploads_once_and_over_an_agent_that_does_not_unpack,
		says_so_when_the_sandbox_was_killed_behind_its_back,
	};

	return unit_run("keeper", tests, RSB_ARRAY_SIZE(tests));
}
