/* SPDX-License-Identifier: MIT */
#ifndef RSB_JSON_H
#define RSB_JSON_H

/*
 * The only home of jansson. Parsing is bounded (RSB_JSON_MAX bytes: -EMSGSIZE; depth of jansson),
 * refuses duplicate keys, trailing text and NUL bytes (-EBADMSG). The typed getters take a path of
 * member names separated by '.' ("" is the value itself), and say -ENOENT (absent or null) apart
 * from -EBADMSG (another type, on the way or at the end). Values belong to one thread at a time.
 */

#include <stdbool.h>

#include "util/buf.h"
#include "util/diag.h"

#define RSB_JSON_MAX ((size_t)16 << 20)

struct rsb_json; /* a value; opaque, reference counted inside */

rsb_nodiscard int rsb_json_parse(
	struct rsb_bytes text, struct rsb_json **ret_json, struct rsb_diag *diag);
struct rsb_json *rsb_json_new_object(void);
struct rsb_json *rsb_json_new_array(void);
struct rsb_json *rsb_json_ref(struct rsb_json *json);
void rsb_json_free(struct rsb_json *json); /* drops one reference; NULL is fine */

/* Strings are borrowed from json. */
rsb_nodiscard int rsb_json_str(const struct rsb_json *json, const char *path, const char **ret_str);
rsb_nodiscard int rsb_json_i64(const struct rsb_json *json, const char *path, int64_t *ret_value);
rsb_nodiscard int rsb_json_bool(const struct rsb_json *json, const char *path, bool *ret_value);
/* Borrowed object or array. */
rsb_nodiscard int rsb_json_get(
	const struct rsb_json *json, const char *path, struct rsb_json **ret_value);

bool rsb_json_is_object(const struct rsb_json *json);
bool rsb_json_is_array(const struct rsb_json *json);
size_t rsb_json_len(const struct rsb_json *json); /* of an array or object */
/* Borrowed; NULL outside. */
struct rsb_json *rsb_json_at(const struct rsb_json *json, size_t index);
/* A string element, borrowed; NULL if it is no string. */
const char *rsb_json_as_str(const struct rsb_json *json);
/*
 * Members of an object in file order: *cursor starts at NULL; NULL at the end. Both results are
 * borrowed.
 */
const char *rsb_json_member(
	const struct rsb_json *json, void **cursor, struct rsb_json **ret_value);

/*
 * Setters of an object (key != NULL) or appenders to an array (key == NULL). -ENOMEM; -EINVAL: no
 * UTF-8, or the wrong kind of json.
 */
rsb_nodiscard int rsb_json_set_str(struct rsb_json *json, const char *key, const char *value);
rsb_nodiscard int rsb_json_set_i64(struct rsb_json *json, const char *key, int64_t value);
rsb_nodiscard int rsb_json_set_bool(struct rsb_json *json, const char *key, bool value);
rsb_nodiscard int rsb_json_set_null(struct rsb_json *json, const char *key);
/* Takes value, also on failure; NULL is -ENOMEM, so that a new value can be passed unchecked. */
rsb_nodiscard int rsb_json_set(struct rsb_json *json, const char *key, struct rsb_json *value);

/* Compact text, or indented by two when pretty; appended without a NUL. */
rsb_nodiscard int rsb_json_write(const struct rsb_json *json, bool pretty, struct rsb_buf *out);

RSB_DEFINE_CLEANUP(struct rsb_json *, rsb_json_free)

#endif
