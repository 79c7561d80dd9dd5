/* SPDX-License-Identifier: MIT */
#ifndef RSB_APICALL_H
#define RSB_APICALL_H

/* One request to the control plane, whose body is complete, and what all calls do with it. */

#include "util/json.h"

#include "sidecar/local/host.h"

#define RSB_APICALL_BODY_MAX ((size_t)1 << 20)
#define RSB_APICALL_TIMEOUT_MAX_SEC 86400
#define RSB_APICALL_TIMEOUT_V2_SEC 300

struct rsb_apicall {
	struct rsb_exchange exchange;
	struct rsb_host *host;
	struct rsb_httpd_req *req;
	struct rsb_buf body;
	bool v2;
	const char *method;
	char id[64];   /* empty: the collection */
	char verb[24]; /* empty: the sandbox itself */
};

/* Answers; json may be NULL for want of memory, and stays the caller's. */
rsb_nodiscard int rsb_apicall_answer(
	struct rsb_apicall *call, unsigned int status, const struct rsb_json *json);
rsb_nodiscard int rsb_apicall_done(struct rsb_apicall *call);    /* 204 */
rsb_nodiscard int rsb_apicall_unknown(struct rsb_apicall *call); /* 404 */

/* The body as an object, an absent one as an empty object. -EBADMSG. */
rsb_nodiscard int rsb_apicall_json(const struct rsb_apicall *call, struct rsb_json **ret_json);
/* Seconds from a member; default_sec < 0: it is required. -EBADMSG. */
rsb_nodiscard int rsb_apicall_seconds(
	const struct rsb_json *json, const char *member, int64_t default_sec, int64_t *ret_sec);

#endif
