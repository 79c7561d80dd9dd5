/* SPDX-License-Identifier: MIT */
#include "sidecar/local/hop.h"

#include <strings.h>

#include "util/macro.h"

bool
rsb_hop_is(const char *name)
{
	static const char *const names[] = {
		"Connection",
		"Content-Length",
		"Expect",
		"Keep-Alive",
		"Proxy-Authenticate",
		"Proxy-Authorization",
		"Proxy-Connection",
		"TE",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		if (strcasecmp(name, names[i]) == 0)
			return true;
	}
	return false;
}
