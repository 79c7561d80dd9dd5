/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/gzip.h"
#include "util/str.h"
#include "util/utf8.h"

#include "sidecar/envd/service.h"

#define PARTS_MAX 1024U /* files of one upload */

struct files_call {
	struct rsb_exchange exchange;
	struct rsb_service *service;
	struct rsb_user user;
	struct rsb_httpd_multipart *multipart; /* NULL: the body is the file */
	struct rsb_gunzip *gunzip;             /* NULL: the body is not compressed */
	const char *path;                      /* query parameter; NULL: part names */
	struct rsb_json *written;              /* array for the answer */
	char current[PATH_MAX];                /* path that fd writes */
	char part[PATH_MAX];                   /* file name of the part that fd writes */
	bool pristine;                         /* no byte of the part was there yet */
	int fd;
	unsigned int refused; /* status of the first failure */
	struct rsb_diag why;
};

static void
refuse(struct files_call *call, unsigned int status, const char *what, const char *path)
{
	if (call->refused)
		return;
	call->refused = status;
	(void)rsb_diag_set(&call->why, 0, "%s%s", what, path);
}

/* ---- who may ---- */

/* 1 when the request may go on, 0 when it was answered. */
static int
authorise(struct rsb_service *service, struct rsb_httpd_req *req, const char *operation)
{
	const char *token = rsb_httpd_header(req, "X-Access-Token");
	struct rsb_settings_url url = {
		.path = rsb_httpd_query(req, "path"),
		.operation = operation,
		.username = rsb_httpd_query(req, "username"),
		.signature = rsb_httpd_query(req, "signature"),
		.expiration = rsb_httpd_query(req, "signature_expiration"),
	};
	int r;

	if (rsb_settings_allow(service->settings, token))
		return 1;
	if (token)
		return rsb_refuse(req, 401, "access token present in header but does not match");
	r = rsb_settings_signed(service->settings, &url);
	if (r == 0)
		return 1;
	if (r == -ENOENT)
		return rsb_refuse(req, 401, "missing signature query parameter");
	if (r == -ETIME)
		return rsb_refuse(req, 401, "signature is already expired");
	return rsb_refuse(req, 401, "invalid signature");
}

static int
resolve(struct files_call *call, const char *path)
{
	char workdir[PATH_MAX];

	rsb_settings_workdir(call->service->settings, workdir);
	return rsb_user_path(&call->user, workdir, path, call->current);
}

/* ---- download ---- */

struct range {
	uint64_t first;
	uint64_t size;
};

/* One range of "bytes=a-b"; 0 no range that is understood, 1 found, -ERANGE outside the file. */
static int
parse_range(const char *text, uint64_t size, struct range *ret_range)
{
	char first_text[24] = "", last_text[24] = "";
	uint64_t first = 0, last = size ? size - 1 : 0;

	if (!text || sscanf(text, "bytes=%20[0-9]-%20[0-9]", first_text, last_text) < 1) {
		/* "bytes=-n": the last n bytes. */
		if (!text || sscanf(text, "bytes=-%20[0-9]", last_text) != 1 ||
			rsb_str_u64(last_text, UINT64_MAX, &last) < 0)
			return 0;
		if (last == 0 || size == 0)
			return -ERANGE;
		ret_range->size = rsb_min(last, size);
		ret_range->first = size - ret_range->size;
		return 1;
	}
	if (strchr(text, ','))
		return 0;
	if (rsb_str_u64(first_text, UINT64_MAX, &first) < 0)
		return 0;
	if (last_text[0] && rsb_str_u64(last_text, UINT64_MAX, &last) < 0)
		return 0;
	if (first >= size || last < first)
		return -ERANGE;
	ret_range->first = first;
	ret_range->size = rsb_min(last, size - 1) - first + 1;
	return 1;
}

static ssize_t
read_unknown(void *arg, uint8_t *out, size_t size)
{
	const struct files_call *call = arg;
	ssize_t n = read(call->fd, out, size);

	return n < 0 ? -errno : n;
}

static int
add_headers(struct rsb_httpd_req *req, const struct stat *st)
{
	char text[64];
	struct tm tm;
	int r;

	r = rsb_httpd_answer_header(req, "Content-Type", "application/octet-stream");
	if (r == 0)
		r = rsb_httpd_answer_header(req, "Content-Disposition", "inline");
	if (r == 0)
		r = rsb_httpd_answer_header(req, "Accept-Ranges", "bytes");
	if (r < 0 || !gmtime_r(&st->st_mtime, &tm))
		return r;
	if (strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		return 0;
	return rsb_httpd_answer_header(req, "Last-Modified", text);
}

/* fd is the call's; a copy goes to the answer, which closes it. */
static int
send_range(struct files_call *call, struct rsb_httpd_req *req, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size;
	struct range range = { .size = size };
	char text[96];
	int fd, r;

	r = parse_range(rsb_httpd_header(req, "Range"), size, &range);
	if (r == -ERANGE) {
		(void)snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)size);
		r = rsb_httpd_answer(req, 416, NULL, (struct rsb_bytes){ 0 });
		return r < 0 ? r : rsb_httpd_answer_header(req, "Content-Range", text);
	}
	fd = fcntl(call->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)range.first,
		(unsigned long long)(range.first + range.size - 1), (unsigned long long)size);
	if (r == 0)
		return rsb_httpd_answer_fd(req, 200, fd, 0, size);
	r = rsb_httpd_answer_fd(req, 206, fd, range.first, range.size);
	return r < 0 ? r : rsb_httpd_answer_header(req, "Content-Range", text);
}

