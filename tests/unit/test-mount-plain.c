/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fuse/attr.h"
#include "fuse/cache.h"
#include "fuse/dirsnap.h"
#include "fuse/options.h"
#include "proto/limits.h"
#include "tests/unit/unit.h"

/* ---- dirsnap ---- */

START_TEST(a_listing_keeps_its_offsets)
{
	struct rsb_dirsnaps all = { .max = 1 << 20 };
	struct rsb_dirsnap_entry e = { .ino = 9, .type = DT_REG };
	struct rsb_dirsnap_entry got;
	struct rsb_dirsnap *snap;
	char name[16];

	ck_assert_int_eq(rsb_dirsnap_new(&all, 1, 2, &snap), 0);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		e.name = rsb_bytes_str(name);
		ck_assert_int_eq(rsb_dirsnap_add(snap, &e), 0);
	}
	ck_assert_int_eq(rsb_dirsnap_state(snap), 0);
	rsb_dirsnap_finish(snap, 0);
	ck_assert_int_eq(rsb_dirsnap_state(snap), 1);
	ck_assert_uint_eq(rsb_dirsnap_count(snap), 1002);
	ck_assert_int_eq(rsb_dirsnap_get(snap, 1, &got), 1);
	ck_assert_mem_eq(got.name.data, "..", 2);
	ck_assert_uint_eq(got.ino, 2);
	ck_assert_int_eq(rsb_dirsnap_get(snap, 502, &got), 1);
	ck_assert_uint_eq(got.name.size, 4);
	ck_assert_mem_eq(got.name.data, "f500", 4);
	ck_assert_int_eq(rsb_dirsnap_get(snap, 1002, &got), 0);
	rsb_dirsnap_free(snap);
	ck_assert_uint_eq(all.size, 0);
}
END_TEST

START_TEST(a_failed_listing_says_so)
{
	struct rsb_dirsnaps all = { .max = 1 << 20 };
	struct rsb_dirsnap_entry got;
	struct rsb_dirsnap *snap;

	ck_assert_int_eq(rsb_dirsnap_new(&all, 1, 2, &snap), 0);
	rsb_dirsnap_finish(snap, -EACCES);
	ck_assert_int_eq(rsb_dirsnap_state(snap), -EACCES);
	ck_assert_int_eq(rsb_dirsnap_get(snap, 0, &got), 0);
	ck_assert_uint_eq(all.size, 0);
	rsb_dirsnap_free(snap);
}
END_TEST

/* Adds up to n names; the result of the last. */
static int
add_names(struct rsb_dirsnap *snap, int n)
{
	const struct rsb_dirsnap_entry e = { .name = rsb_bytes_str("some name"), .ino = 9 };
	int r = 0;

	for (int i = 0; i < n && r == 0; i++)
		r = rsb_dirsnap_add(snap, &e);
	return r;
}

START_TEST(listings_share_one_budget)
{
	struct rsb_dirsnaps all = { .max = 40000 };
	struct rsb_dirsnap *first, *second, *third;

	ck_assert_int_eq(rsb_dirsnap_new(&all, 1, 2, &first), 0);
	ck_assert_int_eq(rsb_dirsnap_new(&all, 1, 2, &second), 0);
	ck_assert_int_eq(add_names(first, 500), 0);
	ck_assert_int_eq(add_names(second, 100000), -ENOMEM);
	ck_assert_uint_le(all.size, all.max);
	/* The one that was whole stays; the one that failed makes room for others. */
	rsb_dirsnap_finish(first, 0);
	rsb_dirsnap_finish(second, -ENOMEM);
	ck_assert_uint_eq(rsb_dirsnap_count(first), 502);
	ck_assert_int_eq(rsb_dirsnap_new(&all, 1, 2, &third), 0);
	ck_assert_int_eq(add_names(third, 500), 0);
	rsb_dirsnap_free(first);
	rsb_dirsnap_free(second);
	rsb_dirsnap_free(third);
	ck_assert_uint_eq(all.size, 0);
}
END_TEST

/* Pages of n names each, until it was refused; their number, at most max. */
static int
pages_of(int n, int max)
{
	struct rsb_dirsnaps all = { .max = RSB_LISTINGS_MAX };
	struct rsb_dirsnap *snap;
	int n_page = 0;
	int r = 0;

	ck_assert_int_eq(rsb_dirsnap_new(&all, 1, 2, &snap), 0);
	while (r == 0 && n_page < max) {
		ck_assert_int_eq(add_names(snap, n), 0);
		r = rsb_dirsnap_page(snap);
		n_page++;
	}
	ck_assert(r == 0 || r == -EIO);
	rsb_dirsnap_free(snap);
	return n_page;
}

START_TEST(a_listing_that_gets_nowhere_ends)
{
	ck_assert_int_eq(pages_of(0, 1000), (int)RSB_DIRSNAP_PAGES_SPARE + 1);
	ck_assert_int_lt(pages_of(1, 1000), 100);
	ck_assert_int_eq(pages_of(100, 1000), 1000);
}
END_TEST

/* ---- cache ---- */

