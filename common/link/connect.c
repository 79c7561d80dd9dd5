/* SPDX-License-Identifier: MIT */
#include "link/connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

/* What the kernel may hold unsent: what is queued behind it can still be overtaken. */
#define NOTSENT_LOWAT (128 << 10)
#define POLL_MS 1000
#define PATH_DEFAULT "/rsb"

struct rsb_connect {
	CURLM *multi; /* NULL: fd is our own */
	CURL *easy;
	int fd;
	char *host;
	char *path;
};

void
rsb_connect_free(struct rsb_connect *connect)
{
	if (!connect)
		return;
	if (connect->multi && connect->easy)
		(void)curl_multi_remove_handle(connect->multi, connect->easy);
	if (connect->easy)
		curl_easy_cleanup(connect->easy);
	if (connect->multi)
		(void)curl_multi_cleanup(connect->multi);
	else
		rsb_cleanup_close(&connect->fd);
	free(connect->host);
	free(connect->path);
	free(connect);
}

int
rsb_connect_fd(const struct rsb_connect *connect)
{
	return connect->fd;
}

const char *
rsb_connect_host(const struct rsb_connect *connect)
{
	return connect->host;
}

const char *
rsb_connect_path(const struct rsb_connect *connect)
{
	return connect->path;
}

static char *
url_part(CURLU *url, CURLUPart part, unsigned int flags)
{
	char *text = NULL;
	char *copy;

	if (curl_url_get(url, part, &text, flags) != CURLUE_OK)
		return NULL;
	copy = strdup(text);
	curl_free(text);
	return copy;
}

/* Host and path as the upgrade says them; *ret_http: what libcurl is to connect to. */
static int
parse_url(struct rsb_connect *connect, const char *text, char **ret_http)
{
	rsb_autofree char *host = NULL;
	rsb_autofree char *port = NULL;
	const char *rest;
	CURLU *url;

	if (strncmp(text, "ws://", 5) == 0)
		rest = text + 2;
	else if (strncmp(text, "wss://", 6) == 0)
		rest = text + 3;
	else
		return -EINVAL;
	*ret_http = rsb_str_printf("http%s%s", text[2] == 's' ? "s" : "", rest);
	if (!*ret_http)
		return -ENOMEM;
	url = curl_url();
	if (!url)
		return -ENOMEM;
	if (curl_url_set(url, CURLUPART_URL, *ret_http, 0) == CURLUE_OK) {
		host = url_part(url, CURLUPART_HOST, 0);
		port = url_part(url, CURLUPART_PORT, 0);
		connect->path = url_part(url, CURLUPART_PATH, 0);
	}
	curl_url_cleanup(url);
	if (!host || !connect->path)
		return -EINVAL;
	connect->host = port ? rsb_str_printf("%s:%s", host, port) : rsb_steal(&host);
	return connect->host ? 0 : -ENOMEM;
}

