/* SPDX-License-Identifier: MIT */
#include "keeper/setting.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

enum type { TEXT, PATH, URL, HOST, USER, TIME, NUMBER, SIZE, PORT, BOOL, CHOICE, LIST };

enum flag { HARMLESS = 1, REQUIRED = 2, ENV_ONLY = 4, MAY_BE_OFF = 8, OR_ZERO = 16 };

struct row {
	const char *section;
	const char *key;
	enum type type;
	unsigned int flags;
	size_t offset;
	const char *fallback;       /* a list: separated by blanks */
	const char *const *choices; /* of CHOICE, NULL-terminated, in order of the enum */
	uint64_t min;               /* unless it is 0 and OR_ZERO */
	uint64_t max;               /* of numbers and times; 0: none */
};

static const char *const backends[] = { "auto", "e2b", "local", NULL };
static const char *const expires[] = { "", "pause", "kill", NULL };
static const char *const downs[] = { "pause", "kill", "leave", NULL };
static const char *const idmaps[] = { "user", "none", NULL };

#define ENV_DEFAULT                                                                                \
	"TERM COLUMNS LINES LANG LC_* NO_COLOR FORCE_COLOR CI PAGER GIT_PAGER PS1 PROMPT_COMMAND " \
	"DSH_SHELL DSH_SESSION_ID DSH_PTY_SESSION_ID"

#define AT(member) offsetof(struct rsb_config, member)
#define SEC RSB_NSEC_PER_SEC
#define TTL_MIN (15 * SEC) /* a host extends a life by no less, so a shorter one was no promise */

/* clang-format off */
static const struct row rows[] = {
	{ "core", "backend", CHOICE, 0, AT(backend), "auto", backends, 0, 0 },
	{ "e2b", "api_key", TEXT, ENV_ONLY, AT(e2b.api_key), "", NULL, 0, 0 },
	{ "e2b", "api_key_command", TEXT, 0, AT(e2b.api_key_command), "", NULL, 0, 0 },
	{ "e2b", "credentials", PATH, 0, AT(e2b.credentials), "", NULL, 0, 0 },
	{ "e2b", "api_url", URL, 0, AT(e2b.api_url), "", NULL, 0, 0 },
	{ "e2b", "domain", HOST, REQUIRED, AT(e2b.domain), "e2b.app", NULL, 0, 0 },
	{ "e2b", "envd_url", URL, REQUIRED, AT(e2b.envd_url), "https://{port}-{id}.{domain}", NULL, 0, 0 },
	{ "e2b", "envd_port", PORT, 0, AT(e2b.envd_port), "49983", NULL, 1, 65535 },
	{ "e2b", "ca_file", PATH, 0, AT(e2b.ca_file), "", NULL, 0, 0 },
	{ "e2b", "request_timeout", TIME, 0, AT(e2b.request_timeout_ns), "60s", NULL, SEC, 3600 * SEC },
	{ "sandbox", "template", TEXT, HARMLESS | REQUIRED, AT(sandbox.template), "base", NULL, 0, 0 },
	{ "sandbox", "user", USER, HARMLESS, AT(sandbox.user), "user", NULL, 0, 0 },
	{ "sandbox", "workspace", PATH, HARMLESS | REQUIRED, AT(sandbox.workspace), "/home/user/workspace", NULL, 0, 0 },
	{ "sandbox", "runtime_dir", PATH, REQUIRED, AT(sandbox.runtime_dir), "/opt/rsb", NULL, 0, 0 },
	{ "sandbox", "port", PORT, HARMLESS, AT(sandbox.port), "49201", NULL, 1, 65535 },
	{ "sandbox", "ttl", TIME, OR_ZERO, AT(sandbox.ttl_ns), "0", NULL, TTL_MIN, 24 * 3600 * SEC },
	{ "sandbox", "on_expire", CHOICE, 0, AT(sandbox.on_expire), "", expires, 0, 0 },
	{ "sandbox", "on_down", CHOICE, 0, AT(sandbox.on_down), "pause", downs, 0, 0 },
	{ "sandbox", "internet", BOOL, 0, AT(sandbox.internet), "true", NULL, 0, 0 },
	{ "sandbox", "max", NUMBER, 0, AT(sandbox.max), "4", NULL, 1, 1000 },
	{ "keeper", "heartbeat", TIME, 0, AT(keeper.heartbeat_ns), "30s", NULL, SEC, 3600 * SEC },
	{ "keeper", "idle_limit", TIME, 0, AT(keeper.idle_limit_ns), "0", NULL, 0, 30 * 24 * 3600 * SEC },
	{ "keeper", "recover_wait", TIME, HARMLESS, AT(keeper.recover_wait_ns), "60s", NULL, 0, 24 * 3600 * SEC },
	{ "sync", "exclude", LIST, HARMLESS, AT(sync.exclude), "node_modules .pnpm-store .venv __pycache__", NULL, 0, 0 },
	{ "sync", "interval", TIME, MAY_BE_OFF, AT(sync.interval_ns), "60s", NULL, SEC, 24 * 3600 * SEC },
	{ "sync", "snapshot_max", SIZE, 0, AT(sync.snapshot_max), "4G", NULL, 1 << 20, 0 },
	{ "sync", "out_max", SIZE, 0, AT(sync.out_max), "64G", NULL, 1 << 20, 0 },
	{ "sync", "out_on_down", BOOL, 0, AT(sync.out_on_down), "true", NULL, 0, 0 },
	{ "sync", "in_command", TEXT, 0, AT(sync.in_command), "", NULL, 0, 0 },
	{ "sync", "out_command", TEXT, 0, AT(sync.out_command), "", NULL, 0, 0 },
	{ "sync", "command_timeout", TIME, 0, AT(sync.command_timeout_ns), "10min", NULL, SEC, 24 * 3600 * SEC },
	{ "notify", "command", TEXT, 0, AT(notify.command), "", NULL, 0, 0 },
	{ "notify", "timeout", TIME, 0, AT(notify.timeout_ns), "10s", NULL, SEC, 3600 * SEC },
	{ "exec", "linger", TIME, 0, AT(exec.linger_ns), "10min", NULL, SEC, 24 * 3600 * SEC },
	{ "exec", "drain", TIME, HARMLESS, AT(exec.drain_ns), "250ms", NULL, 0, 60 * SEC },
	{ "exec", "grace", TIME, HARMLESS, AT(exec.grace_ns), "3s", NULL, 0, 3600 * SEC },
	{ "exec", "env", LIST, 0, AT(exec.env), ENV_DEFAULT, NULL, 0, 0 },
	{ "mount", "sync", BOOL, HARMLESS, AT(mount.sync), "false", NULL, 0, 0 },
	{ "mount", "idmap", CHOICE, HARMLESS, AT(mount.idmap), "user", idmaps, 0, 0 },
};
/* clang-format on */

