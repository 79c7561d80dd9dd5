/* SPDX-License-Identifier: MIT */
/* Locks: flock, of processes, of open files; who waits, who lets go. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

/* ---- pairs ---- */

enum kind { FLOCK, POSIX, OFD, N_KIND };

static const char *const kind_names[N_KIND] = { "flock", "posix", "ofd" };

struct pair {
	enum kind first;
	enum kind second;
	short first_type;
	short second_type;
	bool same_process;
	bool apart; /* the ranges do not touch */
};

static int
set_range(int fd, int cmd, short type, off_t start, off_t length)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length
	};

	return fcntl(fd, cmd, &lock);
}

static int
take(int fd, enum kind kind, short type, off_t start)
{
	if (kind == FLOCK)
		return flock(fd, (type == F_RDLCK          ? LOCK_SH
					 : type == F_WRLCK ? LOCK_EX
							   : LOCK_UN) |
					 LOCK_NB);
	return set_range(fd, kind == OFD ? F_OFD_SETLK : F_SETLK, type, start, 10);
}

/* EACCES and EAGAIN both mean that it is taken. */
static void
say_taken(struct pt *t, const char *what, int r)
{
	if (r < 0 && errno == EACCES)
		errno = EAGAIN;
	pt_did(t, what, r);
}

static void
second(struct pt *t, const void *arg)
{
	const struct pair *p = arg;
	rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);

	say_taken(t, "second", take(fd, p->second, p->second_type, p->apart ? 20 : 5));
}

static void
lock_pair(struct pt *t, const void *arg)
{
	const struct pair *p = arg;
	rsb_autoclose int fd = -1;

	pt_put(t, "x", "locked");
	fd = open("x", O_RDWR | O_CLOEXEC);
	say_taken(t, "first", take(fd, p->first, p->first_type, 0));
	if (p->same_process)
		second(t, p);
	else
		pt_child(t, second, p);
	say_taken(t, "unlock", take(fd, p->first, F_UNLCK, 0));
	pt_child(t, second, p);
}

/* ---- ranges ---- */

static void
ask(struct pt *t, const void *arg)
{
	static const struct {
		off_t start;
		off_t length;
	} asked[] = { { 0, 1 }, { 0, 10 }, { 9, 2 }, { 10, 5 }, { 15, 5 }, { 19, 1 }, { 20, 10 },
		{ 30, 0 }, { 0, 0 } };
	rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);

	(void)arg;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(asked); i++) {
		struct flock lock = {
			.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = asked[i].start,
			.l_len = asked[i].length,
		};

		pt_need(t, fcntl(fd, F_GETLK, &lock) == 0, "getlk");
		if (lock.l_type == F_UNLCK)
			pt_say(t, " -");
		else
			pt_say(t, " %c%lld+%lld", lock.l_type == F_RDLCK ? 'r' : 'w',
				(long long)lock.l_start, (long long)lock.l_len);
	}
	pt_say(t, ";");
}

static void
ranges_split_and_join(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;

	(void)arg;
	pt_put(t, "x", "");
	fd = open("x", O_RDWR | O_CLOEXEC);
	pt_did(t, "lock", set_range(fd, F_SETLK, F_WRLCK, 0, 20));
	pt_child(t, ask, NULL);
	pt_did(t, "hole", set_range(fd, F_SETLK, F_UNLCK, 5, 10));
	pt_child(t, ask, NULL);
	pt_did(t, "read", set_range(fd, F_SETLK, F_RDLCK, 0, 5));
	pt_child(t, ask, NULL);
	pt_did(t, "join", set_range(fd, F_SETLK, F_RDLCK, 5, 15));
	pt_child(t, ask, NULL);
	pt_did(t, "to-end", set_range(fd, F_SETLK, F_WRLCK, 18, 0));
	pt_child(t, ask, NULL);
	pt_did(t, "all", set_range(fd, F_SETLK, F_UNLCK, 0, 0));
	pt_child(t, ask, NULL);
}