static int
curl_error(CURLcode code)
{
	switch ((int)code) {
	case CURLE_OK:
		return 0;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return -EKEYREJECTED;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static int
set_options(struct rsb_connect *connect, const struct rsb_link_target *target, const char *http)
{
	CURL *easy = connect->easy;
	CURLcode code;

	code = curl_easy_setopt(easy, CURLOPT_URL, http);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(
			easy, CURLOPT_TIMEOUT_MS, (long)(target->timeout_ns / RSB_NSEC_PER_MSEC));
	if (code == CURLE_OK && target->ca_file && target->ca_file[0])
		code = curl_easy_setopt(easy, CURLOPT_CAINFO, target->ca_file);
	return curl_error(code);
}

/* 1: done, with its result in *ret_code. */
static int
step(CURLM *multi, int abort_fd, CURLcode *ret_code)
{
	struct curl_waitfd extra = { .fd = abort_fd, .events = CURL_WAIT_POLLIN };
	struct pollfd pfd = { .fd = abort_fd, .events = POLLIN };
	CURLMsg *msg;
	int n, running;

	if (curl_multi_perform(multi, &running) != CURLM_OK)
		return -EIO;
	msg = curl_multi_info_read(multi, &n);
	if (msg && msg->msg == CURLMSG_DONE) {
		*ret_code = msg->data.result;
		return 1;
	}
	if (abort_fd >= 0 && poll(&pfd, 1, 0) > 0)
		return -ECANCELED;
	if (curl_multi_poll(multi, &extra, abort_fd >= 0 ? 1 : 0, POLL_MS, NULL) != CURLM_OK)
		return -EIO;
	return 0;
}

static int
open_url(struct rsb_connect *connect, const struct rsb_link_target *target, int abort_fd,
	struct rsb_diag *diag)
{
	rsb_autofree char *http = NULL;
	curl_socket_t sock = CURL_SOCKET_BAD;
	CURLcode code = CURLE_OK;
	int r;

	r = parse_url(connect, target->url, &http);
	if (r < 0)
		return rsb_diag_set(diag, r, "'%s' is not a ws:// or wss:// URL", target->url);
	connect->multi = curl_multi_init();
	connect->easy = curl_easy_init();
	if (!connect->multi || !connect->easy)
		return -ENOMEM;
	r = set_options(connect, target, http);
	if (r < 0)
		return r;
	if (curl_multi_add_handle(connect->multi, connect->easy) != CURLM_OK)
		return -ENOMEM;
	do
		r = step(connect->multi, abort_fd, &code);
	while (r == 0);
	if (r < 0)
		return r;
	r = curl_error(code);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot connect to %s: %s", connect->host,
			curl_easy_strerror(code));
	if (curl_easy_getinfo(connect->easy, CURLINFO_ACTIVESOCKET, &sock) != CURLE_OK ||
		sock == CURL_SOCKET_BAD)
		return rsb_diag_set(diag, -EIO, "cannot connect to %s", connect->host);
	connect->fd = sock;
	return 0;
}

static int
open_fd(struct rsb_connect *connect)
{
	connect->host = strdup("localhost");
	connect->path = strdup(PATH_DEFAULT);
	if (!connect->host || !connect->path)
		return -ENOMEM;
	return rsb_fd_nonblock(connect->fd, true);
}

int
rsb_connect_open(const struct rsb_link_target *target, int abort_fd,
	struct rsb_connect **ret_connect, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_connect_freep) struct rsb_connect *connect = rsb_new(struct rsb_connect);
	rsb_autoclose int fd = target->url ? -1 : target->fd;
	const int lowat = NOTSENT_LOWAT;
	const int one = 1;
	int r;

	if (!connect)
		return -ENOMEM;
	connect->fd = -1;
	if (target->url) {
		r = open_url(connect, target, abort_fd, diag);
	} else {
		connect->fd = rsb_steal_fd(&fd);
		r = open_fd(connect);
	}
	if (r < 0)
		return r;
	/* EOPNOTSUPP on a unix socket, which needs neither */
	(void)setsockopt(connect->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(connect->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
	*ret_connect = rsb_steal(&connect);
	return 0;
}

int
rsb_connect_recv(struct rsb_connect *connect, void *data, size_t size, size_t *ret_size)
{
	CURLcode code;
	ssize_t n;

	if (connect->easy) {
		code = curl_easy_recv(connect->easy, data, size, ret_size);
		if (code == CURLE_AGAIN)
			return -EAGAIN;
		return code == CURLE_OK && *ret_size > 0 ? 0 : -ECONNRESET;
	}
	do
		n = recv(connect->fd, data, size, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	*ret_size = (size_t)n;
	return n > 0 ? 0 : -ECONNRESET;
}

int
rsb_connect_send(struct rsb_connect *connect, const void *data, size_t size, size_t *ret_size)
{
	CURLcode code;
	ssize_t n;

	if (connect->easy) {
		code = curl_easy_send(connect->easy, data, size, ret_size);
		if (code == CURLE_AGAIN)
			return -EAGAIN;
		return code == CURLE_OK ? 0 : -ECONNRESET;
	}
	do
		n = send(connect->fd, data, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	*ret_size = (size_t)n;
	return 0;
}
