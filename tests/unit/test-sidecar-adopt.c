/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/errmap.h"
#include "proto/version.h"
#include "tests/unit/rig.h"

#define N_MAX 32

/* What a host tells, and what it hears. */
struct tale {
	struct rsb_adopt_one ones[N_MAX];
	size_t n;
	uint64_t failed[N_MAX]; /* ids */
	int errors[N_MAX];
	size_t n_failed;
};

/* As it was given before: n_given times. */
static struct rsb_adopt_one *
add(struct tale *tale, const struct rsb_node *node, uint64_t parent, const char *name)
{
	struct rsb_adopt_one *one = &tale->ones[tale->n++];

	*one = (struct rsb_adopt_one){
		.node = *node,
		.type = S_IFREG,
		.n_given = 1,
		.parent = parent,
		.name = rsb_bytes_str(name),
	};
	return one;
}

static void
tell(struct rig *rig, struct tale *tale)
{
	struct rsb_adopt_failed failed;
	struct rsb_adopt_req req;
	struct rsb_adopt_rep rep;
	struct rsb_buf list;

	rsb_buf_init(&list, RSB_MESSAGE_MAX);
	for (size_t i = 0; i < tale->n; i++)
		ck_assert_int_eq(rsb_seq_append(&rsb_desc_rsb_adopt_one, &tale->ones[i],
					 RSB_PROTO_VERSION, &list),
			0);
	req.nodes = rsb_seq_of(&list, tale->n);
	ck_assert_int_eq(rig_do(rig, adopt, &req, &rep), 0);
	tale->n_failed = 0;
	while (rsb_seq_next(&rep.failed, &rsb_desc_rsb_adopt_failed, &failed) > 0) {
		tale->failed[tale->n_failed] = failed.id;
		tale->errors[tale->n_failed++] = rsb_errmap_from_wire(failed.error);
	}
	rsb_buf_done(&list);
}

/* Another process of the sidecar: it knows no node and no open file. */
static void
restart(struct rig *rig)
{
	rsb_fhs_free(rig->sess.fhs);
	rsb_nodes_free(rig->sess.nodes);
	ck_assert_int_eq(rsb_nodes_new(&rig->config, &rig->sess.nodes), 0);
	ck_assert_int_eq(rsb_fhs_new(&rig->sess.fhs), 0);
}

static size_t
count_ids(struct rig *rig)
{
	struct rsb_nodes_stats stats;

	rsb_nodes_stats(rig->sess.nodes, &stats);
	return stats.n_id;
}

static void
forget(struct rig *rig, uint64_t id, uint64_t n)
{
	rsb_nodes_forget(rig->sess.nodes, id, n);
}

/* dir/file and link, known to the host. */
struct scene {
	struct rig rig;
	struct rsb_node dir, file, link;
};

static void
scene_init(struct scene *s)
{
	rig_init(&s->rig);
	ck_assert_int_eq(rig_mkdir(&s->rig, &rig_root, "dir", &s->dir), 0);
	rig_put(&s->rig, "dir/file", "text");
	ck_assert_int_eq(symlinkat("dir/file", s->rig.dir_fd, "link"), 0);
	ck_assert_int_eq(rig_lookup(&s->rig, &s->dir, "file", &s->file, NULL), 0);
	ck_assert_int_eq(rig_lookup(&s->rig, &rig_root, "link", &s->link, NULL), 0);
	restart(&s->rig);
}

static struct tale
tale_of(const struct scene *s)
{
	struct tale tale = { .n = 0 };

	add(&tale, &s->dir, 1, "dir")->type = S_IFDIR;
	add(&tale, &s->file, s->dir.id, "file")->n_given = 3;
	add(&tale, &s->link, 1, "link")->type = S_IFLNK;
	return tale;
}

START_TEST(knows_again_what_it_is_told)
{
	struct scene s;
	struct tale tale;
	struct rsb_node node;
	struct rsb_attr attr;

	scene_init(&s);
	ck_assert_int_eq(rig_getattr(&s.rig, &s.file, &attr), -ESTALE);
	tale = tale_of(&s);
	tell(&s.rig, &tale);
	ck_assert_uint_eq(tale.n_failed, 0);
	ck_assert_int_eq(rig_getattr(&s.rig, &s.dir, &attr), 0);
	ck_assert_int_eq(rig_getattr(&s.rig, &s.link, &attr), 0);
	ck_assert(S_ISLNK((mode_t)attr.mode));
	ck_assert_int_eq(rig_getattr(&s.rig, &s.file, &attr), 0);
	ck_assert_uint_eq(attr.size, 4);
	/* The same ids as before. */
	ck_assert_int_eq(rig_lookup(&s.rig, &s.dir, "file", &node, NULL), 0);
	ck_assert_uint_eq(node.id, s.file.id);
	/* It counts as often as it was given, and that look-up; to say it twice counts once. */
	tell(&s.rig, &tale);
	ck_assert_uint_eq(tale.n_failed, 0);
	ck_assert_uint_eq(count_ids(&s.rig), 4);
	forget(&s.rig, s.file.id, 3);
	ck_assert_uint_eq(count_ids(&s.rig), 4);
	forget(&s.rig, s.file.id, 1);
	forget(&s.rig, s.link.id, 1);
	forget(&s.rig, s.dir.id, 1);
	ck_assert_uint_eq(count_ids(&s.rig), 1);
	rig_done(&s.rig);
}
END_TEST

