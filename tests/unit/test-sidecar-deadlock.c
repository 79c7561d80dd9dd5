/* SPDX-License-Identifier: MIT */
/* Circles of waits for POSIX locks: among owners of the host, and over processes of the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/lockgraph.h"
#include "tests/unit/rig.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"

#define GRACE_MS 120u
#define PATIENCE_MS 10000u
#define N_FILE 3

struct scene {
	struct rig rig;
	uint64_t fhs[N_FILE];
};

static void
setup(struct scene *scene)
{
	static const char *const names[] = { "f", "g", "h" };

	rig_init(&scene->rig);
	for (size_t i = 0; i < N_FILE; i++) {
		struct rsb_node node;

		rig_put(&scene->rig, names[i], "0123456789");
		ck_assert_int_eq(rig_lookup(&scene->rig, &rig_root, names[i], &node, NULL), 0);
		ck_assert_int_eq(rig_open(&scene->rig, &node, O_RDWR, &scene->fhs[i]), 0);
	}
}

static struct rig_call *
start(struct scene *scene, size_t file, uint64_t owner, uint64_t at)
{
	const struct rsb_lock_req req = {
		.fh = scene->fhs[file],
		.owner = owner,
		.pid = 100 + owner,
		.kind = RSB_LOCK_POSIX,
		.type = F_WRLCK,
		.start = at,
		.length = 1,
		.wait = 1,
	};

	return rig_start(&scene->rig, RSB_OP_lock, &req);
}

static int
finish(struct scene *scene, struct rig_call *call)
{
	ck_assert(rig_answered(call, PATIENCE_MS));
	return rig_finish(call, NULL, &scene->rig.last);
}

static int
lock(struct scene *scene, size_t file, uint64_t owner, uint64_t at)
{
	return finish(scene, start(scene, file, owner, at));
}

static void
unlock_all(struct scene *scene, size_t file, uint64_t owner)
{
	const struct rsb_unlock_all_req req = { .fh = scene->fhs[file], .owner = owner };

	ck_assert_int_eq(rig_do(&scene->rig, unlock_all, &req, NULL), 0);
}

START_TEST(refuses_the_wait_that_closes_a_circle)
{
	struct rig_call *first, *second;
	struct scene scene;

	setup(&scene);
	for (size_t i = 0; i < N_FILE; i++)
		ck_assert_int_eq(lock(&scene, i, i + 1, 0), 0);
	first = start(&scene, 1, 1, 0);
	second = start(&scene, 2, 2, 0);
	ck_assert_int_eq(lock(&scene, 0, 3, 0), -EDEADLK);
	/* The others still wait, and get on when one gives up what it has. */
	ck_assert(!rig_answered(first, GRACE_MS));
	unlock_all(&scene, 2, 3);
	ck_assert_int_eq(finish(&scene, second), 0);
	unlock_all(&scene, 1, 2);
	ck_assert_int_eq(finish(&scene, first), 0);
	rig_done(&scene.rig);
}
END_TEST

START_TEST(takes_no_queue_for_a_circle)
{
	struct rig_call *calls[3];
	struct scene scene;

	setup(&scene);
	/* Two waits for one, each with a lock that nobody wants, and other bytes of a file. */
	ck_assert_int_eq(lock(&scene, 0, 1, 0), 0);
	ck_assert_int_eq(lock(&scene, 1, 2, 0), 0);
	ck_assert_int_eq(lock(&scene, 2, 3, 5), 0);
	calls[0] = start(&scene, 0, 2, 0);
	calls[1] = start(&scene, 0, 3, 0);
	ck_assert_int_eq(lock(&scene, 2, 1, 6), 0);
	ck_assert_int_eq(lock(&scene, 1, 1, 1), 0);
	for (int i = 0; i < 2; i++)
		ck_assert(!rig_answered(calls[i], GRACE_MS));
	unlock_all(&scene, 0, 1);
	ck_assert_int_eq(finish(&scene, calls[0]), 0);
	unlock_all(&scene, 0, 2);
	ck_assert_int_eq(finish(&scene, calls[1]), 0);
	rig_done(&scene.rig);
}
END_TEST

START_TEST(says_who_is_in_the_way)
{
	struct rsb_lock_req req;
	struct rsb_getlk_rep rep;
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1 };
	struct scene scene;
	rsb_autoclose int fd = -1;

	setup(&scene);
	ck_assert_int_eq(lock(&scene, 0, 1, 0), 0);
	ck_assert_int_eq(lock(&scene, 0, 2, 3), 0);
	req = (struct rsb_lock_req){
		.fh = scene.fhs[0], .owner = 3, .kind = RSB_LOCK_POSIX, .type = F_RDLCK
	};
	req.start = 3;
	ck_assert_int_eq(rig_do(&scene.rig, getlk, &req, &rep), 0);
	ck_assert_uint_eq(rep.type, F_WRLCK);
	ck_assert_uint_eq(rep.pid, 102);
	/* A process of the sandbox is nobody that the host could name. */
	fd = openat(scene.rig.dir_fd, "f", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_SETLK, &fl), 0);
	req.start = 5;
	ck_assert_int_eq(rig_do(&scene.rig, getlk, &req, &rep), 0);
	ck_assert_uint_eq(rep.type, F_WRLCK);
	ck_assert_uint_eq(rep.pid, 0);
	rig_done(&scene.rig);
}
END_TEST

