/* SPDX-License-Identifier: MIT */
#include "keeper/gituntracked.h"

#include <errno.h>
#include <string.h>

#include "keeper/gitindex.h"

#define STAT_SIZE 36u /* from the change time to the size */
#define FLAGS_SIZE 4u

static int
skip(struct rsb_bytes *left, size_t n)
{
	if (n > left->size)
		return -EBADMSG;
	left->data += n;
	left->size -= n;
	return 0;
}

/* Cuts a string off, with its NUL. */
static int
take_string(struct rsb_bytes *left, struct rsb_bytes *ret_string)
{
	const uint8_t *end = left->size ? memchr(left->data, 0, left->size) : NULL;

	if (!end)
		return -EBADMSG;
	*ret_string = (struct rsb_bytes){ left->data, (size_t)(end - left->data) };
	return skip(left, ret_string->size + 1);
}

static int
check_name(struct rsb_bytes name)
{
	const bool is_bare = name.size && !memchr(name.data, '/', name.size) &&
			     rsb_gitindex_is_component((const char *)name.data, name.size);

	return is_bare ? 0 : -EACCES;
}

/* One directory: how much is in it, its name, and of what is in it the names. */
static int
take_block(struct rsb_bytes *left, bool is_root, size_t *n_block)
{
	const size_t most = left->size;
	const ssize_t n_name = rsb_gitindex_take_number(left, most);
	const ssize_t n_dir = n_name < 0 ? -1 : rsb_gitindex_take_number(left, most);
	struct rsb_bytes name;
	int r;

	if (n_dir < 0)
		return -EBADMSG;
	*n_block += (size_t)n_dir;
	r = take_string(left, &name);
	if (r >= 0 && !(is_root && !name.size))
		r = check_name(name);
	for (ssize_t i = 0; i < n_name && r >= 0; i++) {
		r = take_string(left, &name);
		/* A directory is told as one. */
		if (r >= 0 && name.size && name.data[name.size - 1] == '/')
			name.size--;
		if (r >= 0)
			r = check_name(name);
	}
	return r;
}

int
rsb_gituntracked_check(struct rsb_bytes data, size_t id_size)
{
	struct rsb_bytes left = data;
	struct rsb_bytes ignores;
	ssize_t n_place = rsb_gitindex_take_number(&left, data.size);
	ssize_t n_told;
	size_t n_block = 1;
	int r;

	r = n_place < 0 ? -EBADMSG : skip(&left, (size_t)n_place);
	if (r >= 0)
		r = skip(&left, 2 * STAT_SIZE + FLAGS_SIZE + 2 * id_size);
	if (r >= 0)
		r = take_string(&left, &ignores);
	if (r < 0)
		return r;
	/* Nothing but the NUL at its end: no directory is known. */
	n_told = rsb_gitindex_take_number(&left, data.size);
	if (n_told <= 0)
		return n_told < 0 ? -EBADMSG : 0;
	for (size_t i = 0; i < n_block && r >= 0; i++)
		r = n_block > (size_t)n_told ? -EBADMSG : take_block(&left, i == 0, &n_block);
	return r < 0 ? r : n_block == (size_t)n_told ? 0 : -EBADMSG;
}
