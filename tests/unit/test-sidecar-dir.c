/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"
#include "util/thread.h"

/* A page is one frame: head, envelope and the list. */
#define PAGE_MAX (RSB_FRAME_MAX - 512)

static int
page(struct rig *rig, uint64_t fh, uint64_t plus, uint64_t max, struct rsb_readdir_rep *rep)
{
	const struct rsb_readdir_req req = {
		.node = rig_root,
		.fh = fh,
		.plus = plus,
		.first_id = rig->next,
		.max = max,
	};
	int r = rig_do(rig, readdir, &req, rep);

	rig->next += RSB_DIRENTS_MAX;
	if (r == 0)
		ck_assert_uint_le(rsb_buf_len(&rig->last), PAGE_MAX);
	return r;
}

static void
name_file(char *name, size_t size, unsigned int i)
{
	(void)snprintf(name, size, "file-with-a-name-%05u", i);
}

static unsigned int
number_of(const struct rsb_dirent *d)
{
	char name[RSB_NAME_MAX + 1] = "";
	unsigned int i;

	memcpy(name, d->name.data, d->name.size);
	ck_assert_int_eq(sscanf(name, "file-with-a-name-%05u", &i), 1);
	return i;
}

START_TEST(lists_everything_once_with_ids_and_attributes)
{
	struct rig rig;
	struct rsb_readdir_rep rep;
	struct rsb_dirent d;
	struct rsb_node known, nodes[4];
	unsigned int n = 0;

	rig_init(&rig);
	rig_put(&rig, "f", "12345");
	ck_assert_int_eq(mkdirat(rig.dir_fd, "d", 0700), 0);
	ck_assert_int_eq(symlinkat("f", rig.dir_fd, "s"), 0);
	ck_assert_int_eq(mkfifoat(rig.dir_fd, "p", 0600), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &known, NULL), 0);
	uint64_t first = rig.next;
	ck_assert_int_eq(page(&rig, 5, 1, 0, &rep), 0);
	ck_assert_uint_eq(rep.done, 1);
	ck_assert_uint_eq(rep.entries.n, 4);
	ck_assert_uint_eq(rep.dir.mode & S_IFMT, S_IFDIR);
	while (rsb_seq_next(&rep.entries, &rsb_desc_rsb_dirent, &d) > 0) {
		ck_assert_uint_lt(n, RSB_ARRAY_SIZE(nodes));
		nodes[n] = (struct rsb_node){ .id = d.id, .ino = d.ino, .btime = d.attr.btime };
		ck_assert_uint_eq(d.ino, d.attr.ino);
		ck_assert_uint_eq(d.type, IFTODT(d.attr.mode));
		if (d.name.data[0] == 'f') {
			ck_assert_uint_eq(d.id, known.id);
			ck_assert_uint_eq(d.attr.size, 5);
		} else {
			ck_assert_uint_eq(d.id, first + n);
		}
		n++;
	}
	ck_assert_uint_eq(n, 4);
	/* They count as given: the ids mean the files from now on. */
	for (n = 0; n < RSB_ARRAY_SIZE(nodes); n++)
		ck_assert_int_eq(rig_getattr(&rig, &nodes[n], NULL), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(lists_names_alone_when_asked_so)
{
	struct rig rig;
	struct rsb_readdir_rep rep;
	struct rsb_dirent d;
	struct rsb_nodes_stats stats;

	rig_init(&rig);
	ck_assert_int_eq(mkdirat(rig.dir_fd, "d", 0700), 0);
	ck_assert_int_eq(page(&rig, 5, 0, 0, &rep), 0);
	ck_assert_int_eq(rsb_seq_next(&rep.entries, &rsb_desc_rsb_dirent, &d), 1);
	ck_assert_uint_eq(d.id, 0);
	ck_assert_uint_eq(d.attr.ino, 0);
	ck_assert_uint_ne(d.ino, 0);
	ck_assert_uint_eq(d.type, DT_DIR);
	rsb_nodes_stats(rig.sess.nodes, &stats);
	ck_assert_uint_eq(stats.n_id, 1);
	rig_done(&rig);
}
END_TEST

START_TEST(pages_through_ten_thousand_while_half_of_them_vanish)
{
	const unsigned int n_file = 10000;
	static uint8_t seen[10000];
	struct rig rig;
	struct rsb_readdir_rep rep;
	struct rsb_dirent d;
	unsigned int n_page = 0;
	char name[64];

	rig_init(&rig);
	for (unsigned int i = 0; i < n_file; i++) {
		name_file(name, sizeof(name), i);
		rig_put(&rig, name, "");
	}
	do {
		ck_assert_int_eq(page(&rig, 5, 1, 0, &rep), 0);
		while (rsb_seq_next(&rep.entries, &rsb_desc_rsb_dirent, &d) > 0) {
			ck_assert(n_page == 0 || number_of(&d) % 2 == 0);
			seen[number_of(&d)]++;
		}
		/* After the first page all odd ones go. */
		for (unsigned int i = 1; n_page == 0 && i < n_file; i += 2) {
			name_file(name, sizeof(name), i);
			ck_assert_int_eq(unlinkat(rig.dir_fd, name, 0), 0);
		}
		n_page++;
	} while (!rep.done);
	ck_assert_uint_ge(n_page, 5);
	for (unsigned int i = 0; i < n_file; i++) {
		if (i % 2 == 0)
			ck_assert_uint_eq(seen[i], 1);
		else
			ck_assert_uint_le(seen[i], 1);
	}
	ck_assert_uint_eq(rsb_fhs_count(rig.sess.fhs), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(deletes_everything_that_it_lists)
{
	const unsigned int n_file = 1500;
	struct rig rig;
	struct rsb_readdir_rep rep;
	struct rsb_dirent d;
	unsigned int n = 0;
	char name[64];

	rig_init(&rig);
	for (unsigned int i = 0; i < n_file; i++) {
		name_file(name, sizeof(name), i);
		rig_put(&rig, name, "");
	}
	do {
		ck_assert_int_eq(page(&rig, 5, 0, 100, &rep), 0);
		ck_assert_uint_le(rep.entries.n, 100);
		while (rsb_seq_next(&rep.entries, &rsb_desc_rsb_dirent, &d) > 0) {
			name_file(name, sizeof(name), number_of(&d));
			ck_assert_int_eq(unlinkat(rig.dir_fd, name, 0), 0);
			n++;
		}
	} while (!rep.done);
	ck_assert_uint_eq(n, n_file);
	rig_done(&rig);
}
END_TEST

START_TEST(keeps_a_page_of_the_longest_names_in_one_frame)
{
	struct rig rig;
	struct rsb_readdir_rep rep;
	unsigned int n = 0;
	char name[RSB_NAME_MAX + 1];

	rig_init(&rig);
	for (unsigned int i = 0; i < 500; i++) {
		memset(name, 'x', RSB_NAME_MAX);
		name[RSB_NAME_MAX] = '\0';
		(void)snprintf(name, 8, "%06u", i);
		name[6] = 'x';
		rig_put(&rig, name, "");
	}
	do {
		ck_assert_int_eq(page(&rig, 5, 1, UINT64_MAX, &rep), 0);
		n += (unsigned int)rep.entries.n;
	} while (!rep.done);
	ck_assert_uint_eq(n, 500);
	rig_done(&rig);
}
END_TEST

START_TEST(closes_a_listing_at_its_end_or_when_told)
{
	const struct rsb_fh_req close = { .fh = 5 };
	struct rig rig;
	struct rsb_readdir_rep rep;

	rig_init(&rig);
	rig_put(&rig, "a", "");
	rig_put(&rig, "b", "");
	ck_assert_int_eq(page(&rig, 5, 0, 1, &rep), 0);
	ck_assert_uint_eq(rep.done, 0);
	ck_assert_uint_eq(rsb_fhs_count(rig.sess.fhs), 1);
	ck_assert_int_eq(rig_do(&rig, releasedir, &close, NULL), 0);
	ck_assert_uint_eq(rsb_fhs_count(rig.sess.fhs), 0);
	ck_assert_int_eq(rig_do(&rig, releasedir, &close, NULL), -EBADF);
	ck_assert_int_eq(page(&rig, 6, 0, 0, &rep), 0);
	ck_assert_uint_eq(rep.done, 1);
	ck_assert_uint_eq(rsb_fhs_count(rig.sess.fhs), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(refuses_numbers_that_make_no_sense)
{
	struct rig rig;
	struct rsb_readdir_rep rep;
	struct rsb_node file;
	uint64_t fh;

	rig_init(&rig);
	rig_put(&rig, "f", "");
	ck_assert_int_eq(page(&rig, 0, 0, 0, &rep), -EINVAL);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &file, NULL), 0);
	ck_assert_int_eq(rig_open(&rig, &file, O_RDONLY, &fh), 0);
	ck_assert_int_eq(page(&rig, fh, 0, 0, &rep), -EBADF);

	struct rsb_readdir_req req = { .node = rig_root, .fh = 9, .plus = 1 };
	ck_assert_int_eq(rig_do(&rig, readdir, &req, &rep), -EINVAL);
	req.first_id = UINT64_MAX;
	ck_assert_int_eq(rig_do(&rig, readdir, &req, &rep), -EINVAL);
	req.node = file;
	req.first_id = 1;
	ck_assert_int_eq(rig_do(&rig, readdir, &req, &rep), -ENOTDIR);

	/* Ids that others have: the entries come without. */
	struct rsb_dirent d;
	rig_put(&rig, "g", "");
	req = (struct rsb_readdir_req){ .node = rig_root, .fh = 9, .plus = 1, .first_id = 1 };
	ck_assert_int_eq(rig_do(&rig, readdir, &req, &rep), 0);
	ck_assert_uint_eq(rep.entries.n, 2);
	while (rsb_seq_next(&rep.entries, &rsb_desc_rsb_dirent, &d) > 0)
		ck_assert(d.id == file.id || d.id == 0 || d.id == 2);
	rig_done(&rig);
}
END_TEST

START_TEST(ends_the_listing_of_a_directory_that_was_removed)
{
	struct rig rig;
	struct rsb_node dir;
	struct rsb_readdir_rep rep;
	char name[64];

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	for (unsigned int i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "d/%u", i);
		rig_put(&rig, name, "");
	}
	struct rsb_readdir_req req = { .node = dir, .fh = 9, .max = 1 };
	ck_assert_int_eq(rig_do(&rig, readdir, &req, &rep), 0);
	ck_assert_uint_eq(rep.done, 0);
	for (unsigned int i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "d/%u", i);
		ck_assert_int_eq(unlinkat(rig.dir_fd, name, 0), 0);
	}
	ck_assert_int_eq(unlinkat(rig.dir_fd, "d", AT_REMOVEDIR), 0);
	for (int i = 0; i < 4 && !rep.done; i++)
		ck_assert_int_eq(rig_do(&rig, readdir, &req, &rep), 0);
	ck_assert_uint_eq(rep.done, 1);
	rig_done(&rig);
}
END_TEST

struct reader {
	struct rig *rig;
	uint64_t first_id;
	unsigned int n; /* entries that it got */
};

static void *
read_one_page(void *arg)
{
	struct reader *reader = arg;
	struct rsb_buf buf = { .max = 0 };
	struct rsb_readdir_rep rep;
	const struct rsb_readdir_req req = {
		.node = rig_root,
		.fh = 5,
		.plus = 1,
		.first_id = reader->first_id,
		.max = 100,
	};

	if (rig_finish(rig_start(reader->rig, RSB_OP_readdir, &req), &rep, &buf) == 0)
		reader->n = (unsigned int)rep.entries.n;
	rsb_buf_done(&buf);
	return NULL;
}

START_TEST(hands_pages_that_are_asked_for_at_once_out_one_by_one)
{
	struct rig rig;
	struct reader readers[4];
	pthread_t threads[RSB_ARRAY_SIZE(readers)];
	struct rsb_readdir_rep rep;
	char name[64];

	rig_init(&rig);
	for (unsigned int i = 0; i < 450; i++) {
		name_file(name, sizeof(name), i);
		rig_put(&rig, name, "");
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(readers); i++) {
		readers[i] = (struct reader){ .rig = &rig, .first_id = 10000 * (i + 1) };
		ck_assert_int_eq(
			rsb_thread_start("reader", read_one_page, &readers[i], &threads[i]), 0);
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(readers); i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_uint_eq(readers[i].n, 100);
	}
	/* They were four different pages. */
	ck_assert_int_eq(page(&rig, 5, 1, 0, &rep), 0);
	ck_assert_uint_eq(rep.entries.n, 50);
	ck_assert_uint_eq(rep.done, 1);
	rig_done(&rig);
}
END_TEST

START_TEST(syncs_directories)
{
	struct rig rig;
	struct rsb_node file;
	struct rsb_fsyncdir_req req = { .node = rig_root };

	rig_init(&rig);
	ck_assert_int_eq(rig_do(&rig, fsyncdir, &req, NULL), 0);
	rig_put(&rig, "f", "");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &file, NULL), 0);
	req.node = file;
	ck_assert_int_eq(rig_do(&rig, fsyncdir, &req, NULL), -ENOTDIR);
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		lists_everything_once_with_ids_and_attributes,
		lists_names_alone_when_asked_so,
		pages_through_ten_thousand_while_half_of_them_vanish,
		deletes_everything_that_it_lists,
		keeps_a_page_of_the_longest_names_in_one_frame,
		closes_a_listing_at_its_end_or_when_told,
		refuses_numbers_that_make_no_sense,
		ends_the_listing_of_a_directory_that_was_removed,
		hands_pages_that_are_asked_for_at_once_out_one_by_one,
		syncs_directories,
	};

	return unit_run("sidecar-dir", tests, RSB_ARRAY_SIZE(tests));
}
