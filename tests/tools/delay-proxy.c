/* SPDX-License-Identifier: MIT */
/*
 * delay-proxy LISTEN_PORT TARGET_PORT [--rtt-ms N] [--mbit N] [--drop-after BYTES]
 *
 * A long network path on 127.0.0.1 (path.h) that records the requests of our own links (record.h).
 * Prints
 *	listening PORT control PORT
 * and takes commands on the control port, one a line, each answered by one line:
 *	drop | stall on|off | refuse on|off | rtt MS | mbit N | drop-after BYTES | stats | record
 *	cut-before N | cut-after N | cuts
 * The link is cut once, before the N-th request or before what answers it, 0: not any more; cuts
 * tells whether that is still to come.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "path.h"
#include "record.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

#define LINE_MAX_SIZE 256

struct proxy {
	struct rsb_loop *loop;
	struct rsb_path *path;
	struct rsb_record *record;
	int control_fd;
};

struct control {
	struct proxy *proxy;
	struct rsb_source *source;
	int fd;
	size_t size;
	char line[LINE_MAX_SIZE];
};

static size_t
tap(void *arg, uint64_t id, int dir, const uint8_t *data, size_t size)
{
	struct proxy *proxy = arg;

	if (dir == 0)
		return rsb_record_input(proxy->record, id, (struct rsb_bytes){ data, size });
	return rsb_record_output(proxy->record, id) ? size : 0;
}

static int
set_option(struct rsb_path_options *o, const char *name, const char *value)
{
	uint64_t n = 0;

	if (!value || (strcmp(name, "stall") && rsb_str_u64(value, UINT32_MAX, &n) < 0))
		return -EINVAL;
	if (!strcmp(name, "stall"))
		o->stalled = !strcmp(value, "on");
	else if (!strcmp(name, "rtt"))
		o->rtt_ns = n * RSB_NSEC_PER_MSEC;
	else if (!strcmp(name, "mbit"))
		o->mbit = (double)n;
	else if (!strcmp(name, "drop-after"))
		o->drop_after = n;
	else
		return -EINVAL;
	return 0;
}

static int
command(struct proxy *proxy, char *line, struct rsb_buf *out)
{
	struct rsb_path_options options = rsb_path_options(proxy->path);
	char *value = strchr(line, ' ');
	struct rsb_path_stats stats;

	if (value)
		*value++ = '\0';
	if (!strcmp(line, "record"))
		return rsb_record_report(proxy->record, out);
	if (!strcmp(line, "cuts"))
		return rsb_buf_printf(out, "%d", rsb_record_cuts(proxy->record));
	if (!strcmp(line, "stats")) {
		rsb_path_stats(proxy->path, &stats);
		return rsb_buf_printf(out, "accepted=%llu open=%llu resets=%llu up=%llu down=%llu",
			(unsigned long long)stats.accepted, (unsigned long long)stats.open,
			(unsigned long long)stats.resets, (unsigned long long)stats.bytes[0],
			(unsigned long long)stats.bytes[1]);
	}
	if (!strcmp(line, "drop")) {
		rsb_path_drop(proxy->path);
	} else if (!strcmp(line, "refuse") && value) {
		int r = rsb_path_refuse(proxy->path, !strcmp(value, "on"));

		if (r < 0)
			return rsb_buf_printf(out, "error %s", strerror(-r));
	} else if (value && (!strcmp(line, "cut-before") || !strcmp(line, "cut-after"))) {
		uint64_t n;

		if (rsb_str_u64(value, UINT32_MAX, &n) < 0)
			return rsb_buf_printf(out, "error no number");
		rsb_record_cut(proxy->record, n, !strcmp(line, "cut-after"));
	} else if (set_option(&options, line, value) < 0) {
		return rsb_buf_printf(out, "error unknown command");
	} else {
		rsb_path_set(proxy->path, &options);
	}
	return rsb_buf_printf(out, "ok");
}

static void
control_free(struct control *control)
{
	rsb_source_del(control->source);
	(void)close(control->fd);
	free(control);
}

static int
control_lines(struct control *control)
{
	char *end;

	while ((end = memchr(control->line, '\n', control->size))) {
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
		size_t used = (size_t)(end - control->line) + 1;
		int r;

		*end = '\0';
		r = command(control->proxy, control->line, &out);
		if (r >= 0)
			r = rsb_buf_append(&out, "\n", 1);
		if (r >= 0)
			r = rsb_fd_write_full(control->fd, rsb_buf_head(&out), rsb_buf_len(&out));
		if (r < 0)
			return r;
		memmove(control->line, end + 1, control->size - used);
		control->size -= used;
	}
	return control->size == sizeof control->line ? -EMSGSIZE : 0;
}

static void
on_control(void *arg, uint32_t events)
{
	struct control *control = arg;
	ssize_t n = read(
		control->fd, control->line + control->size, sizeof control->line - control->size);

	(void)events;
	if (n <= 0) {
		control_free(control);
		return;
	}
	control->size += (size_t)n;
	if (control_lines(control) < 0)
		control_free(control);
}

static void
on_control_listener(void *arg, uint32_t events)
{
	struct proxy *proxy = arg;
	int fd = accept4(proxy->control_fd, NULL, NULL, SOCK_CLOEXEC);
	struct control *control;

	(void)events;
	if (fd < 0)
		return;
	control = rsb_new(struct control);
	if (!control) {
		(void)close(fd);
		return;
	}
	control->proxy = proxy;
	control->fd = fd;
	if (rsb_loop_add(proxy->loop, fd, EPOLLIN, on_control, control, &control->source) < 0)
		control_free(control);
}

static int
listen_control(struct proxy *proxy, uint16_t *ret_port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof sa;
	struct rsb_source *source;
	int r;

	proxy->control_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (proxy->control_fd < 0 ||
		bind(proxy->control_fd, (struct sockaddr *)&sa, sizeof sa) < 0 ||
		listen(proxy->control_fd, 8) < 0 ||
		getsockname(proxy->control_fd, (struct sockaddr *)&sa, &size) < 0)
		return -errno;
	r = rsb_loop_add(
		proxy->loop, proxy->control_fd, EPOLLIN, on_control_listener, proxy, &source);
	if (r >= 0)
		*ret_port = ntohs(sa.sin_port);
	return r;
}

static int
usage(void)
{
	(void)fprintf(stderr,
		"usage: delay-proxy LISTEN_PORT TARGET_PORT [--rtt-ms N] [--mbit N] [--drop-after N]\n");
	return 2;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in target = { .sin_family = AF_INET,
		.sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	struct rsb_path_options options = { 0 };
	struct proxy proxy = { .control_fd = -1 };
	uint16_t control_port = 0;
	uint64_t ports[2];
	int r;

	if (argc < 3 || argc % 2 == 0 || rsb_str_u64(argv[1], UINT16_MAX, &ports[0]) < 0 ||
		rsb_str_u64(argv[2], UINT16_MAX, &ports[1]) < 0)
		return usage();
	for (int i = 3; i < argc; i += 2) {
		const char *name = !strcmp(argv[i], "--rtt-ms") ? "rtt" : argv[i] + 2;

		if (strncmp(argv[i], "--", 2) || set_option(&options, name, argv[i + 1]) < 0)
			return usage();
	}
	/* A test that dies takes its proxy along. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	target.sin_port = htons((uint16_t)ports[1]);
	r = rsb_loop_new(rsb_clock_monotonic(), &proxy.loop);
	if (r >= 0)
		r = rsb_record_new(&proxy.record);
	if (r >= 0)
		r = rsb_path_new(proxy.loop, (uint16_t)ports[0], &target, tap, &proxy, &proxy.path);
	if (r >= 0)
		r = listen_control(&proxy, &control_port);
	if (r >= 0) {
		rsb_path_set(proxy.path, &options);
		(void)printf("listening %u control %u\n", rsb_path_port(proxy.path), control_port);
		(void)fflush(stdout);
		r = rsb_loop_run(proxy.loop);
	}
	(void)fprintf(stderr, "delay-proxy: %s\n", strerror(-r));
	return 1;
}
