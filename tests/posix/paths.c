/* SPDX-License-Identifier: MIT */
/* Every call that takes a path on every kind of path, and what it changed. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

/* ---- the calls: 0 or the error ---- */

static int
opened(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? -1 : 0;
}

#define OPEN_CALL(name, flags)                                         \
	static int name(const char *path)                              \
	{                                                              \
		return opened(open(path, (flags) | O_NONBLOCK, 0640)); \
	}

OPEN_CALL(call_open, O_RDONLY)
OPEN_CALL(call_open_write, O_WRONLY)
OPEN_CALL(call_open_rdwr, O_RDWR)
OPEN_CALL(call_open_creat, O_WRONLY | O_CREAT)
OPEN_CALL(call_open_excl, O_RDWR | O_CREAT | O_EXCL)
OPEN_CALL(call_open_trunc, O_WRONLY | O_TRUNC)
OPEN_CALL(call_open_creat_trunc, O_WRONLY | O_CREAT | O_TRUNC)
OPEN_CALL(call_open_dir, O_RDONLY | O_DIRECTORY)
OPEN_CALL(call_open_nofollow, O_RDONLY | O_NOFOLLOW)
OPEN_CALL(call_open_path, O_PATH)

static int
call_mkdir(const char *path)
{
	return mkdir(path, 0750);
}

static int
call_mkfifo(const char *path)
{
	return mkfifo(path, 0640);
}

static int
call_mknod(const char *path)
{
	return mknod(path, S_IFREG | 0640, 0);
}

static int
call_bind(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	rsb_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* More than it holds is cut, the same everywhere. */
	memcpy(address.sun_path, path, strnlen(path, sizeof(address.sun_path) - 1));
	return bind(fd, (const struct sockaddr *)&address, sizeof(address));
}

static int
call_link_from(const char *path)
{
	return link(path, "new");
}

static int
call_link_follow(const char *path)
{
	return linkat(AT_FDCWD, path, AT_FDCWD, "new", AT_SYMLINK_FOLLOW);
}

static int
call_link_to(const char *path)
{
	return link("target", path);
}

static int
call_symlink(const char *path)
{
	return symlink("target", path);
}

static int
call_rename_from(const char *path)
{
	return rename(path, "new");
}

static int
call_rename_to(const char *path)
{
	return rename("target", path);
}

static int
call_rename_dir_to(const char *path)
{
	return rename("targetdir", path);
}

static int
call_chmod(const char *path)
{
	return chmod(path, 0700);
}

static int
call_chown(const char *path)
{
	return chown(path, geteuid(), getegid());
}

static int
call_lchown(const char *path)
{
	return lchown(path, geteuid(), getegid());
}

static int
call_truncate(const char *path)
{
	return truncate(path, 2);
}

static int
call_utimens(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static int
call_lutimens(const char *path)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 2 } };

	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

static int
call_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static int
call_lstat(const char *path)
{
	struct stat st;

	return lstat(path, &st);
}

static int
call_statx(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st);
}

static int
call_access(const char *path)
{
	return access(path, R_OK | W_OK);
}

