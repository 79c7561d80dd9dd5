/* SPDX-License-Identifier: MIT */
#ifndef RSB_SERVICE_H
#define RSB_SERVICE_H

/* envd's calls on port 49983 of the sandbox: the routes, and who may take them. */

#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/children.h"
#include "sidecar/envd/exchange.h"
#include "sidecar/envd/httpd.h"
#include "sidecar/envd/refuse.h"
#include "sidecar/envd/settings.h"

#define RSB_SERVICE_PORT 49983
#define RSB_SERVICE_CONNECTIONS_MAX 512U
#define RSB_SERVICE_VERSION "0.5.12" /* of envd, as clients read it: what is served here */

struct rsb_service {
	struct rsb_settings *settings;
	struct rsb_children *children;
	struct rsb_httpd *httpd;
};

/* Listens when it returns. Lives as long as the program. */
rsb_nodiscard int rsb_service_new(
	const struct rsb_bootcfg *cfg, struct rsb_service **ret_service, struct rsb_diag *diag);
/* pid 1's main loop. */
rsb_nodiscard int rsb_service_reap(struct rsb_service *service);

/* The routes' begin functions. */
rsb_nodiscard int rsb_files_begin(struct rsb_service *service, struct rsb_httpd_req *req);
rsb_nodiscard int rsb_rpc_begin(
	struct rsb_service *service, struct rsb_httpd_req *req, const char *method);

#endif
