/* SPDX-License-Identifier: MIT */
#include "exec/environ.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "util/str.h"

struct rsb_environ {
	char **list; /* NULL-terminated */
	size_t n;
};

int
rsb_environ_new(struct rsb_environ **ret_environ)
{
	struct rsb_environ *set = rsb_new(struct rsb_environ);

	if (!set)
		return -ENOMEM;
	set->list = rsb_new_array(char *, 1);
	if (!set->list) {
		free(set);
		return -ENOMEM;
	}
	*ret_environ = set;
	return 0;
}

void
rsb_environ_free(struct rsb_environ *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n; i++)
		free(set->list[i]);
	free(set->list);
	free(set);
}

/* Length of the name in "NAME=VALUE" or "NAME". */
static size_t
name_size(const char *text)
{
	return strcspn(text, "=");
}

static int
add(struct rsb_environ *set, const char *text)
{
	size_t size = name_size(text);
	char **list;
	char *copy;

	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < set->n; i++) {
		if (strncmp(set->list[i], text, size + 1) == 0) {
			free(set->list[i]);
			set->list[i] = copy;
			return 0;
		}
	}
	list = set->n < RSB_ARGS_MAX ? reallocarray(set->list, set->n + 2, sizeof *list) : NULL;
	if (!list) {
		free(copy);
		return set->n < RSB_ARGS_MAX ? -ENOMEM : -E2BIG;
	}
	set->list = list;
	list[set->n++] = copy;
	list[set->n] = NULL;
	return 0;
}

static bool
is_allowed(const struct rsb_config_list *allowed, const char *text)
{
	size_t size = name_size(text);

	for (size_t i = 0; i < allowed->n; i++) {
		const char *item = allowed->items[i];
		size_t n = strlen(item);

		if (n && item[n - 1] == '*' ? n - 1 <= size && strncmp(item, text, n - 1) == 0
					    : n == size && strncmp(item, text, n) == 0)
			return true;
	}
	return false;
}

int
rsb_environ_allow(struct rsb_environ *set, char *const *env, const struct rsb_config_list *allowed)
{
	for (; *env; env++) {
		int r = strchr(*env, '=') && is_allowed(allowed, *env) ? add(set, *env) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int
rsb_environ_set(struct rsb_environ *set, char *const *env, const char *text)
{
	rsb_autofree char *pair = NULL;
	const char *value;

	if (name_size(text) == 0)
		return -EINVAL;
	if (strchr(text, '='))
		return add(set, text);
	value = rsb_config_getenv(env, text);
	if (!value)
		return 0;
	pair = rsb_str_printf("%s=%s", text, value);
	return pair ? add(set, pair) : -ENOMEM;
}

const char *const *
rsb_environ_list(const struct rsb_environ *set)
{
	return (const char *const *)set->list;
}