static int
call_access_x(const char *path)
{
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

static int
call_readlink(const char *path)
{
	char target[256];

	return readlink(path, target, sizeof(target)) < 0 ? -1 : 0;
}

static int
call_getxattr(const char *path)
{
	return getxattr(path, "user.none", NULL, 0) < 0 ? -1 : 0;
}

static int
call_setxattr(const char *path)
{
	return setxattr(path, "user.some", "v", 1, 0);
}

static int
call_lsetxattr(const char *path)
{
	return lsetxattr(path, "user.some", "v", 1, 0);
}

static int
call_listxattr(const char *path)
{
	return listxattr(path, NULL, 0) < 0 ? -1 : 0;
}

static int
call_removexattr(const char *path)
{
	return removexattr(path, "user.none");
}

static int
call_statfs(const char *path)
{
	struct statfs st;

	return statfs(path, &st);
}

static int
call_chdir(const char *path)
{
	rsb_autoclose int back = open(".", O_PATH | O_CLOEXEC);
	int r = chdir(path);
	int saved = errno;

	if (r == 0 && fchdir(back) < 0)
		return -1;
	errno = saved;
	return r;
}

static int
call_execve(const char *path)
{
	char *argv[] = { (char *)(uintptr_t) "x", NULL };

	/* Nothing in the tree is a program. */
	return execve(path, argv, argv + 1);
}

static const struct call {
	const char *name;
	int (*fn)(const char *path);
} calls[] = {
	{ "open", call_open },
	{ "open_write", call_open_write },
	{ "open_rdwr", call_open_rdwr },
	{ "open_creat", call_open_creat },
	{ "open_excl", call_open_excl },
	{ "open_trunc", call_open_trunc },
	{ "open_creat_trunc", call_open_creat_trunc },
	{ "open_dir", call_open_dir },
	{ "open_nofollow", call_open_nofollow },
	{ "open_path", call_open_path },
	{ "mkdir", call_mkdir },
	{ "mkfifo", call_mkfifo },
	{ "mknod", call_mknod },
	{ "bind", call_bind },
	{ "link_from", call_link_from },
	{ "link_follow", call_link_follow },
	{ "link_to", call_link_to },
	{ "symlink", call_symlink },
	{ "unlink", unlink },
	{ "rmdir", rmdir },
	{ "rename_from", call_rename_from },
	{ "rename_to", call_rename_to },
	{ "rename_dir_to", call_rename_dir_to },
	{ "chmod", call_chmod },
	{ "chown", call_chown },
	{ "lchown", call_lchown },
	{ "truncate", call_truncate },
	{ "utimens", call_utimens },
	{ "lutimens", call_lutimens },
	{ "stat", call_stat },
	{ "lstat", call_lstat },
	{ "statx", call_statx },
	{ "access", call_access },
	{ "access_x", call_access_x },
	{ "readlink", call_readlink },
	{ "getxattr", call_getxattr },
	{ "setxattr", call_setxattr },
	{ "lsetxattr", call_lsetxattr },
	{ "listxattr", call_listxattr },
	{ "removexattr", call_removexattr },
	{ "statfs", call_statfs },
	{ "chdir", call_chdir },
	{ "execve", call_execve },
};

/* ---- the paths ---- */

static void
make_tree(struct pt *t)
{
	for (int type = PT_FILE; type < PT_N_TYPE; type++)
		pt_make(t, (enum pt_type)type, pt_type_names[type]);
	pt_need(t, symlink("loop", "loop") == 0 && symlink("pool", "loop2") == 0, "loop");
	pt_put(t, "program", "#!none\n");
	pt_need(t, chmod("program", 0755) == 0, "program");
	pt_need(t, mkdir("locked", 0755) == 0 && mkdir("locked/dir", 0755) == 0, "locked");
	pt_put(t, "locked/file", "locked");
	pt_need(t, chmod("locked", 0555) == 0, "locked");
	pt_need(t, mkdir("closed", 0755) == 0, "closed");
	pt_put(t, "closed/file", "closed");
	pt_need(t, chmod("closed", 0600) == 0, "closed");
	pt_need(t, mkdir("blind", 0755) == 0, "blind");
	pt_put(t, "blind/file", "blind");
	pt_need(t, chmod("blind", 0300) == 0, "blind");
	pt_put(t, "shut", "shut");
	pt_need(t, chmod("shut", 0) == 0, "shut");
	if (!t->root)
		return;
	/* The other user owns the tree, so that its modes are what stops it. */
	pt_need(t, system("chown -h -R 1234:5678 .") == 0, "chown");
}

static const char *const paths[] = {
	"none",
	"file",
	"dir",
	"full",
	"link",
	"linkdir",
	"dangling",
	"fifo",
	"socket",
	"",
	".",
	"dir/.",
	"dir/..",
	"dir/../file",
	"none/x",
	"file/x",
	"file/.",
	"file/",
	"dir/",
	"none/",
	"link/",
	"linkdir/",
	"dangling/",
	"fifo/",
	"linkdir/x",
	"dangling/x",
	"loop",
	"loop/x",
	"full/inside",
	"full/inside/x",
	"program",
	"locked/new",
	"locked/file",
	"locked/dir",
	"closed/new",
	"closed/file",
	"blind",
	"blind/file",
	"blind/new",
	"shut",
};

struct on_path {
	const struct call *call;
	const char *path;
	bool as_user;
};

static void
call_it(struct pt *t, const void *arg)
{
	const struct on_path *on = arg;

	if (on->as_user)
		pt_become(t, PT_USER, PT_GROUP);
	pt_did(t, on->call->name, on->call->fn(on->path));
}

static void
on_path(struct pt *t, const void *arg)
{
	const struct on_path *on = arg;

	/* In a child, as the tree is looked at with the rights from before. */
	if (on->as_user)
		pt_child(t, call_it, arg);
	else
		call_it(t, arg);
}

static void
on_long_paths(struct pt *t, const void *arg)
{
	const struct on_path on = { .call = arg };
	char path[4200];

	for (int n = 254; n <= 256; n++) {
		memset(path, 'n', (size_t)n);
		path[n] = 0;
		pt_did(t, n == 254 ? "254" : n == 255 ? "255" : "256", on.call->fn(path));
		(void)rmdir(path);
		(void)unlink(path);
		(void)unlink("new");
	}
	for (int n = 4094; n <= 4096; n++) {
		memset(path, '/', (size_t)n);
		memcpy(path, "dir", 3);
		memcpy(path + n - 1, "x", 2);
		pt_did(t, n == 4094 ? "4094" : n == 4095 ? "4095" : "4096", on.call->fn(path));
	}
	pt_did(t, "null", on.call->fn == call_bind ? 0 : on.call->fn((const char *)(uintptr_t)8));
	pt_list(t, "dir", "dir");
}

void
pt_cases_paths(struct pt_run *run)
{
	for (size_t c = 0; c < RSB_ARRAY_SIZE(calls); c++) {
		for (size_t p = 0; p < RSB_ARRAY_SIZE(paths); p++) {
			struct on_path on = { .call = &calls[c], .path = paths[p] };

			pt_case_in_tree(run, make_tree, on_path, &on, "path.%s '%s'", calls[c].name,
				paths[p]);
			on.as_user = true;
			if (geteuid() == 0)
				pt_case_in_tree(run, make_tree, on_path, &on,
					"path.%s '%s' as another", calls[c].name, paths[p]);
		}
		pt_case_in_tree(run, make_tree, on_long_paths, &calls[c], "path.%s of limits",
			calls[c].name);
	}
}
