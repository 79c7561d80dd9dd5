/* SPDX-License-Identifier: MIT */
#include "util/json.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

/* struct rsb_json is never defined: its pointers are jansson's. */
static json_t *
to_jansson(const struct rsb_json *json)
{
	return (json_t *)json;
}

static struct rsb_json *
from_jansson(json_t *value)
{
	return (struct rsb_json *)value;
}

int
rsb_json_parse(struct rsb_bytes text, struct rsb_json **ret_json, struct rsb_diag *diag)
{
	json_error_t error;
	json_t *value;

	if (text.size > RSB_JSON_MAX)
		return rsb_diag_set(
			diag, -EMSGSIZE, "JSON text of %zu bytes is too long", text.size);
	value = json_loadb(text.size > 0 ? (const char *)text.data : "", text.size,
		JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (value) {
		*ret_json = from_jansson(value);
		return 0;
	}
	if (json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	return rsb_diag_set(diag, -EBADMSG, "JSON line %d, column %d: %s", error.line, error.column,
		error.text);
}

struct rsb_json *
rsb_json_new_object(void)
{
	return from_jansson(json_object());
}

struct rsb_json *
rsb_json_new_array(void)
{
	return from_jansson(json_array());
}

struct rsb_json *
rsb_json_ref(struct rsb_json *json)
{
	return from_jansson(json_incref(to_jansson(json)));
}

void
rsb_json_free(struct rsb_json *json)
{
	json_decref(to_jansson(json));
}

static int
look_up(const struct rsb_json *json, const char *path, json_t **ret_value)
{
	json_t *value = to_jansson(json);
	size_t n;

	while (*path) {
		if (!json_is_object(value))
			return -EBADMSG;
		n = strcspn(path, ".");
		value = json_object_getn(value, path, n);
		if (!value || json_is_null(value))
			return -ENOENT;
		path += n;
		if (*path == '.')
			path++;
	}
	*ret_value = value;
	return 0;
}

int
rsb_json_str(const struct rsb_json *json, const char *path, const char **ret_str)
{
	json_t *value;
	int r;

	r = look_up(json, path, &value);
	if (r < 0)
		return r;
	if (!json_is_string(value))
		return -EBADMSG;
	*ret_str = json_string_value(value);
	return 0;
}

int
rsb_json_i64(const struct rsb_json *json, const char *path, int64_t *ret_value)
{
	json_t *value;
	int r;

	r = look_up(json, path, &value);
	if (r < 0)
		return r;
	if (!json_is_integer(value))
		return -EBADMSG;
	*ret_value = json_integer_value(value);
	return 0;
}

int
rsb_json_bool(const struct rsb_json *json, const char *path, bool *ret_value)
{
	json_t *value;
	int r;

	r = look_up(json, path, &value);
	if (r < 0)
		return r;
	if (!json_is_boolean(value))
		return -EBADMSG;
	*ret_value = json_is_true(value);
	return 0;
}

int
rsb_json_get(const struct rsb_json *json, const char *path, struct rsb_json **ret_value)
{
	json_t *value;
	int r;

	r = look_up(json, path, &value);
	if (r < 0)
		return r;
	if (!json_is_object(value) && !json_is_array(value))
		return -EBADMSG;
	*ret_value = from_jansson(value);
	return 0;
}

bool
rsb_json_is_object(const struct rsb_json *json)
{
	return json_is_object(to_jansson(json));
}

bool
rsb_json_is_array(const struct rsb_json *json)
{
	return json_is_array(to_jansson(json));
}

size_t
rsb_json_len(const struct rsb_json *json)
{
	const json_t *value = to_jansson(json);

	/* Each is 0 for another type. */
	return json_array_size(value) + json_object_size(value);
}

struct rsb_json *
rsb_json_at(const struct rsb_json *json, size_t index)
{
	return from_jansson(json_array_get(to_jansson(json), index));
}

const char *
rsb_json_as_str(const struct rsb_json *json)
{
	return json_string_value(to_jansson(json));
}

const char *
rsb_json_member(const struct rsb_json *json, void **cursor, struct rsb_json **ret_value)
{
	json_t *object = to_jansson(json);
	void *iter = *cursor ? json_object_iter_next(object, *cursor) : json_object_iter(object);

	if (!iter)
		return NULL;
	*cursor = iter;
	*ret_value = from_jansson(json_object_iter_value(iter));
	return json_object_iter_key(iter);
}

/* jansson says neither why; what it takes unchecked, it refused for its bytes. */
static int
new_string(const char *s, json_t **ret_value)
{
	json_t *value = json_string(s);

	if (!value) {
		value = json_string_nocheck(s);
		json_decref(value);
		return value ? -EINVAL : -ENOMEM;
	}
	*ret_value = value;
	return 0;
}

/* Takes value. */
static int
put(struct rsb_json *json, const char *key, json_t *value)
{
	json_t *to = to_jansson(json);
	json_t *probe;
	int r;

	if (!value)
		return -ENOMEM;
	if (key ? !json_is_object(to) : !json_is_array(to)) {
		json_decref(value);
		return -EINVAL;
	}
	if (!key)
		return json_array_append_new(to, value) < 0 ? -ENOMEM : 0;
	r = new_string(key, &probe);
	if (r < 0) {
		json_decref(value);
		return r;
	}
	json_decref(probe);
	return json_object_set_new(to, key, value) < 0 ? -ENOMEM : 0;
}

int
rsb_json_set_str(struct rsb_json *json, const char *key, const char *value)
{
	json_t *string;
	int r;

	r = new_string(value, &string);
	if (r < 0)
		return r;
	return put(json, key, string);
}

int
rsb_json_set_i64(struct rsb_json *json, const char *key, int64_t value)
{
	return put(json, key, json_integer(value));
}

int
rsb_json_set_bool(struct rsb_json *json, const char *key, bool value)
{
	return put(json, key, json_boolean(value));
}

int
rsb_json_set_null(struct rsb_json *json, const char *key)
{
	return put(json, key, json_null());
}

int
rsb_json_set(struct rsb_json *json, const char *key, struct rsb_json *value)
{
	return put(json, key, to_jansson(value));
}

struct writer {
	struct rsb_buf *out;
	int r;
};

static int
write_part(const char *data, size_t size, void *arg)
{
	struct writer *writer = arg;

	writer->r = rsb_buf_append(writer->out, data, size);
	return writer->r;
}

int
rsb_json_write(const struct rsb_json *json, bool pretty, struct rsb_buf *out)
{
	struct writer writer = { .out = out };
	size_t size = out->size;
	size_t flags = JSON_ENCODE_ANY | (pretty ? JSON_INDENT(2) : JSON_COMPACT);

	if (json_dump_callback(to_jansson(json), write_part, &writer, flags) == 0)
		return 0;
	/* A failed call changes nothing, see util/buf.h; off has not moved. */
	out->size = size;
	return writer.r < 0 ? writer.r : -ENOMEM;
}
