/* SPDX-License-Identifier: MIT */
#include "sidecar/local/identity.h"

#include <stdio.h>
#include <string.h>

#include "util/secret.h"
#include "util/str.h"

int
rsb_identity_id(char out[static RSB_IDENTITY_ID_SIZE])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint8_t bytes[RSB_IDENTITY_ID_SIZE - 2];
	int r = rsb_random(bytes, sizeof(bytes));

	if (r < 0)
		return r;
	out[0] = 'i';
	for (size_t i = 0; i < sizeof(bytes); i++)
		out[1 + i] = letters[bytes[i] % (sizeof(letters) - 1)];
	out[RSB_IDENTITY_ID_SIZE - 1] = '\0';
	return 0;
}

int
rsb_identity_token(char out[static RSB_IDENTITY_TOKEN_SIZE])
{
	uint8_t bytes[(RSB_IDENTITY_TOKEN_SIZE - 1) / 2];
	int r = rsb_random(bytes, sizeof(bytes));

	if (r < 0)
		return r;
	rsb_str_hex(bytes, sizeof(bytes), out);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

int
rsb_identity_uuid(char out[static RSB_IDENTITY_UUID_SIZE])
{
	uint8_t bytes[16];
	char hex[2 * sizeof(bytes) + 1];
	int r = rsb_random(bytes, sizeof(bytes));

	if (r < 0)
		return r;
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	rsb_str_hex(bytes, sizeof(bytes), hex);
	(void)snprintf(out, RSB_IDENTITY_UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
		hex + 12, hex + 16, hex + 20);
	return 0;
}
