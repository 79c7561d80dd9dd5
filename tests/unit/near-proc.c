/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/codec.h"
#include "tests/unit/near.h"

/* The commands of near.h. */

static struct rsb_seq
make_strs(const char *const *strings, struct rsb_buf *buf)
{
	uint64_t n = 0;

	rsb_buf_init(buf, RSB_MESSAGE_MAX);
	for (; strings && strings[n]; n++)
		ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str(strings[n]), buf), 0);
	return rsb_seq_of(buf, n);
}

uint64_t
near_spawn_async(struct near *near, const struct near_spawn *spawn, uint64_t *ret_proc)
{
	uint64_t proc = near->next_proc++;
	struct rsb_buf argv, env;
	struct rsb_spawn_req req = {
		.proc = proc,
		.argv = make_strs(spawn->argv, &argv),
		.env = make_strs(spawn->env, &env),
		.cwd = rsb_bytes_str(spawn->cwd ? spawn->cwd : ""),
		.flags = spawn->flags,
		.umask = 022,
	};
	uint64_t call;

	if (!(spawn->flags & RSB_SPAWN_STDIN_NULL))
		(void)near_chan(near, RSB_CHAN_STDIN(proc));
	(void)near_chan(near, RSB_CHAN_STDOUT(proc));
	if (!(spawn->flags & RSB_SPAWN_MERGE_STDERR))
		(void)near_chan(near, RSB_CHAN_STDERR(proc));
	call = near_call(near, RSB_OP_spawn, &req, spawn->after);
	rsb_buf_done(&argv);
	rsb_buf_done(&env);
	*ret_proc = proc;
	return call;
}

uint64_t
near_spawn(struct near *near, const struct near_spawn *spawn, uint64_t *ret_pid)
{
	struct rsb_spawn_rep rep;
	uint64_t proc;
	uint64_t call = near_spawn_async(near, spawn, &proc);

	ck_assert_int_eq(near_reply(near, call, &rep), 0);
	ck_assert_uint_eq(rep.stage, 0);
	ck_assert_uint_gt(rep.pid, 0);
	if (ret_pid)
		*ret_pid = rep.pid;
	return proc;
}

uint64_t
near_script(struct near *near, const char *script)
{
	const char *const argv[] = { "bash", "-c", script, NULL };
	const struct near_spawn spawn = { .argv = argv, .flags = RSB_SPAWN_STDIN_NULL };

	return near_spawn(near, &spawn, NULL);
}

void
near_wait(struct near *near, uint64_t proc, enum rsb_wait_what what, struct rsb_wait_rep *ret_rep)
{
	const struct rsb_wait_req req = { .proc = proc, .what = what };

	ck_assert_int_eq(near_do(near, RSB_OP_wait, &req, ret_rep), 0);
}

char *
near_output(struct near *near, uint64_t proc, const struct rsb_wait_rep *rep)
{
	struct near_chan *out = near_chan(near, RSB_CHAN_STDOUT(proc));

	near_until(near, out->size >= rep->out_size);
	ck_assert_uint_eq(out->size, rep->out_size);
	return rsb_buf_steal_str(&out->data);
}

int
near_count_processes(const char *text)
{
	rsb_autoclosedir DIR *dir = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir))) {
		char path[300], line[4096];
		ssize_t n;
		int fd;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, line, sizeof(line));
		(void)close(fd);
		count += n > 0 && memmem(line, (size_t)n, text, strlen(text)) != NULL;
	}
	return count;
}

int
near_rounds(int full, int quick)
{
	return getenv("RSB_TEST_QUICK") ? quick : full;
}

void
near_check_output(struct near *near, const char *script, const char *expected, uint64_t code)
{
	uint64_t proc = near_script(near, script);
	struct rsb_wait_rep rep;
	char *out;

	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.exited, 1);
	ck_assert_uint_eq(rep.code, code);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, expected);
	free(out);
}

void
near_free_proc(struct near *near, uint64_t proc)
{
	const struct rsb_proc_req req = { .proc = proc };

	ck_assert_int_eq(near_do(near, RSB_OP_proc_free, &req, NULL), 0);
}

void
near_check_failure(
	struct near *near, const char *name, const char *cwd, uint64_t stage, uint64_t error)
{
	const char *const argv[] = { name, NULL };
	const struct near_spawn spawn = { .argv = argv, .cwd = cwd };
	struct rsb_spawn_rep rep;
	uint64_t proc;
	uint64_t call = near_spawn_async(near, &spawn, &proc);

	ck_assert_int_eq(near_reply(near, call, &rep), 0);
	ck_assert_uint_eq(rep.stage, stage);
	ck_assert_uint_eq(rep.error, error);
}

int
near_run(const char *name, const TTest *const *plain, size_t n_plain, const TTest *const *twice,
	size_t n_twice)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int n_failed;

	tcase_set_timeout(tcase, 150);
	for (size_t i = 0; i < n_plain; i++)
		tcase_add_test(tcase, plain[i]);
	for (size_t i = 0; i < n_twice; i++)
		tcase_add_loop_test(tcase, twice[i], 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
