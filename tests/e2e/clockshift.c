/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program under test: its wall clock is ahead of this machine's by the nanoseconds
 * in the file that RSB_TEST_CLOCK names (8 bytes as they lie in memory, maybe negative), and jumps
 * when they change. The other clocks are let alone: nobody can set those.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SEC INT64_C(1000000000)

static const int64_t *ahead;

__attribute__((constructor)) static void
open_clock(void)
{
	const char *path = getenv("RSB_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = MAP_FAILED;

	if (fd >= 0)
		map = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		ahead = map;
	if (fd >= 0)
		(void)close(fd);
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	long r = syscall(SYS_clock_gettime, id, ts);
	int64_t ns;

	if (r < 0 || !ahead || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return (int)r;
	ns = ts->tv_sec * SEC + ts->tv_nsec + __atomic_load_n(ahead, __ATOMIC_RELAXED);
	ts->tv_sec = ns / SEC;
	ts->tv_nsec = ns % SEC;
	return 0;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;                               /* nobody asks */
	(void)clock_gettime(CLOCK_REALTIME, &ts); /* always there */
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *out)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
