/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/event.h"

#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/hash.h"

#include "sidecar/envd/connectrpc.h"

static int
frame(struct rsb_buf *out, const struct rsb_buf *text)
{
	return rsb_connectrpc_frame(out, RSB_CONNECTRPC_MESSAGE, rsb_buf_view(text));
}

int
rsb_event_start(struct rsb_buf *out, pid_t pid)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r = rsb_buf_printf(&text, "{\"event\":{\"start\":{\"pid\":%d}}}", pid);

	return r < 0 ? r : frame(out, &text);
}

int
rsb_event_data(struct rsb_buf *out, enum rsb_event_stream stream, struct rsb_bytes data)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r = rsb_buf_printf(&text, "{\"event\":{\"data\":{\"%s\":\"",
		stream == RSB_EVENT_STDOUT ? "stdout" : "stderr");

	if (r < 0)
		return r;
	r = rsb_base64_encode(data, &text);
	if (r < 0)
		return r;
	r = rsb_buf_printf(&text, "\"}}}");
	return r < 0 ? r : frame(out, &text);
}

/* In the words of Go's os package, which clients compare with. */
static void
describe(int status, char *out, size_t size)
{
	const char *name = strsignal(WTERMSIG(status));
	int n;

	if (WIFEXITED(status)) {
		(void)snprintf(out, size, "exit status %d", WEXITSTATUS(status));
		return;
	}
	n = snprintf(out, size, "signal: %s", name ? name : "unknown");
	for (int i = 0; i < n && (size_t)i < size; i++)
		out[i] = (char)tolower((unsigned char)out[i]);
}

int
rsb_event_end(struct rsb_buf *out, int status)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	bool exited = WIFEXITED(status);
	int code = exited ? WEXITSTATUS(status) : -1;
	char words[64];
	int r;

	describe(status, words, sizeof(words));
	r = rsb_buf_printf(&text, "{\"event\":{\"end\":{");
	if (r == 0 && code != 0)
		r = rsb_buf_printf(&text, "\"exitCode\":%d,", code);
	if (r == 0 && exited)
		r = rsb_buf_printf(&text, "\"exited\":true,");
	if (r == 0 && code != 0)
		r = rsb_buf_printf(&text, "\"error\":\"%s\",", words);
	if (r == 0)
		r = rsb_buf_printf(&text, "\"status\":\"%s\"}}}", words);
	return r < 0 ? r : frame(out, &text);
}
