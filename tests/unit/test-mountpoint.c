/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/mountpoint.h"
#include "tests/unit/unit.h"

enum { NO_NAMESPACES = 77, BAD_SETUP = 78 };

/* As an ordinary user of a machine whose /etc is empty, or is as here. Returns the exit status. */
static int
check_there(const char *mountpoint, bool empty_etc)
{
	struct rsb_diag diag = { .text = "" };
	int r;

	/* Unmapped ids: all rights in the namespace, and no root. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return NO_NAMESPACES;
	if (empty_etc && mount("none", "/etc", "tmpfs", 0, NULL) < 0)
		return BAD_SETUP;
	r = rsb_mountpoint_check(mountpoint, &diag);
	if (!empty_etc)
		return r == -ENOENT ? 1 : 0;
	return r == -ENOENT && strstr(diag.text, "/etc/mtab is not there") ? 0 : 1;
}

START_TEST(a_user_could_not_unmount_without_mtab)
{
	static const bool empty_etc[] = { true, false };
	char mountpoint[] = "/tmp/rsb-test-mount.XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(mountpoint));
	ck_assert_int_eq(chmod(mountpoint, 0755), 0);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(empty_etc); i++) {
		pid_t pid = fork();
		int status;

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			_exit(check_there(mountpoint, empty_etc[i]));
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		/* Where namespaces are refused there is nothing to show. */
		if (WEXITSTATUS(status) != NO_NAMESPACES)
			ck_assert_int_eq(WEXITSTATUS(status), 0);
	}
	ck_assert_int_eq(rmdir(mountpoint), 0);
}
END_TEST

/* In ns, as coarse as the kernel's ticks. */
static uint64_t
born(const char *path)
{
	struct statx st;

	ck_assert_int_eq(statx(AT_FDCWD, path, 0, STATX_BTIME, &st), 0);
	ck_assert_uint_ne(st.stx_mask & STATX_BTIME, 0);
	return (uint64_t)st.stx_btime.tv_sec * RSB_NSEC_PER_SEC + st.stx_btime.tv_nsec;
}

START_TEST(what_was_made_is_told)
{
	char dir[] = "/tmp/rsb-test-mount.XXXXXX";
	char path[64];
	char *made_path = NULL;
	uint64_t made = 0;
	uint64_t before;
	uint64_t then;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/./new/", dir);
	ck_assert_int_eq(rsb_mountpoint_make(path, &made_path, &made, NULL), 0);
	ck_assert(made);
	before = made;
	(void)snprintf(path, sizeof(path), "%s/new", dir);
	ck_assert_str_eq(made_path, path);
	free(made_path);
	ck_assert_int_eq(rsb_mountpoint_make(path, &made_path, &made, NULL), 0);
	ck_assert(!made);
	free(made_path);
	/* One that the user has made since, likely with the same inode number, is his. */
	then = born(path);
	do {
		ck_assert_int_eq(rmdir(path), 0);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	} while (born(path) == then);
	rsb_mountpoint_remove(path, before);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(rsb_mountpoint_make(path, &made_path, &made, NULL), 0);
	free(made_path);
	rsb_mountpoint_remove(path, 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	rsb_mountpoint_remove(path, made);
	ck_assert_int_lt(access(path, F_OK), 0);
	(void)snprintf(path, sizeof(path), "%s/no/such", dir);
	ck_assert_int_eq(rsb_mountpoint_make(path, &made_path, &made, NULL), -ENOENT);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(a_mount_does_not_lie_in_what_is_synced)
{
	struct rsb_diag diag = { .text = "" };

	ck_assert_int_eq(rsb_mountpoint_outside("/a/b", "/a/b/c", NULL), 0);
	ck_assert_int_eq(rsb_mountpoint_outside("/a/b.rsb", "/a/b", NULL), 0);
	ck_assert_int_eq(rsb_mountpoint_outside("/a/b/c", "/a/b", &diag), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "/a/b/c"));
	ck_assert_int_eq(rsb_mountpoint_outside("/a/b", "/a/b", NULL), -EINVAL);
	ck_assert_int_eq(rsb_mountpoint_outside("/a", "", NULL), 0);
}
END_TEST

START_TEST(what_cannot_be_used_does_not_stay)
{
	char dir[] = "/tmp/rsb-test-mount.XXXXXX";
	char path[64];
	struct rsb_diag diag = { .text = "" };
	char *made_path = NULL;
	uint64_t made = 0;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/new", dir);
	ck_assert_int_eq(rsb_mountpoint_prepare(path, dir, &made_path, &made, &diag), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, path));
	ck_assert_ptr_null(made_path);
	ck_assert(!made);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		what_was_made_is_told,
		what_cannot_be_used_does_not_stay,
		a_mount_does_not_lie_in_what_is_synced,
		a_user_could_not_unmount_without_mtab,
	};

	return unit_run("mountpoint", tests, RSB_ARRAY_SIZE(tests));
}