static int
download(struct files_call *call, struct rsb_httpd_req *req)
{
	const char *asked = call->path ? call->path : "";
	struct stat st;
	int r;

	if (resolve(call, asked) < 0)
		return rsb_refuse(req, 400, "path '%s' cannot be resolved", asked);
	/* Neither a FIFO nor a terminal may hold us. */
	call->fd = open(call->current, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (call->fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return rsb_refuse(req, 404, "path '%s' does not exist", call->current);
	if (call->fd < 0 || fstat(call->fd, &st) < 0)
		return rsb_refuse(
			req, 500, "error opening file '%s': %s", call->current, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return rsb_refuse(req, 400, "path '%s' is a directory", call->current);
	if (!S_ISREG(st.st_mode))
		return rsb_refuse(req, 400, "path '%s' is no regular file", call->current);
	/* A file of /proc says 0 and has content. */
	if (st.st_size == 0)
		r = rsb_httpd_answer_stream(req, 200, RSB_HTTPD_UNKNOWN, read_unknown, call);
	else
		r = send_range(call, req, &st);
	return r < 0 ? r : add_headers(req, &st);
}

/* ---- upload ---- */

static int
open_target(struct files_call *call, const char *path)
{
	rsb_autoclose int fd = -1;
	struct stat st;
	int r;

	r = rsb_user_make_parents(&call->user, path);
	if (r < 0)
		return r;
	fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (ftruncate(fd, 0) < 0 || fchown(fd, call->user.uid, call->user.gid) < 0)
		return -errno;
	call->fd = rsb_steal_fd(&fd);
	return 0;
}

static void
refuse_errno(struct files_call *call, int r, const char *path)
{
	if (r == -ENOSPC || r == -EDQUOT)
		refuse(call, 507, "not enough disk space available", "");
	else if (r == -EISDIR)
		refuse(call, 400, "path is a directory: ", path);
	/* It opens while somebody reads from it. */
	else if (r == -EINVAL || r == -ENXIO)
		refuse(call, 400, "path is no regular file: ", path);
	else if (r == -ETXTBSY)
		refuse(call, 500, "the file is a program that runs: ", path);
	else
		refuse(call, 500, "error writing file: ", path);
}

static bool
is_written(const struct files_call *call, const char *path)
{
	for (size_t i = 0; i < rsb_json_len(call->written); i++) {
		const char *other;

		if (rsb_json_str(rsb_json_at(call->written, i), "path", &other) == 0 &&
			strcmp(other, path) == 0)
			return true;
	}
	return false;
}

static int
note_written(struct files_call *call, const char *path)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *entry = rsb_json_new_object();
	/* JSON cannot say other names, which are made all the same. */
	rsb_autofree char *text = rsb_utf8_of(path);
	const char *slash;
	int r;

	if (!entry || !text)
		return -ENOMEM;
	slash = strrchr(text, '/');
	r = rsb_json_set_str(entry, "path", text);
	if (r == 0)
		r = rsb_json_set_str(entry, "name", slash ? slash + 1 : text);
	if (r == 0)
		r = rsb_json_set_str(entry, "type", "file");
	if (r < 0)
		return r;
	return rsb_json_set(call->written, NULL, rsb_steal(&entry));
}

static void
close_current(struct files_call *call)
{
	/* Some file systems tell of a full disk only here. */
	if (call->fd >= 0 && close(call->fd) < 0)
		refuse_errno(call, -errno, call->current);
	call->fd = -1;
}

static void
begin_file(struct files_call *call, const char *asked)
{
	int r;

	close_current(call);
	r = resolve(call, asked);
	if (r < 0) {
		refuse(call, 400, "the path cannot be resolved: ", asked);
		return;
	}
	if (rsb_json_len(call->written) >= PARTS_MAX || is_written(call, call->current)) {
		refuse(call, 400, "too many files, or one twice: ", call->current);
		return;
	}
	r = open_target(call, call->current);
	if (r == 0)
		r = note_written(call, call->current);
	if (r < 0)
		refuse_errno(call, r, call->current);
}

static void
write_file(struct files_call *call, struct rsb_bytes data)
{
	int r;

	if (call->refused || call->fd < 0)
		return;
	r = rsb_fd_write_full(call->fd, data.data, data.size);
	if (r < 0)
		refuse_errno(call, r, call->current);
}

/* The parser may announce a part without bytes first, and then again with its first bytes. */
static bool
is_new_part(const struct files_call *call, const char *asked, uint64_t offset)
{
	return offset == 0 && !(call->pristine && strcmp(call->part, asked) == 0);
}

static int
on_part(void *arg, const char *name, const char *filename, uint64_t offset, struct rsb_bytes data)
{
	struct files_call *call = arg;
	const char *asked = filename ? filename : "";

	if (strcmp(name, "file") != 0)
		return 0;
	if (is_new_part(call, asked, offset)) {
		(void)snprintf(call->part, sizeof(call->part), "%s", asked);
		begin_file(call, call->path ? call->path : asked);
		call->pristine = true;
	}
	if (data.size > 0)
		call->pristine = false;
	write_file(call, data);
	return 0;
}

static int
take_plain(void *arg, struct rsb_bytes data)
{
	struct files_call *call = arg;

	if (!call->multipart)
		write_file(call, data);
	else if (!call->refused && rsb_httpd_multipart_feed(call->multipart, data) < 0)
		refuse(call, 400, "error parsing multipart form", "");
	return 0;
}

static int
upload_body(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data)
{
	struct files_call *call = rsb_httpd_data(req);

	(void)arg;
	if (!call->gunzip)
		return take_plain(call, data);
	if (!call->refused && rsb_gunzip_feed(call->gunzip, data) < 0)
		refuse(call, 400, "error decompressing the body: this is no gzip", "");
	return 0;
}

static void
upload_end(void *arg, struct rsb_httpd_req *req)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	struct files_call *call = rsb_httpd_data(req);

	(void)arg;
	if (call->gunzip && rsb_gunzip_finish(call->gunzip) < 0)
		refuse(call, 400, "error decompressing the body: it is cut off", "");
	/* Its end may be what completes the last part. */
	rsb_httpd_multipart_free(call->multipart);
	call->multipart = NULL;
	close_current(call);
	/* An answer that cannot be made closes the connection. */
	if (call->refused) {
		(void)!rsb_refuse(req, call->refused, "%s", call->why.text);
		return;
	}
	if (rsb_json_write(call->written, false, &text) == 0)
		(void)!rsb_httpd_answer(
			req, 200, "application/json; charset=utf-8", rsb_buf_view(&text));
}

/* ---- both ---- */

static void
files_done(void *arg, struct rsb_httpd_req *req)
{
	struct files_call *call = rsb_httpd_data(req);

	(void)arg;
	rsb_gunzip_free(call->gunzip);
	rsb_httpd_multipart_free(call->multipart);
	if (call->fd >= 0)
		(void)close(call->fd);
	rsb_json_free(call->written);
	free(call);
}

static const struct rsb_httpd_ops files_ops = {
	.body = upload_body,
	.end = upload_end,
	.done = files_done,
};

static bool
is_type(const char *type, const char *want)
{
	return type && strncasecmp(type, want, strlen(want)) == 0;
}

/* 1: the body is as it says or will be unpacked; 0: refused. */
static int
take_encoding(struct files_call *call, struct rsb_httpd_req *req)
{
	const char *encoding = rsb_httpd_header(req, "Content-Encoding");
	int r;

	if (!encoding || strcasecmp(encoding, "identity") == 0)
		return 1;
	if (strcasecmp(encoding, "gzip") != 0)
		return rsb_refuse(req, 400, "unsupported content encoding: %s", encoding);
	r = rsb_gunzip_new(take_plain, call, &call->gunzip);
	return r < 0 ? r : 1;
}

static int
upload(struct files_call *call, struct rsb_httpd_req *req)
{
	const char *type = rsb_httpd_header(req, "Content-Type");
	int r;

	call->written = rsb_json_new_array();
	if (!call->written)
		return -ENOMEM;
	r = take_encoding(call, req);
	if (r != 1)
		return r;
	if (is_type(type, "multipart/form-data")) {
		if (rsb_httpd_multipart_new(req, on_part, call, &call->multipart) < 0)
			return rsb_refuse(req, 400, "error parsing multipart form");
		return 0;
	}
	if (!is_type(type, "application/octet-stream"))
		return rsb_refuse(req, 400, "unsupported content type: %s", type ? type : "");
	if (!call->path)
		return rsb_refuse(req, 400, "path query parameter is required");
	begin_file(call, call->path);
	return 0;
}

int
rsb_files_begin(struct rsb_service *service, struct rsb_httpd_req *req)
{
	bool get = strcmp(rsb_httpd_method(req), "GET") == 0;
	const char *user = rsb_httpd_query(req, "username");
	struct files_call *call;
	int r;

	r = authorise(service, req, get ? "read" : "write");
	if (r != 1)
		return r;
	call = rsb_new(struct files_call);
	if (!call)
		return -ENOMEM;
	call->exchange.ops = &files_ops;
	call->service = service;
	call->fd = -1;
	call->path = rsb_httpd_query(req, "path");
	rsb_httpd_set_data(req, call);
	if (rsb_settings_user(service->settings, user, &call->user) < 0)
		return rsb_refuse(req, 401, "error looking up user '%s'", user ? user : "");
	return get ? download(call, req) : upload(call, req);
}
