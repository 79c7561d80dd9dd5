/* SPDX-License-Identifier: MIT */
#ifndef RSB_VIEW_H
#define RSB_VIEW_H

/* A sandbox in the JSON of the control plane. NULL without memory. */

#include "sidecar/local/hostopt.h"
#include "sidecar/local/sandbox.h"

#define RSB_VIEW_TEMPLATE "base"

/* "Sandbox": the answer to create and connect. */
struct rsb_json *rsb_view_created(struct rsb_sandbox *sandbox);
/* "ListedSandbox", and with detail "SandboxDetail". */
struct rsb_json *rsb_view_listed(
	struct rsb_sandbox *sandbox, const struct rsb_hostopt *options, bool detail);

#endif
