/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/state-json.h"
#include "keeper/state.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/fd.h"

static char root[64];
static char base_env[96];
static char *env[] = { base_env, NULL };

static void
setup(void)
{
	char *made;

	strcpy(root, "/tmp/rsb-state.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	(void)snprintf(base_env, sizeof(base_env), "XDG_STATE_HOME=%s", root);
	ck_assert_int_eq(rsb_state_root(env, &made, NULL), 0);
	strcat(root, "/rsb");
	ck_assert_str_eq(made, root);
	free(made);
}

static void
teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %.22s", root);
	ck_assert_int_eq(system(command), 0);
}

static struct rsb_state_dir *
make(const char *name, const char *id, const char *local_dir, const char *mountpoint)
{
	struct rsb_state state = {
		.port = 49201, .ttl_ns = 300, .created_ns = 1, .made_mountpoint = 1
	};
	struct rsb_state_dir *dir;

	strcpy(state.name, name);
	strcpy(state.backend, "local");
	strcpy(state.sandbox_id, id);
	strcpy(state.local_dir, local_dir);
	strcpy(state.mountpoint, mountpoint);
	ck_assert_int_eq(rsb_state_open(root, name, true, &dir, NULL), 0);
	ck_assert_int_eq(rsb_state_save(dir, &state), 0);
	return dir;
}

START_TEST(remembers_paths_of_any_bytes)
{
	struct rsb_state_dir *dir;
	struct rsb_state state;
	struct stat st;

	setup();
	dir = make("one", "iabc", "/tmp/\xff\xfe \n%41/\"x", "");
	ck_assert_int_eq(rsb_state_load(dir, &state, NULL), 0);
	ck_assert_str_eq(state.local_dir, "/tmp/\xff\xfe \n%41/\"x");
	ck_assert_str_eq(state.mountpoint, "");
	ck_assert_uint_eq(state.ttl_ns, 300);
	ck_assert_int_eq(fstatat(AT_FDCWD, rsb_state_path(dir), &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	rsb_state_close(dir);
	teardown();
}
END_TEST

START_TEST(refuses_what_is_no_state)
{
	static const char *const bad[] = { "", "{}", "[]", "{\"version\":2}", "\xff",
		"{\"version\":1,\"name\":\"../x\"}" };
	struct rsb_state state = { .port = 1, .name = "x" };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	struct rsb_diag diag;
	char *port;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(rsb_state_read(rsb_bytes_str(bad[i]), &state, &diag), -EBADMSG);
		ck_assert_str_ne(diag.text, "");
	}
	ck_assert_int_eq(rsb_state_write(&state, &text), 0);
	ck_assert_int_eq(rsb_state_read(rsb_buf_view(&text), &state, &diag), 0);
	port = memmem(text.data, rsb_buf_len(&text), "\"port\": 1", 9);
	ck_assert_ptr_nonnull(port);
	port[8] = '0';
	ck_assert_int_eq(rsb_state_read(rsb_buf_view(&text), &state, &diag), -EBADMSG);
}
END_TEST

START_TEST(lets_one_at_a_time_hold_a_lock)
{
	struct rsb_state_dir *dir, *other;

	setup();
	dir = make("one", "iabc", "", "");
	ck_assert_int_eq(rsb_state_open(root, "one", false, &other, NULL), 0);
	ck_assert(!rsb_state_has_daemon(other));
	ck_assert_int_eq(rsb_state_lock(dir, RSB_STATE_LOCK, false), 0);
	ck_assert_int_eq(rsb_state_lock(dir, RSB_STATE_LOCK_DAEMON, false), 0);
	ck_assert_int_eq(rsb_state_lock(other, RSB_STATE_LOCK, false), -EBUSY);
	ck_assert(rsb_state_has_daemon(other));
	rsb_state_unlock(dir, RSB_STATE_LOCK);
	ck_assert_int_eq(rsb_state_lock(other, RSB_STATE_LOCK, false), 0);
	rsb_state_close(dir);
	ck_assert(!rsb_state_has_daemon(other));
	rsb_state_close(other);
	ck_assert_int_eq(rsb_state_open(root, "none", false, &other, NULL), -ENOENT);
	ck_assert_int_eq(rsb_state_open(root, "../x", true, &other, NULL), -EINVAL);
	teardown();
}
END_TEST

START_TEST(makes_its_key_once)
{
	struct rsb_secret first, second;
	struct rsb_state_dir *dir;
	struct stat st;
	char path[128];

	setup();
	dir = make("one", "iabc", "", "");
	ck_assert_int_eq(rsb_state_key(dir, &first), 0);
	ck_assert_int_eq(rsb_state_key(dir, &second), 0);
	ck_assert_int_eq(rsb_secret_equal(first.data, first.size, second.data, second.size), 1);
	ck_assert_uint_eq(first.size, 32);
	(void)snprintf(path, sizeof(path), "%s/key", rsb_state_path(dir));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	rsb_state_close(dir);
	teardown();
}
END_TEST

START_TEST(keeps_an_open_intent_from_being_removed)
{
	char intent[RSB_INTENT_SIZE + 1], pending[RSB_INTENT_SIZE + 1];
	struct rsb_state_dir *dir;

	setup();
	ck_assert_int_eq(rsb_state_open(root, "one", true, &dir, NULL), 0);
	ck_assert_int_eq(rsb_state_intent_pending(dir, pending), -ENOENT);
	ck_assert_int_eq(rsb_state_intent_begin(dir, intent), 0);
	ck_assert_int_eq(rsb_state_intent_pending(dir, pending), 0);
	ck_assert_str_eq(intent, pending);
	ck_assert_int_eq(rsb_state_remove(dir), -EBUSY);
	ck_assert_int_eq(rsb_state_intent_end(dir), 0);
	ck_assert_int_eq(rsb_state_intent_end(dir), 0);
	ck_assert_int_eq(rsb_state_remove(dir), 0);
	ck_assert_int_eq(access(rsb_state_path(dir), F_OK), -1);
	rsb_state_close(dir);
	teardown();
}
END_TEST

START_TEST(writes_events_as_lines)
{
	struct rsb_state_dir *dir;
	rsb_autofree char *text = NULL;
	char path[128];

	setup();
	dir = make("one", "iabc", "", "");
	rsb_state_event(dir, "down", "it \"broke\"");
	rsb_state_event(dir, "live", "again");
	(void)snprintf(path, sizeof(path), "%s/events", rsb_state_path(dir));
	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, path, 4096, &text), 0);
	ck_assert_ptr_nonnull(strstr(text, "\"kind\":\"down\",\"text\":\"it \\\"broke\\\"\"}\n{"));
	ck_assert_ptr_nonnull(strstr(text, "\"text\":\"again\"}\n"));
	rsb_state_close(dir);
	teardown();
}
END_TEST

