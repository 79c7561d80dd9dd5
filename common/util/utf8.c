/* SPDX-License-Identifier: MIT */
#include "util/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

static const char replacement[] = "\xef\xbf\xbd";

/* How many bytes at p are one character; 0: none. RFC 3629, section 4. */
static size_t
character(const uint8_t *p)
{
	static const struct {
		uint8_t first, last; /* of the first byte */
		uint8_t least, most; /* of the second */
		uint8_t n;
	} rows[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	size_t n = 2;

	if (*p < 0x80)
		return 1;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(rows); i++) {
		if (*p < rows[i].first || *p > rows[i].last)
			continue;
		if (p[1] < rows[i].least || p[1] > rows[i].most)
			return 0;
		while (n < rows[i].n && (p[n] & 0xc0) == 0x80)
			n++;
		return n == rows[i].n ? n : 0;
	}
	return 0;
}

char *
rsb_utf8_of(const char *text)
{
	const uint8_t *p = (const uint8_t *)text;
	char *out = malloc(3 * strlen(text) + 1);
	size_t size = 0;

	if (!out)
		return NULL;
	while (*p) {
		size_t n = character(p);

		memcpy(out + size, n ? (const char *)p : replacement, n ? n : 3);
		size += n ? n : 3;
		p += n ? n : 1;
	}
	out[size] = '\0';
	return out;
}
