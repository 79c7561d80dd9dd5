/* SPDX-License-Identifier: MIT */
#ifndef RSB_COLLECTION_H
#define RSB_COLLECTION_H

/* GET of the collection, in pages. */

#include "sidecar/local/apicall.h"

rsb_nodiscard int rsb_collection_run(struct rsb_apicall *call);

#endif
