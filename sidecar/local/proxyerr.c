/* SPDX-License-Identifier: MIT */
#include "sidecar/local/proxyerr.h"

#include <errno.h>

#include "util/cleanup.h"
#include "util/json.h"

/* id and path are of a restricted alphabet or checked here; port 0 is left out. */
static int
answer(struct rsb_httpd_req *req, unsigned int status, const char *id, const char *message,
	unsigned int port)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r = json ? 0 : -ENOMEM;

	if (r == 0 && id)
		r = rsb_json_set_str(json, "sandboxId", id);
	if (r == 0)
		r = rsb_json_set_str(json, "message", message);
	if (r == 0 && !id)
		r = rsb_json_set_str(json, "path", rsb_httpd_path(req));
	if (r == 0 && port)
		r = rsb_json_set_i64(json, "port", port);
	if (r == 0)
		r = rsb_json_set_i64(json, "code", status);
	if (r == 0)
		r = rsb_json_write(json, false, &text);
	if (r < 0)
		return r;
	return rsb_httpd_answer(
		req, status, "application/json; charset=utf-8", rsb_buf_view(&text));
}

int
rsb_proxyerr_not_found(struct rsb_httpd_req *req, const char *id)
{
	return answer(req, 502, id, "The sandbox was not found", 0);
}

int
rsb_proxyerr_port_closed(struct rsb_httpd_req *req, const char *id, unsigned int port)
{
	return answer(req, 502, id, "The sandbox is running but port is not open", port);
}

int
rsb_proxyerr_reserved(struct rsb_httpd_req *req)
{
	return answer(req, 404, NULL, "This path is reserved for the E2B control plane", 0);
}

int
rsb_proxyerr_bad_route(struct rsb_httpd_req *req, const char *text)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf line = { 0 };
	int r = rsb_buf_printf(&line, "%s\n", text);

	return r < 0 ? r
		     : rsb_httpd_answer(req, 400, "text/plain; charset=utf-8", rsb_buf_view(&line));
}
