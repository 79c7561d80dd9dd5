/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/resolve.h"
#include "tests/unit/rig.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

static void
forget(struct rig *rig, uint64_t id, uint64_t n)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = 0 };
	const struct rsb_forget_one one = { .id = id, .n = n };

	ck_assert_int_eq(rsb_seq_append(&rsb_desc_rsb_forget_one, &one, 1, &buf), 0);
	const struct rsb_forget_req req = { .nodes = rsb_seq_of(&buf, 1) };
	ck_assert_int_eq(rig_do(rig, forget, &req, NULL), 0);
}

static struct rsb_nodes_stats
stats(struct rig *rig)
{
	struct rsb_nodes_stats s;

	rsb_nodes_stats(rig->sess.nodes, &s);
	return s;
}

START_TEST(gives_all_names_of_an_inode_one_id)
{
	struct rig rig;
	struct rsb_node a, b;
	struct rsb_attr attr;

	rig_init(&rig);
	rig_put(&rig, "a", "x");
	ck_assert_int_eq(linkat(rig.dir_fd, "a", rig.dir_fd, "b", 0), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &a, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 2);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "b", &b, NULL), 0);
	ck_assert_uint_eq(a.id, b.id);
	ck_assert_uint_eq(stats(&rig).n_id, 2);
	rig_done(&rig);
}
END_TEST

START_TEST(counts_what_it_gave_until_all_is_forgotten)
{
	struct rig rig;
	struct rsb_node node;

	rig_init(&rig);
	rig_put(&rig, "a", "x");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &node, NULL), 0);
	forget(&rig, node.id, 2);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), 0);
	forget(&rig, node.id, 1);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), -ESTALE);
	ck_assert_uint_eq(stats(&rig).n_node, 1);
	rig_done(&rig);
}
END_TEST

START_TEST(is_not_disturbed_by_senseless_forgets)
{
	struct rig rig;
	struct rsb_node node;

	rig_init(&rig);
	rig_put(&rig, "a", "x");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &node, NULL), 0);
	forget(&rig, 0, 1);
	forget(&rig, 999999, 1);
	forget(&rig, RSB_NODE_ROOT, UINT64_MAX);
	forget(&rig, node.id, 0);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), 0);
	forget(&rig, node.id, UINT64_MAX);
	ck_assert_int_eq(rig_getattr(&rig, &node, NULL), -ESTALE);
	ck_assert_int_eq(rig_getattr(&rig, &rig_root, NULL), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(says_stale_about_a_file_that_was_replaced)
{
	struct rig rig;
	struct rsb_node old, now;
	uint64_t fh;

	rig_init(&rig);
	rig_put(&rig, "a", "old");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &old, NULL), 0);
	/* At once: where the number is used again, and in the same tick of the clock. */
	ck_assert_int_eq(unlinkat(rig.dir_fd, "a", 0), 0);
	rig_put(&rig, "a", "new");
	ck_assert_int_eq(rig_getattr(&rig, &old, NULL), -ESTALE);
	ck_assert_int_eq(rig_open(&rig, &old, O_WRONLY | O_TRUNC, &fh), -ESTALE);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &now, NULL), 0);
	ck_assert_uint_ne(now.id, old.id);
	ck_assert_int_eq(rig_getattr(&rig, &now, NULL), 0);
	ck_assert_int_eq(rig_getattr(&rig, &old, NULL), -ESTALE);
	/* Both may have one number: forgetting one leaves the other. */
	forget(&rig, old.id, 1);
	ck_assert_int_eq(rig_getattr(&rig, &now, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &old, NULL), 0);
	ck_assert_uint_eq(old.id, now.id);
	rig_done(&rig);
}
END_TEST

START_TEST(says_stale_when_the_host_expects_something_else)
{
	struct rig rig;
	struct rsb_node node, other;

	rig_init(&rig);
	rig_put(&rig, "a", "x");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "a", &node, NULL), 0);
	other = node;
	other.ino++;
	ck_assert_int_eq(rig_getattr(&rig, &other, NULL), -ESTALE);
	other = node;
	other.btime.nsec ^= 1;
	ck_assert_int_eq(rig_getattr(&rig, &other, NULL), -ESTALE);
	other = (struct rsb_node){ .id = node.id };
	ck_assert_int_eq(rig_getattr(&rig, &other, NULL), 0);
	other = (struct rsb_node){ .id = 0 };
	ck_assert_int_eq(rig_getattr(&rig, &other, NULL), -ESTALE);
	other = (struct rsb_node){ .id = UINT64_MAX };
	ck_assert_int_eq(rig_getattr(&rig, &other, NULL), -ESTALE);
	rig_done(&rig);
}
END_TEST

