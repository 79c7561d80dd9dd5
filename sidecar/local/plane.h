/* SPDX-License-Identifier: MIT */
#ifndef RSB_PLANE_H
#define RSB_PLANE_H

/* The control plane: who may call, and which call it is. */

#include "sidecar/local/host.h"

rsb_nodiscard int rsb_plane_begin(struct rsb_host *host, struct rsb_httpd_req *req);

#endif