static void
places(struct pt *t, const void *arg)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -3, .l_len = 2 };
	rsb_autoclose int fd = -1;

	(void)arg;
	pt_put(t, "x", "0123456789012345678");
	fd = open("x", O_RDWR | O_CLOEXEC);
	pt_did(t, "end", fcntl(fd, F_SETLK, &lock));
	pt_child(t, ask, NULL);
	pt_got(t, "seek", lseek(fd, 10, SEEK_SET));
	lock.l_whence = SEEK_CUR;
	lock.l_start = 1;
	lock.l_len = -3;
	pt_did(t, "negative", fcntl(fd, F_SETLK, &lock));
	pt_child(t, ask, NULL);
	lock.l_start = -20;
	pt_did(t, "before", fcntl(fd, F_SETLK, &lock));
	lock.l_whence = 9;
	pt_did(t, "odd", fcntl(fd, F_SETLK, &lock));
	lock.l_type = 9;
	lock.l_whence = SEEK_SET;
	lock.l_start = 0;
	pt_did(t, "type", fcntl(fd, F_SETLK, &lock));
}

/* ---- ends ---- */

/* Any close of the file by the process lets go. */
static void
closing_another(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;

	(void)arg;
	pt_put(t, "x", "");
	fd = open("x", O_RDWR | O_CLOEXEC);
	pt_did(t, "lock", set_range(fd, F_SETLK, F_WRLCK, 0, 5));
	pt_child(t, ask, NULL);
	pt_did(t, "close", close(open("x", O_RDONLY | O_CLOEXEC)));
	pt_child(t, ask, NULL);
	pt_did(t, "ofd", set_range(fd, F_OFD_SETLK, F_WRLCK, 0, 5));
	pt_did(t, "close", close(open("x", O_RDONLY | O_CLOEXEC)));
	pt_child(t, ask, NULL);
}

static void
duplicates_share(struct pt *t, const void *arg)
{
	const struct pair p = { .second = FLOCK, .second_type = F_WRLCK };
	rsb_autoclose int fd = -1;
	rsb_autoclose int dup_fd = -1;

	(void)arg;
	pt_put(t, "x", "");
	fd = open("x", O_RDWR | O_CLOEXEC);
	dup_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	pt_did(t, "lock", flock(fd, LOCK_EX));
	pt_did(t, "dup", flock(dup_fd, LOCK_EX | LOCK_NB));
	pt_did(t, "close", close(rsb_steal_fd(&fd)));
	pt_child(t, second, &p);
	pt_did(t, "shared", flock(dup_fd, LOCK_SH));
	pt_child(t, second, &p);
	pt_did(t, "close", close(rsb_steal_fd(&dup_fd)));
	pt_child(t, second, &p);
}

static void
on_alarm(int signal)
{
	(void)signal;
}

/* A waiter is interrupted by a signal, and gets the lock when its holder ends. */
static void
waits(struct pt *t, const void *arg)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const enum kind *kind = arg;
	int ready[2];
	int hold[2];
	char byte;

	pt_put(t, "x", "");
	pt_need(t, pipe2(ready, O_CLOEXEC) == 0 && pipe2(hold, O_CLOEXEC) == 0, "pipe");
	if (fork() == 0) {
		rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);
		int bad = take(fd, *kind, F_WRLCK, 0);

		(void)close(hold[1]);
		bad |= write(ready[1], "r", 1) != 1;
		_exit(bad || read(hold[0], &byte, 1) != 0);
	}
	pt_need(t, read(ready[0], &byte, 1) == 1, "ready");
	rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);
	pt_need(t, sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	(void)ualarm(200000, 0);
	if (*kind == FLOCK)
		pt_did(t, "interrupted", flock(fd, LOCK_EX));
	else
		pt_did(t, "interrupted",
			set_range(fd, *kind == OFD ? F_OFD_SETLKW : F_SETLKW, F_WRLCK, 0, 5));
	(void)close(hold[1]);
	if (*kind == FLOCK)
		pt_did(t, "had", flock(fd, LOCK_EX));
	else
		pt_did(t, "had",
			set_range(fd, *kind == OFD ? F_OFD_SETLKW : F_SETLKW, F_WRLCK, 0, 5));
	int status = -1;
	(void)wait(&status);
	pt_say(t, " child=%d", status);
}

