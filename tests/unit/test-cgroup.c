/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/cgroup.h"
#include "tests/unit/unit.h"
#include "util/fd.h"

/* A sidecar with a command, as far as cgroups go. */
struct other {
	pid_t pid;
	pid_t command;
	int done_fd; /* closed: it may end in order */
	char path[512];
};

static struct rsb_cgroups *
cgroups_or_null(void)
{
	struct rsb_cgroups *cgroups;

	return rsb_cgroups_new(&cgroups) < 0 ? NULL : cgroups;
}

static void
be_other(int out_fd, int done_fd)
{
	struct rsb_cgroups *cgroups = cgroups_or_null();
	struct rsb_cgroup cgroup;
	int pidfd;
	pid_t pid;
	char c;

	if (!cgroups || rsb_cgroup_make(cgroups, &cgroup) < 0 ||
		rsb_cgroup_fork(&cgroup, &pid, &pidfd) < 0)
		_exit(1);
	if (pid == 0) {
		(void)close(out_fd);
		(void)pause();
		_exit(0);
	}
	(void)!write(out_fd, &pid, sizeof(pid));
	(void)!read(done_fd, &c, 1);
	rsb_cgroups_free(cgroups);
	_exit(0);
}

/* The directory that the command's cgroup lies in. */
static void
find_path(struct other *other)
{
	char command[512];
	FILE *f;

	(void)snprintf(command, sizeof(command),
		"m=$(awk '$4 == \"/\" && / - cgroup2 / { print $5; exit }' /proc/self/mountinfo); "
		"c=$(sed -n 's/^0:://p' /proc/%d/cgroup); printf %%s \"$m${c%%/*}\"",
		(int)other->command);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(other->path, sizeof(other->path), f));
	(void)pclose(f);
	ck_assert_ptr_nonnull(strstr(other->path, "/rsb."));
}

static void
start_other(struct other *other)
{
	int out[2], done[2];

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(done, O_CLOEXEC), 0);
	other->pid = fork();
	ck_assert_int_ge(other->pid, 0);
	if (other->pid == 0) {
		(void)close(done[1]);
		be_other(out[1], done[0]);
	}
	(void)close(out[1]);
	(void)close(done[0]);
	other->done_fd = done[1];
	ck_assert_int_eq(read(out[0], &other->command, sizeof(pid_t)), sizeof(pid_t));
	(void)close(out[0]);
	find_path(other);
	ck_assert_int_eq(access(other->path, F_OK), 0);
}

static void
end_other(struct other *other, int signal)
{
	if (signal)
		ck_assert_int_eq(kill(other->pid, signal), 0);
	(void)close(other->done_fd);
	ck_assert_int_eq(waitpid(other->pid, NULL, 0), other->pid);
}

START_TEST(sweeps_what_a_killed_sidecar_left)
{
	struct rsb_cgroups *cgroups = cgroups_or_null();
	struct other other;

	if (!cgroups)
		return;
	rsb_cgroups_free(cgroups);
	start_other(&other);
	end_other(&other, SIGKILL);
	ck_assert_int_eq(access(other.path, F_OK), 0);
	cgroups = cgroups_or_null();
	ck_assert_ptr_nonnull(cgroups);
	ck_assert_int_lt(access(other.path, F_OK), 0);
	ck_assert_int_eq(errno, ENOENT);
	rsb_cgroups_free(cgroups);
}
END_TEST

START_TEST(leaves_a_sidecar_that_lives_alone)
{
	struct rsb_cgroups *cgroups = cgroups_or_null();
	struct other other;

	if (!cgroups)
		return;
	rsb_cgroups_free(cgroups);
	start_other(&other);
	cgroups = cgroups_or_null();
	ck_assert_ptr_nonnull(cgroups);
	ck_assert_int_eq(access(other.path, F_OK), 0);
	ck_assert_int_eq(kill(other.command, 0), 0);
	end_other(&other, 0);
	ck_assert_int_lt(access(other.path, F_OK), 0);
	rsb_cgroups_free(cgroups);
}
END_TEST

START_TEST(needs_proof)
{
	/* of the form of before, of a process that is not there in a name space that is not ours */
	static const char *const names[] = { "rsb.4194303", "rsb.4194303.1.1", "rsb.4194303.1.",
		"rsb.other" };
	struct rsb_cgroups *cgroups = cgroups_or_null();
	struct other other;
	char path[600];

	if (!cgroups)
		return;
	rsb_cgroups_free(cgroups);
	start_other(&other);
	*strrchr(other.path, '/') = '\0';
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", other.path, names[i]);
		ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
	cgroups = cgroups_or_null();
	ck_assert_ptr_nonnull(cgroups);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", other.path, names[i]);
		ck_assert_int_eq(rmdir(path), 0);
	}
	end_other(&other, 0);
	rsb_cgroups_free(cgroups);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sweeps_what_a_killed_sidecar_left,
		leaves_a_sidecar_that_lives_alone,
		needs_proof,
	};

	return unit_run("cgroup", tests, RSB_ARRAY_SIZE(tests));
}
