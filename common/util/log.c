/* SPDX-License-Identifier: MIT */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/diag.h"

#define RSB_LOG_MESSAGE_MAX 1024
#define RSB_LOG_LINE_MAX 4096
#define WINDOW_NS (10 * RSB_NSEC_PER_SEC)
#define WINDOW_LINES 10

/* Where lines go. Everything else of the program hangs from a context; a log call is everywhere. */
static struct {
	const char *prefix;
	enum rsb_log_level level;
	int fd;
} sink = { "rsb", RSB_LOG_WARN, STDERR_FILENO }; /* {const after rsb_log_init} */

void
rsb_log_init(const char *prefix, enum rsb_log_level level, int fd)
{
	sink.prefix = prefix;
	sink.level = level;
	sink.fd = fd;
}

enum rsb_log_level
rsb_log_level(void)
{
	return sink.level;
}

/* May this line be written? *ret_n_lost: those that were not, in the window that ended. */
static bool
admit(struct rsb_log_site *site, uint64_t now_ns, uint32_t *ret_n_lost)
{
	uint64_t start_ns = __atomic_load_n(&site->window_ns, __ATOMIC_RELAXED);
	uint32_t n;

	*ret_n_lost = 0;
	if (start_ns == 0 || now_ns - start_ns >= WINDOW_NS) {
		/* Whoever wins opens the window; a count that is off by a few does no harm. */
		if (__atomic_compare_exchange_n(&site->window_ns, &start_ns, now_ns, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			n = __atomic_exchange_n(&site->count, 1, __ATOMIC_RELAXED);
			*ret_n_lost = n > WINDOW_LINES ? n - WINDOW_LINES : 0;
			return true;
		}
	}
	n = __atomic_add_fetch(&site->count, 1, __ATOMIC_RELAXED);
	return n <= WINDOW_LINES;
}

/* A line in the making; what does not fit is dropped. */
struct line {
	char text[RSB_LOG_LINE_MAX];
	size_t size;
};

static void
add(struct line *line, const char *s)
{
	/* Room is kept for the newline. */
	size_t n = rsb_min(strlen(s), sizeof(line->text) - 1 - line->size);

	memcpy(line->text + line->size, s, n);
	line->size += n;
}

/* A peer's bytes must neither forge a line nor speak to the terminal. */
static void
add_escaped(struct line *line, const char *s)
{
	char one[8];

	for (; *s; s++) {
		if (*s >= 0x20 && *s <= 0x7e)
			(void)snprintf(one, sizeof(one), "%c", *s);
		else
			(void)snprintf(one, sizeof(one), "\\x%02x", (unsigned char)*s);
		add(line, one);
	}
}

static void
add_head(struct line *line, enum rsb_log_level level, const char *module)
{
	static const char *const words[] = { "error: ", "warning: ", "", "debug: " };

	add(line, sink.prefix);
	add(line, ": ");
	add(line, words[level]);
	if (level == RSB_LOG_DBG) {
		add(line, module);
		add(line, ": ");
	}
}

void
rsb_log_write(enum rsb_log_level level, struct rsb_log_site *site, const char *module, int r,
	const char *fmt, ...)
{
	char message[RSB_LOG_MESSAGE_MAX];
	struct line line;
	uint32_t n_lost;
	int saved = errno;
	va_list ap;

	if (level > sink.level || !admit(site, rsb_now_ns(), &n_lost))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap); /* cut at its maximum */
	va_end(ap);

	line.size = 0;
	add_head(&line, level, module);
	add_escaped(&line, message);
	if (r < 0) {
		add(&line, ": ");
		add(&line, rsb_diag_text(NULL, r));
	}
	if (n_lost > 0) {
		(void)snprintf(message, sizeof(message), " (and %u more like it)", n_lost);
		add(&line, message);
	}
	line.text[line.size++] = '\n';
	if (write(sink.fd, line.text, line.size) < 0) {
		/* There is nobody to tell. */
	}
	errno = saved;
}
