/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/diag.h"
#include "util/json.h"

int
rsb_refuse(struct rsb_httpd_req *req, unsigned int status, const char *fmt, ...)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	char message[RSB_DIAG_MAX];
	va_list ap;
	int r;

	if (!json)
		return -ENOMEM;
	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	r = rsb_json_set_i64(json, "code", status);
	if (r < 0)
		return r;
	/* What is no UTF-8 cannot be quoted back. */
	if (rsb_json_set_str(json, "message", message) < 0)
		r = rsb_json_set_str(json, "message", "the request is not valid UTF-8");
	if (r == 0)
		r = rsb_json_write(json, false, &text);
	if (r < 0)
		return r;
	return rsb_httpd_answer(
		req, status, "application/json; charset=utf-8", rsb_buf_view(&text));
}
