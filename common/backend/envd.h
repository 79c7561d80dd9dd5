/* SPDX-License-Identifier: MIT */
#ifndef RSB_ENVD_H
#define RSB_ENVD_H

/*
 * The agent in a sandbox (envd): files over HTTP, processes over the Connect protocol with
 * JSON. The Connect frames are 5 bytes of head (flags, length) and a JSON text; a stream that
 * ends without its end frame was cut.
 */

#include "backend/backend.h"
#include "backend/http.h"

/* Which agent, and as whom. */
struct rsb_envd {
	struct rsb_http *http;
	const char *url;                /* without a path */
	const char *const *headers;     /* routing; NULL-terminated */
	const struct rsb_secret *token; /* size 0: none */
	const char *user;               /* NULL: the server's default */
	uint64_t timeout_ns;
};

/* Errors as backend.h says, -ENOSPC besides. */
rsb_nodiscard int rsb_envd_upload(
	const struct rsb_envd *envd, const char *path, int fd, struct rsb_diag *diag);
rsb_nodiscard int rsb_envd_start(const struct rsb_envd *envd, const struct rsb_backend_start *req,
	struct rsb_backend_end *ret_end, struct rsb_diag *diag);
rsb_nodiscard int rsb_envd_input(
	const struct rsb_envd *envd, uint64_t pid, struct rsb_bytes data, struct rsb_diag *diag);

#endif
