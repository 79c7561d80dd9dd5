/* SPDX-License-Identifier: MIT */
#include "keeper/snapstore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/manifest.h"
#include "keeper/snapindex.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

#define INDEX "snapshots"
#define LOCK "snapshots.lock"
#define PREFIX "snapshot-"
#define ARCHIVE ".tar.zst"
#define TREE ".tree"
#define FRESH "snapshot-new~"
#define NAME_SIZE 48u

struct rsb_snapstore {
	int fd;      /* the directory */
	int lock_fd; /* -1: only to look */
	bool damaged;
	struct rsb_snapindex index;
};

static const char *
name_of(uint64_t number, const char *kind, char name[static NAME_SIZE])
{
	(void)snprintf(name, NAME_SIZE, PREFIX "%" PRIu64 "%s", number, kind);
	return name;
}

/* ---- life ---- */

static int
load(struct rsb_snapstore *store)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_SNAPINDEX_MAX };
	rsb_autoclose int fd = openat(store->fd, INDEX, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = rsb_fd_read_all(fd, &text);
	return r < 0 ? r : rsb_snapindex_read(rsb_buf_view(&text), &store->index);
}

static bool
is_named(const struct rsb_snapstore *store, const char *name)
{
	char other[NAME_SIZE];

	for (size_t i = 0; i < store->index.n; i++) {
		const uint64_t number = store->index.points[i].number;

		if (strcmp(name, name_of(number, ARCHIVE, other)) == 0 ||
			strcmp(name, name_of(number, TREE, other)) == 0)
			return true;
	}
	return false;
}

static bool
is_left(const struct rsb_snapstore *store, const char *name)
{
	const size_t size = strlen(name);

	if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
		return !is_named(store, name);
	return strncmp(name, INDEX ".", strlen(INDEX ".")) == 0 && name[size - 1] == '~';
}

static DIR *
list(const struct rsb_snapstore *store)
{
	rsb_autoclose int fd = openat(store->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)rsb_steal_fd(&fd);
	return dir;
}

/* What somebody who was killed left, or what is not needed any more. */
static void
sweep(const struct rsb_snapstore *store)
{
	rsb_autoclosedir DIR *dir = list(store);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (is_left(store, entry->d_name))
			(void)unlinkat(store->fd, entry->d_name, 0); /* next time, then */
}

/* Without an index: numbers are not given twice. */
static void
find_next(struct rsb_snapstore *store)
{
	rsb_autoclosedir DIR *dir = list(store);
	const struct dirent *entry;
	uint64_t number;

	while (dir && (entry = readdir(dir)) != NULL) {
		char text[NAME_SIZE] = "";

		if (sscanf(entry->d_name, PREFIX "%20[0-9].", text) == 1 &&
			rsb_str_u64(text, INT64_MAX - 1, &number) == 0)
			store->index.next = rsb_max(store->index.next, number + 1);
	}
}

