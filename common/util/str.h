/* SPDX-License-Identifier: MIT */
#ifndef RSB_STR_H
#define RSB_STR_H

/* Strict parsing of small texts, quoting, names and hex. Bytes only, no locale. */

#include <stdbool.h>

#include "util/buf.h"

/* Whole decimal, no sign, no blanks. -EINVAL, or -ERANGE over max. */
rsb_nodiscard int rsb_str_u64(const char *s, uint64_t max, uint64_t *ret_value);
/* "30", "30s", "250ms", "5min", "5m", "24h", "1d" to ns; a bare number is seconds. -EINVAL. */
rsb_nodiscard int rsb_str_duration(const char *s, uint64_t *ret_ns);
/* "64", "64K", "64M", "2G", "1T" (powers of 1024) to bytes. -EINVAL. */
rsb_nodiscard int rsb_str_size(const char *s, uint64_t *ret_size);
/* "true/yes/on/1", "false/no/off/0". -EINVAL. */
rsb_nodiscard int rsb_str_bool(const char *s, bool *ret_value);

/* One path component as a sandbox may name it: 1 to 255 bytes, no '/', no NUL, not "." or "..". */
bool rsb_str_is_component(struct rsb_bytes name);
/* bytes are those of text, which is not NULL. */
bool rsb_str_is(struct rsb_bytes bytes, const char *text);
bool rsb_str_ends_with(const char *text, const char *end);
/* path is in dir, at any depth. Both relative to the same, as they are. */
bool rsb_str_is_below(const char *path, const char *dir);
/* word, not empty, is one of words, each of which has a blank on both sides. */
bool rsb_str_has_word(struct rsb_bytes word, const char *words);

/* Heap copies; NULL without memory. */
char *rsb_str_dup(struct rsb_bytes bytes); /* stops at no NUL; adds one */
char *rsb_str_printf(const char *fmt, ...) RSB_PRINTF(1, 2);
/* dir + "/" + name */
char *rsb_str_path(const char *dir, const char *name);

/* text in single quotes as for a POSIX shell, but clean, for messages and logs. Caller frees. */
char *rsb_str_quote(const char *text);
/*
 * Bytes of somebody who is not trusted with a terminal: what is no printable ASCII, and '\', as
 * \xNN. Cut off where out (size > 0) is full, always with a NUL.
 */
void rsb_str_escape(struct rsb_bytes text, char *out, size_t size);
/*
 * The same for what people are to read: printable characters of any language stay, and so does '\'.
 * What steers a terminal or the direction of writing, and what is no UTF-8, is \xNN.
 */
void rsb_str_clean(const char *text, char *out, size_t size);

/* Lower-case hex; out has 2 * n + 1 bytes. */
void rsb_str_hex(const uint8_t *data, size_t n, char *out);
/* Exactly n bytes from 2 * n hex digits. -EINVAL. */
rsb_nodiscard int rsb_str_unhex(struct rsb_bytes hex, uint8_t *out, size_t n);

#endif
