/* SPDX-License-Identifier: MIT */
#ifndef RSB_SINGLE_H
#define RSB_SINGLE_H

/* Calls on one sandbox. */

#include "sidecar/local/apicall.h"

rsb_nodiscard int rsb_single_run(struct rsb_apicall *call);

#endif