START_TEST(keeps_events_within_bounds)
{
	struct rsb_state_dir *dir;
	char path[128];
	char old[160];
	struct stat st;

	setup();
	dir = make("one", "iabc", "", "");
	rsb_state_event(dir, "live", "first");
	(void)snprintf(path, sizeof(path), "%s/events", rsb_state_path(dir));
	(void)snprintf(old, sizeof(old), "%s.old", path);
	ck_assert_int_eq(truncate(path, (off_t)RSB_STATE_EVENTS_MAX), 0);
	rsb_state_event(dir, "live", "second");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_lt(st.st_size, 200);
	ck_assert_int_eq(stat(old, &st), 0);
	ck_assert_int_eq(st.st_size, (off_t)RSB_STATE_EVENTS_MAX);
	ck_assert_int_eq(rsb_state_remove(dir), 0);
	rsb_state_close(dir);
	teardown();
}
END_TEST

START_TEST(gives_every_state_a_socket_path_that_fits)
{
	char long_name[RSB_STATE_NAME_MAX + 1];
	char deep[128];
	struct rsb_state_dir *dir;
	struct stat st;
	char *path;

	setup();
	dir = make("short", "iabc", "", "");
	ck_assert_int_eq(rsb_state_socket(dir, &path, NULL), 0);
	ck_assert_str_eq(strrchr(path, '/'), "/socket");
	ck_assert_int_eq(strncmp(path, rsb_state_path(dir), strlen(rsb_state_path(dir))), 0);
	free(path);
	rsb_state_close(dir);
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	(void)snprintf(deep, sizeof(deep), "%s/%040d", root, 0);
	ck_assert_int_eq(mkdir(deep, 0700), 0);
	ck_assert_int_eq(rsb_state_open(deep, long_name, true, &dir, NULL), 0);
	ck_assert_int_eq(rsb_state_socket(dir, &path, NULL), 0);
	ck_assert_uint_le(strlen(path), 107);
	ck_assert_ptr_null(strstr(path, long_name));
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_uid, geteuid());
	free(path);
	rsb_state_close(dir);
	teardown();
}
END_TEST

