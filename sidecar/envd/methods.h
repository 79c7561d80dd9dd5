/* SPDX-License-Identifier: MIT */
#ifndef RSB_METHODS_H
#define RSB_METHODS_H

/* The methods of process.Process: one message in, an outcome in the call. */

#include "sidecar/envd/service.h"

enum rsb_method_kind { RSB_METHOD_UNARY, RSB_METHOD_SERVER_STREAM, RSB_METHOD_CLIENT_STREAM };

struct rsb_rpc;

struct rsb_method {
	const char *name;
	enum rsb_method_kind kind;
	/* A whole message, or one of a client's stream. */
	void (*run)(struct rsb_rpc *rpc, const struct rsb_json *json);
};

/* One call. */
struct rsb_rpc {
	struct rsb_exchange exchange;
	struct rsb_service *service;
	struct rsb_httpd_req *req;
	const struct rsb_method *method;
	struct rsb_user user;
	struct rsb_buf in;
	struct rsb_json *reply;     /* unary; NULL is {} */
	struct rsb_watcher *stream; /* server stream */
	enum rsb_connectrpc_code code;
	struct rsb_diag why;
	bool has_key;                /* client stream: the start message was there */
	struct rsb_children_key key; /* its tag is owned */
};

/* NULL when there is no such method. */
const struct rsb_method *rsb_method_find(const char *name);
/* The first failure counts. */
void rsb_method_fail(struct rsb_rpc *rpc, enum rsb_connectrpc_code code, const char *text);

#endif