START_TEST(goes_on_with_a_directory_that_somebody_moved)
{
	struct rig rig;
	struct rsb_node dir, sub, file, made;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &dir, "sub", &sub), 0);
	rig_put(&rig, "d/sub/f", "text");
	ck_assert_int_eq(rig_lookup(&rig, &sub, "f", &file, NULL), 0);
	ck_assert_int_eq(renameat(rig.dir_fd, "d", rig.dir_fd, "elsewhere"), 0);
	ck_assert_int_eq(rig_getattr(&rig, &file, NULL), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &dir, "made", &made), 0);
	ck_assert_int_eq(faccessat(rig.dir_fd, "elsewhere/made", F_OK, 0), 0);
	rig_done(&rig);
}
END_TEST

START_TEST(finds_a_file_that_somebody_moved_where_handles_may_be_opened)
{
	struct rig rig;
	struct rsb_node file;
	uint64_t fh;

	rig_init(&rig);
	rig_put(&rig, "f", "text");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &file, NULL), 0);
	ck_assert_int_eq(mkdirat(rig.dir_fd, "d", 0755), 0);
	ck_assert_int_eq(renameat(rig.dir_fd, "f", rig.dir_fd, "d/g"), 0);
	if (rsb_nodes_root(rig.sess.nodes)->mount_fd >= 0) {
		ck_assert_int_eq(rig_open(&rig, &file, O_RDONLY, &fh), 0);
		ck_assert(rig_reads(&rig, fh, 0, "text"));
	} else {
		ck_assert_int_eq(rig_open(&rig, &file, O_RDONLY, &fh), -ESTALE);
	}
	rig_done(&rig);
}
END_TEST

static void
unlink_in(struct rig *rig, const struct rsb_node *dir, const char *name)
{
	const struct rsb_unlink_req req = { .parent = *dir, .name = rsb_bytes_str(name) };
	struct rsb_unlink_rep rep;

	ck_assert_int_eq(rig_do(rig, unlink, &req, &rep), 0);
}

static void
link_in(struct rig *rig, const struct rsb_node *node, const struct rsb_node *dir, const char *name)
{
	const struct rsb_link_req req = {
		.node = *node,
		.newparent = *dir,
		.newname = rsb_bytes_str(name),
	};
	struct rsb_entry_rep rep;

	ck_assert_int_eq(rig_do(rig, link, &req, &rep), 0);
	ck_assert_uint_eq(rep.id, node->id);
}

/* As a program does that makes a file aside and links it to where it belongs. */
START_TEST(finds_a_file_by_a_name_that_is_left)
{
	struct rig rig;
	struct rsb_node aside, file, again;
	uint64_t fh;

	/* Here handles may not be opened. Where this is forbidden the test says less. */
	(void)!unshare(CLONE_NEWUSER);
	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "aside", &aside), 0);
	rig_put(&rig, "aside/temp", "text");
	ck_assert_int_eq(rig_lookup(&rig, &aside, "temp", &file, NULL), 0);
	link_in(&rig, &file, &rig_root, "file");
	ck_assert_int_eq(rig_lookup(&rig, &aside, "temp", &again, NULL), 0);
	unlink_in(&rig, &aside, "temp");
	ck_assert_int_eq(rig_open(&rig, &file, O_RDONLY, &fh), 0);
	ck_assert(rig_reads(&rig, fh, 0, "text"));
	ck_assert_int_eq(rig_release(&rig, fh), 0);

	/* A rename takes a name away as well. */
	link_in(&rig, &file, &aside, "second");
	const struct rsb_rename_req move = {
		.parent = aside,
		.name = rsb_bytes_str("second"),
		.newparent = aside,
		.newname = rsb_bytes_str("third"),
	};
	struct rsb_rename_rep moved;
	ck_assert_int_eq(rig_do(&rig, rename, &move, &moved), 0);
	unlink_in(&rig, &rig_root, "file");
	ck_assert_int_eq(rig_open(&rig, &file, O_RDONLY, &fh), 0);
	ck_assert_int_eq(rig_release(&rig, fh), 0);

	forget(&rig, file.id, 4);
	forget(&rig, aside.id, 1);
	ck_assert_uint_eq(stats(&rig).n_node, 1);
	rig_done(&rig);
}
END_TEST