static void *
member(struct rsb_config *config, const struct row *row)
{
	return (char *)config + row->offset;
}

/* ---- values ---- */

static bool
only(const char *text, const char *allowed)
{
	return text[strspn(text, allowed)] == '\0';
}

#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static bool
text_ok(const struct row *row, const char *value)
{
	if (value[0] == '\0')
		return !(row->flags & REQUIRED);
	switch (row->type) {
	case PATH:
		return value[0] == '/';
	case URL:
		return strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0;
	case HOST:
		return only(value, ALNUM "-.:");
	case USER:
		return only(value, ALNUM "-_.") && value[0] != '-';
	case TEXT:
		return true;
	case TIME:
	case NUMBER:
	case SIZE:
	case PORT:
	case BOOL:
	case CHOICE:
	case LIST:
		break;
	}
	return false;
}

static int
set_text(const struct row *row, const char *value, char **text)
{
	char *copy;

	if (!text_ok(row, value))
		return -EINVAL;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int
set_number(const struct row *row, const char *value, uint64_t *number)
{
	uint64_t n;
	int r;

	if ((row->flags & MAY_BE_OFF) && strcmp(value, "off") == 0) {
		*number = 0;
		return 0;
	}
	r = row->type == TIME   ? rsb_str_duration(value, &n)
	    : row->type == SIZE ? rsb_str_size(value, &n)
				: rsb_str_u64(value, UINT64_MAX, &n);
	if (r < 0 || (row->max && n > row->max))
		return -EINVAL;
	if (n < row->min && (n || !(row->flags & OR_ZERO)))
		return row->type == TIME ? -ERANGE : -EINVAL;
	*number = n;
	return 0;
}

static int
set_choice(const struct row *row, const char *value, unsigned int *choice)
{
	unsigned int i;

	for (i = 0; row->choices[i]; i++)
		if (strcmp(row->choices[i], value) == 0) {
			*choice = i;
			return 0;
		}
	return -EINVAL;
}

static void
list_clear(struct rsb_config_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		free(list->items[i]);
	list->n = 0;
	if (list->items)
		list->items[0] = NULL;
}

static int
list_add(struct rsb_config_list *list, struct rsb_bytes value)
{
	char **items;
	char *copy;

	if (list->n >= RSB_CONFIG_LIST_MAX)
		return -ENOSPC;
	items = reallocarray(list->items, list->n + 2, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->n] = NULL;
	copy = rsb_str_dup(value);
	if (!copy)
		return -ENOMEM;
	items[list->n++] = copy;
	items[list->n] = NULL;
	return 0;
}

static int
set_list(const char *value, int add, struct rsb_config_list *list)
{
	if (list->fresh && !add)
		list_clear(list);
	list->fresh = false;
	/* an empty value empties the list */
	return value[0] ? list_add(list, rsb_bytes_str(value)) : 0;
}

static int
set_value(struct rsb_config *config, const struct row *row, const char *value, int add)
{
	if (add && row->type != LIST)
		return -EINVAL;
	switch (row->type) {
	case TEXT:
	case PATH:
	case URL:
	case HOST:
	case USER:
		return set_text(row, value, member(config, row));
	case TIME:
	case NUMBER:
	case SIZE:
	case PORT:
		return set_number(row, value, member(config, row));
	case BOOL:
		return rsb_str_bool(value, member(config, row));
	case CHOICE:
		return set_choice(row, value, member(config, row));
	case LIST:
		return set_list(value, add, member(config, row));
	}
	return -EINVAL;
}

/* ---- the table ---- */

static const struct row *
find(const char *section, const char *key)
{
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].section, section) == 0 && strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return NULL;
}

