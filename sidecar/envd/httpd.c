/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <microhttpd.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

struct rsb_httpd {
	struct MHD_Daemon *daemon;
	const struct rsb_httpd_ops *ops;
	void *arg;
};

struct rsb_httpd_req {
	struct rsb_httpd *httpd;
	struct MHD_Connection *connection;
	const char *method;
	char *target;
	char *path;
	struct MHD_Response *response;
	unsigned int status;
	bool begun;
	bool queued;
	void *data;
	rsb_httpd_read_fn read;
	rsb_httpd_upgrade_fn upgrade;
	void *answer_arg; /* of read or upgrade */
};

/* ---- requests ---- */

static void
req_free(struct rsb_httpd_req *req)
{
	if (!req)
		return;
	if (req->response)
		MHD_destroy_response(req->response);
	free(req->target);
	free(req->path);
	free(req);
}

RSB_DEFINE_CLEANUP(struct rsb_httpd_req *, req_free)

/* The only place where the raw target is to be had; its result becomes the first *con_cls. */
static void *
on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
	RSB_CLEANUP(req_freep) struct rsb_httpd_req *req = rsb_new(struct rsb_httpd_req);
	struct rsb_bytes path = { .data = (const uint8_t *)target, .size = strcspn(target, "?") };

	if (!req)
		return NULL;
	req->httpd = cls;
	req->connection = connection;
	req->target = rsb_str_dup(rsb_bytes_str(target));
	req->path = rsb_str_dup(path);
	if (!req->target || !req->path)
		return NULL;
	return rsb_steal(&req);
}

static enum MHD_Result
queue(struct rsb_httpd_req *req)
{
	req->queued = true;
	if (!req->response)
		return MHD_NO;
	return MHD_queue_response(req->connection, req->status, req->response);
}

static enum MHD_Result
on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
	const char *version, const char *upload, size_t *upload_size, void **con_cls)
{
	struct rsb_httpd *httpd = cls;
	struct rsb_httpd_req *req = *con_cls;
	struct rsb_bytes data = { .data = (const uint8_t *)upload, .size = *upload_size };

	(void)connection;
	(void)url;
	(void)version;
	if (!req)
		return MHD_NO;
	if (!req->begun) {
		req->begun = true;
		req->method = method;
		if (httpd->ops->begin(httpd->arg, req) < 0)
			return MHD_NO;
		return MHD_YES;
	}
	if (data.size > 0) {
		*upload_size = 0;
		if (!req->response && httpd->ops->body(httpd->arg, req, data) < 0)
			return MHD_NO;
		return MHD_YES;
	}
	if (req->queued)
		return MHD_YES;
	if (!req->response)
		httpd->ops->end(httpd->arg, req);
	return queue(req);
}

static void
on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
	enum MHD_RequestTerminationCode how)
{
	struct rsb_httpd *httpd = cls;
	struct rsb_httpd_req *req = *con_cls;

	(void)connection;
	(void)how;
	if (!req)
		return;
	if (req->begun)
		httpd->ops->done(httpd->arg, req);
	req_free(req);
	*con_cls = NULL;
}

/* ---- server ---- */

int
rsb_httpd_new(int listen_fd, unsigned int max_connections, const struct rsb_httpd_ops *ops,
	void *arg, struct rsb_httpd **ret_httpd)
{
	struct rsb_httpd *httpd = rsb_new(struct rsb_httpd);
	unsigned int flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
			     MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_UPGRADE |
			     MHD_USE_SUPPRESS_DATE_NO_CLOCK;

	if (!httpd)
		return -ENOMEM;
	httpd->ops = ops;
	httpd->arg = arg;
	errno = 0;
	httpd->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, httpd,
		MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, max_connections,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, RSB_HTTPD_HEADERS_MAX * 2,
		MHD_OPTION_CONNECTION_TIMEOUT, RSB_HTTPD_IDLE_SEC, MHD_OPTION_THREAD_STACK_SIZE,
		RSB_HTTPD_STACK_SIZE, MHD_OPTION_URI_LOG_CALLBACK, on_target, httpd,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, httpd, MHD_OPTION_END);
	if (!httpd->daemon) {
		int r = errno ? -errno : -EIO;

		free(httpd);
		return r;
	}
	*ret_httpd = httpd;
	return 0;
}

