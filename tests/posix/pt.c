/* SPDX-License-Identifier: MIT */
#include "pt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

const char *const pt_type_names[PT_N_TYPE] = {
	"none",
	"file",
	"dir",
	"full",
	"link",
	"linkdir",
	"dangling",
	"fifo",
	"socket",
};

void
pt_say(struct pt *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->text + t->n, sizeof(t->text) - t->n, format, args);
	va_end(args);
	if (n > 0)
		t->n = rsb_min(t->n + (size_t)n, sizeof(t->text) - 1);
}

static const char *
error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "?";
}

long
pt_did(struct pt *t, const char *what, long r)
{
	int saved = errno;

	pt_say(t, " %s=%s", what, r < 0 ? error_name(saved) : "0");
	errno = saved;
	return r;
}

long
pt_got(struct pt *t, const char *what, long r)
{
	int saved = errno;

	if (r < 0)
		pt_say(t, " %s=%s", what, error_name(saved));
	else
		pt_say(t, " %s=%ld", what, r);
	errno = saved;
	return r;
}

void
pt_need(struct pt *t, bool is_so, const char *what)
{
	if (is_so)
		return;
	pt_say(t, " UNFIT %s: %s", what, error_name(errno));
	printf("%s\n", t->text);
	(void)fflush(stdout);
	_exit(2);
}

bool
pt_skip_unless_root(struct pt *t)
{
	if (!t->root)
		pt_say(t, " needs-root");
	return !t->root;
}

void
pt_become(struct pt *t, uid_t uid, gid_t gid)
{
	if (!t->root)
		return;
	pt_need(t,
		setgroups(1, &gid) == 0 && setresgid(gid, gid, gid) == 0 &&
			setresuid(uid, uid, uid) == 0,
		"become");
	t->root = false;
}

void
pt_child(struct pt *t, void (*fn)(struct pt *t, const void *arg), const void *arg)
{
	ssize_t n = 0;
	ssize_t got;
	int status;
	int fds[2];
	pid_t pid;

	pt_need(t, pipe2(fds, O_CLOEXEC) == 0, "pipe");
	pid = fork();
	pt_need(t, pid >= 0, "fork");
	if (pid == 0) {
		size_t start = t->n;

		fn(t, arg);
		_exit(write(fds[1], t->text + start, t->n - start) < 0);
	}
	(void)close(fds[1]);
	while ((got = read(fds[0], t->text + t->n + n, sizeof(t->text) - 1 - t->n - (size_t)n)) > 0)
		n += got;
	(void)close(fds[0]);
	t->n += (size_t)n;
	t->text[t->n] = 0;
	pt_need(t, waitpid(pid, &status, 0) == pid, "wait");
	if (status)
		pt_say(t, " child:%x", (unsigned int)status);
}

static char
type_letter(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return '-';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	case S_IFCHR:
		return 'c';
	case S_IFBLK:
		return 'b';
	default:
		return '?';
	}
}

void
pt_show_stat(struct pt *t, const char *what, const struct stat *st)
{
	pt_say(t, " %s=%c%04o,%lu", what, type_letter(st->st_mode), st->st_mode & 07777,
		(unsigned long)st->st_nlink);
	/* How large a directory is says more about the file system than about the case. */
	if (!S_ISDIR(st->st_mode))
		pt_say(t, ",%lld", (long long)st->st_size);
	pt_say(t, ",%u:%u", st->st_uid, st->st_gid);
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		pt_say(t, ",%lx", (unsigned long)st->st_rdev);
}

void
pt_show(struct pt *t, const char *what, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		pt_say(t, " %s=%s", what, error_name(errno));
	else
		pt_show_stat(t, what, &st);
}

void
pt_put(struct pt *t, const char *path, const char *text)
{
	rsb_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	pt_need(t, fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
}

void
pt_cat(struct pt *t, const char *what, const char *path)
{
	rsb_autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unsigned char data[200];
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, data, sizeof(data));
	if (n < 0) {
		pt_say(t, " %s=%s", what, error_name(errno));
		return;
	}
	pt_say(t, " %s='", what);
	for (ssize_t i = 0; i < n; i++) {
		if (data[i] > ' ' && data[i] < 0x7f)
			pt_say(t, "%c", data[i]);
		else
			pt_say(t, "\\x%02x", data[i]);
	}
	pt_say(t, "'");
}

