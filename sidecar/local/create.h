/* SPDX-License-Identifier: MIT */
#ifndef RSB_CREATE_H
#define RSB_CREATE_H

/* POST of the collection: makes a sandbox. */

#include "sidecar/local/apicall.h"

rsb_nodiscard int rsb_create_run(struct rsb_apicall *call);

#endif