START_TEST(takes_nothing_for_what_it_is_not)
{
	struct scene s;
	struct tale tale;
	struct rsb_attr attr;

	scene_init(&s);
	/* Another inode under the name, another birth, another type, no name at all. */
	for (int i = 0; i < 4; i++) {
		struct rsb_adopt_one *one;

		tale = tale_of(&s);
		one = &tale.ones[1];
		one->node.id = 1000 + (uint64_t)i;
		if (i == 0)
			one->node.ino++;
		else if (i == 1)
			one->node.btime.nsec ^= 1;
		else if (i == 2)
			one->type = S_IFDIR;
		else
			one->name = rsb_bytes_str("no file");
		tell(&s.rig, &tale);
		ck_assert_uint_eq(tale.n_failed, 1);
		ck_assert_uint_eq(tale.failed[0], one->node.id);
		ck_assert_int_eq(tale.errors[0], -ESTALE);
		ck_assert_int_eq(rig_getattr(&s.rig, &one->node, &attr), -ESTALE);
		restart(&s.rig);
	}
	rig_done(&s.rig);
}
END_TEST

START_TEST(refuses_what_no_host_can_have)
{
	struct scene s;
	struct tale tale = { .n = 0 };
	struct rsb_node other;

	scene_init(&s);
	other = s.file;
	other.id = 500;
	add(&tale, &s.dir, 1, "dir")->type = S_IFDIR;
	add(&tale, &s.file, s.dir.id, "file");
	add(&tale, &other, s.dir.id, "file"); /* two ids for it */
	add(&tale, &(struct rsb_node){ .id = 1, .ino = 7 }, 1, "dir");
	add(&tale, &(struct rsb_node){ .id = 501 }, 1, "dir"); /* any inode */
	other.id = 0;
	other.ino++;
	add(&tale, &other, 1, "link");
	add(&tale, &s.link, 777, "link")->type = S_IFLNK; /* below nothing */
	tell(&s.rig, &tale);
	ck_assert_uint_eq(tale.n_failed, 5);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(tale.errors[i], -EINVAL);
	ck_assert_int_eq(tale.errors[4], -ESTALE);
	rig_done(&s.rig);
}
END_TEST

START_TEST(finds_what_was_moved_when_it_comes_across_it)
{
	struct scene s;
	struct tale tale;
	struct rsb_node node;
	struct rsb_attr attr;

	scene_init(&s);
	ck_assert_int_eq(renameat(s.rig.dir_fd, "dir", s.rig.dir_fd, "moved"), 0);
	tale = tale_of(&s);
	tell(&s.rig, &tale);
	ck_assert_uint_eq(tale.n_failed, 2);
	ck_assert_int_eq(rig_getattr(&s.rig, &s.file, &attr), -ESTALE);
	ck_assert_int_eq(rig_lookup(&s.rig, &rig_root, "moved", &node, NULL), 0);
	ck_assert_uint_eq(node.id, s.dir.id);
	/* What is in it is where it was. */
	ck_assert_int_eq(rig_getattr(&s.rig, &s.file, &attr), 0);
	ck_assert_uint_eq(attr.size, 4);
	rig_done(&s.rig);
}
END_TEST

START_TEST(opens_files_again)
{
	struct rsb_open_req req = { .fh = 50, .flags = 02 | 01000 /* O_RDWR, O_TRUNC */ };
	struct scene s;
	struct tale tale;
	struct rsb_attr_rep rep;

	scene_init(&s);
	tale = tale_of(&s);
	req.node = s.file;
	ck_assert_int_eq(rig_do(&s.rig, reopen, &req, &rep), -ESTALE);
	tell(&s.rig, &tale);
	ck_assert_int_eq(rig_do(&s.rig, reopen, &req, &rep), 0);
	ck_assert_uint_eq(rep.attr.size, 4);
	ck_assert(rig_reads(&s.rig, 50, 0, "text"));
	ck_assert_int_eq(rig_write(&s.rig, 50, 4, " more"), 0);
	/* It may be told twice. */
	ck_assert_int_eq(rig_do(&s.rig, reopen, &req, &rep), 0);
	ck_assert_uint_eq(rep.attr.size, 9);
	ck_assert_uint_eq(rsb_fhs_count(s.rig.sess.fhs), 1);
	req.fh = 51;
	req.node = s.dir;
	ck_assert_int_eq(rig_do(&s.rig, reopen, &req, &rep), -EISDIR);
	req.node = s.link;
	ck_assert_int_eq(rig_do(&s.rig, reopen, &req, &rep), -ELOOP);
	req.node = s.file;
	req.fh = 0;
	ck_assert_int_eq(rig_do(&s.rig, reopen, &req, &rep), -EINVAL);
	ck_assert_int_eq(rig_release(&s.rig, 50), 0);
	rig_done(&s.rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		knows_again_what_it_is_told,
		takes_nothing_for_what_it_is_not,
		refuses_what_no_host_can_have,
		finds_what_was_moved_when_it_comes_across_it,
		opens_files_again,
	};

	return unit_run("sidecar-adopt", tests, RSB_ARRAY_SIZE(tests));
}
