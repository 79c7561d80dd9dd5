/* SPDX-License-Identifier: MIT */
#include "util/str.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "util/cleanup.h"

#define ESCAPED 4u /* characters of \xNN */

/* Digits from *sp on; advances it. -EINVAL without one. */
static int
scan_u64(const char **sp, uint64_t max, uint64_t *ret_value)
{
	const char *s = *sp;
	uint64_t value = 0;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return -ERANGE;
	if (value > max)
		return -ERANGE;
	*sp = s;
	*ret_value = value;
	return 0;
}

int
rsb_str_u64(const char *s, uint64_t max, uint64_t *ret_value)
{
	uint64_t value;
	int r;

	/* All of it, before a number too large is told from a text that is none. */
	if (s[strspn(s, "0123456789")] != '\0')
		return -EINVAL;
	r = scan_u64(&s, max, &value);
	if (r < 0)
		return r;
	*ret_value = value;
	return 0;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static int
parse_unit(const char *s, const struct unit *units, size_t n_unit, uint64_t *ret_value)
{
	uint64_t value;
	size_t i;

	if (scan_u64(&s, UINT64_MAX, &value) < 0)
		return -EINVAL;
	for (i = 0; i < n_unit; i++)
		if (strcmp(s, units[i].name) == 0)
			break;
	if (i == n_unit || __builtin_mul_overflow(value, units[i].factor, &value))
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int
rsb_str_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", RSB_NSEC_PER_SEC },
		{ "ms", RSB_NSEC_PER_MSEC },
		{ "s", RSB_NSEC_PER_SEC },
		{ "m", 60 * RSB_NSEC_PER_SEC },
		{ "min", 60 * RSB_NSEC_PER_SEC },
		{ "h", 3600 * RSB_NSEC_PER_SEC },
		{ "d", 86400 * RSB_NSEC_PER_SEC },
	};

	return parse_unit(s, units, RSB_ARRAY_SIZE(units), ret_ns);
}

int
rsb_str_size(const char *s, uint64_t *ret_size)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "K", UINT64_C(1) << 10 },
		{ "M", UINT64_C(1) << 20 },
		{ "G", UINT64_C(1) << 30 },
		{ "T", UINT64_C(1) << 40 },
	};

	return parse_unit(s, units, RSB_ARRAY_SIZE(units), ret_size);
}

int
rsb_str_bool(const char *s, bool *ret_value)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "true", true },
		{ "yes", true },
		{ "on", true },
		{ "1", true },
		{ "false", false },
		{ "no", false },
		{ "off", false },
		{ "0", false },
	};
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(words); i++)
		if (strcmp(s, words[i].word) == 0) {
			*ret_value = words[i].value;
			return 0;
		}
	return -EINVAL;
}

bool
rsb_str_is(struct rsb_bytes bytes, const char *text)
{
	return bytes.size == strlen(text) &&
	       (!bytes.size || memcmp(text, bytes.data, bytes.size) == 0);
}

bool
rsb_str_ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text);
	const size_t m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

bool
rsb_str_is_below(const char *path, const char *dir)
{
	size_t size = strlen(dir);

	return strncmp(path, dir, size) == 0 && path[size] == '/';
}

bool
rsb_str_has_word(struct rsb_bytes word, const char *words)
{
	const size_t n = word.size;

	if (!n || memchr(word.data, ' ', n))
		return false;
	for (const char *at = words; (at = memmem(at, strlen(at), word.data, n)); at++) {
		if (at > words && at[-1] == ' ' && at[n] == ' ')
			return true;
	}
	return false;
}

bool
rsb_str_is_component(struct rsb_bytes name)
{
	if (name.size < 1 || name.size > 255)
		return false;
	if (memchr(name.data, '/', name.size) || memchr(name.data, '\0', name.size))
		return false;
	if (name.data[0] == '.' && (name.size == 1 || (name.size == 2 && name.data[1] == '.')))
		return false;
	return true;
}

