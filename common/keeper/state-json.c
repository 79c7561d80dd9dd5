/* SPDX-License-Identifier: MIT */
#include "keeper/state-json.h"

#include <errno.h>
#include <string.h>

#include "util/json.h"
#include "util/str.h"

struct text_field {
	const char *key;
	size_t offset;
	size_t size;
	bool path;
};

struct number_field {
	const char *key;
	size_t offset;
};

#define TEXT(name, member, is_path)                                                 \
	{                                                                           \
		.key = (name), .offset = offsetof(struct rsb_state, member),        \
		.size = sizeof(((struct rsb_state *)0)->member), .path = (is_path), \
	}

static const struct text_field texts[] = {
	TEXT("name", name, false),
	TEXT("backend", backend, false),
	TEXT("sandbox_id", sandbox_id, false),
	TEXT("intent", intent, false),
	TEXT("template", template, true),
	TEXT("user", user, true),
	TEXT("workspace", workspace, true),
	TEXT("runtime_dir", runtime_dir, true),
	TEXT("local_dir", local_dir, true),
	TEXT("mountpoint", mountpoint, true),
};

static const struct number_field numbers[] = {
	{ "port", offsetof(struct rsb_state, port) },
	{ "ttl_ns", offsetof(struct rsb_state, ttl_ns) },
	{ "created_ns", offsetof(struct rsb_state, created_ns) },
	{ "made_mountpoint", offsetof(struct rsb_state, made_mountpoint) },
};

static int
set_path(struct rsb_json *json, const char *key, const char *value)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	const unsigned char *p;
	int r = 0;

	for (p = (const unsigned char *)value; *p && r == 0; p++)
		r = *p <= ' ' || *p > '~' || *p == '%' ? rsb_buf_printf(&text, "%%%02X", *p)
						       : rsb_buf_append(&text, p, 1);
	if (r == 0)
		r = rsb_buf_append(&text, "", 1);
	return r < 0 ? r : rsb_json_set_str(json, key, (const char *)rsb_buf_head(&text));
}

int
rsb_state_write(const struct rsb_state *state, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	const char *base = (const char *)state;
	uint64_t number;
	size_t i;
	int r;

	if (!json)
		return -ENOMEM;
	r = rsb_json_set_i64(json, "version", RSB_STATE_VERSION);
	for (i = 0; i < RSB_ARRAY_SIZE(texts) && r == 0; i++)
		r = texts[i].path ? set_path(json, texts[i].key, base + texts[i].offset)
				  : rsb_json_set_str(json, texts[i].key, base + texts[i].offset);
	for (i = 0; i < RSB_ARRAY_SIZE(numbers) && r == 0; i++) {
		memcpy(&number, base + numbers[i].offset, sizeof(number));
		r = rsb_json_set_i64(json, numbers[i].key, (int64_t)number);
	}
	return r < 0 ? r : rsb_json_write(json, true, out);
}

static int
get_text(const struct rsb_json *json, const struct text_field *field, char *out)
{
	const char *text;
	size_t n = 0;
	uint8_t byte;
	int r;

	r = rsb_json_str(json, field->key, &text);
	if (r < 0)
		return r;
	for (; *text; text++) {
		byte = (uint8_t)*text;
		if (field->path && byte == '%') {
			if (strlen(text) < 3 ||
				rsb_str_unhex((struct rsb_bytes){ (const uint8_t *)text + 1, 2 },
					&byte, 1) < 0)
				return -EBADMSG;
			text += 2;
		}
		if (byte == '\0' || n + 1 >= field->size)
			return -EBADMSG;
		out[n++] = (char)byte;
	}
	out[n] = '\0';
	return 0;
}

static int
read_all(const struct rsb_json *json, struct rsb_state *state)
{
	char *base = (char *)state;
	int64_t version, number;
	size_t i;
	int r;

	r = rsb_json_i64(json, "version", &version);
	if (r < 0 || version != RSB_STATE_VERSION)
		return -EBADMSG;
	for (i = 0; i < RSB_ARRAY_SIZE(texts); i++) {
		r = get_text(json, &texts[i], base + texts[i].offset);
		if (r < 0)
			return r;
	}
	for (i = 0; i < RSB_ARRAY_SIZE(numbers); i++) {
		r = rsb_json_i64(json, numbers[i].key, &number);
		if (r < 0 || number < 0)
			return -EBADMSG;
		memcpy(base + numbers[i].offset, &number, sizeof(number));
	}
	return state->port >= 1 && state->port <= UINT16_MAX && rsb_state_name_ok(state->name)
		       ? 0
		       : -EBADMSG;
}

int
rsb_state_read(struct rsb_bytes text, struct rsb_state *ret_state, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	struct rsb_state state = { 0 };
	int r;

	r = rsb_json_parse(text, &json, diag);
	if (r == 0)
		r = read_all(json, &state);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return rsb_diag_set(diag, -EBADMSG, "it is damaged, or was written by a later rsb");
	*ret_state = state;
	return 0;
}
