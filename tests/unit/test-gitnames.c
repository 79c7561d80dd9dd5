/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "keeper/gitnames.h"
#include "tests/unit/unit.h"

static int
judge(enum rsb_git_kind kind, struct rsb_bytes text, size_t id_size)
{
	/* Trust is no way around it. */
	const struct rsb_gitallow what = {
		.kind = kind, .text = text, .trusted = &text, .id_size = id_size
	};
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { 0 };
	char why[RSB_GITALLOW_WHY_MAX];
	int r = rsb_gitallow_judge(&what, &view, why);

	ck_assert_int_eq(r == RSB_GITALLOW_DENIED, why[0] != '\0');
	ck_assert_uint_eq(rsb_buf_len(&view), 0);
	return r;
}

#define BYTES(text) ((struct rsb_bytes){ (const uint8_t *)(text), sizeof(text) - 1 })

START_TEST(by_its_name)
{
	static const struct {
		const char *name;
		enum rsb_git_kind kind;
	} names[] = {
		{ "index", RSB_GIT_INDEX },
		{ "sharedindex.0123", RSB_GIT_INDEX },
		{ "multi-pack-index", RSB_GIT_PACKS },
		{ "multi-pack-index-0123.midx", RSB_GIT_PACKS },
		{ "index.lock", RSB_GIT_NONE },
		{ "index.js", RSB_GIT_NONE },
		{ "packed-refs", RSB_GIT_NONE },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++)
		ck_assert_msg(rsb_gitnames_kind(rsb_bytes_str(names[i].name)) == names[i].kind,
			"%s", names[i].name);
}
END_TEST

START_TEST(of_one_command)
{
	ck_assert(rsb_gitnames_is_scratch(rsb_bytes_str("index.lock")));
	ck_assert(rsb_gitnames_is_scratch(rsb_bytes_str("index.stash.123")));
	ck_assert(rsb_gitnames_is_scratch(rsb_bytes_str("next-index-123.lock")));
	ck_assert(!rsb_gitnames_is_scratch(rsb_bytes_str("index")));
	ck_assert(!rsb_gitnames_is_scratch(rsb_bytes_str("next")));
}
END_TEST

START_TEST(ids_are_of_one_format)
{
	const unsigned int one = rsb_gitnames_formats(BYTES("[core]\nbare = false\n"));
	const unsigned int other =
		rsb_gitnames_formats(BYTES("[extensions]\nobjectFormat = sha256\n"));

	ck_assert_uint_eq(rsb_gitnames_id_size(0), 20);
	ck_assert_uint_eq(rsb_gitnames_id_size(one), 20);
	ck_assert_uint_eq(rsb_gitnames_id_size(other), 32);
	ck_assert_uint_eq(rsb_gitnames_id_size(one | other), 0);
	ck_assert_uint_eq(rsb_gitnames_formats(BYTES("[extensions]\nobjectformat = sha1\n")), one);
	ck_assert_uint_eq(rsb_gitnames_formats(BYTES("[extensions]\nobjectformat = sha256\n"
						     "objectformat = sha1\n")),
		one | other);
	ck_assert_uint_eq(rsb_gitnames_formats(BYTES("[core\n")), one | other);
}
END_TEST

START_TEST(an_index)
{
	static const char made[] = "DIRC\0\0\0\2\0\0\0\0"
				   "01234567890123456789";

	ck_assert_int_eq(judge(RSB_GIT_INDEX, BYTES(made), 20), RSB_GITALLOW_AS_IS);
	ck_assert_int_eq(judge(RSB_GIT_INDEX, BYTES(made), 32), RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_INDEX, BYTES(made), 0), RSB_GITALLOW_DENIED);
	/* Git takes nothing from these. */
	ck_assert_int_eq(judge(RSB_GIT_INDEX, BYTES(""), 0), RSB_GITALLOW_AS_IS);
	ck_assert_int_eq(judge(RSB_GIT_INDEX, BYTES("words"), 20), RSB_GITALLOW_AS_IS);
}
END_TEST

/* A list of two packs behind a chunk of another kind. */
#define MIDX(n) "MIDX\1\1\2\0\0\0\0" n
#define CHUNKS "OIDF\0\0\0\0\0\0\0\x30PNAM\0\0\0\0\0\0\0\x34\0\0\0\0\0\0\0\0\0\0\0\x40"

START_TEST(a_list_of_packs)
{
	ck_assert_int_eq(judge(RSB_GIT_PACKS, BYTES(MIDX("\2") CHUNKS "....pack-a\0pack-b\0"), 0),
		RSB_GITALLOW_AS_IS);
	ck_assert_int_eq(judge(RSB_GIT_PACKS, BYTES(MIDX("\2") CHUNKS "....pack-a\0../ck-b\0"), 0),
		RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_PACKS, BYTES(MIDX("\2") CHUNKS "....pack-a\0..\0"), 0),
		RSB_GITALLOW_DENIED);
	/* Git reads on where the chunk ends. */
	ck_assert_int_eq(
		judge(RSB_GIT_PACKS, BYTES(MIDX("\3") CHUNKS "....pack-a\0pack-b\0/x\0"), 0),
		RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_PACKS, BYTES(MIDX("\3") CHUNKS "....pack-a\0pack-b\0"), 0),
		RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_PACKS, BYTES(MIDX("\2")), 0), RSB_GITALLOW_DENIED);
	ck_assert_int_eq(
		judge(RSB_GIT_PACKS, BYTES("MIDX\1\1\0\0\0\0\0\0"), 0), RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_PACKS, BYTES("words"), 0), RSB_GITALLOW_AS_IS);
}
END_TEST

START_TEST(a_list_of_tables)
{
	ck_assert_int_eq(judge(RSB_GIT_TABLES, BYTES("0x01-0x02-ab.ref\n0x03-0x03-cd.ref\n"), 0),
		RSB_GITALLOW_AS_IS);
	ck_assert_int_eq(judge(RSB_GIT_TABLES, BYTES(""), 0), RSB_GITALLOW_AS_IS);
	ck_assert_int_eq(
		judge(RSB_GIT_TABLES, BYTES("a.ref\n../../x.ref\n"), 0), RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_TABLES, BYTES("/x.ref"), 0), RSB_GITALLOW_DENIED);
	ck_assert_int_eq(judge(RSB_GIT_TABLES, BYTES("a\0b\n"), 0), RSB_GITALLOW_DENIED);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { by_its_name, of_one_command, ids_are_of_one_format, an_index,
		a_list_of_packs, a_list_of_tables };

	return unit_run("gitnames", tests, RSB_ARRAY_SIZE(tests));
}