static int
no_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int
by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void
pt_list(struct pt *t, const char *what, const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, no_dots, by_bytes);

	pt_did(t, what, n);
	for (int i = 0; i < n; i++) {
		pt_say(t, ",%s", entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* ---- trees ---- */

static void
add_below(FILE *out, int dir_fd, const char *prefix)
{
	struct dirent **entries;
	int n = scandirat(dir_fd, ".", &entries, no_dots, by_bytes);

	if (n < 0) {
		(void)fprintf(out, "%s:%s\n", prefix, error_name(errno));
		return;
	}
	for (int i = 0; i < n; i++) {
		struct pt line = { .n = 0 };
		struct stat st = { .st_mode = 0 };
		char path[512];

		(void)snprintf(path, sizeof(path), "%s%.256s", prefix, entries[i]->d_name);
		if (fstatat(dir_fd, entries[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			pt_show_stat(&line, path, &st);
			(void)fprintf(out, "%s\n", line.text + 1);
		}
		if (S_ISDIR(st.st_mode)) {
			rsb_autoclose int fd = openat(dir_fd, entries[i]->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/");
			if (fd >= 0)
				add_below(out, fd, path);
			else
				(void)fprintf(out, "%s:%s\n", path, error_name(errno));
		}
		free(entries[i]);
	}
	free(entries);
}

char *
pt_tree(struct pt *t)
{
	char *text = NULL;
	struct stat st;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	rsb_autoclose int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	pt_need(t, out && fd >= 0, "tree");
	if (fstat(fd, &st) == 0)
		(void)fprintf(out, ".%o,%lu,%u:%u\n", st.st_mode, (unsigned long)st.st_nlink,
			st.st_uid, st.st_gid);
	add_below(out, fd, "");
	(void)fclose(out);
	return text;
}

static bool
has_line(const char *text, const char *line, size_t n)
{
	for (const char *p = text; (p = strstr(p, line)); p++) {
		if ((p == text || p[-1] == '\n') && p[n] == '\n')
			return true;
	}
	return false;
}

static void
say_lines(struct pt *t, char sign, char *of, const char *not_in)
{
	char *save = NULL;

	for (char *line = strtok_r(of, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!has_line(not_in, line, strlen(line)))
			pt_say(t, " %c%s", sign, line);
	}
}

void
pt_tree_changes(struct pt *t, char *before)
{
	rsb_autofree char *after = pt_tree(t);
	rsb_autofree char *old = before;
	rsb_autofree char *now = strdup(after);

	if (strcmp(old, after) == 0)
		return;
	t->dirty = true;
	pt_need(t, now, "memory");
	say_lines(t, '+', now, old);
	say_lines(t, '-', old, after);
}

/* ---- things ---- */

static int
make_socket(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	rsb_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	return fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof(address));
}

/* What links point to; there already when one was made before. */
static void
make_targets(struct pt *t)
{
	if (access("target", F_OK) < 0)
		pt_put(t, "target", "target");
	pt_need(t, mkdir("targetdir", 0755) == 0 || errno == EEXIST, "targetdir");
}

void
pt_make(struct pt *t, enum pt_type type, const char *name)
{
	char inside[PT_NAME_MAX];
	int r = 0;

	switch (type) {
	case PT_FILE:
		pt_put(t, name, "text");
		break;
	case PT_DIR:
		r = mkdir(name, 0755);
		break;
	case PT_FULL:
		(void)snprintf(inside, sizeof(inside), "%s/inside", name);
		r = mkdir(name, 0755);
		pt_put(t, inside, "inside");
		break;
	case PT_LINK:
		make_targets(t);
		r = symlink("target", name);
		break;
	case PT_LINKDIR:
		make_targets(t);
		r = symlink("targetdir", name);
		break;
	case PT_DANGLING:
		r = symlink("nowhere", name);
		break;
	case PT_FIFO:
		r = mkfifo(name, 0644);
		break;
	case PT_SOCKET:
		r = make_socket(name);
		break;
	case PT_NONE:
	case PT_N_TYPE:
		break;
	}
	pt_need(t, r == 0, name);
}
