/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/version.h"
#include "sidecar/listdiff.h"
#include "sidecar/listkeep.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/fd.h"

static char got[1 << 16];

/* "a/ a/b! c": directories end with a slash, of what has a '!' the change time is not known. */
static int
write_list(const char *text, int64_t sec)
{
	rsb_autofree char *words = strdup(text);
	char *save = NULL;
	int fd = rsb_listkeep_file();

	ck_assert_int_ge(fd, 0);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
		char last = word[strlen(word) - 1];
		struct rsb_leaf leaf = { .mode = last == '/' ? S_IFDIR | 0755 : S_IFREG | 0644 };
		uint8_t head[4] = { 0 };

		if (last == '/' || last == '!' || last == '+')
			word[strlen(word) - 1] = '\0';
		leaf.path = rsb_bytes_str(word);
		leaf.ctime.sec = last == '!' ? 0 : last == '+' ? sec : 5;
		ck_assert_int_eq(
			rsb_codec_encode(&rsb_desc_rsb_leaf, &leaf, RSB_PROTO_VERSION, &out), 0);
		head[0] = (uint8_t)rsb_buf_len(&out);
		ck_assert_int_eq(rsb_fd_write_full(fd, head, 4), 0);
		ck_assert_int_eq(rsb_fd_write_full(fd, rsb_buf_head(&out), rsb_buf_len(&out)), 0);
	}
	return fd;
}

static int
emit(void *arg, struct rsb_bytes record)
{
	struct rsb_leaf leaf;
	size_t n = strlen(got);

	(void)arg;
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_leaf, record, &leaf), 0);
	(void)snprintf(got + n, sizeof(got) - n, "%s%s%.*s", n ? " " : "", leaf.mode ? "" : "-",
		(int)leaf.path.size, (const char *)leaf.path.data);
	return 0;
}

static int
diff(int old_fd, int new_fd)
{
	const struct rsb_listdiff diff = {
		.old_fd = old_fd, .new_fd = new_fd, .version = RSB_PROTO_VERSION, .emit = emit
	};

	got[0] = '\0';
	return rsb_listdiff(&diff);
}

static void
expect(const char *old, const char *now, const char *want)
{
	rsb_autoclose int a = write_list(old, 6);
	rsb_autoclose int b = write_list(now, 7);

	ck_assert_int_eq(diff(a, b), 0);
	ck_assert_str_eq(got, want);
}

START_TEST(what_is_different_comes_with_the_way_to_it)
{
	expect("", "", "");
	expect("a b/ b/c", "a b/ b/c", "");
	expect("", "a b/ b/c", "a b b/c");
	expect("a b/ b/c", "", "-a -b -b/c");
	expect("a+ b", "a+ b", "a");
	/* Every directory on the way, before what is in it, once. */
	expect("a/ a/b/ a/b/c+ a/b/d+ a/e a/f+ g/ g/h", "a/ a/b/ a/b/c+ a/b/d+ a/e a/f+ g/ g/h",
		"a a/b a/b/c a/b/d a/f");
	expect("a/ a/b/ a/b/c d/ d/e", "a/ a/b/ d/ d/e d/f", "a a/b -a/b/c d d/f");
	/* Where there is none any more there is no way. */
	expect("a/ a/b/ a/b/c d", "a/ d", "a -a/b -a/b/c");
	expect("a/ a/b x", "a x", "a -a/b");
	expect("a x", "a/ a/b x", "a a/b");
	/* A name that begins like another is not in it. */
	expect("a/ a/b a-b+", "a/ a/b a-b+", "a-b");
	/* It may have changed since, and not show it. */
	expect("a! b/ b/c!", "a! b/ b/c!", "a b b/c");
}
END_TEST

START_TEST(long_lists_are_gone_through_in_pieces)
{
	rsb_autofree char *text = calloc(1, 1 << 20);
	size_t n = 0;

	for (unsigned int i = 0; i < 20000; i++)
		n += (size_t)sprintf(text + n, "file%06u%s ", i, i % 5000 == 4999 ? "+" : "");
	expect(text, text, "file004999 file009999 file014999 file019999");
}
END_TEST

START_TEST(what_is_no_list_is_refused)
{
	rsb_autoclose int good = write_list("a/ a/b c", 6);
	struct stat st;

	ck_assert_int_eq(fstat(good, &st), 0);
	for (off_t size = 1; size < st.st_size; size++) {
		rsb_autoclose int bad = write_list("a/ a/b c", 6);
		const bool whole = size * 3 % st.st_size == 0 || size * 3 % (2 * st.st_size) == 0;

		ck_assert_int_eq(ftruncate(bad, size), 0);
		/* Between two leaves a list may end. */
		ck_assert(diff(bad, good) == -EBADMSG || diff(bad, good) == 0 || whole);
		ck_assert(diff(good, bad) == -EBADMSG || diff(good, bad) == 0 || whole);
	}
	{
		rsb_autoclose int bad = rsb_listkeep_file();

		ck_assert_int_eq(rsb_fd_write_full(bad, "\xff\xff\xff\xff", 4), 0);
		ck_assert_int_eq(diff(bad, good), -EBADMSG);
		ck_assert_int_eq(pwrite(bad, "\x03\0\0\0abc", 7, 0), 7);
		ck_assert_int_eq(diff(good, bad), -EBADMSG);
	}
}
END_TEST

START_TEST(those_used_last_are_kept)
{
	struct rsb_listkeep *keep;
	uint64_t ids[RSB_LISTKEEP_N + 1];

	ck_assert_int_eq(rsb_listkeep_new(&keep), 0);
	ck_assert_int_eq(rsb_listkeep_get(keep, 0), -ENOENT);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(ids); i++) {
		rsb_autoclose int first = -1;

		ck_assert_int_eq(rsb_listkeep_add(keep, rsb_listkeep_file(), &ids[i]), 0);
		ck_assert(ids[i] > 0 && ids[i] <= INT64_MAX);
		/* The first is used again each time. */
		first = rsb_listkeep_get(keep, ids[0]);
		ck_assert_int_ge(first, 0);
	}
	ck_assert_int_eq(rsb_listkeep_get(keep, ids[1]), -ENOENT);
	for (size_t i = 2; i < RSB_ARRAY_SIZE(ids); i++) {
		rsb_autoclose int fd = rsb_listkeep_get(keep, ids[i]);

		ck_assert_int_ge(fd, 0);
	}
	rsb_listkeep_free(keep);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { what_is_different_comes_with_the_way_to_it,
		long_lists_are_gone_through_in_pieces, what_is_no_list_is_refused,
		those_used_last_are_kept };

	return unit_run("listdiff", tests, RSB_ARRAY_SIZE(tests));
}