int
rsb_setting_set(struct rsb_config *config, const struct rsb_setting *setting, struct rsb_diag *diag)
{
	const struct row *row = find(setting->section, setting->key);
	int r;

	if (!row)
		return rsb_diag_set(
			diag, -EINVAL, "there is no setting %s.%s", setting->section, setting->key);
	if (row->flags & ENV_ONLY)
		return rsb_diag_set(diag, -EACCES, "%s.%s does not belong here; see credentials",
			setting->section, setting->key);
	if (setting->untrusted && !(row->flags & HARMLESS))
		return rsb_diag_set(diag, -EACCES,
			"%s.%s is not taken from a project's file; 'rsb trust' accepts it",
			setting->section, setting->key);
	r = set_value(config, row, setting->value, setting->add);
	if (r == -ERANGE)
		return rsb_diag_set(diag, -EINVAL,
			"'%s' is too short for %s.%s: it is %llus at least", setting->value,
			setting->section, setting->key, (unsigned long long)(row->min / SEC));
	if (r == -EINVAL)
		return rsb_diag_set(diag, r, "'%s' cannot be the value of %s.%s", setting->value,
			setting->section, setting->key);
	if (r == -ENOSPC)
		return rsb_diag_set(diag, r, "%s.%s has more than %d entries", setting->section,
			setting->key, RSB_CONFIG_LIST_MAX);
	return r;
}

void
rsb_setting_source(struct rsb_config *config)
{
	struct rsb_config_list *list;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(rows); i++)
		if (rows[i].type == LIST) {
			list = member(config, &rows[i]);
			list->fresh = true;
		}
}

static int
default_list(const char *words, struct rsb_config_list *list)
{
	size_t n;
	int r;

	for (; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		r = list_add(list, (struct rsb_bytes){ .data = (const uint8_t *)words, .size = n });
		if (r < 0)
			return r;
	}
	return 0;
}

int
rsb_setting_defaults(struct rsb_config *config)
{
	const struct row *row;
	char **text;
	size_t i;
	int r;

	for (i = 0; i < RSB_ARRAY_SIZE(rows); i++) {
		row = &rows[i];
		if (row->type == LIST) {
			r = default_list(row->fallback, member(config, row));
		} else if (row->fallback[0] == '\0' && row->type != CHOICE) {
			text = member(config, row);
			*text = strdup("");
			r = *text ? 0 : -ENOMEM;
		} else {
			r = set_value(config, row, row->fallback, 0);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static bool
is_text(enum type type)
{
	return type == TEXT || type == PATH || type == URL || type == HOST || type == USER;
}

void
rsb_setting_done(struct rsb_config *config)
{
	struct rsb_config_list *list;
	char **text;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(rows); i++) {
		if (rows[i].type == LIST) {
			list = member(config, &rows[i]);
			list_clear(list);
			free(list->items);
		} else if (is_text(rows[i].type)) {
			text = member(config, &rows[i]);
			/* one of them is a key */
			if (*text)
				explicit_bzero(*text, strlen(*text));
			free(*text);
		}
	}
	*config = (struct rsb_config){ 0 };
}
