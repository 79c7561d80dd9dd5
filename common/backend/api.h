/* SPDX-License-Identifier: MIT */
#ifndef RSB_API_H
#define RSB_API_H

/* One call to the control plane: JSON there and back, errors as backend.h says. */

#include "backend/http.h"
#include "util/json.h"
#include "util/secret.h"

struct rsb_api {
	struct rsb_http *http;
	char *url;        /* without a slash at the end */
	char *key_header; /* secret */
	uint64_t timeout_ns;
	uint64_t ask_ns;         /* of a call that only asks */
	uint64_t retry_after_ns; /* of the last -EAGAIN */
	uint64_t date_ns;        /* the server's clock at its latest answer, or ours */
};

/*
 * -EINVAL: the key cannot stand in a header. rsb_api_done() also after a failure and on
 * zeroed memory.
 */
rsb_nodiscard int rsb_api_init(struct rsb_api *api, const struct rsb_http_config *http,
	const char *url, const struct rsb_secret *key);
void rsb_api_done(struct rsb_api *api);
/* The server is at url now, and takes key. On failure all stays as it is. */
rsb_nodiscard int rsb_api_move(struct rsb_api *api, const char *url, const struct rsb_secret *key);

struct rsb_api_call {
	const char *method;
	const char *path;
	const struct rsb_json *body; /* borrowed; NULL: none */
	const char *what;            /* for the sentence: "cannot ..." */
	bool once;                   /* must not be sent twice */
	bool makes;                  /* a sandbox: without a rsb-local, one is started for it */
	bool asks;                   /* soon and often: api.ask_ns is its time */
};

/*
 * ret_json NULL: the answer does not matter. next (NULL or of 513 bytes): the token of the
 * next page, or empty.
 */
rsb_nodiscard int rsb_api_do(struct rsb_api *api, const struct rsb_api_call *call,
	struct rsb_json **ret_json, char *next, struct rsb_diag *diag);

#endif
