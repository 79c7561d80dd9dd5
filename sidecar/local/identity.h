/* SPDX-License-Identifier: MIT */
#ifndef RSB_IDENTITY_H
#define RSB_IDENTITY_H

/* Fresh names for a sandbox, from random bytes. */

#include "util/macro.h"

#define RSB_IDENTITY_ID_SIZE 22    /* "i" and 20 of [a-z0-9] */
#define RSB_IDENTITY_TOKEN_SIZE 65 /* 64 hex digits: a secret */
#define RSB_IDENTITY_UUID_SIZE 37  /* RFC 4122, version 4, as the kernel writes its boot id */

rsb_nodiscard int rsb_identity_id(char out[static RSB_IDENTITY_ID_SIZE]);
rsb_nodiscard int rsb_identity_token(char out[static RSB_IDENTITY_TOKEN_SIZE]);
rsb_nodiscard int rsb_identity_uuid(char out[static RSB_IDENTITY_UUID_SIZE]);

#endif