START_TEST(keeps_the_directory_of_every_name_of_a_file)
{
	const unsigned int n_name = 20;
	struct rig rig;
	struct rsb_node dir, file;
	char name[16];

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	rig_put(&rig, "0", "text");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "0", &file, NULL), 0);
	for (unsigned int i = 1; i < n_name; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		link_in(&rig, &file, i % 2 ? &dir : &rig_root, name);
	}
	/* Not by its id any more, but as long as a name in it may be needed. */
	forget(&rig, dir.id, 1);
	ck_assert_uint_eq(stats(&rig).n_node, 3);
	ck_assert_int_eq(rig_getattr(&rig, &file, NULL), 0);
	forget(&rig, file.id, n_name);
	ck_assert_uint_eq(stats(&rig).n_node, 1);
	rig_done(&rig);
}
END_TEST

START_TEST(keeps_few_directories_open_and_finds_the_others_again)
{
	const unsigned int n_dir = 300;
	struct rsb_node *dirs = calloc(n_dir, sizeof(*dirs));
	struct rig rig;

	ck_assert_ptr_nonnull(dirs);
	/* A quarter of the limit is for directories. */
	ck_assert_int_eq(
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ .rlim_cur = 256, .rlim_max = 256 }), 0);
	rig_init(&rig);
	dirs[0] = rig_root;
	for (unsigned int i = 1; i < n_dir; i++)
		ck_assert_int_eq(rig_mkdir(&rig, &dirs[i - 1], "d", &dirs[i]), 0);
	ck_assert_uint_le(stats(&rig).n_dir_fd, 64);
	for (unsigned int i = 1; i < n_dir; i++)
		ck_assert_int_eq(rig_getattr(&rig, &dirs[i], NULL), 0);
	/* From the far end: a long way without a descriptor. */
	for (unsigned int i = n_dir - 1; i > 0; i--)
		ck_assert_int_eq(rig_getattr(&rig, &dirs[i], NULL), 0);
	ck_assert_uint_le(stats(&rig).n_dir_fd, 64);
	for (unsigned int i = 1; i < n_dir; i++)
		forget(&rig, dirs[i].id, 1);
	ck_assert_uint_eq(stats(&rig).n_node, 1);
	ck_assert_uint_eq(stats(&rig).n_dir_fd, 0);
	rig_done(&rig);
	free(dirs);
}
END_TEST

START_TEST(keeps_the_way_to_a_node_whose_directory_was_forgotten)
{
	struct rig rig;
	struct rsb_node dir, again, file;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	rig_put(&rig, "d/f", "x");
	ck_assert_int_eq(rig_lookup(&rig, &dir, "f", &file, NULL), 0);
	forget(&rig, dir.id, 1);
	ck_assert_int_eq(rig_getattr(&rig, &dir, NULL), -ESTALE);
	ck_assert_int_eq(rig_getattr(&rig, &file, NULL), 0);
	/* A forgotten id is never given again. */
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "d", &again, NULL), 0);
	ck_assert_uint_ne(again.id, dir.id);
	forget(&rig, again.id, 1);
	forget(&rig, file.id, 1);
	ck_assert_uint_eq(stats(&rig).n_node, 1);
	rig_done(&rig);
}
END_TEST

START_TEST(never_makes_a_ring_of_hints)
{
	struct rig rig;
	struct rsb_node a, b, x, y;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "a", &a), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &a, "b", &b), 0);
	/* Somebody turns a/b into b/a; the host sees both in their new places. */
	ck_assert_int_eq(renameat(rig.dir_fd, "a/b", rig.dir_fd, "b"), 0);
	ck_assert_int_eq(renameat(rig.dir_fd, "a", rig.dir_fd, "b/a"), 0);
	ck_assert_int_eq(rig_lookup(&rig, &b, "a", &x, NULL), 0);
	ck_assert_uint_eq(x.id, a.id);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "b", &y, NULL), 0);
	ck_assert_uint_eq(y.id, b.id);
	forget(&rig, a.id, 2);
	forget(&rig, b.id, 2);
	ck_assert_uint_eq(stats(&rig).n_node, 1);
	rig_done(&rig);
}
END_TEST

/*
 * Files low/d/f and so on below m, in a mount namespace of our own so that nothing is left behind.
 */
