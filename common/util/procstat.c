/* SPDX-License-Identifier: MIT */
#include "util/procstat.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "util/cleanup.h"

#define NAME_SIZE 32
#define STAT_SIZE 512

/* snprintf(3) is not async-signal-safe. */
static void
name_stat(pid_t pid, char out[static NAME_SIZE])
{
	static const char tail[] = "/stat";
	char digits[NAME_SIZE];
	size_t n = 0;
	size_t at = 0;

	do {
		digits[n++] = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid > 0);
	while (n > 0)
		out[at++] = digits[--n];
	memcpy(out + at, tail, sizeof(tail));
}

/* 0: no number. */
static pid_t
parse_number(const char **p)
{
	pid_t value = 0;

	while (**p == ' ')
		(*p)++;
	for (; **p >= '0' && **p <= '9' && value < INT32_MAX / 16; (*p)++)
		value = value * 10 + (**p - '0');
	return value;
}

/*
 * proc_pid_stat(5): the name in parentheses may hold anything, so what follows the last one counts.
 */
bool
rsb_procstat_read(int proc_fd, pid_t pid, struct rsb_procstat *ret_stat)
{
	char name[NAME_SIZE];
	char text[STAT_SIZE];
	const char *p;
	ssize_t n;
	int fd;

	name_stat(pid, name);
	fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	p = strrchr(text, ')');
	if (!p || p[1] != ' ' || !p[2])
		return false;
	ret_stat->pid = pid;
	ret_stat->state = p[2];
	p += 3;
	ret_stat->ppid = parse_number(&p);
	ret_stat->pgid = parse_number(&p);
	ret_stat->sid = parse_number(&p);
	return true;
}

void
rsb_procstat_each(int proc_fd, void (*fn)(void *arg, const struct rsb_procstat *stat), void *arg)
{
	char buf[8192] __attribute__((aligned(8)));
	long size;

	(void)lseek(proc_fd, 0, SEEK_SET);
	while ((size = syscall(SYS_getdents64, proc_fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < size;) {
			const struct dirent64 *entry = (const void *)(buf + at);
			const char *p = entry->d_name;
			pid_t pid = parse_number(&p);
			struct rsb_procstat stat;

			at += entry->d_reclen;
			if (pid > 0 && !*p && rsb_procstat_read(proc_fd, pid, &stat))
				fn(arg, &stat);
		}
	}
}

bool
rsb_procstat_signal(int proc_fd, const struct rsb_procstat *stat, int signal)
{
	rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, stat->pid, 0);
	struct rsb_procstat now;

	if (pidfd < 0 || !rsb_procstat_read(proc_fd, stat->pid, &now) ||
		(now.ppid != stat->ppid && now.sid != stat->sid))
		return false;
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
}
