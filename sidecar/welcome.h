/* SPDX-License-Identifier: MIT */
#ifndef RSB_WELCOME_H
#define RSB_WELCOME_H

/* What a host is told about this sidecar and its session when it is let in. */

#include "sidecar/registry.h"

/* All but version and features. Views into its arguments. */
void rsb_welcome_fill(const struct rsb_sidecar_config *config, const struct rsb_registry *registry,
	const struct rsb_joined *joined, struct rsb_welcome *ret_welcome);

#endif
