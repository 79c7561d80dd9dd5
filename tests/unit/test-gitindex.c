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
	size_t at[8]; /* of the entries */
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
	const char *more;     /* an extension */
	const char *names[8]; /* NULL: two of a directory */
	uint32_t mode;        /* 0: of a file */
	size_t longer;        /* the first says that it is longer by so many bytes */
	bool apart;           /* in version 4 nothing of one begins another */
};

/* Its length is in the flags; in version 4 it begins as that before it. */
static void
put_entry(struct made *made, const struct how *how, const char *name, const char *before)
{
	const size_t begin = made->size;
	const size_t told = strlen(name) + (*before ? 0 : how->longer);
	const uint8_t flags[] = { (uint8_t)(how->flags >> 8 | told >> 8),
		(uint8_t)(how->flags | told) };
	uint8_t id[32];
	uint8_t cut;
	size_t same = 0;

	for (int i = 0; i < 6; i++)
		put32(made, how->stat);
	put32(made, how->mode ? how->mode : 0100644);
	for (int i = 0; i < 3; i++)
		put32(made, how->stat);
	memset(id, how->id, sizeof(id));
	put(made, id, how->id_size);
	put(made, flags, sizeof(flags));
	if (how->version == 4) {
		while (!how->apart && name[same] && name[same] == before[same])
			same++;
		cut = (uint8_t)(strlen(before) - same);
		put(made, &cut, 1);
	}
	put(made, name + same, strlen(name + same) + 1);
	while (how->version < 4 && (made->size - begin) % 8)
		put(made, "", 1);
}

static struct made
make_open(const struct how *how)
{
	static const char *const two[] = { "dir/a", "dir/bc", NULL };
	const char *const *names = how->names[0] ? how->names : two;
	struct made made = { .size = 0 };
	const char *before = "";
	uint32_t n = 0;

	while (names[n])
		n++;
	put(&made, "DIRC", 4);
	put32(&made, how->version);
	put32(&made, n);
	for (uint32_t i = 0; i < n; i++) {
		made.at[i] = made.size;
		put_entry(&made, how, names[i], before);
		before = names[i];
	}
	made.at[n] = made.size;
	return made;
}

static void
put_extension(struct made *made, const char *name, const void *data, size_t size)
{
	put(made, name, 4);
	put32(made, (uint32_t)size);
	put(made, data, size);
}

static void
put_end(struct made *made, const struct how *how)
{
	const uint8_t sum[32] = { 0 };

	put(made, sum, how->id_size);
}

static struct made
make(const struct how *how)
{
	struct made made = make_open(how);

	if (how->more)
		put_extension(&made, how->more, "xyz", 3);
	put_end(&made, how);
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

static int
check(const struct made *made, size_t id_size)
{
	return rsb_gitindex_check(
		(struct rsb_bytes){ .data = made->data, .size = made->size }, id_size);
}

static int
check_how(const struct how *how)
{
	const struct made made = make(how);

	return check(&made, how->id_size);
}

START_TEST(names_of_the_working_tree_alone)
{
	static const struct how good[] = {
		{ .version = 2,
			.id_size = 20,
			.names = { "a", "a/b", ".gitignore", "..a/.git.x" } },
		{ .version = 4,
			.id_size = 20,
			.names = { "dir/.gitmodules", "dir/.x", "dir/..." } },
		{ .version = 2, .id_size = 32, .more = "TREE" },
		{ .version = 2, .id_size = 20, .names = { "sparse/" }, .mode = 040000 },
		{ .version = 2, .id_size = 20, .names = { "", "b" }, .more = "link" },
	};
	static const char *const bad[] = { "../x", "/x", "a/../x", "..", "a/..", ".", "a/./b",
		"a//b", "a/", ".git/hooks/x", "a/.GIT/x", ".git", "a/b/.git" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(good); i++)
		ck_assert_msg(check_how(&good[i]) == 0, "%zu", i);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		for (uint32_t version = 2; version <= 4; version++) {
			const struct how how = {
				.version = version, .id_size = 20, .names = { "a", bad[i], "z" }
			};

			ck_assert_msg(check_how(&how) == -EACCES, "%u %s", version, bad[i]);
		}
	}
}
END_TEST

