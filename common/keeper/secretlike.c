/* SPDX-License-Identifier: MIT */
#include "keeper/secretlike.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/str.h"

#define NAMED_MAX 20u
#define SHOWN_MAX 256u

static const char *const dirs[] = { ".aws", ".azure", ".gnupg", ".kube", ".ssh" };
static const char *const files[] = { ".env", ".my.cnf", ".npmrc", ".pgpass", ".pypirc",
	".vault-token", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa" };
/* Of .env: they are there to be shown around. */
static const char *const patterns[] = { ".dist", ".example", ".sample", ".template" };

static bool
is_one_of(const char *const *names, size_t n, const char *name, size_t size)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
			return true;
	return false;
}

static bool
is_file(const char *name)
{
	const char *end = strrchr(name, '.');

	/* .env.local, .env.production */
	if (strncmp(name, ".env.", 5) == 0)
		return !is_one_of(patterns, RSB_ARRAY_SIZE(patterns), end, strlen(end));
	return is_one_of(files, RSB_ARRAY_SIZE(files), name, strlen(name));
}

static bool
is_secret(const char *path, bool is_dir)
{
	for (const char *slash; (slash = strchr(path, '/')); path = slash + 1)
		/* which was told already */
		if (is_one_of(dirs, RSB_ARRAY_SIZE(dirs), path, (size_t)(slash - path)))
			return false;
	return is_dir ? is_one_of(dirs, RSB_ARRAY_SIZE(dirs), path, strlen(path)) : is_file(path);
}

bool
rsb_secretlike_stays(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strcasecmp(name, ".git-credentials") == 0 || strcasecmp(name, ".netrc") == 0;
}

void
rsb_secretlike_done(struct rsb_secretlike *found)
{
	rsb_buf_done(&found->named);
}

void
rsb_secretlike_look(struct rsb_secretlike *found, const char *path, bool is_dir)
{
	char shown[SHOWN_MAX];

	if (!is_secret(path, is_dir) || ++found->n > NAMED_MAX)
		return;
	rsb_str_escape(rsb_bytes_str(path), shown, sizeof(shown));
	/* Without memory it is told of fewer. */
	(void)rsb_buf_printf(&found->named, "%s%s", found->n > 1 ? ", " : "", shown);
}

char *
rsb_secretlike_say(const struct rsb_secretlike *found)
{
	char more[32] = "";

	if (!found->n)
		return NULL;
	if (found->n > NAMED_MAX)
		(void)snprintf(more, sizeof(more), " and %zu more", found->n - NAMED_MAX);
	return rsb_str_printf("what looks like secrets goes in: %.*s%s; a line in .rsbignore, or "
			      "--exclude, keeps it out",
		(int)rsb_buf_len(&found->named), (const char *)rsb_buf_head(&found->named), more);
}
