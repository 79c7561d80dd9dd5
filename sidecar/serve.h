/* SPDX-License-Identifier: MIT */
#ifndef RSB_SERVE_H
#define RSB_SERVE_H

/*
 * The prototypes of all handlers, made from ops.def; sidecar/request.h says what they must do. An
 * op without a handler is a link error of dispatch.c. Those of LOCAL ops are declared and never
 * referenced.
 */

#include "sidecar/request.h"

/* clang-format off */
#define OP(op, number, reqtype, reptype, since, flags) \
	void rsb_serve_##op(struct rsb_request *rq, const struct reqtype *req);
#include "proto/ops.def" /* IWYU pragma: keep */
/* clang-format on */

#endif
