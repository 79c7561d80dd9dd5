/* SPDX-License-Identifier: MIT */
#include "keeper/gitadvice.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/gitindex.h"
#include "keeper/gitparse.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

#define NAMED_MAX 3u
#define SHOWN_MAX 256u

struct advice {
	const char *dir;
	const struct rsb_ignore *ignore;
	void (*notice)(void *arg, const char *text);
	void *arg;
	char *hooks; /* core.hooksPath */
	/* Files left out, and the first of them as shown. */
	size_t n;
	struct rsb_buf named;
	/* The directory of the last file, and whether that is left out. */
	char folder[PATH_MAX];
	size_t folder_size;
	bool folder_left;
};

static int
read_file(const char *dir, const char *name, struct rsb_buf *data)
{
	rsb_autofree char *path = rsb_str_path(dir, name);
	rsb_autoclose int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

	return fd < 0 ? -1 : rsb_fd_read_all(fd, data);
}

/* ---- hooks ---- */

static int
look_at_setting(void *arg, const struct rsb_git_entry *entry)
{
	struct advice *advice = arg;

	/* The last one counts. */
	if (strcmp(entry->name, "core.hookspath") == 0 && entry->value) {
		free(advice->hooks);
		advice->hooks = strdup(entry->value);
	}
	return 0;
}

static bool
goes_in(const struct advice *advice)
{
	const size_t n = strlen(advice->dir);
	const char *path = advice->hooks;

	return path[0] == '/' ? strncmp(path, advice->dir, n) == 0 && path[n] == '/'
			      : path[0] && path[0] != '~';
}

static void
tell_hooks(struct advice *advice)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_GITPARSE_MAX };
	rsb_autofree char *quoted = NULL;
	rsb_autofree char *said = NULL;

	if (read_file(advice->dir, ".git/config", &text) < 0 ||
		rsb_gitparse(rsb_buf_view(&text), look_at_setting, advice) < 0 || !advice->hooks ||
		!goes_in(advice))
		return;
	quoted = rsb_str_quote(advice->hooks);
	if (quoted)
		said = rsb_str_printf(
			"git here runs hooks from %s (core.hooksPath), which the sandbox "
			"can change: on the mount commit by 'rsb-exec git commit'",
			quoted);
	if (said)
		advice->notice(advice->arg, said);
}

/* ---- files ---- */

/* size: of a directory's path. */
static bool
is_left(const struct advice *advice, const char *path, size_t size)
{
	char dir[PATH_MAX];

	for (size_t i = 1; i <= size; i++) {
		if (i < size && path[i] != '/')
			continue;
		memcpy(dir, path, i);
		dir[i] = '\0';
		if (rsb_ignore_match(advice->ignore, dir, true))
			return true;
	}
	return false;
}

static int
look_at_file(void *arg, const struct rsb_gitindex_entry *entry)
{
	struct advice *advice = arg;
	const char *slash = strrchr(entry->path, '/');
	const size_t size = slash ? (size_t)(slash - entry->path) : 0;
	char shown[SHOWN_MAX];

	/* They are sorted, so most are in the directory of the one before. */
	if (size != advice->folder_size || memcmp(entry->path, advice->folder, size) != 0) {
		memcpy(advice->folder, entry->path, size);
		advice->folder_size = size;
		advice->folder_left = is_left(advice, entry->path, size);
	}
	if (!advice->folder_left && !rsb_ignore_match(advice->ignore, entry->path, false))
		return 0;
	if (++advice->n > NAMED_MAX)
		return 0;
	rsb_str_escape(rsb_bytes_str(entry->path), shown, sizeof(shown));
	return rsb_buf_printf(&advice->named, "%s%s", advice->n > 1 ? ", " : "", shown);
}

static void
tell_files(struct advice *advice)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_GITINDEX_MAX };
	rsb_autofree char *said = NULL;

	if (read_file(advice->dir, ".git/index", &data) < 0 ||
		rsb_gitindex_parse(rsb_buf_view(&data), look_at_file, advice) < 0 || !advice->n)
		return;
	said = rsb_str_printf("%zu file%s under version control %s left out: %.*s%s; in the mount "
			      "git takes that for deleted",
		advice->n, advice->n == 1 ? "" : "s", advice->n == 1 ? "is" : "are",
		(int)rsb_buf_len(&advice->named), (const char *)rsb_buf_head(&advice->named),
		advice->n > NAMED_MAX ? ", ..." : "");
	if (said)
		advice->notice(advice->arg, said);
}

void
rsb_gitadvice(const char *dir, const struct rsb_ignore *ignore,
	void (*notice)(void *arg, const char *text), void *arg)
{
	struct advice advice = { .dir = dir,
		.ignore = ignore,
		.notice = notice,
		.arg = arg,
		.named = { .max = (size_t)NAMED_MAX * (SHOWN_MAX + 2) } };

	tell_hooks(&advice);
	tell_files(&advice);
	free(advice.hooks);
	rsb_buf_done(&advice.named);
}
