/* SPDX-License-Identifier: MIT */
#include "keeper/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

#define MAGIC "rsb manifest 1\n"
#define MAGIC_SIZE (sizeof(MAGIC) - 1)
#define TEXT_MAX 4096u

/* Of one leaf, before the texts of its path and target; numbers as this machine has them. */
struct record {
	struct rsb_stamp here;
	struct rsb_stamp there;
	uint64_t size;
	uint32_t mode;
	uint16_t path_size;
	uint16_t target_size;
	uint8_t sha[RSB_SHA256_SIZE];
	uint8_t hashed;
	uint8_t conflict;
	uint8_t zero[6];
};

static int
write_leaf(const struct rsb_tree_leaf *leaf, struct rsb_buf *out)
{
	struct record record = {
		.here = leaf->here,
		.there = leaf->there,
		.size = leaf->size,
		.mode = leaf->mode,
		.path_size = (uint16_t)strlen(leaf->path),
		.target_size = (uint16_t)strlen(leaf->target),
		.hashed = leaf->hashed,
		.conflict = leaf->conflict,
	};
	int r;

	memcpy(record.sha, leaf->sha, sizeof(record.sha));
	r = rsb_buf_append(out, &record, sizeof(record));
	if (r >= 0)
		r = rsb_buf_append(out, leaf->path, record.path_size);
	return r < 0 ? r : rsb_buf_append(out, leaf->target, record.target_size);
}

int
rsb_manifest_write(const struct rsb_tree *tree, struct rsb_buf *out)
{
	uint8_t sha[RSB_SHA256_SIZE];
	int r;

	r = rsb_buf_append(out, MAGIC, MAGIC_SIZE);
	for (size_t i = 0; i < tree->n && r >= 0; i++)
		r = write_leaf(&tree->leaves[i], out);
	if (r < 0)
		return r;
	rsb_sha256(rsb_buf_view(out), sha);
	return rsb_buf_append(out, sha, sizeof(sha));
}

/* The bytes of the record, or -EBADMSG. */
static int
read_leaf(struct rsb_bytes data, struct rsb_tree *tree)
{
	char path[TEXT_MAX];
	char target[TEXT_MAX];
	struct record record;
	struct rsb_tree_leaf leaf;
	size_t size;
	int r;

	if (data.size < sizeof(record))
		return -EBADMSG;
	memcpy(&record, data.data, sizeof(record));
	size = sizeof(record) + record.path_size + record.target_size;
	if (size > data.size || record.path_size >= TEXT_MAX || record.target_size >= TEXT_MAX ||
		!record.path_size)
		return -EBADMSG;
	memcpy(path, data.data + sizeof(record), record.path_size);
	path[record.path_size] = '\0';
	memcpy(target, data.data + sizeof(record) + record.path_size, record.target_size);
	target[record.target_size] = '\0';
	leaf = (struct rsb_tree_leaf){ .path = path,
		.target = target,
		.mode = record.mode,
		.size = record.size,
		.hashed = record.hashed != 0,
		.conflict = record.conflict != 0,
		.here = record.here,
		.there = record.there };
	memcpy(leaf.sha, record.sha, sizeof(leaf.sha));
	r = rsb_tree_add(tree, &leaf);
	return r < 0 ? r : (int)size;
}

int
rsb_manifest_read(struct rsb_bytes data, struct rsb_tree *tree)
{
	uint8_t sha[RSB_SHA256_SIZE];
	int r = 0;

	if (data.size < MAGIC_SIZE + sizeof(sha) || memcmp(data.data, MAGIC, MAGIC_SIZE) != 0)
		return -EBADMSG;
	data.size -= sizeof(sha);
	rsb_sha256(data, sha);
	if (memcmp(sha, data.data + data.size, sizeof(sha)) != 0)
		return -EBADMSG;
	for (size_t at = MAGIC_SIZE; at < data.size && r >= 0; at += (size_t)rsb_max(r, 0))
		r = read_leaf(
			(struct rsb_bytes){ .data = data.data + at, .size = data.size - at }, tree);
	if (r < 0)
		rsb_tree_done(tree);
	return rsb_min(r, 0);
}

int
rsb_manifest_load(const char *dir, struct rsb_tree *tree)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_MANIFEST_MAX };
	rsb_autofree char *path = rsb_str_path(dir, RSB_MANIFEST_FILE);
	rsb_autoclose int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	int r;

	if (fd < 0)
		return path ? -errno : -ENOMEM;
	r = rsb_fd_read_all(fd, &data);
	return r < 0 ? r : rsb_manifest_read(rsb_buf_view(&data), tree);
}

int
rsb_manifest_rewind(const char *dir, uint64_t wall_ns)
{
	rsb_autofree char *path = rsb_str_path(dir, RSB_MANIFEST_FILE);
	struct stat st;

	if (!path)
		return -ENOMEM;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (rsb_tree_ns(st.st_mtim.tv_sec, st.st_mtim.tv_nsec) < (int64_t)wall_ns)
		return 0;
	return truncate(path, 0) < 0 ? -errno : 0;
}

bool
rsb_manifest_exists(const char *dir)
{
	rsb_autofree char *path = rsb_str_path(dir, RSB_MANIFEST_FILE);

	return path && access(path, F_OK) == 0;
}

/* By its end, which is the digest of the rest. */
static bool
is_written(const char *path, struct rsb_bytes data)
{
	rsb_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t sha[RSB_SHA256_SIZE];
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)data.size &&
	       pread(fd, sha, sizeof(sha), st.st_size - (off_t)sizeof(sha)) == sizeof(sha) &&
	       memcmp(sha, data.data + data.size - sizeof(sha), sizeof(sha)) == 0;
}

int
rsb_manifest_save(const char *dir, const struct rsb_tree *tree, bool whole)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_MANIFEST_MAX };
	rsb_autofree char *path = rsb_str_path(dir, RSB_MANIFEST_FILE);
	int r = path ? rsb_manifest_write(tree, &data) : -ENOMEM;

	if (r < 0 || (whole && is_written(path, rsb_buf_view(&data))))
		return r;
	return rsb_fd_replace_file(AT_FDCWD, path, rsb_buf_view(&data), 0600);
}
