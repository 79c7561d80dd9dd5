/* SPDX-License-Identifier: MIT */
#include "backend/http.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "util/str.h"

#define POLL_MS 1000
#define USER_AGENT "rsb/" RSB_VERSION
#define RETRY_AFTER_MAX_S 86400

struct rsb_http {
	CURLM *multi;
	CURL *easy;
	char *ca_file;
	int abort_fd;
};

/* What the callbacks of one request need. */
struct transfer {
	CURL *easy;
	const struct rsb_http_request *req;
	struct rsb_http_reply *reply;
	uint64_t sent;
	bool hung_up;
	int r; /* why we ended it */
};

int
rsb_http_new(const struct rsb_http_config *config, struct rsb_http **ret_http)
{
	RSB_CLEANUP(rsb_http_freep) struct rsb_http *http = rsb_new(struct rsb_http);

	if (!http)
		return -ENOMEM;
	http->abort_fd = config->abort_fd;
	http->multi = curl_multi_init();
	http->easy = curl_easy_init();
	if (!http->multi || !http->easy)
		return -ENOMEM;
	if (config->ca_file) {
		http->ca_file = strdup(config->ca_file);
		if (!http->ca_file)
			return -ENOMEM;
	}
	*ret_http = rsb_steal(&http);
	return 0;
}

void
rsb_http_free(struct rsb_http *http)
{
	if (!http)
		return;
	if (http->easy)
		curl_easy_cleanup(http->easy);
	if (http->multi)
		(void)curl_multi_cleanup(http->multi);
	free(http->ca_file);
	free(http);
}

/* ---- callbacks of libcurl ---- */

static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *transfer = arg;
	const struct rsb_bytes bytes = { .data = (const uint8_t *)data, .size = size * n };
	long status = 0;
	int r;

	(void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 stays */
	if (!transfer->req->data || status < 200 || status > 299) {
		r = rsb_buf_append(&transfer->reply->body, bytes.data, bytes.size);
	} else {
		r = transfer->req->data(transfer->req->arg, bytes);
		transfer->hung_up = r > 0;
	}
	if (r == 0)
		return bytes.size;
	transfer->r = r > 0 ? 0 : r;
	transfer->hung_up = true;
	return CURL_WRITEFUNC_ERROR;
}

/*
 * The value of the header name in a line of n bytes, as a C string in out; false: another
 * header, or too long.
 */
static bool
header_value(const char *line, size_t n, const char *name, char *out, size_t size)
{
	size_t name_size = strlen(name);

	if (n <= name_size || line[name_size] != ':' || strncasecmp(line, name, name_size) != 0)
		return false;
	line += name_size + 1;
	n -= name_size + 1;
	for (; n > 0 && (*line == ' ' || *line == '\t'); n--)
		line++;
	for (; n > 0 && strchr("\r\n \t", line[n - 1]); n--)
		;
	if (n >= size || memchr(line, '\0', n))
		return false;
	memcpy(out, line, n);
	out[n] = '\0';
	return true;
}

static size_t
on_header(char *line, size_t size, size_t n, void *arg)
{
	struct transfer *transfer = arg;
	struct rsb_http_reply *reply = transfer->reply;
	char text[40];

	if (header_value(line, size * n, "Retry-After", text, sizeof(text)) &&
		rsb_str_u64(text, RETRY_AFTER_MAX_S, &reply->retry_after_s) == 0)
		reply->has_retry_after = true;
	if (header_value(line, size * n, "Date", text, sizeof(text)))
		reply->date_s = (int64_t)curl_getdate(text, NULL);
	(void)header_value(line, size * n, "X-Next-Token", reply->next_token,
		sizeof(reply->next_token)); /* absent: it stays empty */
	return size * n;
}

static size_t
on_read(char *out, size_t size, size_t n, void *arg)
{
	struct transfer *transfer = arg;
	uint64_t left = transfer->req->body_size - transfer->sent;
	ssize_t got;

	size = (size_t)rsb_min((uint64_t)(size * n), left);
	if (transfer->req->body.size > 0) {
		memcpy(out, transfer->req->body.data + transfer->sent, size);
		transfer->sent += size;
		return size;
	}
	do
		got = pread(transfer->req->body_fd, out, size, (off_t)transfer->sent);
	while (got < 0 && errno == EINTR);
	if (got < 0 || (got == 0 && size > 0)) {
		transfer->r = got < 0 ? -errno : -EIO;
		transfer->hung_up = true;
		return CURL_READFUNC_ABORT;
	}
	transfer->sent += (uint64_t)got;
	return (size_t)got;
}

/* libcurl begins again when a connection that it had kept turns out to be dead. */
static int
on_seek(void *arg, curl_off_t offset, int origin)
{
	struct transfer *transfer = arg;

	if (origin != SEEK_SET || offset < 0)
		return CURL_SEEKFUNC_FAIL;
	transfer->sent = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* ---- one request ---- */

#define SET(option, value)                                                \
	do {                                                              \
		CURLcode code_ = curl_easy_setopt(easy, option, (value)); \
		if (code_ == CURLE_OUT_OF_MEMORY)                         \
			return -ENOMEM;                                   \
		if (code_ != CURLE_OK)                                    \
			return -EINVAL;                                   \
	} while (0)

static bool
is_loopback(const char *url)
{
	return strncmp(url, "http://127.0.0.1", 16) == 0 ||
	       strncmp(url, "http://localhost", 16) == 0;
}

static int
set_body(CURL *easy, struct transfer *transfer)
{
	const struct rsb_http_request *req = transfer->req;

	if (req->body_size == 0 && strcmp(req->method, "GET") == 0)
		return 0;
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_size);
	SET(CURLOPT_READFUNCTION, on_read);
	SET(CURLOPT_READDATA, transfer);
	SET(CURLOPT_SEEKFUNCTION, on_seek);
	SET(CURLOPT_SEEKDATA, transfer);
	return 0;
}

