/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/spawn.h"
#include "util/str.h"

#define ID_TEXT 32

static int
write_file(const char *path, const char *text)
{
	rsb_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return rsb_fd_write_full(fd, text, strlen(text));
}

static int
wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

/* ---- the outer namespace of an ordinary user ---- */

/* First range of path (subuid(5)) for name or uid that holds a full map. */
static int
find_range(const char *path, const char *name, uid_t uid, uint32_t *ret_start)
{
	rsb_autofclose FILE *f = fopen(path, "re");
	char line[256], uid_text[ID_TEXT];

	if (!f)
		return -errno;
	(void)snprintf(uid_text, sizeof(uid_text), "%u", uid);
	while (fgets(line, sizeof(line), f)) {
		char *save = NULL;
		const char *who = strtok_r(line, ":\n", &save);
		const char *start = strtok_r(NULL, ":\n", &save);
		const char *count = strtok_r(NULL, ":\n", &save);
		uint64_t first, n;

		if (!who || !start || !count ||
			(strcmp(who, uid_text) != 0 && strcmp(who, name) != 0))
			continue;
		if (rsb_str_u64(start, UINT32_MAX, &first) < 0 ||
			rsb_str_u64(count, UINT32_MAX, &n) < 0)
			continue;
		if (n < RSB_USERNS_IDS)
			continue;
		*ret_start = (uint32_t)first;
		return 0;
	}
	return -ENOENT;
}

/* From the file itself: no name service is asked. Empty when there is no such user. */
static void
name_of(uid_t uid, char *out, size_t size)
{
	rsb_autofclose FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	out[0] = '\0';
	if (!f)
		return;
	while ((pw = fgetpwent(f))) {
		if (pw->pw_uid != uid)
			continue;
		(void)snprintf(out, size, "%s", pw->pw_name);
		return;
	}
}

static int
run_map_tool(const char *tool, pid_t pid, uint32_t start)
{
	char pid_text[ID_TEXT], start_text[ID_TEXT], count_text[ID_TEXT];
	const char *argv[] = { tool, pid_text, "0", start_text, count_text, NULL };
	struct rsb_spawn spec = { .argv = argv, .stdio = { -1, -1, -1 } };
	pid_t child;
	int r;

	(void)snprintf(pid_text, sizeof(pid_text), "%d", pid);
	(void)snprintf(start_text, sizeof(start_text), "%u", start);
	(void)snprintf(count_text, sizeof(count_text), "%u", RSB_USERNS_IDS);
	r = rsb_spawn(&spec, &child, NULL);
	if (r < 0)
		return r;
	return rsb_spawn_wait(child) == 0 ? 0 : -EPERM;
}

/*
 * newuidmap(1) has to act from outside on a process that is already inside: a child that stayed
 * behind runs it for its parent.
 */
static int
enter_range(uint32_t uid_start, uint32_t gid_start)
{
	int go[2];
	pid_t parent = getpid(), helper;
	char c = 0;
	int r;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	helper = fork();
	if (helper < 0)
		return -errno;
	if (helper == 0) {
		(void)close(go[1]);
		if (read(go[0], &c, 1) != 1 || run_map_tool("newuidmap", parent, uid_start) < 0 ||
			run_map_tool("newgidmap", parent, gid_start) < 0)
			_exit(1);
		_exit(0);
	}
	(void)close(go[0]);
	r = unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
	if (r == 0 && write(go[1], &c, 1) != 1)
		r = -errno;
	(void)close(go[1]);
	if (wait_child(helper) < 0 && r == 0)
		r = -EPERM;
	return r;
}

static int
enter_single(uid_t uid, gid_t gid)
{
	char map[ID_TEXT];
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	r = write_file("/proc/self/uid_map", map);
	if (r < 0)
		return r;
	/* user_namespaces(7): an unprivileged gid map wants setgroups(2) given up first. */
	r = write_file("/proc/self/setgroups", "deny");
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_file("/proc/self/gid_map", map);
}

