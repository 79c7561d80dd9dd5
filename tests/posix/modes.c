/* SPDX-License-Identifier: MIT */
/* Modes: of what is made, by umask and directory; changed by chmod(2), writes and chown(2). */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static int
make_by_creat(const char *name, mode_t mode)
{
	rsb_autoclose int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	return fd < 0 ? -1 : 0;
}

static int
make_by_mknod(const char *name, mode_t mode)
{
	return mknod(name, S_IFREG | mode, 0);
}

static const struct maker {
	const char *name;
	int (*fn)(const char *name, mode_t mode);
} makers[] = {
	{ "creat", make_by_creat },
	{ "mkdir", mkdir },
	{ "mkfifo", mkfifo },
	{ "mknod", make_by_mknod },
};

static const mode_t umasks[] = { 0, 022, 027, 077, 0777 };
static const mode_t modes[] = { 0, 0644, 0666, 0777, 01777, 02755, 04755, 07777 };

struct making {
	const struct maker *maker;
	mode_t umask;
	mode_t dir_mode;
	bool as_user;
};

static void
make_modes(struct pt *t, const void *arg)
{
	const struct making *m = arg;

	pt_need(t, mkdir("d", 0777) == 0, "d");
	if (t->root)
		pt_need(t, chown("d", PT_USER, PT_GROUP + 1) == 0, "chown");
	pt_need(t, chmod("d", m->dir_mode) == 0, "chmod");
	if (m->as_user)
		pt_become(t, PT_USER, PT_GROUP);
	pt_need(t, chdir("d") == 0, "chdir");
	(void)umask(m->umask);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(modes); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%04o", modes[i]);
		pt_did(t, "make", m->maker->fn(name, modes[i]));
		pt_show(t, name, name);
	}
}

/* ---- chmod ---- */

struct changing {
	mode_t mode;
	bool is_dir;
	bool foreign_group;
};

static void
change_mode(struct pt *t, const void *arg)
{
	const struct changing *c = arg;
	rsb_autoclose int fd = -1;

	pt_make(t, c->is_dir ? PT_DIR : PT_FILE, "x");
	if (t->root)
		pt_need(t, chown("x", PT_USER, c->foreign_group ? PT_GROUP + 1 : PT_GROUP) == 0,
			"chown");
	fd = open("x", O_RDONLY | O_CLOEXEC);
	pt_become(t, PT_USER, PT_GROUP);
	pt_did(t, "chmod", chmod("x", c->mode));
	pt_show(t, "x", "x");
	pt_did(t, "fchmod", fchmod(fd, c->mode & 07000));
	pt_show(t, "x", "x");
	pt_did(t, "back", fchmod(fd, 0700));
	pt_show(t, "x", "x");
}

/* ---- what takes set-user-ID away ---- */

static long
kill_write(int fd)
{
	return write(fd, "w", 1);
}

static long
kill_write_nothing(int fd)
{
	return write(fd, "", 0);
}

static long
kill_pwrite_beyond(int fd)
{
	return pwrite(fd, "w", 1, 10000);
}

static long
kill_truncate(int fd)
{
	return ftruncate(fd, 1);
}

static long
kill_grow(int fd)
{
	return ftruncate(fd, 10000);
}

static long
kill_path_truncate(int fd)
{
	(void)fd;
	return truncate("x", 1);
}

static long
kill_open_trunc(int fd)
{
	(void)fd;
	return open("x", O_WRONLY | O_TRUNC | O_CLOEXEC) < 0 ? -1 : 0;
}

static long
kill_allocate(int fd)
{
	return fallocate(fd, 0, 0, 10000);
}

static long
kill_punch(int fd)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1);
}

static long
kill_copy(int fd)
{
	rsb_autoclose int in = open("source", O_RDONLY | O_CLOEXEC);

	return copy_file_range(in, NULL, fd, NULL, 3, 0);
}

static long
kill_sendfile(int fd)
{
	rsb_autoclose int in = open("source", O_RDONLY | O_CLOEXEC);

	return sendfile(fd, in, NULL, 3);
}

static long
kill_map(int fd)
{
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -1;
	at[0] = 'm';
	return msync(at, 4096, MS_SYNC);
}

static long
kill_chown(int fd)
{
	return fchown(fd, (uid_t)-1, getegid());
}

