/* SPDX-License-Identifier: MIT */
#ifndef RSB_ANSWER_H
#define RSB_ANSWER_H

/*
 * What an HTTP answer means to the keeper: the errors of backend.h. Two tables, because a 404
 * of the control plane is the only proof that a sandbox is gone, while a 404 (or 410, 502) on
 * the way to the sandbox proves nothing.
 */

#include "backend/http.h"

/* 0 for 2xx. what: begins the sentence, "cannot create a sandbox". */
rsb_nodiscard int rsb_answer_control(
	const struct rsb_http_reply *reply, const char *what, struct rsb_diag *diag);
rsb_nodiscard int rsb_answer_sandbox(
	const struct rsb_http_reply *reply, const char *what, struct rsb_diag *diag);

#endif