static bool
with_overlay(struct rig *rig, struct rsb_node *dir)
{
	static const char *const dirs[] = { "low", "low/d", "up", "work", "m" };
	static const char options[] = "lowerdir=low,upperdir=up,workdir=work";
	struct rsb_node mnt;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	rig_init(rig);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(dirs); i++)
		ck_assert_int_eq(mkdirat(rig->dir_fd, dirs[i], 0755), 0);
	rig_put(rig, "low/d/f", "text");
	rig_put(rig, "low/d/g", "text");
	ck_assert_int_eq(fchdir(rig->dir_fd), 0);
	/* Those of an unprivileged user do not even keep the numbers of inodes. */
	if (rsb_nodes_root(rig->sess.nodes)->mount_fd < 0 ||
		mount("overlay", "m", "overlay", 0, options) < 0) {
		ck_assert_int_eq(chdir("/"), 0);
		rig_done(rig);
		return false;
	}
	ck_assert_int_eq(rig_lookup(rig, &rig_root, "m", &mnt, NULL), 0);
	ck_assert_int_eq(rig_lookup(rig, &mnt, "d", dir, NULL), 0);
	return true;
}

static void
overlay_done(struct rig *rig)
{
	ck_assert_int_eq(umount2("m", MNT_DETACH), 0);
	ck_assert_int_eq(chdir("/"), 0);
	rig_done(rig);
}

START_TEST(knows_a_file_of_an_overlay_after_a_write_copied_it)
{
	struct rig rig;
	struct rsb_node dir, file, again;
	uint64_t fh;

	if (!with_overlay(&rig, &dir))
		return;
	ck_assert_int_eq(rig_lookup(&rig, &dir, "f", &file, NULL), 0);
	ck_assert_int_eq(rig_open(&rig, &file, O_RDWR, &fh), 0);
	ck_assert_int_eq(rig_write(&rig, fh, 0, "TEXT"), 0);
	/* By what the host was told first, and by the birth time of the copy. */
	ck_assert_int_eq(rig_getattr(&rig, &file, NULL), 0);
	ck_assert_int_eq(rig_release(&rig, fh), 0);
	ck_assert_int_eq(rig_getattr(&rig, &file, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &dir, "f", &again, NULL), 0);
	ck_assert_uint_eq(again.id, file.id);
	ck_assert_int_eq(rig_getattr(&rig, &again, NULL), 0);
	ck_assert(again.btime.sec != file.btime.sec || again.btime.nsec != file.btime.nsec);

	struct rsb_node mnt;
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "m", &mnt, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &mnt, "d", &again, NULL), 0);
	ck_assert_uint_eq(again.id, dir.id);
	overlay_done(&rig);
}
END_TEST

START_TEST(knows_a_file_of_an_overlay_after_a_change_of_names_copied_it)
{
	struct rig rig;
	struct rsb_node dir, f, g;

	if (!with_overlay(&rig, &dir))
		return;
	ck_assert_int_eq(rig_lookup(&rig, &dir, "f", &f, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &dir, "g", &g, NULL), 0);
	const struct rsb_link_req link = {
		.node = f,
		.newparent = dir,
		.newname = rsb_bytes_str("f2"),
	};
	struct rsb_entry_rep entry;
	ck_assert_int_eq(rig_do(&rig, link, &link, &entry), 0);
	ck_assert_uint_eq(entry.id, f.id);
	ck_assert_int_eq(rig_getattr(&rig, &f, NULL), 0);

	const struct rsb_rename_req move = {
		.parent = dir,
		.name = rsb_bytes_str("g"),
		.newparent = dir,
		.newname = rsb_bytes_str("g2"),
	};
	struct rsb_rename_rep moved;
	ck_assert_int_eq(rig_do(&rig, rename, &move, &moved), 0);
	ck_assert_int_eq(rig_getattr(&rig, &g, NULL), 0);

	const struct rsb_setattr_req mode = { .node = g, .valid = RSB_SET_MODE, .mode = 0600 };
	struct rsb_attr_rep attr;
	ck_assert_int_eq(rig_do(&rig, setattr, &mode, &attr), 0);
	ck_assert_int_eq(rig_getattr(&rig, &g, NULL), 0);
	overlay_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		gives_all_names_of_an_inode_one_id,
		counts_what_it_gave_until_all_is_forgotten,
		is_not_disturbed_by_senseless_forgets,
		says_stale_about_a_file_that_was_replaced,
		says_stale_when_the_host_expects_something_else,
		goes_on_with_a_directory_that_somebody_moved,
		finds_a_file_that_somebody_moved_where_handles_may_be_opened,
		finds_a_file_by_a_name_that_is_left,
		keeps_the_directory_of_every_name_of_a_file,
		keeps_few_directories_open_and_finds_the_others_again,
		keeps_the_way_to_a_node_whose_directory_was_forgotten,
		never_makes_a_ring_of_hints,
		knows_a_file_of_an_overlay_after_a_write_copied_it,
		knows_a_file_of_an_overlay_after_a_change_of_names_copied_it,
	};

	return unit_run("sidecar-node", tests, RSB_ARRAY_SIZE(tests));
}
