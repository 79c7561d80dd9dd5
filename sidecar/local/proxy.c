/* SPDX-License-Identifier: MIT */
#include "sidecar/local/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "util/cleanup.h"
#include "util/str.h"

#include "sidecar/local/hop.h"

#define CHUNK ((size_t)64 << 10)
#define WAIT_MS 60000

struct rsb_proxy {
	struct rsb_httpd_req *req;
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers;
	struct rsb_inlet *inlet;
	struct rsb_bytes up; /* what is to be sent now; borrowed */
	bool up_end;
	bool up_paused;
	bool down_paused;
	bool has_head;
	bool over; /* the transfer has ended, well or not */
	bool failed;
	bool client_silent; /* the client sent bytes that are not ours: its end cannot be seen */
	struct rsb_buf head;
	struct rsb_buf down;
};

/* ---- libcurl's callbacks, all inside curl_multi_perform() ---- */

static curl_socket_t
on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct rsb_proxy *p = arg;

	(void)purpose;
	(void)addr;
	return rsb_inlet_fd(p->inlet);
}

/* The inlet is closed with the proxy. */
static int
on_close(void *arg, curl_socket_t fd)
{
	(void)arg;
	(void)fd;
	return 0;
}

static int
on_sockopt(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static size_t
on_read(char *out, size_t size, size_t n, void *arg)
{
	struct rsb_proxy *p = arg;
	size_t take = rsb_min(size * n, p->up.size);

	if (take == 0 && p->up_end)
		return 0;
	if (take == 0) {
		p->up_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	memcpy(out, p->up.data, take);
	p->up.data += take;
	p->up.size -= take;
	return take;
}

static size_t
on_write(char *data, size_t size, size_t n, void *arg)
{
	struct rsb_proxy *p = arg;

	if (rsb_buf_len(&p->down) >= RSB_PROXY_BUFFER_HIGH) {
		p->down_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	return rsb_buf_append(&p->down, data, size * n) < 0 ? 0 : size * n;
}

/* Each header block replaces the one before it: those of 100 Continue are not passed on. */
static size_t
on_header(char *line, size_t size, size_t n, void *arg)
{
	struct rsb_proxy *p = arg;
	long status = 0;

	if (size * n >= 5 && strncmp(line, "HTTP/", 5) == 0)
		rsb_buf_clear(&p->head);
	if (rsb_buf_append(&p->head, line, size * n) < 0)
		return 0;
	if (size * n != 2 || line[0] != '\r')
		return size * n;
	(void)curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	/* An upgrade that nobody asked for would never end. */
	if (status == 101)
		return 0;
	p->has_head = status >= 200;
	return size * n;
}

/* ---- set-up ---- */

static int
add_header(struct rsb_proxy *p, const char *line)
{
	struct curl_slist *list = curl_slist_append(p->headers, line);

	if (!list)
		return -ENOMEM;
	p->headers = list;
	return 0;
}

static int
pass_header(void *arg, const char *name, const char *value)
{
	struct rsb_proxy *p = arg;
	rsb_autofree char *line = NULL;

	if (rsb_hop_is(name))
		return 0;
	/* libcurl takes "Name;" for a header without a value. */
	line = value[0] ? rsb_str_printf("%s: %s", name, value) : rsb_str_printf("%s;", name);
	return line ? add_header(p, line) : -ENOMEM;
}

/* What libcurl would add by itself, unless the client sent it. */
static int
drop_defaults(struct rsb_proxy *p)
{
	static const char *const lines[] = { "Accept:", "User-Agent:", "Expect:", "Content-Type:" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < RSB_ARRAY_SIZE(lines); i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%.*s", (int)strlen(lines[i]) - 1, lines[i]);
		if (rsb_hop_is(name) || !rsb_httpd_header(p->req, name))
			r = add_header(p, lines[i]);
	}
	return r;
}

static int
set_body(struct rsb_proxy *p)
{
	const char *length = rsb_httpd_header(p->req, "Content-Length");
	uint64_t size = 0;

	if (!rsb_httpd_has_body(p->req)) {
		p->up_end = true;
		(void)curl_easy_setopt(p->easy, CURLOPT_HTTPGET, 1L);
		if (strcmp(rsb_httpd_method(p->req), "HEAD") == 0)
			(void)curl_easy_setopt(p->easy, CURLOPT_NOBODY, 1L);
		return 0;
	}
	(void)curl_easy_setopt(p->easy, CURLOPT_UPLOAD, 1L);
	if (!length || rsb_httpd_header(p->req, "Transfer-Encoding"))
		return add_header(p, "Transfer-Encoding: chunked");
	if (rsb_str_u64(length, INT64_MAX, &size) < 0)
		return -EBADMSG;
	(void)curl_easy_setopt(p->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
	return 0;
}

/* Options with constant or checked values fail for want of memory alone, which shows later. */
static int
set_options(struct rsb_proxy *p)
{
	CURL *e = p->easy;

	(void)curl_easy_setopt(e, CURLOPT_URL, "http://127.0.0.1/");
	(void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, rsb_httpd_method(p->req));
	(void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(e, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)CHUNK);
	(void)curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)CHUNK);
	(void)curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
	(void)curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, p);
	(void)curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	(void)curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_sockopt);
	(void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
	(void)curl_easy_setopt(e, CURLOPT_READDATA, p);
	(void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write);
	(void)curl_easy_setopt(e, CURLOPT_WRITEDATA, p);
	(void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(e, CURLOPT_HEADERDATA, p);
	(void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, p->headers);
	/* Byte for byte as the client wrote it. */
	if (curl_easy_setopt(e, CURLOPT_REQUEST_TARGET, rsb_httpd_target(p->req)) != CURLE_OK)
		return -ENOMEM;
	return 0;
}

static int
prepare(struct rsb_proxy *p)
{
	int r;

	p->easy = curl_easy_init();
	p->multi = curl_multi_init();
	if (!p->easy || !p->multi)
		return -ENOMEM;
	r = rsb_httpd_each_header(p->req, pass_header, p);
	if (r == 0)
		r = drop_defaults(p);
	if (r == 0)
		r = set_body(p);
	if (r == 0)
		r = set_options(p);
	if (r < 0)
		return r;
	return curl_multi_add_handle(p->multi, p->easy) == CURLM_OK ? 0 : -ENOMEM;
}

int
rsb_proxy_global_init(void)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}

int
rsb_proxy_new(struct rsb_httpd_req *req, struct rsb_inlet *inlet, struct rsb_proxy **ret_proxy)
{
	struct rsb_proxy *p = rsb_new(struct rsb_proxy);
	int r;

	if (!p) {
		rsb_inlet_close(inlet);
		return -ENOMEM;
	}
	p->req = req;
	p->inlet = inlet;
	rsb_buf_init(&p->head, RSB_PROXY_ANSWER_HEADERS_MAX);
	rsb_buf_init(&p->down, RSB_PROXY_BUFFER_HIGH + CURL_MAX_READ_SIZE);
	r = prepare(p);
	if (r < 0) {
		rsb_proxy_free(p);
		return r;
	}
	*ret_proxy = p;
	return 0;
}

void
rsb_proxy_free(struct rsb_proxy *p)
{
	if (!p)
		return;
	if (p->multi && p->easy)
		(void)curl_multi_remove_handle(p->multi, p->easy);
	curl_easy_cleanup(p->easy);
	(void)curl_multi_cleanup(p->multi);
	curl_slist_free_all(p->headers);
	rsb_inlet_close(p->inlet);
	rsb_buf_done(&p->head);
	rsb_buf_done(&p->down);
	free(p);
}

/* ---- the transfer ---- */

static void
perform(struct rsb_proxy *p)
{
	CURLMsg *message;
	int running, left;

	if (p->over)
		return;
	if (curl_multi_perform(p->multi, &running) != CURLM_OK) {
		p->over = p->failed = true;
		return;
	}
	while ((message = curl_multi_info_read(p->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		p->over = true;
		p->failed = message->data.result != CURLE_OK;
	}
}

/*
 * Until the sandbox, or with watch_client the client's end, gives reason to look again. -EPIPE when
 * the client is gone.
 */
static int
wait_more(struct rsb_proxy *p, bool watch_client)
{
	struct curl_waitfd client = { .fd = rsb_httpd_client_fd(p->req),
		.events = CURL_WAIT_POLLIN };
	bool watch = watch_client && !p->client_silent;
	char c;
	ssize_t n;

	if (curl_multi_poll(p->multi, &client, watch ? 1 : 0, WAIT_MS, NULL) != CURLM_OK)
		return -EIO;
	if (!watch || !client.revents)
		return 0;
	n = recv(client.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return -EPIPE;
	/* A pipelined request would make the socket readable for ever. */
	if (n > 0)
		p->client_silent = true;
	return 0;
}

static void
resume(struct rsb_proxy *p)
{
	/*
	 * Unpauses what is paused; fails only when the transfer does, which perform() then tells.
	 */
	(void)curl_easy_pause(p->easy, CURLPAUSE_CONT);
	p->up_paused = false;
	p->down_paused = false;
}

int
rsb_proxy_body(struct rsb_proxy *p, struct rsb_bytes data)
{
	int r = 0;

	p->up = data;
	if (p->up_paused)
		resume(p);
	while (r == 0 && !p->over && p->up.size > 0) {
		perform(p);
		/*
		 * HTTP/1.1 towards the client is half duplex: an answer cannot overtake its upload.
		 */
		if (p->down_paused)
			r = -ENOBUFS;
		else if (!p->over && p->up.size > 0)
			r = wait_more(p, false);
	}
	p->up.size = 0;
	return r;
}

static ssize_t
read_answer(void *arg, uint8_t *out, size_t size)
{
	struct rsb_proxy *p = arg;
	size_t n;

	while (rsb_buf_len(&p->down) == 0) {
		if (p->over)
			return p->failed ? -EIO : 0;
		if (p->down_paused)
			resume(p);
		perform(p);
		if (rsb_buf_len(&p->down) > 0 || p->over)
			continue;
		if (wait_more(p, true) < 0)
			return -EPIPE;
	}
	n = rsb_min(size, rsb_buf_len(&p->down));
	memcpy(out, rsb_buf_head(&p->down), n);
	rsb_buf_consume(&p->down, n);
	return (ssize_t)n;
}

/* The lines of the answer's head; a header that cannot be passed on is left out. */
static void
copy_headers(struct rsb_proxy *p)
{
	rsb_autofree char *text = rsb_buf_steal_str(&p->head);
	char *save = NULL;

	if (!text || !strtok_r(text, "\r\n", &save))
		return;
	for (char *line = strtok_r(NULL, "\r\n", &save); line;
		line = strtok_r(NULL, "\r\n", &save)) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		*value++ = '\0';
		value += strspn(value, " \t");
		if (!rsb_hop_is(line))
			(void)!rsb_httpd_answer_header(p->req, line, value);
	}
}

static int
set_answer(struct rsb_proxy *p)
{
	curl_off_t length = -1;
	long status = 0;
	int r;

	(void)curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(p->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (status == 204 || status == 304)
		length = 0;
	r = rsb_httpd_answer_stream(p->req, (unsigned int)status,
		length < 0 ? RSB_HTTPD_UNKNOWN : (uint64_t)length, read_answer, p);
	if (r == 0)
		copy_headers(p);
	return r;
}

int
rsb_proxy_end(struct rsb_proxy *p)
{
	int r = 0;

	p->up_end = true;
	if (p->up_paused)
		resume(p);
	while (r == 0 && !p->over && !p->has_head) {
		perform(p);
		if (!p->over && !p->has_head)
			r = wait_more(p, true);
	}
	if (r < 0)
		return r;
	return p->has_head ? set_answer(p) : -EIO;
}
