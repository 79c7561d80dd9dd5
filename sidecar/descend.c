/* SPDX-License-Identifier: MIT */
#include "sidecar/descend.h"

#include <stdbool.h>
#include <unistd.h>

struct list {
	struct rsb_procstat *table;
	size_t n;
};

static void
add(void *arg, const struct rsb_procstat *stat)
{
	struct list *list = arg;

	if (list->n < RSB_DESCEND_MAX)
		list->table[list->n++] = *stat;
}

/*
 * Is it, by the chain of its parents, one of ours? Chains are short; the table is in order of pids.
 */
static bool
is_ours(const struct rsb_procstat *table, size_t n, pid_t pid, pid_t self)
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

int
rsb_descend_signal(int proc_fd, struct rsb_procstat *table, int signal, pid_t pgid)
{
	pid_t self = getpid();
	struct list list = { .table = table };
	int count = 0;

	rsb_procstat_each(proc_fd, add, &list);
	for (size_t i = 0; i < list.n; i++) {
		if (table[i].pid == self || table[i].state == 'Z' || table[i].state == 'X' ||
			(pgid > 0 && table[i].pgid != pgid) ||
			!is_ours(table, list.n, table[i].ppid, self))
			continue;
		count += signal == 0 || rsb_procstat_signal(proc_fd, &table[i], signal);
	}
	return count;
}