char *
rsb_str_dup(struct rsb_bytes bytes)
{
	char *s;

	if (bytes.size == SIZE_MAX)
		return NULL;
	s = malloc(bytes.size + 1);
	if (!s)
		return NULL;
	if (bytes.size > 0)
		memcpy(s, bytes.data, bytes.size);
	s[bytes.size] = '\0';
	return s;
}

char *
rsb_str_printf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

char *
rsb_str_path(const char *dir, const char *name)
{
	size_t n = strlen(dir);

	return rsb_str_printf("%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
}

char *
rsb_str_quote(const char *text)
{
	const size_t size = ESCAPED * strlen(text) + 1;
	rsb_autofree char *s = malloc(size);
	size_t n_quote = 0;
	const char *p;
	char *out, *q;

	if (!s)
		return NULL;
	rsb_str_clean(text, s, size);
	for (p = s; *p; p++)
		if (*p == '\'')
			n_quote++;
	out = malloc((size_t)(p - s) + 3 * n_quote + 3);
	if (!out)
		return NULL;
	q = out;
	*q++ = '\'';
	for (p = s; *p; p++) {
		if (*p == '\'')
			q = stpcpy(q, "'\\''");
		else
			*q++ = *p;
	}
	*q++ = '\'';
	*q = '\0';
	return out;
}

/* ESCAPED characters. */
static void
put_escaped(uint8_t c, char *out)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'x';
	out[2] = digits[c >> 4];
	out[3] = digits[c & 15];
}

void
rsb_str_escape(struct rsb_bytes text, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < text.size && n + ESCAPED + 1 <= size; i++) {
		uint8_t c = text.data[i];

		if (c >= 0x20 && c < 0x7f && c != '\\') {
			out[n++] = (char)c;
			continue;
		}
		put_escaped(c, out + n);
		n += ESCAPED;
	}
	out[n] = '\0';
}

/* C0, DEL and C1; the marks, embeddings and isolates of bidirectional text; separators. */
static bool
is_steering(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* The bytes of the character that begins there; 0: it is not to be shown. RFC 3629. */
static size_t
shown_size(const char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t first = (uint8_t)text[0];
	const size_t size = first < 0x80   ? 1
			    : first < 0xc0 ? 0
			    : first < 0xe0 ? 2
			    : first < 0xf0 ? 3
			    : first < 0xf8 ? 4
					   : 0;
	uint32_t c = size == 1 ? first : first & (0x7fu >> size);

	for (size_t i = 1; i < size; i++) {
		uint8_t next = (uint8_t)text[i];

		if ((next & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (next & 0x3f);
	}
	if (size == 0 || c < least[size] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return is_steering(c) ? 0 : size;
}

void
rsb_str_clean(const char *text, char *out, size_t size)
{
	size_t n = 0;

	while (*text) {
		size_t shown = shown_size(text);

		if (n + (shown ? shown : ESCAPED) >= size)
			break;
		if (shown)
			memcpy(out + n, text, shown);
		else
			put_escaped((uint8_t)*text, out + n);
		n += shown ? shown : ESCAPED;
		text += shown ? shown : 1;
	}
	out[n] = '\0';
}

void
rsb_str_hex(const uint8_t *data, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		*out++ = digits[data[i] >> 4];
		*out++ = digits[data[i] & 15];
	}
	*out = '\0';
}

static int
nibble(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
rsb_str_unhex(struct rsb_bytes hex, uint8_t *out, size_t n)
{
	size_t i;

	if (hex.size / 2 != n || hex.size % 2 != 0)
		return -EINVAL;
	for (i = 0; i < hex.size; i++)
		if (nibble(hex.data[i]) < 0)
			return -EINVAL;
	for (i = 0; i < n; i++)
		out[i] = (uint8_t)(nibble(hex.data[2 * i]) << 4 | nibble(hex.data[2 * i + 1]));
	return 0;
}