static int
open_dir(const char *path, struct rsb_snapstore **ret_store)
{
	struct rsb_snapstore *store = rsb_new(struct rsb_snapstore);

	if (!store)
		return -ENOMEM;
	store->lock_fd = -1;
	store->index.next = 1;
	store->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->fd < 0) {
		int r = -errno;

		free(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

static int
lock(struct rsb_snapstore *store, uint64_t wait_ns)
{
	store->lock_fd = openat(store->fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return store->lock_fd < 0 ? -errno : rsb_fd_lock(store->lock_fd, wait_ns);
}

int
rsb_snapstore_open(
	const char *path, uint64_t wait_ns, struct rsb_snapstore **ret_store, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	int r;

	r = open_dir(path, &store);
	if (r >= 0)
		r = lock(store, wait_ns);
	if (r == -EBUSY)
		return rsb_diag_set(diag, r, "a snapshot is being taken or restored just now");
	if (r >= 0)
		r = load(store);
	if (r == -EBADMSG || r == -EMSGSIZE) {
		store->damaged = true;
		find_next(store);
		r = 0;
	}
	if (r < 0)
		return rsb_diag_set(
			diag, r, "the snapshots in %s cannot be read: %s", path, strerror(-r));
	if (!store->damaged)
		sweep(store);
	*ret_store = rsb_steal(&store);
	return 0;
}

int
rsb_snapstore_look(const char *path, struct rsb_snapstore **ret_store, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	int r;

	r = open_dir(path, &store);
	if (r >= 0)
		r = load(store);
	if (r == -EBADMSG || r == -EMSGSIZE)
		return rsb_diag_set(
			diag, -EBADMSG, "the list of snapshots in %s/" INDEX " is damaged", path);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "the snapshots in %s cannot be read: %s", path, strerror(-r));
	*ret_store = rsb_steal(&store);
	return 0;
}

void
rsb_snapstore_close(struct rsb_snapstore *store)
{
	if (!store)
		return;
	rsb_cleanup_close(&store->lock_fd);
	rsb_cleanup_close(&store->fd);
	rsb_snapindex_done(&store->index);
	free(store);
}

/* ---- looking ---- */

size_t
rsb_snapstore_count(const struct rsb_snapstore *store)
{
	return store->index.n;
}

const struct rsb_snappoint *
rsb_snapstore_at(const struct rsb_snapstore *store, size_t i)
{
	return &store->index.points[i];
}

int
rsb_snapstore_find(const struct rsb_snapstore *store, uint64_t number, struct rsb_diag *diag)
{
	for (size_t i = 0; i < store->index.n; i++)
		if (store->index.points[i].number == number)
			return (int)i;
	return rsb_diag_set(diag, -ENOENT, "there is no snapshot %" PRIu64 "%s", number,
		store->index.n ? "; 'rsb snapshot list' names those there are" : ", nor any other");
}

size_t
rsb_snapstore_base(const struct rsb_snapstore *store, size_t i)
{
	while (i > 0 && !store->index.points[i].base)
		i--;
	return i;
}

bool
rsb_snapstore_was_damaged(const struct rsb_snapstore *store)
{
	return store->damaged;
}

uint64_t
rsb_snapstore_size(const struct rsb_snapstore *store)
{
	uint64_t size = 0;

	for (size_t i = 0; i < store->index.n; i++)
		size += store->index.points[i].archive_size + store->index.points[i].tree_size;
	return size;
}

static int
open_file(const struct rsb_snapstore *store, size_t i, const char *kind)
{
	char name[NAME_SIZE];
	int fd = openat(store->fd, name_of(store->index.points[i].number, kind, name),
		O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int
say_bad(const struct rsb_snapstore *store, size_t i, int r, const char *kind, struct rsb_diag *diag)
{
	const uint64_t number = store->index.points[i].number;

	if (r == -EBADMSG)
		return rsb_diag_set(diag, r,
			"snapshot %" PRIu64 " is damaged: " PREFIX "%" PRIu64
			"%s is not what was written",
			number, number, kind);
	return rsb_diag_set(diag, r == -ENOENT ? -EBADMSG : r,
		"snapshot %" PRIu64 " cannot be used: " PREFIX "%" PRIu64 "%s: %s", number, number,
		kind, strerror(-r));
}

static int
verify_file(const struct rsb_snapstore *store, size_t i, const char *kind, const uint8_t *sha,
	struct rsb_diag *diag)
{
	rsb_autoclose int fd = open_file(store, i, kind);
	uint8_t got[RSB_SHA256_SIZE];
	int r;

	r = fd < 0 ? fd : rsb_sha256_fd(fd, got);
	if (r >= 0 && memcmp(got, sha, sizeof(got)) != 0)
		r = -EBADMSG;
	return r < 0 ? say_bad(store, i, r, kind, diag) : 0;
}

int
rsb_snapstore_verify(const struct rsb_snapstore *store, size_t i, struct rsb_diag *diag)
{
	const struct rsb_snappoint *point = &store->index.points[i];
	int r = verify_file(store, i, ARCHIVE, point->archive_sha, diag);

	return r < 0 ? r : verify_file(store, i, TREE, point->tree_sha, diag);
}

static bool
has_size(const struct rsb_snapstore *store, size_t i, const char *kind, uint64_t size)
{
	char name[NAME_SIZE];
	struct stat st;

	return fstatat(store->fd, name_of(store->index.points[i].number, kind, name), &st,
		       AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

bool
rsb_snapstore_is_there(const struct rsb_snapstore *store, size_t i)
{
	const struct rsb_snappoint *point = &store->index.points[i];

	return has_size(store, i, ARCHIVE, point->archive_size) &&
	       has_size(store, i, TREE, point->tree_size);
}

int
rsb_snapstore_tree(
	const struct rsb_snapstore *store, size_t i, struct rsb_tree *tree, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_MANIFEST_MAX };
	rsb_autoclose int fd = open_file(store, i, TREE);
	uint8_t sha[RSB_SHA256_SIZE];
	int r;

	r = fd < 0 ? fd : rsb_fd_read_all(fd, &data);
	if (r >= 0) {
		rsb_sha256(rsb_buf_view(&data), sha);
		if (memcmp(sha, store->index.points[i].tree_sha, sizeof(sha)) != 0)
			r = -EBADMSG;
	}
	if (r >= 0)
		r = rsb_manifest_read(rsb_buf_view(&data), tree);
	return r < 0 ? say_bad(store, i, r, TREE, diag) : 0;
}

int
rsb_snapstore_archive(const struct rsb_snapstore *store, size_t i)
{
	return open_file(store, i, ARCHIVE);
}

/* ---- changing ---- */

int
rsb_snapstore_begin(struct rsb_snapstore *store)
{
	int fd =
		openat(store->fd, FRESH, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

void
rsb_snapstore_give_up(struct rsb_snapstore *store)
{
	(void)unlinkat(store->fd, FRESH, 0); /* else the next one does */
}

static int
save(struct rsb_snapstore *store)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_SNAPINDEX_MAX };
	int r = rsb_snapindex_write(&store->index, &text);

	if (r >= 0)
		r = rsb_fd_replace_file(store->fd, INDEX, rsb_buf_view(&text), 0600);
	if (r < 0)
		return r;
	store->damaged = false;
	sweep(store);
	return 0;
}

static int
put_tree(struct rsb_snapstore *store, const struct rsb_tree *tree, struct rsb_snappoint *point)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_MANIFEST_MAX };
	char name[NAME_SIZE];
	int r = rsb_manifest_write(tree, &data);

	if (r < 0)
		return r;
	point->tree_size = rsb_buf_len(&data);
	rsb_sha256(rsb_buf_view(&data), point->tree_sha);
	return rsb_fd_replace_file(
		store->fd, name_of(point->number, TREE, name), rsb_buf_view(&data), 0600);
}

/* Its name is durable with that of the tree, which is made after it. */
static int
put_archive(struct rsb_snapstore *store, int fd, struct rsb_snappoint *point)
{
	char name[NAME_SIZE];
	struct stat st;
	int r = rsb_sha256_fd(fd, point->archive_sha);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || fsync(fd) < 0)
		return -errno;
	point->archive_size = (uint64_t)st.st_size;
	return renameat(store->fd, FRESH, store->fd, name_of(point->number, ARCHIVE, name)) < 0
		       ? -errno
		       : 0;
}

int
rsb_snapstore_add(struct rsb_snapstore *store, int archive_fd, const struct rsb_tree *tree,
	struct rsb_snappoint *point)
{
	int r;

	point->number = store->index.next;
	r = put_archive(store, archive_fd, point);
	if (r >= 0)
		r = put_tree(store, tree, point);
	if (r >= 0)
		r = rsb_snapindex_add(&store->index, point);
	if (r < 0)
		return r;
	store->index.next++;
	r = save(store);
	if (r < 0)
		store->index.n--;
	return r;
}

int
rsb_snapstore_clear(struct rsb_snapstore *store)
{
	store->index.points[store->index.n - 1].fuzzy = 0;
	return save(store);
}

int
rsb_snapstore_drop(struct rsb_snapstore *store, size_t n)
{
	rsb_snapindex_drop(&store->index, n);
	return save(store);
}