static int
count(void *arg, const struct rsb_state *state)
{
	strcat(arg, state->name);
	return strcmp(state->name, "stop") == 0 ? 7 : 0;
}

START_TEST(lists_by_name_and_skips_damage)
{
	struct rsb_state_dir *dir;
	char names[64] = "";
	int fd;

	setup();
	rsb_state_close(make("b", "i2", "", ""));
	rsb_state_close(make("a", "i1", "", ""));
	dir = make("damaged", "i3", "", "");
	fd = open(rsb_state_path(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(rsb_fd_replace_file(fd, "state.json", rsb_bytes_str("{"), 0600), 0);
	close(fd);
	rsb_state_close(dir);
	ck_assert_int_eq(rsb_state_list(root, count, names), 0);
	ck_assert_str_eq(names, "ab");
	rsb_state_close(make("stop", "i4", "", ""));
	rsb_state_close(make("z", "i5", "", ""));
	names[0] = '\0';
	ck_assert_int_eq(rsb_state_list(root, count, names), 7);
	ck_assert_str_eq(names, "abstop");
	ck_assert_int_eq(rsb_state_list("/nonexistent", count, names), 0);
	teardown();
}
END_TEST

START_TEST(finds_what_is_meant)
{
	struct rsb_state state;
	struct rsb_diag diag;

	setup();
	rsb_state_close(make("one", "iaaaa1111", "/src/one", "/mnt/one"));
	rsb_state_close(make("two", "iaaaa2222", "/src/one/inner", "/mnt/two"));
	rsb_state_close(make("three", "ibbbb3333", "/src/dup", ""));
	rsb_state_close(make("four", "icccc4444", "/src/dup", ""));
	/* by directory: the innermost */
	ck_assert_int_eq(rsb_state_find(root, NULL, "/mnt/one/deep/er", &state, &diag), 0);
	ck_assert_str_eq(state.name, "one");
	ck_assert_int_eq(rsb_state_find(root, NULL, "/src/one/inner/x", &state, &diag), 0);
	ck_assert_str_eq(state.name, "two");
	ck_assert_int_eq(rsb_state_find(root, NULL, "/src/one", &state, &diag), 0);
	ck_assert_str_eq(state.name, "one");
	ck_assert_int_eq(rsb_state_find(root, NULL, "/src/onetwo", &state, &diag), -ENOENT);
	ck_assert_int_eq(rsb_state_find(root, NULL, "/", &state, &diag), -ENOENT);
	ck_assert_int_eq(rsb_state_find(root, NULL, "/src/dup", &state, &diag), -EEXIST);
	/* by name and by the beginning of an id */
	ck_assert_int_eq(rsb_state_find(root, "four", "/", &state, &diag), 0);
	ck_assert_str_eq(state.sandbox_id, "icccc4444");
	ck_assert_int_eq(rsb_state_find(root, "ibbb", "/", &state, &diag), 0);
	ck_assert_str_eq(state.name, "three");
	ck_assert_int_eq(rsb_state_find(root, "iaaaa", "/", &state, &diag), -EEXIST);
	ck_assert_int_eq(rsb_state_find(root, "ib", "/", &state, &diag), -ENOENT);
	ck_assert_int_eq(rsb_state_find(root, "nothing", "/", &state, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "nothing"));
	teardown();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		remembers_paths_of_any_bytes,
		refuses_what_is_no_state,
		lets_one_at_a_time_hold_a_lock,
		makes_its_key_once,
		keeps_an_open_intent_from_being_removed,
		writes_events_as_lines,
		keeps_events_within_bounds,
		gives_every_state_a_socket_path_that_fits,
		lists_by_name_and_skips_damage,
		finds_what_is_meant,
	};

	return unit_run("state", tests, RSB_ARRAY_SIZE(tests));
}