void
rsb_httpd_free(struct rsb_httpd *httpd)
{
	if (!httpd)
		return;
	MHD_stop_daemon(httpd->daemon);
	free(httpd);
}

unsigned int
rsb_httpd_n_connections(struct rsb_httpd *httpd)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info ? info->num_connections : 0;
}

/* ---- what was asked ---- */

const char *
rsb_httpd_method(const struct rsb_httpd_req *req)
{
	return req->method;
}

const char *
rsb_httpd_target(const struct rsb_httpd_req *req)
{
	return req->target;
}

const char *
rsb_httpd_path(const struct rsb_httpd_req *req)
{
	return req->path;
}

const char *
rsb_httpd_header(const struct rsb_httpd_req *req, const char *name)
{
	return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

const char *
rsb_httpd_query(const struct rsb_httpd_req *req, const char *name)
{
	const char *value = NULL;
	size_t size = 0;

	if (MHD_lookup_connection_value_n(req->connection, MHD_GET_ARGUMENT_KIND, name,
		    strlen(name), &value, &size) != MHD_YES)
		return NULL;
	return value && strlen(value) == size ? value : NULL;
}

int
rsb_httpd_client_fd(const struct rsb_httpd_req *req)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

unsigned int
rsb_httpd_status(const struct rsb_httpd_req *req)
{
	return req->status;
}

bool
rsb_httpd_has_body(const struct rsb_httpd_req *req)
{
	return rsb_httpd_header(req, "Content-Length") ||
	       rsb_httpd_header(req, "Transfer-Encoding");
}

struct each {
	rsb_httpd_header_fn fn;
	void *arg;
	int r;
};

static enum MHD_Result
each_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct each *each = cls;

	(void)kind;
	each->r = each->fn(each->arg, name, value ? value : "");
	return each->r < 0 ? MHD_NO : MHD_YES;
}

int
rsb_httpd_each_header(const struct rsb_httpd_req *req, rsb_httpd_header_fn fn, void *arg)
{
	struct each each = { .fn = fn, .arg = arg };

	(void)MHD_get_connection_values(req->connection, MHD_HEADER_KIND, each_header, &each);
	return each.r < 0 ? each.r : 0;
}

void
rsb_httpd_set_data(struct rsb_httpd_req *req, void *data)
{
	req->data = data;
}

void *
rsb_httpd_data(const struct rsb_httpd_req *req)
{
	return req->data;
}

/* ---- answers ---- */

static int
set_answer(struct rsb_httpd_req *req, unsigned int status, struct MHD_Response *response)
{
	if (!response)
		return -ENOMEM;
	if (req->response)
		MHD_destroy_response(req->response);
	req->response = response;
	req->status = status;
	return 0;
}

int
rsb_httpd_answer(struct rsb_httpd_req *req, unsigned int status, const char *content_type,
	struct rsb_bytes body)
{
	int r;

	/* MHD_RESPMEM_MUST_COPY never writes through the pointer. */
	r = set_answer(req, status,
		MHD_create_response_from_buffer(
			body.size, (void *)(uintptr_t)body.data, MHD_RESPMEM_MUST_COPY));
	if (r < 0 || !content_type)
		return r;
	return rsb_httpd_answer_header(req, "Content-Type", content_type);
}

int
rsb_httpd_answer_fd(
	struct rsb_httpd_req *req, unsigned int status, int fd, uint64_t offset, uint64_t size)
{
	int r = set_answer(req, status, MHD_create_response_from_fd_at_offset64(size, fd, offset));

	if (r < 0)
		(void)close(fd);
	return r;
}

