/* SPDX-License-Identifier: MIT */
#include "fuse/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "util/cleanup.h"
#include "util/fd.h"

#define N_FD 5
#define TEXT_MAX 128
#define FORMAT "%d,%d,%d,%d,%d,%d,%d,%d"

/* In the order in which they are written. */
static void
list_fds(struct rsb_takeover *takeover, int *ret_fds[static N_FD])
{
	ret_fds[0] = &takeover->shared_fd;
	ret_fds[1] = &takeover->lock_fd;
	ret_fds[2] = &takeover->sock;
	ret_fds[3] = &takeover->notify_sock;
	ret_fds[4] = &takeover->fuse_fd;
}

static int
set_cloexec(struct rsb_takeover *takeover, bool on)
{
	int *fds[N_FD];
	int r = 0;

	list_fds(takeover, fds);
	for (size_t i = 0; i < N_FD && r >= 0; i++)
		r = *fds[i] < 0 ? 0 : rsb_fd_cloexec(*fds[i], on);
	return r;
}

int
rsb_takeover_parse(const char *text, struct rsb_takeover *ret_takeover)
{
	struct rsb_takeover t = { .role = RSB_TAKEOVER_NONE };
	char after;
	int role;

	if (sscanf(text, FORMAT "%c", &role, &t.shared_fd, &t.lock_fd, &t.sock, &t.notify_sock,
		    &t.fuse_fd, &t.daemon, &t.notifier, &after) != 8)
		return -EINVAL;
	if (role != RSB_TAKEOVER_DAEMON && role != RSB_TAKEOVER_SUPERVISOR)
		return -EINVAL;
	t.role = role == RSB_TAKEOVER_DAEMON ? RSB_TAKEOVER_DAEMON : RSB_TAKEOVER_SUPERVISOR;
	if (t.shared_fd < 0 || t.sock < 0 || set_cloexec(&t, true) < 0)
		return -EINVAL;
	*ret_takeover = t;
	return 0;
}

int
rsb_takeover_exec(const struct rsb_takeover *takeover, int program, char *const *args)
{
	struct rsb_takeover t = *takeover;
	rsb_autofree char **argv = NULL;
	char text[TEXT_MAX];
	size_t n = 0;
	int r;

	while (args[n])
		n++;
	argv = rsb_new_array(char *, n + 2);
	if (!argv)
		return -ENOMEM;
	(void)snprintf(text, sizeof(text), RSB_TAKEOVER_OPTION FORMAT, (int)t.role, t.shared_fd,
		t.lock_fd, t.sock, t.notify_sock, t.fuse_fd, (int)t.daemon, (int)t.notifier);
	argv[0] = args[0];
	argv[1] = text;
	for (size_t i = 1; i < n; i++)
		argv[i + 1] = args[i];
	r = set_cloexec(&t, false);
	if (r < 0)
		return r;
	(void)syscall(SYS_execveat, program, "", argv, environ, AT_EMPTY_PATH);
	return -errno;
}