static long
kill_chown_nothing(int fd)
{
	return fchown(fd, (uid_t)-1, (gid_t)-1);
}

static long
kill_utimens(int fd)
{
	return futimens(fd, NULL);
}

static const struct killer {
	const char *name;
	long (*fn)(int fd);
} killers[] = {
	{ "write", kill_write },
	{ "write of nothing", kill_write_nothing },
	{ "pwrite beyond", kill_pwrite_beyond },
	{ "ftruncate", kill_truncate },
	{ "growing", kill_grow },
	{ "truncate", kill_path_truncate },
	{ "open with TRUNC", kill_open_trunc },
	{ "fallocate", kill_allocate },
	{ "punch", kill_punch },
	{ "copy_file_range", kill_copy },
	{ "sendfile", kill_sendfile },
	{ "mmap", kill_map },
	{ "chown", kill_chown },
	{ "chown of nothing", kill_chown_nothing },
	{ "utimens", kill_utimens },
};

struct killing {
	const struct killer *killer;
	mode_t mode;
	bool as_root;
};

static void
kill_bits(struct pt *t, const void *arg)
{
	const struct killing *k = arg;
	rsb_autoclose int fd = -1;

	pt_put(t, "x", "text");
	pt_put(t, "source", "source");
	if (t->root)
		pt_need(t, chown("x", PT_USER, PT_GROUP) == 0, "chown");
	pt_need(t, chmod("x", k->mode) == 0, "chmod");
	if (!k->as_root)
		pt_become(t, PT_USER, PT_GROUP);
	fd = open("x", O_RDWR | O_CLOEXEC);
	pt_did(t, "open", fd);
	pt_got(t, k->killer->name, k->killer->fn(fd));
	pt_did(t, "close", close(rsb_steal_fd(&fd)));
	pt_show(t, "x", "x");
}

/* The first write takes them away, chmod gives them back, the next one takes them again. */
static void
kill_again(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;
	struct stat st;

	(void)arg;
	pt_put(t, "x", "text");
	if (t->root)
		pt_need(t, chown("x", PT_USER, PT_GROUP) == 0, "chown");
	pt_become(t, PT_USER, PT_GROUP);
	fd = open("x", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		pt_did(t, "chmod", fchmod(fd, 06755));
		pt_got(t, "write", write(fd, "w", 1));
		pt_need(t, fstat(fd, &st) == 0, "fstat");
		pt_show_stat(t, "x", &st);
	}
}

void
pt_cases_modes(struct pt_run *run)
{
	static const mode_t dir_modes[] = { 0755, 02775, 01777, 03777 };
	static const mode_t killable[] = { 04755, 02755, 06777, 02644, 06644 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(makers); i++) {
		for (size_t u = 0; u < RSB_ARRAY_SIZE(umasks); u++) {
			for (size_t d = 0; d < RSB_ARRAY_SIZE(dir_modes); d++) {
				struct making m = {
					.maker = &makers[i],
					.umask = umasks[u],
					.dir_mode = dir_modes[d],
				};

				pt_case(run, make_modes, &m, "mode.%s umask %04o in %04o",
					makers[i].name, umasks[u], dir_modes[d]);
				m.as_user = true;
				pt_case(run, make_modes, &m,
					"mode.%s umask %04o in %04o as another", makers[i].name,
					umasks[u], dir_modes[d]);
			}
		}
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(modes); i++) {
		for (int k = 0; k < 4; k++) {
			const struct changing c = {
				.mode = modes[i], .is_dir = k & 1, .foreign_group = k & 2
			};

			pt_case(run, change_mode, &c, "mode.chmod %04o of %s%s", modes[i],
				k & 1 ? "dir" : "file", k & 2 ? " of another group" : "");
		}
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(killers); i++) {
		for (size_t m = 0; m < RSB_ARRAY_SIZE(killable); m++) {
			struct killing k = { .killer = &killers[i], .mode = killable[m] };

			pt_case(run, kill_bits, &k, "mode.%s on %04o", killers[i].name,
				killable[m]);
			k.as_root = true;
			pt_case(run, kill_bits, &k, "mode.%s on %04o by its maker", killers[i].name,
				killable[m]);
		}
	}
	pt_case(run, kill_again, NULL, "mode.taken away again and again");
}
