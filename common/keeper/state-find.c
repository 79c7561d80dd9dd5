/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "keeper/state.h"
#include "util/cleanup.h"

#define ID_PREFIX_MIN 4
#define NO_SANDBOX_OF \
	"%s belongs to no sandbox; 'rsb up' makes one, 'rsb list' names those there are"

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
is_name(const struct dirent *entry)
{
	return rsb_state_name_ok(entry->d_name);
}

struct visitor {
	int (*fn)(void *arg, const struct rsb_state *state);
	void (*damaged)(void *arg, const char *text);
	void *arg;
};

static int
visit(const char *root, const char *name, const struct visitor *visitor)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;
	struct rsb_diag diag = { 0 };
	struct rsb_state state;
	int r;

	r = rsb_state_open(root, name, false, &dir, &diag);
	if (r == 0)
		r = rsb_state_load(dir, &state, &diag);
	if (r == 0 && visitor->fn)
		return visitor->fn(visitor->arg, &state);
	if (r < 0 && r != -ENOENT && visitor->damaged)
		visitor->damaged(visitor->arg, rsb_diag_text(&diag, r));
	return 0;
}

static int
visit_all(const char *root, const struct visitor *visitor)
{
	struct dirent **names = NULL;
	int n = scandir(root, &names, is_name, by_name);
	int r = 0;
	int i;

	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	for (i = 0; i < n; i++) {
		if (r == 0)
			r = visit(root, names[i]->d_name, visitor);
		free(names[i]);
	}
	free(names);
	return r;
}

int
rsb_state_list(const char *root, int (*fn)(void *arg, const struct rsb_state *state), void *arg)
{
	return visit_all(root, &(struct visitor){ .fn = fn, .arg = arg });
}

int
rsb_state_list_damaged(const char *root, void (*fn)(void *arg, const char *text), void *arg)
{
	return visit_all(root, &(struct visitor){ .damaged = fn, .arg = arg });
}

struct search {
	const char *id;   /* NULL: by path */
	const char *path; /* absolute */
	struct rsb_state best;
	size_t rank; /* of best: length of what matched */
	unsigned int n;
};

/* How much of path the directory covers: 0 nothing, else its length. */
static size_t
covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n == 0 || strncmp(dir, path, n) != 0)
		return 0;
	return path[n] == '\0' || path[n] == '/' || n == 1 ? n : 0;
}

static int
compare(void *arg, const struct rsb_state *state)
{
	struct search *search = arg;
	size_t rank;

	if (search->id) {
		rank = strncmp(state->sandbox_id, search->id, strlen(search->id)) == 0;
	} else {
		/* at equal length the mount counts before the source */
		rank = 2 * covers(state->local_dir, search->path);
		rank = rsb_max(rank, 2 * covers(state->mountpoint, search->path) + 1);
		if (rank == 1)
			rank = 0;
	}
	if (rank == 0 || rank < search->rank)
		return 0;
	search->n = rank == search->rank ? search->n + 1 : 1;
	search->rank = rank;
	search->best = *state;
	return 0;
}

static int
search_all(const char *root, struct search *search, const char *what, struct rsb_state *ret_state,
	struct rsb_diag *diag)
{
	int r = rsb_state_list(root, compare, search);

	if (r < 0)
		return r;
	if (search->n == 0)
		return rsb_diag_set(
			diag, -ENOENT, search->id ? RSB_STATE_NO_SUCH : NO_SANDBOX_OF, what);
	if (search->n > 1)
		return rsb_diag_set(diag, -EEXIST, "'%s' may be one of %u sandboxes: use its name",
			what, search->n);
	*ret_state = search->best;
	return 0;
}

static int
find_name(const char *root, const char *name, struct rsb_state *ret_state, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;
	int r;

	if (!rsb_state_name_ok(name))
		return -ENOENT;
	r = rsb_state_open(root, name, false, &dir, diag);
	return r < 0 ? r : rsb_state_load(dir, ret_state, diag);
}

int
rsb_state_find(const char *root, const char *what, const char *cwd, struct rsb_state *ret_state,
	struct rsb_diag *diag)
{
	struct search search = { 0 };
	rsb_autofree char *path = NULL;
	int r;

	if (!what) {
		search.path = cwd;
		return search_all(root, &search, cwd, ret_state, diag);
	}
	r = find_name(root, what, ret_state, diag);
	if (r != -ENOENT)
		return r;
	if (strlen(what) >= ID_PREFIX_MIN && !strchr(what, '/')) {
		search.id = what;
		r = search_all(root, &search, what, ret_state, diag);
		if (r != -ENOENT)
			return r;
	}
	path = realpath(what, NULL);
	if (!path)
		return rsb_diag_set(diag, -ENOENT, RSB_STATE_NO_SUCH, what);
	search = (struct search){ .path = path };
	return search_all(root, &search, path, ret_state, diag);
}

/* ---- the one that was made of a directory ---- */

struct made_of {
	const char *dir;
	size_t n;
	char names[2][RSB_STATE_NAME_MAX + 1]; /* the first two of n */
};

static int
note_made_of(void *arg, const struct rsb_state *state)
{
	struct made_of *made = arg;

	if (strcmp(state->local_dir, made->dir) != 0)
		return 0;
	if (made->n < RSB_ARRAY_SIZE(made->names))
		(void)strcpy(made->names[made->n], state->name);
	made->n++;
	return 0;
}

int
rsb_state_name_for(const char *root, const char *dir, char name[static RSB_STATE_NAME_MAX + 1],
	struct rsb_diag *diag)
{
	struct made_of made = { .dir = dir };
	int r = rsb_state_list(root, note_made_of, &made);

	if (r < 0)
		return r;
	if (made.n > 1)
		return rsb_diag_set(diag, -EINVAL,
			"%zu sandboxes are made of %s, such as %s and %s: --name says which one is meant",
			made.n, dir, made.names[0], made.names[1]);
	if (made.n == 1)
		(void)strcpy(name, made.names[0]);
	else
		rsb_state_name_of(dir, name);
	return 0;
}