static ssize_t
read_stream(void *cls, uint64_t pos, char *out, size_t size)
{
	struct rsb_httpd_req *req = cls;
	ssize_t n = req->read(req->answer_arg, (uint8_t *)out, size);

	(void)pos;
	if (n == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

int
rsb_httpd_answer_stream(struct rsb_httpd_req *req, unsigned int status, uint64_t size,
	rsb_httpd_read_fn read, void *arg)
{
	uint64_t length = size == RSB_HTTPD_UNKNOWN ? MHD_SIZE_UNKNOWN : size;

	req->read = read;
	req->answer_arg = arg;
	return set_answer(req, status,
		MHD_create_response_from_callback(
			length, (size_t)64 << 10, read_stream, req, NULL));
}

static void
on_upgrade(void *cls, struct MHD_Connection *connection, void *con_cls, const char *early,
	size_t early_size, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct rsb_httpd_req *req = cls;
	struct rsb_bytes bytes = { .data = (const uint8_t *)early, .size = early_size };

	(void)connection;
	(void)con_cls;
	req->upgrade(req->answer_arg, fd, bytes, (struct rsb_httpd_upgrade *)handle);
}

int
rsb_httpd_answer_upgrade(struct rsb_httpd_req *req, rsb_httpd_upgrade_fn fn, void *arg)
{
	req->upgrade = fn;
	req->answer_arg = arg;
	return set_answer(req, MHD_HTTP_SWITCHING_PROTOCOLS,
		MHD_create_response_for_upgrade(on_upgrade, req));
}

void
rsb_httpd_upgrade_close(struct rsb_httpd_upgrade *upgrade)
{
	(void)MHD_upgrade_action(
		(struct MHD_UpgradeResponseHandle *)upgrade, MHD_UPGRADE_ACTION_CLOSE);
}

int
rsb_httpd_answer_header(struct rsb_httpd_req *req, const char *name, const char *value)
{
	return MHD_add_response_header(req->response, name, value) == MHD_YES ? 0 : -EINVAL;
}

/* ---- multipart ---- */

struct rsb_httpd_multipart {
	struct MHD_PostProcessor *post;
	rsb_httpd_part_fn part;
	void *arg;
	int r;
};

static enum MHD_Result
on_part(void *cls, enum MHD_ValueKind kind, const char *name, const char *filename,
	const char *content_type, const char *encoding, const char *data, uint64_t offset,
	size_t size)
{
	struct rsb_httpd_multipart *multipart = cls;
	struct rsb_bytes bytes = { .data = (const uint8_t *)data, .size = size };

	(void)kind;
	(void)content_type;
	(void)encoding;
	multipart->r = multipart->part(multipart->arg, name, filename, offset, bytes);
	return multipart->r < 0 ? MHD_NO : MHD_YES;
}

int
rsb_httpd_multipart_new(struct rsb_httpd_req *req, rsb_httpd_part_fn part, void *arg,
	struct rsb_httpd_multipart **ret_multipart)
{
	struct rsb_httpd_multipart *multipart = rsb_new(struct rsb_httpd_multipart);

	if (!multipart)
		return -ENOMEM;
	multipart->part = part;
	multipart->arg = arg;
	multipart->post =
		MHD_create_post_processor(req->connection, (size_t)32 << 10, on_part, multipart);
	if (!multipart->post) {
		free(multipart);
		return -EINVAL;
	}
	*ret_multipart = multipart;
	return 0;
}

int
rsb_httpd_multipart_feed(struct rsb_httpd_multipart *multipart, struct rsb_bytes data)
{
	if (MHD_post_process(multipart->post, (const char *)data.data, data.size) == MHD_YES)
		return 0;
	return multipart->r < 0 ? multipart->r : -EBADMSG;
}

void
rsb_httpd_multipart_free(struct rsb_httpd_multipart *multipart)
{
	if (!multipart)
		return;
	(void)MHD_destroy_post_processor(multipart->post);
	free(multipart);
}
