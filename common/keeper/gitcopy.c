/* SPDX-License-Identifier: MIT */
#include "keeper/gitcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/fd.h"
#include "util/list.h"
#include "util/str.h"

#define MAGIC "rsb trust 1\n"
#define HEAD_SIZE 8u /* of a copy in the file: two lengths, little endian */

struct copy {
	struct rsb_list age;
	char *path;
	size_t size;
	uint8_t text[];
};

struct rsb_gitcopy {
	struct rsb_list age; /* oldest first */
	size_t n;
	size_t size;
	uint64_t version;
};

int
rsb_gitcopy_new(struct rsb_gitcopy **ret_trust)
{
	struct rsb_gitcopy *trust = rsb_new(struct rsb_gitcopy);

	if (!trust)
		return -ENOMEM;
	rsb_list_init(&trust->age);
	*ret_trust = trust;
	return 0;
}

static void
copy_free(struct rsb_gitcopy *trust, struct copy *copy)
{
	rsb_list_remove(&copy->age);
	trust->n--;
	trust->size -= copy->size;
	free(copy->path);
	free(copy);
}

static struct copy *
oldest(const struct rsb_gitcopy *trust)
{
	return rsb_list_empty(&trust->age) ? NULL
					   : rsb_list_entry(trust->age.next, struct copy, age);
}

void
rsb_gitcopy_free(struct rsb_gitcopy *trust)
{
	struct copy *copy;

	if (!trust)
		return;
	while ((copy = oldest(trust)))
		copy_free(trust, copy);
	free(trust);
}

static struct copy *
find(const struct rsb_gitcopy *trust, const char *path)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &trust->age) {
		struct copy *copy = rsb_list_entry(pos, struct copy, age);

		if (strcmp(copy->path, path) == 0)
			return copy;
	}
	return NULL;
}

bool
rsb_gitcopy_get(const struct rsb_gitcopy *trust, const char *path, struct rsb_bytes *ret_text)
{
	const struct copy *copy = find(trust, path);

	if (!copy)
		return false;
	*ret_text = (struct rsb_bytes){ .data = copy->text, .size = copy->size };
	return true;
}

int
rsb_gitcopy_put(struct rsb_gitcopy *trust, const char *path, struct rsb_bytes text)
{
	struct copy *old = find(trust, path);
	struct copy *copy;

	if (text.size > RSB_GITCOPY_BYTES_MAX || strlen(path) > PATH_MAX)
		return -EMSGSIZE;
	copy = calloc(1, sizeof(*copy) + text.size);
	if (!copy)
		return -ENOMEM;
	copy->path = strdup(path);
	if (!copy->path) {
		free(copy);
		return -ENOMEM;
	}
	copy->size = text.size;
	if (text.size)
		memcpy(copy->text, text.data, text.size);
	if (old)
		copy_free(trust, old);
	rsb_list_append(&trust->age, &copy->age);
	trust->n++;
	trust->size += copy->size;
	trust->version++;
	while (trust->n > RSB_GITCOPY_COPIES_MAX || trust->size > RSB_GITCOPY_BYTES_MAX)
		copy_free(trust, oldest(trust));
	return 0;
}

static bool
is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int
rsb_gitcopy_move(struct rsb_gitcopy *trust, const char *path, const char *newpath)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (is_below(newpath, path))
		return 0;
	rsb_list_for_each_safe (pos, tmp, &trust->age) {
		struct copy *copy = rsb_list_entry(pos, struct copy, age);

		if (is_below(copy->path, newpath)) {
			trust->version++;
			copy_free(trust, copy);
		}
	}
	rsb_list_for_each (pos, &trust->age) {
		struct copy *copy = rsb_list_entry(pos, struct copy, age);
		char *moved;

		if (!is_below(copy->path, path))
			continue;
		moved = rsb_str_printf("%s%s", newpath, copy->path + strlen(path));
		if (!moved)
			return -ENOMEM;
		free(copy->path);
		copy->path = moved;
		trust->version++;
	}
	return 0;
}

size_t
rsb_gitcopy_count(const struct rsb_gitcopy *trust)
{
	return trust->n;
}

uint64_t
rsb_gitcopy_version(const struct rsb_gitcopy *trust)
{
	return trust->version;
}

/* ---- the file ---- */

static void
put_u32(uint8_t *at, size_t value)
{
	for (size_t i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static size_t
get_u32(const uint8_t *at)
{
	return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

int
rsb_gitcopy_write(const struct rsb_gitcopy *trust, struct rsb_buf *out)
{
	struct rsb_list *pos;
	int r;

	r = rsb_buf_append(out, MAGIC, strlen(MAGIC));
	rsb_list_for_each (pos, &trust->age) {
		const struct copy *copy = rsb_list_entry(pos, struct copy, age);
		uint8_t head[HEAD_SIZE];

		put_u32(head, strlen(copy->path));
		put_u32(head + 4, copy->size);
		if (r >= 0)
			r = rsb_buf_append(out, head, sizeof(head));
		if (r >= 0)
			r = rsb_buf_append(out, copy->path, strlen(copy->path));
		if (r >= 0)
			r = rsb_buf_append(out, copy->text, copy->size);
	}
	return r;
}

int
rsb_gitcopy_read(struct rsb_gitcopy *trust, struct rsb_bytes data)
{
	int r = 0;

	if (data.size < strlen(MAGIC) || memcmp(data.data, MAGIC, strlen(MAGIC)) != 0)
		return -EBADMSG;
	data.data += strlen(MAGIC);
	data.size -= strlen(MAGIC);
	while (data.size && r >= 0) {
		size_t n_path = data.size < HEAD_SIZE ? SIZE_MAX : get_u32(data.data);
		size_t n_text = data.size < HEAD_SIZE ? SIZE_MAX : get_u32(data.data + 4);
		rsb_autofree char *path = NULL;

		if (n_path > PATH_MAX || n_text > data.size ||
			n_path + n_text + HEAD_SIZE > data.size)
			return -EBADMSG;
		path = strndup((const char *)data.data + HEAD_SIZE, n_path);
		r = path ? rsb_gitcopy_put(trust, path,
				   (struct rsb_bytes){ data.data + HEAD_SIZE + n_path, n_text })
			 : -ENOMEM;
		data.data += HEAD_SIZE + n_path + n_text;
		data.size -= HEAD_SIZE + n_path + n_text;
	}
	return r;
}

int
rsb_gitcopy_load(struct rsb_gitcopy *trust, const char *file)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = 2 * RSB_GITCOPY_BYTES_MAX };
	rsb_autoclose int fd = open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = rsb_fd_read_all(fd, &data);
	return r < 0 ? r : rsb_gitcopy_read(trust, rsb_buf_view(&data));
}
