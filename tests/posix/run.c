/* SPDX-License-Identifier: MIT */
/*
 * posix-cases DIRECTORY [PART OF A NAME]: runs the cases there and prints a line for each.
 * RSB_POSIX_BIG=1: all of them, and as many entries and bytes as the full set has.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

#define CASE_SECONDS 600
#define ONE_OF 3 /* cases of a table, in the short set */
#define ONE_OF_TREE 5
#define DIRTY 3 /* exit status of a case that changed its tree */

struct pt_run {
	int dir_fd;
	const char *filter;
	bool big;
	void (*tree)(struct pt *t); /* whose tree "tree" is; NULL: none is there */
	unsigned int n_unfit;
};

/* Removes what dir_fd/name is and all below it, however deep. */
static int
remove_all(int dir_fd, const char *name)
{
	rsb_autoclose int fd = -1;
	rsb_autoclosedir DIR *dir = NULL;
	const struct dirent *entry;
	int dup_fd;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	/* It may not be readable now. */
	if (fchmodat(dir_fd, name, 0700, 0) < 0)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dup_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	dir = dup_fd < 0 ? NULL : fdopendir(dup_fd);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int r;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		r = remove_all(fd, entry->d_name);
		if (r < 0)
			return r;
	}
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static void
clean(const struct pt_run *run, const char *name)
{
	int r = remove_all(run->dir_fd, name);

	if (r < 0) {
		printf("%s cannot be removed: %s\n", name, strerror(-r));
		exit(2);
	}
}

/* In the child. */
_Noreturn static void
run_case(const struct pt_run *run, const char *dir, void (*make)(struct pt *t), pt_case_fn fn,
	const void *arg, const char *name)
{
	static struct pt t;
	char *before = NULL;

	(void)alarm(CASE_SECONDS);
	(void)umask(022);
	t.root = geteuid() == 0;
	t.big = run->big;
	pt_say(&t, "%s:", name);
	pt_need(&t, fchdir(run->dir_fd) == 0 && chdir(dir) == 0, "chdir");
	if (make && !run->tree)
		make(&t);
	if (make)
		before = pt_tree(&t);
	fn(&t, arg);
	if (before)
		pt_tree_changes(&t, before);
	printf("%s\n", t.text);
	(void)fflush(stdout);
	_exit(t.dirty ? DIRTY : 0);
}

/* In the short set some cases of each table, always the same ones. */
static bool
is_chosen(const struct pt_run *run, const char *name, unsigned int one_of)
{
	uint32_t h = 0x811c9dc5;

	if (run->big || run->filter)
		return !run->filter || strstr(name, run->filter);
	for (const char *p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x01000193;
	return (h >> 8) % one_of == 0;
}

static void
start(struct pt_run *run, void (*make)(struct pt *t), pt_case_fn fn, const void *arg,
	const char *name)
{
	const char *dir = make ? "tree" : "case";
	int status = 0;
	pid_t pid;

	if (!is_chosen(run, name, make ? ONE_OF_TREE : arg ? ONE_OF : 1))
		return;
	if (make && make != run->tree) {
		clean(run, dir);
		run->tree = NULL;
	}
	if (!make || !run->tree) {
		if (mkdirat(run->dir_fd, dir, 0755) < 0) {
			printf("%s: UNFIT mkdir: %s\n", name, strerror(errno));
			exit(2);
		}
	}
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_case(run, dir, make, fn, arg, name);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		printf("%s: UNFIT fork: %s\n", name, strerror(errno));
		exit(2);
	}
	if (WIFSIGNALED(status))
		printf("%s: died of SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
	if (make && status == 0) {
		run->tree = make;
		return;
	}
	run->n_unfit += WIFEXITED(status) && WEXITSTATUS(status) == 2;
	clean(run, dir);
	if (make)
		run->tree = NULL;
}

static void format_name(char *name, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void
format_name(char *name, const char *format, va_list args)
{
	(void)vsnprintf(name, PT_NAME_MAX, format, args);
}

void
pt_case(struct pt_run *run, pt_case_fn fn, const void *arg, const char *format, ...)
{
	char name[PT_NAME_MAX];
	va_list args;

	va_start(args, format);
	format_name(name, format, args);
	va_end(args);
	start(run, NULL, fn, arg, name);
}

void
pt_case_in_tree(struct pt_run *run, void (*make)(struct pt *t), pt_case_fn fn, const void *arg,
	const char *format, ...)
{
	char name[PT_NAME_MAX];
	va_list args;

	va_start(args, format);
	format_name(name, format, args);
	va_end(args);
	start(run, make, fn, arg, name);
}

int
main(int argc, char **argv)
{
	static void (*const groups[])(struct pt_run * run) = {
		pt_cases_paths,
		pt_cases_fds,
		pt_cases_open,
		pt_cases_rename,
		pt_cases_modes,
		pt_cases_owners,
		pt_cases_times,
		pt_cases_data,
		pt_cases_maps,
		pt_cases_names,
		pt_cases_links,
		pt_cases_locks,
		pt_cases_xattrs,
	};
	struct pt_run run = { .filter = argc > 2 ? argv[2] : NULL };

	if (argc < 2 || argc > 3) {
		(void)fprintf(stderr, "usage: posix-cases DIRECTORY [PART OF A NAME]\n");
		return 2;
	}
	run.big = getenv("RSB_POSIX_BIG") != NULL;
	run.dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run.dir_fd < 0) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(groups); i++)
		groups[i](&run);
	clean(&run, "tree");
	(void)close(run.dir_fd);
	return run.n_unfit ? 1 : 0;
}