static void
counts_with_locks(struct pt *t, const void *arg)
{
	enum { PROCESSES = 4, ROUNDS = 25 };

	(void)arg;
	pt_put(t, "x", "000");
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() == 0) {
			for (int k = 0; k < ROUNDS; k++) {
				rsb_autoclose int fd = open("x", O_RDWR | O_CLOEXEC);
				char text[16] = "";
				int n = -1;

				if (flock(fd, LOCK_EX) < 0 || pread(fd, text, 3, 0) != 3)
					_exit(1);
				(void)sscanf(text, "%d", &n);
				(void)snprintf(text, sizeof(text), "%03d", n + 1);
				if (pwrite(fd, text, 3, 0) != 3)
					_exit(2);
			}
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = -1;

		(void)wait(&status);
		pt_say(t, " child=%d", status);
	}
	pt_cat(t, "x", "x");
}

static void
rights_for_locks(struct pt *t, const void *arg)
{
	(void)arg;
	pt_put(t, "x", "");
	rsb_autoclose int reader = open("x", O_RDONLY | O_CLOEXEC);
	rsb_autoclose int writer = open("x", O_WRONLY | O_CLOEXEC);
	pt_did(t, "read-r", set_range(reader, F_SETLK, F_RDLCK, 0, 1));
	pt_did(t, "read-w", set_range(reader, F_SETLK, F_WRLCK, 0, 1));
	pt_did(t, "write-r", set_range(writer, F_SETLK, F_RDLCK, 0, 1));
	pt_did(t, "write-w", set_range(writer, F_SETLK, F_WRLCK, 0, 1));
	pt_did(t, "flock-r", flock(reader, LOCK_EX | LOCK_NB));
	pt_did(t, "flock-w", flock(writer, LOCK_SH | LOCK_NB));
	pt_did(t, "ofd-pid",
		fcntl(reader, F_OFD_GETLK, &(struct flock){ .l_type = F_RDLCK, .l_pid = 1 }));
}

static void
cases_of_pairs(struct pt_run *run)
{
	static const short types[] = { F_RDLCK, F_WRLCK };

	for (int k = 0; k < N_KIND * N_KIND; k++) {
		for (int b = 0; b < 16; b++) {
			const struct pair p = {
				.first = (enum kind)(k / N_KIND),
				.second = (enum kind)(k % N_KIND),
				.first_type = types[b & 1],
				.second_type = types[b >> 1 & 1],
				.same_process = b & 4,
				.apart = b & 8,
			};

			pt_case(run, lock_pair, &p, "lock.%s %s, %s %s%s%s", kind_names[p.first],
				b & 1 ? "write" : "read", kind_names[p.second],
				b & 2 ? "write" : "read", p.same_process ? " in one process" : "",
				p.apart ? " apart" : "");
		}
	}
}

void
pt_cases_locks(struct pt_run *run)
{
	static const enum kind kinds[] = { FLOCK, POSIX, OFD };

	cases_of_pairs(run);
	pt_case(run, ranges_split_and_join, NULL, "lock.ranges split and join");
	pt_case(run, places, NULL, "lock.places");
	pt_case(run, closing_another, NULL, "lock.closing another descriptor");
	pt_case(run, duplicates_share, NULL, "lock.duplicates share");
	for (size_t i = 0; i < N_KIND; i++)
		pt_case(run, waits, &kinds[i], "lock.waits for %s", kind_names[i]);
	pt_case(run, counts_with_locks, NULL, "lock.counts");
	pt_case(run, rights_for_locks, NULL, "lock.rights");
}
