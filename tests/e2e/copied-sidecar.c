/* SPDX-License-Identifier: MIT */
/*
 * The sidecar, for tests of what a virtual machine may do to its memory: fork it, or go back to
 * an older state. On SIGUSR1 it makes a copy of itself, with all its tables, as of a moment in
 * which it has nothing to do, and says "copy PID PORT". The copy is stopped: SIGCONT, now or much
 * later, lets it go on, at a port of its own and with its connections dead, as those of a machine
 * that has moved.
 *
 * fork(2) copies one thread and shares descriptors. So what has those is compiled in here, where
 * the copy makes its own of what is in it; and the journal, which is memory, becomes its own too.
 */
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "sidecar/lock.h"
#include "sidecar/worker.h"
#include "util/loop.h"

int rsb_loop_run_for_ever(struct rsb_loop *loop);
int rsb_workers_new_alone(const char *name, unsigned int n_max, void (*run)(struct rsb_request *rq),
	struct rsb_workers **ret_workers);
void rsb_workers_free_alone(struct rsb_workers *w);
int rsb_locks_new_alone(struct rsb_locks **ret_locks);
void rsb_locks_free_alone(struct rsb_locks *locks);

#define rsb_loop_run rsb_loop_run_for_ever
#include "util/loop.c"
#undef rsb_loop_run
#define rsb_workers_new rsb_workers_new_alone
#define rsb_workers_free rsb_workers_free_alone
#include "sidecar/worker.c"
#undef rsb_workers_new
#undef rsb_workers_free
#define run run_locks
#define rsb_locks_new rsb_locks_new_alone
#define rsb_locks_free rsb_locks_free_alone
#include "sidecar/lock.c"
#undef rsb_locks_new
#undef rsb_locks_free
#undef run
#include "sidecar/main.c"

#define ALL_MAX 64u

static struct rsb_workers *all_workers[ALL_MAX];
static struct rsb_locks *all_locks[ALL_MAX];
static volatile sig_atomic_t asked;

static void
must(bool ok)
{
	if (!ok)
		abort();
}

int
rsb_workers_new(const char *name, unsigned int n_max, void (*run_one)(struct rsb_request *rq),
	struct rsb_workers **ret_workers)
{
	size_t i = 0;
	int r = rsb_workers_new_alone(name, n_max, run_one, ret_workers);

	if (r < 0)
		return r;
	while (all_workers[i])
		must(++i < ALL_MAX);
	all_workers[i] = *ret_workers;
	return 0;
}

void
rsb_workers_free(struct rsb_workers *w)
{
	for (size_t i = 0; w && i < ALL_MAX; i++)
		if (all_workers[i] == w)
			all_workers[i] = NULL;
	rsb_workers_free_alone(w);
}

int
rsb_locks_new(struct rsb_locks **ret_locks)
{
	size_t i = 0;
	int r = rsb_locks_new_alone(ret_locks);

	if (r < 0)
		return r;
	while (all_locks[i])
		must(++i < ALL_MAX);
	all_locks[i] = *ret_locks;
	return 0;
}

void
rsb_locks_free(struct rsb_locks *locks)
{
	for (size_t i = 0; locks && i < ALL_MAX; i++)
		if (all_locks[i] == locks)
			all_locks[i] = NULL;
	rsb_locks_free_alone(locks);
}

/* ---- what the copy makes anew ---- */

static bool
is_connection(int fd)
{
	struct sockaddr_storage sa;
	socklen_t size = sizeof(sa);

	return getpeername(fd, (struct sockaddr *)&sa, &size) == 0 && sa.ss_family == AF_INET;
}

static bool
is_way_in(int fd)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

static void
die(int fd)
{
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	must(dup3(ends[0], fd, O_CLOEXEC) == fd);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static in_port_t
move(int fd)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(sa);
	int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	must(own >= 0 && bind(own, (struct sockaddr *)&sa, size) == 0 && listen(own, 16) == 0);
	must(getsockname(own, (struct sockaddr *)&sa, &size) == 0);
	must(dup3(own, fd, O_CLOEXEC) == fd);
	(void)close(own);
	return ntohs(sa.sin_port);
}

static in_port_t
renew_loop(struct rsb_loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct rsb_list *pos;
	in_port_t port = 0;

	(void)close(loop->epoll_fd);
	(void)close(loop->wake_fd);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) == 0);
	rsb_list_for_each (pos, &loop->sources) {
		struct rsb_source *source = rsb_list_entry(pos, struct rsb_source, node);

		if (is_way_in(source->fd))
			port = move(source->fd);
		else if (is_connection(source->fd))
			die(source->fd);
		event = (struct epoll_event){ .events = source->events, .data.ptr = source };
		must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) == 0);
	}
	return port;
}

