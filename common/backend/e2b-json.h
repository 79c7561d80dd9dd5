/* SPDX-License-Identifier: MIT */
#ifndef RSB_E2B_JSON_H
#define RSB_E2B_JSON_H

/*
 * The texts of the E2B control plane: requests to JSON, answers from JSON, names checked.
 * Pure.
 */

#include "backend/backend.h"
#include "util/json.h"

#define RSB_E2B_REFRESH_MAX_S 3600

/* 1 to 128 of [A-Za-z0-9-]: what may stand in a path and in a host name. */
bool rsb_e2b_id_ok(const char *id);

rsb_nodiscard int rsb_e2b_write_create(
	const struct rsb_backend_create *req, struct rsb_json **ret_body);
/* Of create, connect, detail and list alike. -EBADMSG: no object, or without a usable id. */
rsb_nodiscard int rsb_e2b_read_sandbox(
	const struct rsb_json *json, struct rsb_sandbox *ret_sandbox);
/*
 * {port}, {id} and {domain} of url, without a slash at its end. -EINVAL: another brace.
 * Caller frees.
 */
rsb_nodiscard int rsb_e2b_expand(
	const char *url, unsigned int port, const char *id, const char *domain, char **ret_url);

#endif
