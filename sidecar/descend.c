/* SPDX-License-Identifier: MIT */
#include "sidecar/descend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
static bool
read_stat(int proc_fd, pid_t pid, struct rsb_descend *out)
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
	out->pid = pid;
	out->state = p[2];
	p += 3;
	out->ppid = parse_number(&p);
	out->pgid = parse_number(&p);
	return true;
}

static size_t
list(int proc_fd, struct rsb_descend *table)
{
	char buf[8192] __attribute__((aligned(8)));
	size_t n = 0;
	long size;

	(void)lseek(proc_fd, 0, SEEK_SET);
	while ((size = syscall(SYS_getdents64, proc_fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < size;) {
			const struct dirent64 *entry = (const void *)(buf + at);
			const char *p = entry->d_name;
			pid_t pid = parse_number(&p);

			at += entry->d_reclen;
			if (pid > 0 && !*p && n < RSB_DESCEND_MAX)
				n += read_stat(proc_fd, pid, &table[n]);
		}
	}
	return n;
}

/*
 * Is it, by the chain of its parents, one of ours? Chains are short; the table is in order of pids.
 */
static bool
is_ours(const struct rsb_descend *table, size_t n, pid_t pid, pid_t self)
{
	for (int depth = 0; depth < 4096 && pid > 1; depth++) {
		size_t low = 0;
		size_t high = n;

		if (pid == self)
			return true;
		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (table[mid].pid < pid)
				low = mid + 1;
			else
				high = mid;
		}
		if (low == n || table[low].pid != pid)
			return false;
		pid = table[low].ppid;
	}
	return false;
}

static bool
send_to(int proc_fd, const struct rsb_descend *target, int signal)
{
	rsb_autoclose int pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	struct rsb_descend now;

	if (pidfd < 0 || !read_stat(proc_fd, target->pid, &now) || now.ppid != target->ppid)
		return false;
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
}

int
rsb_descend_signal(int proc_fd, struct rsb_descend *table, int signal, pid_t pgid)
{
	pid_t self = getpid();
	size_t n = list(proc_fd, table);
	int count = 0;

	for (size_t i = 0; i < n; i++) {
		if (table[i].pid == self || table[i].state == 'Z' || table[i].state == 'X' ||
			(pgid > 0 && table[i].pgid != pgid) ||
			!is_ours(table, n, table[i].ppid, self))
			continue;
		count += signal == 0 || send_to(proc_fd, &table[i], signal);
	}
	return count;
}