/* Workers have nothing to do, and start again with the next request. */
static void
renew_threads(void)
{
	for (size_t i = 0; i < ALL_MAX; i++) {
		struct rsb_workers *w = all_workers[i];
		struct rsb_locks *locks = all_locks[i];

		if (w) {
			rsb_mutex_init(&w->lock);
			rsb_cond_init(&w->filled);
			w->n_thread = 0;
			w->n_idle = 0;
		}
		if (locks) {
			rsb_mutex_init(&locks->lock);
			rsb_cond_init(&locks->changed);
			must(rsb_thread_start("rsb-locks", run_locks, locks, &locks->thread) == 0);
		}
	}
}

/* Of every mapping that a file is shared by: the journal. */
static void
for_each_shared(void (*fn)(void *at, size_t size))
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long first, last;
	char line[4096];
	char rights[5];

	must(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &first, &last, rights) == 3 &&
			strcmp(rights, "rw-s") == 0)
			fn((void *)first, last - first);
	(void)fclose(maps);
}

/* Commands do not get it otherwise. */
static void
pass_on(void *at, size_t size)
{
	must(madvise(at, size, MADV_DOFORK) == 0);
}

/* It becomes memory of this process, in its place. */
static void
renew_memory(void *at, size_t size)
{
	void *copy = malloc(size);

	must(copy);
	memcpy(copy, at, size);
	must(mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		     0) == at);
	memcpy(at, copy, size);
	free(copy);
}

/* Descriptors of this process, by names that were those of the other one. */
static void
renew_names(void)
{
	for (int fd = 3; fd < 256; fd++) {
		char name[32];
		char path[64];
		ssize_t n;
		int own;

		(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, path, sizeof(path) - 1);
		if (n <= 0)
			continue;
		path[n] = '\0';
		(void)snprintf(name, sizeof(name), "/proc/%d/fd", getppid());
		if (strcmp(path, name) != 0)
			continue;
		own = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
		must(own >= 0 && dup3(own, fd, O_CLOEXEC) == fd);
		(void)close(own);
	}
}

/* ---- the moment ---- */

static void
hold_threads(void)
{
	for (size_t i = 0; i < ALL_MAX; i++) {
		if (all_workers[i])
			rsb_mutex_lock(&all_workers[i]->lock);
		if (all_locks[i])
			rsb_mutex_lock(&all_locks[i]->lock);
	}
}

static void
let_threads_go(void)
{
	for (size_t i = 0; i < ALL_MAX; i++) {
		if (all_workers[i])
			rsb_mutex_unlock(&all_workers[i]->lock);
		if (all_locks[i])
			rsb_mutex_unlock(&all_locks[i]->lock);
	}
}

static bool
is_quiet(struct rsb_loop *loop)
{
	bool quiet = count_tasks(loop) == 0;

	for (size_t i = 0; i < ALL_MAX; i++)
		quiet = quiet && (!all_workers[i] || (all_workers[i]->n_queued == 0 &&
							     all_workers[i]->n_idle ==
								     all_workers[i]->n_thread));
	return quiet;
}

static void
become_copy(struct rsb_loop *loop)
{
	in_port_t port;

	for_each_shared(renew_memory);
	renew_names();
	port = renew_loop(loop);
	renew_threads();
	(void)printf("copy %d %u\n", getpid(), (unsigned int)port);
	(void)fflush(stdout);
	(void)raise(SIGSTOP);
}

/* Threads that are about to wait have their locks: the copy would have them locked for ever. */
static void
copy_if_quiet(struct rsb_loop *loop)
{
	pid_t pid = -1;

	hold_threads();
	if (is_quiet(loop)) {
		asked = 0;
		for_each_shared(pass_on);
		pid = fork();
		must(pid >= 0);
	}
	if (pid == 0)
		become_copy(loop);
	else
		let_threads_go();
}

static void
on_ask(int number rsb_unused)
{
	asked = 1;
}

int
rsb_loop_run(struct rsb_loop *loop)
{
	const struct sigaction act = { .sa_handler = on_ask };
	int r = 0;

	must(sigaction(SIGUSR1, &act, NULL) == 0);
	while (r == 0 && !__atomic_exchange_n(&loop->stop, false, __ATOMIC_ACQ_REL)) {
		/* A signal that comes just before it waits is seen after the next ping. */
		r = rsb_loop_step(loop, -1);
		if (asked)
			copy_if_quiet(loop);
	}
	return r;
}