static int
become_root(bool groups)
{
	if (groups && setgroups(0, NULL) < 0)
		return -errno;
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	/* A change of ids takes away our own /proc/self, which later steps write to. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return -errno;
	return 0;
}

/* 1 when the full map could be had, 0 when not; the process is then still outside. */
static int
try_range(uid_t uid)
{
	uint32_t uid_start, gid_start;
	char name[64];
	int probe, r;

	name_of(uid, name, sizeof(name));
	if (find_range("/etc/subuid", name, uid, &uid_start) < 0 ||
		find_range("/etc/subgid", name, uid, &gid_start) < 0)
		return 0;
	/* A child tries first: a process that entered a namespace it cannot map is lost. */
	probe = fork();
	if (probe < 0)
		return -errno;
	if (probe == 0)
		_exit(enter_range(uid_start, gid_start) < 0);
	if (wait_child(probe) < 0)
		return 0;
	r = enter_range(uid_start, gid_start);
	return r < 0 ? r : 1;
}

static int
outer_user(struct rsb_userns *ns, struct rsb_diag *diag)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r = try_range(uid);

	if (r > 0) {
		ns->count = RSB_USERNS_IDS;
		r = become_root(true);
	} else if (r == 0) {
		ns->count = 1;
		r = enter_single(uid, gid);
		if (r == 0)
			r = become_root(false);
	}
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot make a user namespace: %s", rsb_diag_text(NULL, r));
	return 0;
}

int
rsb_userns_outer(uint32_t base, struct rsb_userns *ret_ns, struct rsb_diag *diag)
{
	struct rsb_userns ns = { .root = geteuid() == 0 };
	int r;

	if (ns.root) {
		ns.base = base;
		ns.count = RSB_USERNS_IDS;
	} else {
		r = outer_user(&ns, diag);
		if (r < 0)
			return r;
	}
	if (unshare(CLONE_NEWNS) < 0)
		return rsb_diag_set(
			diag, -errno, "cannot make a mount namespace: %s", strerror(errno));
	*ret_ns = ns;
	return 0;
}

/* ---- the inner namespace ---- */

static int
map_inner(const struct rsb_userns *ns, pid_t pid, int *ret_fd)
{
	char path[64], map[64];
	int fd, r;

	(void)snprintf(map, sizeof(map), "0 %u %u", ns->base, ns->count);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	r = write_file(path, map);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	r = write_file(path, map);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int
rsb_userns_inner(const struct rsb_userns *ns, int *ret_fd, struct rsb_diag *diag)
{
	rsb_autoclose int ready_read = -1, ready = -1, hold_read = -1, hold = -1;
	int pair[2];
	pid_t child;
	char c = 0;
	int r = 0;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ready_read = pair[0];
	ready = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	hold_read = pair[0];
	hold = pair[1];
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		(void)close(rsb_steal_fd(&hold));
		if (unshare(CLONE_NEWUSER) < 0 || write(ready, &c, 1) != 1)
			_exit(1);
		/* Ends when the parent has the namespace, or is gone. */
		_exit(read(hold_read, &c, 1) != 0);
	}
	(void)close(rsb_steal_fd(&ready));
	if (read(ready_read, &c, 1) != 1)
		r = -EPERM;
	if (r == 0)
		r = map_inner(ns, child, ret_fd);
	(void)close(rsb_steal_fd(&hold));
	(void)wait_child(child); /* it has no other end than the one awaited */
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot map the ids of the sandbox: %s", rsb_diag_text(NULL, r));
	return 0;
}

/* setgroups(2) may have been given up for a map of one id; then there are no groups to drop. */
static bool
may_setgroups(void)
{
	rsb_autofree char *text = NULL;

	return rsb_fd_read_file(AT_FDCWD, "/proc/self/setgroups", 16, &text) == 0 &&
	       strncmp(text, "allow", 5) == 0;
}

int
rsb_userns_enter(int fd)
{
	if (setns(fd, CLONE_NEWUSER) < 0)
		return -errno;
	return become_root(may_setgroups());
}