/* What git would read otherwise than we do. */
START_TEST(only_what_git_would_write)
{
	static const struct how bad[] = {
		{ .version = 2, .id_size = 20, .names = { "a", "" } },
		{ .version = 2, .id_size = 20, .names = { "a", "b" }, .longer = 1 },
		{ .version = 2, .id_size = 20, .more = "abcd" },
		{ .version = 5, .id_size = 20 },
	};
	const struct made other = make(&(struct how){ .version = 2, .id_size = 32 });

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++)
		ck_assert_msg(check_how(&bad[i]) == -EBADMSG, "%zu", i);
	ck_assert_int_eq(check(&other, 20), -EBADMSG);
}
END_TEST

/* Of two blocks, as git writes for two threads, or with what add says. */
static int
check_table(const struct how *how, const int add[static 5], bool twice)
{
	struct made made = make_open(how);
	struct made table = { .size = 0 };
	struct made end = { .size = 0 };

	put32(&table, (uint32_t)(1 + add[0]));
	put32(&table, (uint32_t)((int)made.at[0] + add[1]));
	put32(&table, (uint32_t)(1 + add[2]));
	put32(&table, (uint32_t)((int)made.at[1] + add[3]));
	put32(&table, (uint32_t)(1 - add[2]));
	put32(&end, (uint32_t)((int)made.at[2] + add[4]));
	put(&end, (uint8_t[32]){ 0 }, how->id_size);
	for (int i = 0; i <= twice; i++)
		put_extension(&made, "IEOT", table.data, table.size);
	put_extension(&made, "EOIE", end.data, end.size);
	put_end(&made, how);
	return check(&made, how->id_size);
}

START_TEST(threads_read_the_same)
{
	static const struct how how = { .version = 2, .id_size = 20 };
	static const struct how apart = { .version = 4, .id_size = 20, .apart = true };
	static const struct how shared = { .version = 4, .id_size = 20 };
	static const int right[5] = { 0 };
	static const int wrong[][5] = { { 1 }, { 0, 8 }, { 0, 0, 1 }, { 0, 0, 0, 8 },
		{ 0, 0, 0, -8 }, { 0, 0, 0, 0, 8 } };
	struct made made;

	ck_assert_int_eq(check_table(&how, right, false), 0);
	ck_assert_int_eq(check_table(&apart, right, false), 0);
	ck_assert_int_eq(check_table(&shared, right, false), -EBADMSG);
	ck_assert_int_eq(check_table(&how, right, true), -EBADMSG);
	/* The end of a file that was shorter when git asked for its size. */
	made = make_open(&how);
	put_extension(&made, "ABCD", "EOIE\0\0\0\x18", 8);
	put_end(&made, &how);
	ck_assert_int_eq(check(&made, how.id_size), -EBADMSG);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(wrong); i++)
		ck_assert_msg(check_table(&how, wrong[i], false) == -EBADMSG, "%zu", i);
}
END_TEST

/* Of a root with the file "x" and the directory dir, in which nothing is. */
static int
check_untracked(const char *dir, const char *name, uint8_t n_told)
{
	static const struct how how = { .version = 2, .id_size = 20 };
	const uint8_t zeros[76 + 40] = { 0 };
	struct made untracked = { .size = 0 };
	struct made made = make_open(&how);

	put(&untracked, "\5here", 6);
	put(&untracked, zeros, sizeof(zeros));
	put(&untracked, ".gitignore", 11);
	put(&untracked, &n_told, 1);
	put(&untracked, "\1\1", 3);
	put(&untracked, name, strlen(name) + 1);
	put(&untracked, "\0", 2);
	put(&untracked, dir, strlen(dir) + 1);
	put(&untracked, zeros, 10);
	put_extension(&made, "UNTR", untracked.data, untracked.size);
	put_end(&made, &how);
	return check(&made, how.id_size);
}

START_TEST(directories_that_git_opens)
{
	static const char *const bad[] = { "..", "../x", "/x", "a/b", ".git", "" };

	ck_assert_int_eq(check_untracked("dir", "x", 2), 0);
	ck_assert_int_eq(check_untracked("dir", "x/", 2), 0);
	ck_assert_int_eq(check_untracked("dir", "x", 1), -EBADMSG);
	ck_assert_int_eq(check_untracked("dir", "x", 3), -EBADMSG);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(check_untracked(bad[i], "x", 2), -EACCES);
		ck_assert_int_eq(check_untracked("dir", bad[i], 2), -EACCES);
	}
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
		what_is_damaged_is_none, names_of_the_working_tree_alone, only_what_git_would_write,
		threads_read_the_same, directories_that_git_opens, by_its_path };

	return unit_run("gitindex", tests, RSB_ARRAY_SIZE(tests));
}
