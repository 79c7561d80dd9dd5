/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keeper/gitindex.h"
#include "tests/unit/unit.h"

struct made {
	uint8_t data[4096];
	size_t size;
};

static void
put(struct made *made, const void *data, size_t size)
{
	ck_assert_uint_le(made->size + size, sizeof(made->data));
	memcpy(made->data + made->size, data, size);
	made->size += size;
}

static void
put32(struct made *made, uint32_t n)
{
	const uint8_t bytes[] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
		(uint8_t)n };

	put(made, bytes, sizeof(bytes));
}

struct how {
	uint32_t version;
	size_t id_size;
	uint8_t stat; /* what the cache says */
	uint8_t id;
	uint16_t flags;
	const char *more; /* an extension */
};

/* name; in version 4 cut bytes of the one before are dropped first. */
static void
put_entry(struct made *made, const struct how *how, const char *name, uint8_t cut)
{
	const size_t begin = made->size;
	const uint8_t flags[] = { (uint8_t)(how->flags >> 8), (uint8_t)how->flags };
	uint8_t id[32];

	for (int i = 0; i < 6; i++)
		put32(made, how->stat);
	put32(made, 0100644);
	for (int i = 0; i < 3; i++)
		put32(made, how->stat);
	memset(id, how->id, sizeof(id));
	put(made, id, how->id_size);
	put(made, flags, sizeof(flags));
	if (how->version == 4)
		put(made, &cut, 1);
	put(made, name, strlen(name) + 1);
	while (how->version < 4 && (made->size - begin) % 8)
		put(made, "", 1);
}

static struct made
make(const struct how *how)
{
	struct made made = { .size = 0 };
	uint8_t sum[32] = { 0 };

	put(&made, "DIRC", 4);
	put32(&made, how->version);
	put32(&made, 2);
	put_entry(&made, how, "dir/a", 0);
	put_entry(&made, how, how->version == 4 ? "bc" : "dir/bc", 1);
	if (how->more) {
		put(&made, how->more, 4);
		put32(&made, 3);
		put(&made, "xyz", 3);
	}
	put(&made, sum, how->id_size);
	return made;
}

static int
note(void *arg, const struct rsb_gitindex_entry *entry)
{
	char *names = arg;

	ck_assert_uint_eq(entry->mode, 0100644);
	(void)strcat(strcat(names, entry->path), " ");
	return 0;
}

static int
parse(const struct made *made, char names[static 64])
{
	names[0] = '\0';
	return rsb_gitindex_parse(
		(struct rsb_bytes){ .data = made->data, .size = made->size }, note, names);
}

static int
hash(const struct how *how, uint8_t sha[static RSB_SHA256_SIZE])
{
	const struct made made = make(how);
	int fd = memfd_create("index", MFD_CLOEXEC);
	int r;

	ck_assert_int_eq(write(fd, made.data, made.size), (ssize_t)made.size);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	r = rsb_gitindex_hash_fd(fd, sha);
	(void)close(fd);
	return r;
}

START_TEST(names_what_is_staged)
{
	static const struct how all[] = {
		{ .version = 2, .id_size = 20 },
		{ .version = 2, .id_size = 20, .more = "TREE" },
		{ .version = 4, .id_size = 20 },
		{ .version = 2, .id_size = 32, .id = 7 },
		{ .version = 4, .id_size = 32, .more = "sdir" },
	};
	char names[64];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(all); i++) {
		const struct made made = make(&all[i]);

		ck_assert_int_eq(parse(&made, names), 0);
		ck_assert_str_eq(names, "dir/a dir/bc ");
	}
}
END_TEST

START_TEST(the_cache_does_not_count)
{
	static const struct how one = { .version = 2, .id_size = 20, .stat = 1, .id = 1 };
	static const struct {
		struct how how;
		bool same;
	} others[] = {
		{ { .version = 2, .id_size = 20, .stat = 9, .id = 1 }, true },
		{ { .version = 2, .id_size = 20, .stat = 1, .id = 1, .more = "TREE" }, true },
		{ { .version = 4, .id_size = 20, .stat = 0, .id = 1 }, true },
		{ { .version = 2, .id_size = 20, .stat = 1, .id = 2 }, false },
		{ { .version = 2, .id_size = 20, .stat = 1, .id = 1, .flags = 0x1000 }, false },
	};
	uint8_t a[RSB_SHA256_SIZE];
	uint8_t b[RSB_SHA256_SIZE];

	ck_assert_int_eq(hash(&one, a), 0);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(others); i++) {
		ck_assert_int_eq(hash(&others[i].how, b), 0);
		ck_assert_msg((memcmp(a, b, sizeof(a)) == 0) == others[i].same, "%zu", i);
	}
}
END_TEST

static int
pass(void *arg, const struct rsb_gitindex_entry *entry)
{
	(void)arg;
	return strlen(entry->path) ? 0 : -EINVAL;
}

/* Cut anywhere, and with a wrong byte anywhere, it is read within its bounds. */
START_TEST(what_is_damaged_is_none)
{
	static const struct how how = { .version = 4, .id_size = 20, .more = "TREE" };
	static const struct how split = { .version = 2, .id_size = 20, .more = "link" };
	struct made made = make(&how);
	char names[64];

	for (size_t size = 0; size < made.size; size++) {
		struct made cut = made;

		cut.size = size;
		ck_assert_int_eq(parse(&cut, names), -EBADMSG);
	}
	for (size_t i = 0; i < made.size; i++) {
		struct made wrong = made;

		wrong.data[i] ^= 0xff;
		(void)rsb_gitindex_parse(
			(struct rsb_bytes){ .data = wrong.data, .size = wrong.size }, pass, NULL);
	}
	made = make(&split);
	ck_assert_int_eq(parse(&made, names), -EBADMSG);
}
END_TEST

START_TEST(by_its_path)
{
	ck_assert(rsb_gitindex_is(".git/index"));
	ck_assert(rsb_gitindex_is("a/.git/modules/b/index"));
	ck_assert(!rsb_gitindex_is("index"));
	ck_assert(!rsb_gitindex_is("src/index"));
	ck_assert(!rsb_gitindex_is(".git/index.lock"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { names_what_is_staged, the_cache_does_not_count,
		what_is_damaged_is_none, by_its_path };

	return unit_run("gitindex", tests, RSB_ARRAY_SIZE(tests));
}
