/* SPDX-License-Identifier: MIT */
#ifndef RSB_REFUSE_H
#define RSB_REFUSE_H

/* The error body that control plane and envd share: {"code","message"}, code being the status. */

#include "sidecar/envd/httpd.h"

rsb_nodiscard int rsb_refuse(struct rsb_httpd_req *req, unsigned int status, const char *fmt, ...)
	RSB_PRINTF(3, 4);

#endif