/* Has "g", says so, then waits for "f" as soon as it may. */
static void
be_process(int dir_fd, int said_fd, int go_fd)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int f = openat(dir_fd, "f", O_RDWR | O_CLOEXEC);
	int g = openat(dir_fd, "g", O_RDWR | O_CLOEXEC);
	char c = 0;

	if (fcntl(g, F_SETLK, &fl) < 0 || write(said_fd, &c, 1) != 1 || read(go_fd, &c, 1) != 1)
		_exit(1);
	_exit(fcntl(f, F_SETLKW, &fl) < 0 ? 2 : 0);
}

static bool
is_waiting(pid_t pid)
{
	rsb_autofree char *text = NULL;
	struct rsb_lockgraph graph;
	bool found = false;

	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, "/proc/locks", 1 << 20, &text), 0);
	ck_assert_int_eq(rsb_lockgraph_init(&graph), 0);
	rsb_lockgraph_add_processes(&graph, text);
	for (size_t i = 0; i < graph.n_wait; i++)
		found = found || graph.waits[i].who == (uint64_t)pid;
	rsb_lockgraph_done(&graph);
	return found;
}

/* _i: who waits first, the process or the owner. */
START_TEST(ends_a_wait_in_a_circle_over_the_sandbox)
{
	uint64_t deadline_ns = rsb_now_ns() + PATIENCE_MS * RSB_NSEC_PER_MSEC;
	struct rig_call *call = NULL;
	int said[2], go[2], status;
	struct scene scene;
	char c = 0;
	pid_t pid;

	setup(&scene);
	ck_assert_int_eq(pipe2(said, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		be_process(scene.rig.dir_fd, said[1], go[0]);
	ck_assert_int_eq(read(said[0], &c, 1), 1);
	ck_assert_int_eq(lock(&scene, 0, 1, 0), 0);
	if (_i == 1)
		call = start(&scene, 1, 1, 0);
	ck_assert_int_eq(write(go[1], &c, 1), 1);
	while (!is_waiting(pid) && rsb_now_ns() < deadline_ns)
		(void)usleep(1000);
	if (_i == 0)
		call = start(&scene, 1, 1, 0);
	ck_assert_int_eq(finish(&scene, call), -EDEADLK);
	/* The process gets on when the owner gives way. */
	unlock_all(&scene, 0, 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	for (int i = 0; i < 2; i++) {
		(void)close(said[i]);
		(void)close(go[i]);
	}
	rig_done(&scene.rig);
}
END_TEST

START_TEST(reads_only_lines_that_are_locks)
{
	char text[] = "1: POSIX  ADVISORY  WRITE 7 fe:00:42 0 EOF\n"
		      "1: -> POSIX  ADVISORY  READ 8 fe:00:42 5 9\n"
		      "2: FLOCK  ADVISORY  WRITE 9 fe:00:42 0 EOF\n"
		      "3: OFDLCK ADVISORY  WRITE -1 fe:00:42 0 EOF\n"
		      "4: POSIX  ADVISORY  WRITE 10 <none>:0 0 EOF\n"
		      "5: POSIX  ADVISORY  WRITE 11 fe:00:42 0 x\n"
		      "6: -> \n:\n: : : :\n7: POSIX";
	struct rsb_lockgraph graph;

	ck_assert_int_eq(rsb_lockgraph_init(&graph), 0);
	rsb_lockgraph_add_processes(&graph, text);
	ck_assert_uint_eq(graph.n_hold, 1);
	ck_assert_uint_eq(graph.n_wait, 1);
	ck_assert_uint_eq(graph.holds[0].who, 7);
	ck_assert(graph.holds[0].lock.write);
	ck_assert_uint_eq(graph.waits[0].lock.start, 5);
	ck_assert_uint_eq(graph.waits[0].lock.last, 9);
	ck_assert(!graph.waits[0].lock.write);
	rsb_lockgraph_done(&graph);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		refuses_the_wait_that_closes_a_circle,
		takes_no_queue_for_a_circle,
		says_who_is_in_the_way,
		reads_only_lines_that_are_locks,
	};
	Suite *suite = suite_create("sidecar-deadlock");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int n_failed;

	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, ends_a_wait_in_a_circle_over_the_sandbox, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? 1 : 0;
}