static int
set_options(struct rsb_http *http, struct transfer *transfer, const struct curl_slist *headers)
{
	const struct rsb_http_request *req = transfer->req;
	CURL *easy = http->easy;
	int r;

	curl_easy_reset(easy);
	SET(CURLOPT_URL, req->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_USERAGENT, USER_AGENT);
	SET(CURLOPT_TIMEOUT_MS, (long)(req->timeout_ns / RSB_NSEC_PER_MSEC));
	SET(CURLOPT_FRESH_CONNECT, req->once ? 1L : 0L);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, transfer);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, transfer);
	if (is_loopback(req->url))
		SET(CURLOPT_PROXY, "");
	if (http->ca_file)
		SET(CURLOPT_CAINFO, http->ca_file);
	r = set_body(easy, transfer);
	if (r < 0)
		return r;
	SET(CURLOPT_CUSTOMREQUEST, req->method);
	SET(CURLOPT_HTTPHEADER, headers);
	return 0;
}

/* 1: done, with its result. */
static int
step(struct rsb_http *http, CURLcode *ret_code)
{
	struct curl_waitfd extra = { .fd = http->abort_fd, .events = CURL_WAIT_POLLIN };
	struct pollfd pfd = { .fd = http->abort_fd, .events = POLLIN };
	CURLMsg *msg;
	int n, running;

	if (http->abort_fd >= 0 && poll(&pfd, 1, 0) > 0)
		return -ECANCELED;
	if (curl_multi_perform(http->multi, &running) != CURLM_OK)
		return -EIO;
	msg = curl_multi_info_read(http->multi, &n);
	if (msg && msg->msg == CURLMSG_DONE) {
		*ret_code = msg->data.result;
		return 1;
	}
	if (curl_multi_poll(http->multi, &extra, http->abort_fd >= 0 ? 1 : 0, POLL_MS, NULL) !=
		CURLM_OK)
		return -EIO;
	return 0;
}

static int
code_error(const struct rsb_http *http, CURLcode code)
{
	curl_off_t pretransfer_us = 0;

	switch ((int)code) {
	case CURLE_OK:
		return 0;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return -EINVAL;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return -EKEYREJECTED;
	default:
		break;
	}
	/* zero until everything is ready for the first byte of the request */
	(void)curl_easy_getinfo(http->easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
	return pretransfer_us > 0 ? -EREMOTEIO : -ENOTCONN;
}

static int
perform(struct rsb_http *http, struct transfer *transfer, struct rsb_diag *diag)
{
	CURLcode code = CURLE_OK;
	long status = 0;
	int r;

	if (curl_multi_add_handle(http->multi, http->easy) != CURLM_OK)
		return -ENOMEM;
	do
		r = step(http, &code);
	while (r == 0);
	(void)curl_multi_remove_handle(http->multi, http->easy); /* it was added */
	if (r < 0)
		return r;
	if (transfer->hung_up) {
		r = transfer->r;
	} else {
		r = code_error(http, code);
		if (r < 0)
			(void)rsb_diag_set(diag, r, "%s", curl_easy_strerror(code));
	}
	(void)curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 stays */
	transfer->reply->status = (int)status;
	return r;
}

static int
make_headers(const struct rsb_http_request *req, struct curl_slist **ret_list)
{
	struct curl_slist *more;
	size_t i;

	/* a body is never worth another round trip before it is sent */
	*ret_list = curl_slist_append(NULL, "Expect:");
	if (!*ret_list)
		return -ENOMEM;
	for (i = 0; req->headers && req->headers[i]; i++) {
		more = curl_slist_append(*ret_list, req->headers[i]);
		if (!more)
			return -ENOMEM;
		*ret_list = more;
	}
	return 0;
}

int
rsb_http_do(struct rsb_http *http, const struct rsb_http_request *req, struct rsb_http_reply *reply,
	struct rsb_diag *diag)
{
	struct rsb_http_request copy = *req;
	struct transfer transfer = { .easy = http->easy, .req = &copy, .reply = reply };
	struct curl_slist *headers = NULL;
	int r;

	if (copy.body.size > 0)
		copy.body_size = copy.body.size;
	rsb_buf_done(&reply->body);
	*reply = (struct rsb_http_reply){ 0 };
	rsb_buf_init(&reply->body, RSB_HTTP_BODY_MAX);
	r = make_headers(&copy, &headers);
	if (r == 0)
		r = set_options(http, &transfer, headers);
	if (r == 0)
		r = perform(http, &transfer, diag);
	/* what points to this stack must not outlive it */
	curl_easy_reset(http->easy);
	curl_slist_free_all(headers);
	return r;
}

int
rsb_http_escape(struct rsb_bytes text, struct rsb_buf *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";
	size_t i;
	int r;

	for (i = 0; i < text.size; i++) {
		if (text.data[i] != '\0' && strchr(plain, text.data[i]))
			r = rsb_buf_append(out, &text.data[i], 1);
		else
			r = rsb_buf_printf(out, "%%%02X", text.data[i]);
		if (r < 0)
			return r;
	}
	return 0;
}
