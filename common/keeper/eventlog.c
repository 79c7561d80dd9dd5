/* SPDX-License-Identifier: MIT */
#include "keeper/eventlog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/state.h"
#include "util/buf.h"
#include "util/str.h"

#define CHUNK ((size_t)16 << 10)
/* A line is one event, whose sentence is one struct rsb_diag. */
#define LINE_MAX_BYTES ((size_t)64 << 10)

struct rsb_eventlog {
	char *dir;
	struct stat dir_st; /* which directory that was */
	char *path;         /* of the events in it */
	char *old_path;     /* of the full file before that */
	int watch_fd;
	int fd; /* what is read now; -1: nothing was there yet */
	bool removed;
	bool skipping; /* the rest of a line that is too long */
	struct rsb_buf text;
};

/*
 * The directory, and that it is removed from the one above: of itself the kernel would not say so
 * while a file in it is open.
 */
static int
watch(struct rsb_eventlog *log)
{
	rsb_autofree char *above = rsb_str_path(log->dir, "..");

	if (!above)
		return -ENOMEM;
	log->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (log->watch_fd < 0 ||
		inotify_add_watch(log->watch_fd, log->dir,
			IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0 ||
		inotify_add_watch(log->watch_fd, above, IN_DELETE | IN_MOVED_FROM) < 0)
		return -errno;
	return stat(log->dir, &log->dir_st) < 0 ? -errno : 0;
}

int
rsb_eventlog_open(const char *state_dir, struct rsb_eventlog **ret_log)
{
	RSB_CLEANUP(rsb_eventlog_freep) struct rsb_eventlog *log = rsb_new(struct rsb_eventlog);
	int r;

	if (!log)
		return -ENOMEM;
	log->watch_fd = log->fd = -1;
	rsb_buf_init(&log->text, LINE_MAX_BYTES + CHUNK);
	log->dir = strdup(state_dir);
	log->path = rsb_str_path(state_dir, RSB_STATE_EVENTS);
	log->old_path = rsb_str_path(state_dir, RSB_STATE_EVENTS_OLD);
	if (!log->dir || !log->path || !log->old_path)
		return -ENOMEM;
	r = watch(log);
	if (r < 0)
		return r;
	log->fd = open(log->old_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (log->fd < 0 && errno != ENOENT)
		return -errno;
	*ret_log = rsb_steal(&log);
	return 0;
}

void
rsb_eventlog_free(struct rsb_eventlog *log)
{
	if (!log)
		return;
	rsb_cleanup_close(&log->fd);
	rsb_cleanup_close(&log->watch_fd);
	rsb_buf_done(&log->text);
	free(log->dir);
	free(log->path);
	free(log->old_path);
	free(log);
}

/* Appends what was written since. 0: nothing. */
static int
fill(struct rsb_eventlog *log)
{
	uint8_t *tail;
	ssize_t n;
	int r;

	if (log->fd < 0)
		return 0;
	r = rsb_buf_reserve(&log->text, CHUNK, &tail);
	if (r < 0)
		return r;
	n = read(log->fd, tail, CHUNK);
	if (n < 0)
		return -errno;
	rsb_buf_commit(&log->text, (size_t)n);
	return n > 0;
}

/* 1: at its end there is another file of that name, which is read from now on. */
static int
advance(struct rsb_eventlog *log)
{
	struct stat now, here;
	int fd;
	int r;

	fd = open(log->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &now) < 0 || (log->fd >= 0 && fstat(log->fd, &here) < 0)) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	if (log->fd >= 0 && now.st_ino == here.st_ino && now.st_dev == here.st_dev) {
		(void)close(fd);
		return 0;
	}
	/* It may have got its last line just before it was renamed. */
	r = fill(log);
	if (r != 0) {
		(void)close(fd);
		return r;
	}
	rsb_cleanup_close(&log->fd);
	log->fd = fd;
	return 1;
}

/* A whole line, taken out of the text. false: there is none yet. */
static bool
take_line(struct rsb_eventlog *log, struct rsb_json **ret_event)
{
	const uint8_t *head = rsb_buf_head(&log->text);
	const size_t len = rsb_buf_len(&log->text);
	const uint8_t *end = len ? memchr(head, '\n', len) : NULL;

	*ret_event = NULL;
	if (!end && len <= LINE_MAX_BYTES)
		return false;
	if (end && !log->skipping)
		(void)rsb_json_parse(
			(struct rsb_bytes){ head, (size_t)(end - head) }, ret_event, NULL);
	log->skipping = !end;
	rsb_buf_consume(&log->text, end ? (size_t)(end + 1 - head) : len);
	return true;
}

int
rsb_eventlog_next(struct rsb_eventlog *log, struct rsb_json **ret_event)
{
	int r;

	for (;;) {
		while (take_line(log, ret_event)) {
			if (rsb_json_is_object(*ret_event))
				return 1;
			rsb_json_free(*ret_event);
		}
		r = fill(log);
		if (r == 0)
			r = advance(log);
		if (r <= 0)
			return r;
	}
}

static bool
is_there(const struct rsb_eventlog *log)
{
	struct stat st;

	return stat(log->dir, &st) == 0 && st.st_ino == log->dir_st.st_ino &&
	       st.st_dev == log->dir_st.st_dev;
}

int
rsb_eventlog_wait(struct rsb_eventlog *log, int ms)
{
	char news[4096]; /* what they are does not matter */
	struct pollfd poll_fd = { .fd = log->watch_fd, .events = POLLIN };
	ssize_t n;
	int r;

	if (log->removed)
		return -ENOENT;
	r = poll(&poll_fd, 1, ms);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	do
		n = read(log->watch_fd, news, sizeof(news));
	while (n > 0);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	/* What was written before comes first. */
	log->removed = !is_there(log);
	return 0;
}