START_TEST(the_past_is_told_only_when_nobody_else_writes)
{
	struct rsb_cache cache;
	uint64_t learnt;

	rsb_cache_init(&cache);
	ck_assert(rsb_cache_ttl(&cache) <= 0);
	cache.link_live = true;
	ck_assert(rsb_cache_ttl(&cache) > 0);
	learnt = cache.generation;
	ck_assert(rsb_cache_valid(&cache, learnt));
	rsb_cache_foreign_begin(&cache);
	rsb_cache_foreign_begin(&cache);
	ck_assert(!rsb_cache_valid(&cache, learnt));
	ck_assert(!rsb_cache_valid(&cache, cache.generation));
	ck_assert(rsb_cache_ttl(&cache) <= 0);
	rsb_cache_foreign_end(&cache);
	ck_assert(!rsb_cache_on(&cache));
	rsb_cache_foreign_end(&cache);
	ck_assert(rsb_cache_on(&cache));
	ck_assert(!rsb_cache_valid(&cache, learnt));
	ck_assert(rsb_cache_valid(&cache, cache.generation));
	/* What was true when the link broke is still the best to tell. */
	cache.link_live = false;
	ck_assert(rsb_cache_valid(&cache, cache.generation));
	ck_assert(rsb_cache_ttl(&cache) <= 0);
}
END_TEST

/* ---- attr ---- */

START_TEST(ids_are_mapped_both_ways)
{
	const struct rsb_idmap user = {
		.uid = 1000,
		.gid = 1001,
		.far_uid = 5000,
		.far_gid = 5001,
	};
	const struct rsb_idmap none = { .forward = true };
	struct rsb_attr attr = { .uid = 5000, .gid = 5001, .size = 7, .nlink = 2 };
	struct rsb_who who;
	struct stat st;
	uint64_t id;

	attr.mtime = (struct rsb_time){ .sec = -5, .nsec = 999999999 };
	rsb_attr_to_stat(&attr, &user, &st);
	ck_assert_uint_eq(st.st_uid, 1000);
	ck_assert_uint_eq(st.st_gid, 1001);
	ck_assert_int_eq(st.st_mtim.tv_sec, -5);
	ck_assert_int_eq(st.st_mtim.tv_nsec, 999999999);
	attr.uid = 0;
	rsb_attr_to_stat(&attr, &user, &st);
	ck_assert_uint_eq(st.st_uid, 0);
	ck_assert_int_eq(rsb_idmap_uid_out(&user, 1000, &id), 0);
	ck_assert_uint_eq(id, 5000);
	ck_assert_int_eq(rsb_idmap_uid_out(&user, 0, &id), -EPERM);
	ck_assert_int_eq(rsb_idmap_gid_out(&user, 1000, &id), -EPERM);
	ck_assert_int_eq(rsb_idmap_gid_out(&none, 1000, &id), 0);
	ck_assert_uint_eq(id, 1000);
	ck_assert_uint_eq(rsb_idmap_who(&user, 1, 2).has, 0);
	who = rsb_idmap_who(&none, 1, 2);
	ck_assert_uint_eq(who.has, 1);
	ck_assert_uint_eq(who.gid, 2);
}
END_TEST

/* ---- options ---- */

static int
parse(struct rsb_options *o, const char *line)
{
	char text[256];
	char *argv[16];
	char *save;
	int n = 0;

	(void)snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok_r(text, " ", &save); w && n < 15; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	return rsb_options_parse(n, argv, o, NULL);
}

START_TEST(takes_what_mount_says)
{
	struct rsb_options o;

	ck_assert_int_eq(parse(&o, "/sbin/mount.fuse.rsb rsb:dev /mnt -s -f -n -o "
				   "rw,noauto,x-systemd.automount,_netdev,allow_other"),
		0);
	ck_assert(o.helper && o.fake && !o.foreground && o.allow_other && !o.read_only);
	ck_assert_str_eq(o.name, "dev");
	ck_assert_str_eq(o.directory, "/mnt");
	rsb_options_done(&o);
}
END_TEST

START_TEST(takes_keys_of_the_configuration)
{
	struct rsb_options o;

	ck_assert_int_eq(parse(&o, "rsb-mount -f -o exec.env=A,B -o ro,idmap=none -o "
				   "mount.sync=on -- dev /mnt"),
		0);
	ck_assert(o.foreground && o.read_only);
	ck_assert_str_eq(o.idmap, "none");
	ck_assert_str_eq(o.overrides[0], "exec.env=A,B");
	ck_assert_str_eq(o.overrides[1], "mount.sync=on");
	ck_assert_ptr_null(o.overrides[2]);
	rsb_options_done(&o);
}
END_TEST

START_TEST(refuses_what_it_does_not_know)
{
	static const char *const lines[] = {
		"rsb-mount dev",
		"rsb-mount dev /mnt more",
		"rsb-mount -o nonsense dev /mnt",
		"rsb-mount -o idmap=root dev /mnt",
		"rsb-mount -o suid dev /mnt",
		"rsb-mount -o dev dev /mnt",
		"rsb-mount -Z dev /mnt",
		"rsb-mount",
		"rsb-mount -u",
	};
	struct rsb_options o;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(lines); i++) {
		ck_assert_msg(parse(&o, lines[i]) == -EINVAL, "%s", lines[i]);
		rsb_options_done(&o);
	}
	ck_assert_int_eq(parse(&o, "mount.fuse.rsb -s -o nonsense dev /mnt"), 0);
	rsb_options_done(&o);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_listing_keeps_its_offsets,
		a_failed_listing_says_so,
		listings_share_one_budget,
		a_listing_that_gets_nowhere_ends,
		the_past_is_told_only_when_nobody_else_writes,
		ids_are_mapped_both_ways,
		takes_what_mount_says,
		takes_keys_of_the_configuration,
		refuses_what_it_does_not_know,
	};

	return unit_run("mount-plain", tests, RSB_ARRAY_SIZE(tests));
}
