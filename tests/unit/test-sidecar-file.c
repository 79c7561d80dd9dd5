/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/thread.h"

/* Of the wire: x86-64. */
#define WIRE_EXCL 0200u
#define WIRE_TRUNC 01000u

static int
create(struct rig *rig, const char *name, uint64_t flags, uint64_t *ret_fh,
	struct rsb_entry_rep *rep)
{
	const struct rsb_create_req req = {
		.parent = rig_root,
		.name = rsb_bytes_str(name),
		.id = rig->next++,
		.fh = rig->next++,
		.flags = flags,
		.mode = 0640,
	};

	*ret_fh = req.fh;
	return rig_do(rig, create, &req, rep);
}

static uint64_t
open_new(struct rig *rig, const char *name)
{
	struct rsb_entry_rep rep;
	uint64_t fh;

	ck_assert_int_eq(create(rig, name, O_RDWR, &fh, &rep), 0);
	return fh;
}

static int
write_with(
	struct rig *rig, uint64_t fh, uint64_t flags, const char *text, struct rsb_write_rep *rep)
{
	const struct rsb_write_req req = {
		.fh = fh,
		.flags = flags,
		.data = rsb_bytes_str(text),
	};

	return rig_do(rig, write, &req, rep);
}

START_TEST(creates_a_file_that_belongs_to_the_command_user)
{
	struct rig rig;
	struct rsb_entry_rep rep;
	uint64_t fh;

	rig_init(&rig);
	ck_assert_int_eq(create(&rig, "f", O_RDWR, &fh, &rep), 0);
	ck_assert_uint_eq(rep.attr.mode, S_IFREG | 0640);
	ck_assert_uint_eq(rep.attr.uid, rig.config.cmd_uid);
	ck_assert_uint_eq(rep.attr.gid, rig.config.cmd_gid);
	ck_assert_uint_eq(rep.dir.mode & S_IFMT, S_IFDIR);
	ck_assert_int_eq(rig_write(&rig, fh, 0, "text"), 0);
	ck_assert(rig_reads(&rig, fh, 0, "text"));
	ck_assert(rig_reads(&rig, fh, 2, "xt"));
	ck_assert(rig_reads(&rig, fh, 4, ""));
	ck_assert_int_eq(rig_release(&rig, fh), 0);
	ck_assert_int_eq(rig_release(&rig, fh), -EBADF);
	ck_assert(!rig_reads(&rig, fh, 0, "text"));
	rig_done(&rig);
}
END_TEST

START_TEST(creates_or_opens_but_never_through_a_link)
{
	struct rig rig;
	struct rsb_entry_rep rep;
	struct rsb_node node;
	uint64_t fh;

	rig_init(&rig);
	rig_put(&rig, "f", "old");
	ck_assert_int_eq(create(&rig, "f", O_RDWR | WIRE_EXCL, &fh, &rep), -EEXIST);
	ck_assert_int_eq(create(&rig, "f", O_RDWR, &fh, &rep), 0);
	ck_assert(rig_reads(&rig, fh, 0, "old"));
	ck_assert_uint_eq(rep.attr.uid, geteuid());
	ck_assert_int_eq(create(&rig, "f", O_RDWR | WIRE_TRUNC, &fh, &rep), 0);
	ck_assert_uint_eq(rep.attr.size, 0);

	ck_assert_int_eq(fchmodat(rig.dir_fd, "f", 04755, 0), 0);
	ck_assert_int_eq(
		create(&rig, "f", O_RDWR | WIRE_TRUNC | RSB_OPEN_KEEP_SUIDGID, &fh, &rep), 0);
	ck_assert_uint_eq(rep.attr.mode & 07000, geteuid() == 0 ? 04000 : 0);
	ck_assert_int_eq(create(&rig, "f", O_RDWR | WIRE_TRUNC, &fh, &rep), 0);
	ck_assert_uint_eq(rep.attr.mode & 07000, 0);

	ck_assert_int_eq(symlinkat("f", rig.dir_fd, "sym"), 0);
	ck_assert_int_eq(create(&rig, "sym", O_RDWR, &fh, &rep), -ELOOP);
	ck_assert_int_eq(symlinkat("nowhere", rig.dir_fd, "dangling"), 0);
	ck_assert_int_eq(create(&rig, "dangling", O_RDWR, &fh, &rep), -ELOOP);
	ck_assert_int_eq(faccessat(rig.dir_fd, "nowhere", F_OK, 0), -1);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &node), 0);
	ck_assert_int_eq(create(&rig, "d", O_RDONLY, &fh, &rep), -EISDIR);
	rig_done(&rig);
}
END_TEST

START_TEST(refuses_numbers_that_make_no_sense)
{
	struct rig rig;
	struct rsb_node node;
	struct rsb_attr_rep rep;
	struct rsb_entry_rep entry;
	uint64_t fh;

	rig_init(&rig);
	rig_put(&rig, "f", "");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &node, NULL), 0);
	ck_assert_int_eq(rig_open(&rig, &node, O_RDONLY, &fh), 0);

	struct rsb_open_req req = { .node = node, .fh = 0 };
	ck_assert_int_eq(rig_do(&rig, open, &req, &rep), -EINVAL);
	req.fh = fh;
	ck_assert_int_eq(rig_do(&rig, open, &req, &rep), -EINVAL);
	req.fh = rig.next++;
	req.flags = 3;
	ck_assert_int_eq(rig_do(&rig, open, &req, &rep), -EINVAL);

	/* Nothing is made for a request that cannot be served. */
	struct rsb_create_req make = {
		.parent = rig_root,
		.name = rsb_bytes_str("new"),
		.id = rig.next++,
		.fh = fh,
		.mode = 0600,
	};
	ck_assert_int_eq(rig_do(&rig, create, &make, &entry), -EINVAL);
	make.fh = rig.next++;
	make.id = node.id;
	ck_assert_int_eq(rig_do(&rig, create, &make, &entry), -EINVAL);
	make.id = rig.next++;
	make.flags = 3;
	ck_assert_int_eq(rig_do(&rig, create, &make, &entry), -EINVAL);
	ck_assert_int_eq(faccessat(rig.dir_fd, "new", F_OK, 0), -1);

	struct rsb_read_req read = { .fh = fh, .size = RSB_IO_MAX + 1 };
	struct rsb_read_rep data;
	ck_assert_int_eq(rig_do(&rig, read, &read, &data), -EINVAL);
	read = (struct rsb_read_req){ .fh = fh, .offset = UINT64_MAX, .size = 1 };
	ck_assert_int_eq(rig_do(&rig, read, &read, &data), -EINVAL);
	read = (struct rsb_read_req){ .fh = 0, .size = 1 };
	ck_assert_int_eq(rig_do(&rig, read, &read, &data), -EBADF);
	ck_assert_int_eq(rig_write(&rig, fh, 0, "x"), -EBADF);
	ck_assert_int_eq(rig_write(&rig, UINT64_MAX, 0, "x"), -EBADF);
	rig_done(&rig);
}
END_TEST

START_TEST(goes_on_with_a_file_that_was_unlinked)
{
	struct rig rig;
	struct rsb_node node;
	struct rsb_attr attr;
	uint64_t fh, again;

	rig_init(&rig);
	rig_put(&rig, "f", "text");
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "f", &node, NULL), 0);
	ck_assert_int_eq(rig_open(&rig, &node, O_RDWR, &fh), 0);

	const struct rsb_unlink_req req = { .parent = rig_root, .name = rsb_bytes_str("f") };
	struct rsb_unlink_rep rep;
	ck_assert_int_eq(rig_do(&rig, unlink, &req, &rep), 0);
	ck_assert_uint_eq(rep.id, node.id);
	ck_assert_uint_eq(rep.attr.nlink, 0);

	ck_assert_int_eq(rig_write(&rig, fh, 4, "more"), 0);
	ck_assert(rig_reads(&rig, fh, 0, "textmore"));
	ck_assert_int_eq(rig_getattr(&rig, &node, &attr), 0);
	ck_assert_uint_eq(attr.size, 8);
	ck_assert_uint_eq(attr.nlink, 0);
	/* Opened again by its node, as through /proc/self/fd. */
	ck_assert_int_eq(rig_open(&rig, &node, O_RDONLY, &again), 0);
	ck_assert(rig_reads(&rig, again, 0, "textmore"));
	ck_assert_int_eq(rig_release(&rig, fh), 0);
	ck_assert(rig_reads(&rig, again, 0, "textmore"));
	ck_assert_int_eq(rig_release(&rig, again), 0);
	ck_assert_int_eq(rig_getattr(&rig, &node, &attr), -ESTALE);
	rig_done(&rig);
}
END_TEST

START_TEST(appends_where_the_end_is_and_tells_where_that_was)
{
	struct rig rig;
	struct rsb_write_rep rep;

	rig_init(&rig);
	uint64_t fh = open_new(&rig, "f");
	ck_assert_int_eq(rig_write(&rig, fh, 0, "0123"), 0);

	/* A process of the sandbox appends too, and a reader moves about. */
	rsb_autoclose int fd = openat(rig.dir_fd, "f", O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "45", 2), 2);
	const struct rsb_lseek_req seek = { .fh = fh, .whence = SEEK_DATA };
	struct rsb_lseek_rep sought;
	ck_assert_int_eq(rig_do(&rig, lseek, &seek, &sought), 0);

	ck_assert_int_eq(write_with(&rig, fh, RSB_WRITE_APPEND, "678", &rep), 0);
	ck_assert_uint_eq(rep.offset, 6);
	ck_assert_uint_eq(rep.attr.size, 9);
	ck_assert_int_eq(rig_write(&rig, fh, 0, "x"), 0);
	ck_assert(rig_reads(&rig, fh, 0, "x12345678"));
	ck_assert_int_eq(write_with(&rig, fh, 1 << 5, "678", &rep), -EINVAL);
	rig_done(&rig);
}
END_TEST

START_TEST(takes_the_flags_that_count)
{
	struct rig rig;
	struct rsb_entry_rep rep;
	uint64_t sync, dsync, direct;

	rig_init(&rig);
	ck_assert_int_eq(create(&rig, "sync", O_WRONLY | 04010000, &sync, &rep), 0);
	ck_assert_int_eq(create(&rig, "dsync", O_WRONLY | 010000, &dsync, &rep), 0);
	ck_assert_int_eq(rig_write(&rig, sync, 0, "text"), 0);
	ck_assert_int_eq(rig_write(&rig, dsync, 0, "text"), 0);
	ck_assert(!rig_reads(&rig, sync, 0, "text"));
	/* Odd sizes go through O_DIRECT too; where the file system has it. */
	if (create(&rig, "direct", O_RDWR | 040000, &direct, &rep) == 0) {
		ck_assert_int_eq(rig_write(&rig, direct, 1, "ext"), 0);
		ck_assert(rig_reads(&rig, direct, 1, "ext"));
	}
	rig_done(&rig);
}
END_TEST

START_TEST(drops_set_user_id_before_a_write_that_asks_for_it)
{
	struct rig rig;
	struct rsb_write_rep rep;

	rig_init(&rig);
	uint64_t fh = open_new(&rig, "f");
	ck_assert_int_eq(fchmodat(rig.dir_fd, "f", 06755, 0), 0);
	ck_assert_int_eq(write_with(&rig, fh, RSB_WRITE_KILL_SUIDGID, "x", &rep), 0);
	ck_assert_uint_eq(rep.attr.mode, S_IFREG | 0755);
	rig_done(&rig);
}
END_TEST

START_TEST(never_opens_what_could_block_it)
{
	static const uint64_t flags[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY | WIRE_TRUNC };
	struct rig rig;
	struct rsb_node fifo, sock, dev, link, dir;
	struct rsb_entry_rep rep;
	uint64_t fh;

	rig_init(&rig);
	ck_assert_int_eq(mkfifoat(rig.dir_fd, "fifo", 0600), 0);
	ck_assert_int_eq(mknodat(rig.dir_fd, "sock", S_IFSOCK | 0600, 0), 0);
	ck_assert_int_eq(symlinkat("fifo", rig.dir_fd, "link"), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "fifo", &fifo, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "sock", &sock, NULL), 0);
	ck_assert_int_eq(rig_lookup(&rig, &rig_root, "link", &link, NULL), 0);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "dir", &dir), 0);
	uint64_t start_ns = rsb_now_ns();
	for (size_t i = 0; i < RSB_ARRAY_SIZE(flags); i++) {
		/* As often as a pool has workers, and more. */
		for (int n = 0; n < 8; n++)
			ck_assert_int_eq(rig_open(&rig, &fifo, flags[i], &fh), -EOPNOTSUPP);
		ck_assert_int_eq(rig_open(&rig, &sock, flags[i], &fh), -ENXIO);
		ck_assert_int_eq(rig_open(&rig, &link, flags[i], &fh), -ELOOP);
		ck_assert_int_eq(rig_open(&rig, &dir, flags[i], &fh), -EISDIR);
		ck_assert_int_eq(create(&rig, "fifo", flags[i], &fh, &rep), -EOPNOTSUPP);
	}
	if (rig.config.is_root && mknodat(rig.dir_fd, "dev", S_IFCHR | 0600, makedev(1, 3)) == 0) {
		ck_assert_int_eq(rig_lookup(&rig, &rig_root, "dev", &dev, NULL), 0);
		ck_assert_int_eq(rig_open(&rig, &dev, O_RDWR, &fh), -EOPNOTSUPP);
	}
	ck_assert_uint_lt(rsb_now_ns() - start_ns, RSB_NSEC_PER_SEC);
	ck_assert_int_eq(rig_getattr(&rig, &fifo, NULL), 0);
	rig_done(&rig);
}
END_TEST

struct crowd {
	struct rig *rig;
	struct rsb_node dir;
	uint64_t fh;
	uint64_t first;
	int failures;
};

/* What the pool's workers do while the mutator changes the same names. */
static void *
crowd_of_readers(void *arg)
{
	struct crowd *crowd = arg;
	struct rsb_buf buf = { .max = 0 };

	for (uint64_t i = 0; i < 300; i++) {
		const struct rsb_lookup_req look = {
			.parent = crowd->dir,
			.name = rsb_bytes_str(i % 2 ? "a" : "b"),
			.id = crowd->first + i,
		};
		const struct rsb_read_req read = { .fh = crowd->fh, .size = 100 };
		const struct rsb_readdir_req list = {
			.node = crowd->dir,
			.fh = crowd->first + i,
			.plus = 1,
			.first_id = crowd->first + 1000 * (i + 1),
		};
		struct rsb_entry_rep entry;
		struct rsb_read_rep data;
		struct rsb_readdir_rep page;
		struct rsb_attr_rep attr;
		int r;

		r = rig_finish(rig_start(crowd->rig, RSB_OP_lookup, &look), &entry, &buf);
		if (r == 0) {
			const struct rsb_getattr_req get = { .node = rig_node_of(&entry) };

			r = rig_finish(rig_start(crowd->rig, RSB_OP_getattr, &get), &attr, &buf);
			crowd->failures += r != 0 && r != -ESTALE;
		} else {
			crowd->failures += r != -ENOENT;
		}
		r = rig_finish(rig_start(crowd->rig, RSB_OP_read, &read), &data, &buf);
		crowd->failures += r != 0 || data.data.size != 4;
		r = rig_finish(rig_start(crowd->rig, RSB_OP_readdir, &list), &page, &buf);
		crowd->failures += r != 0;
	}
	rsb_buf_done(&buf);
	return NULL;
}

START_TEST(serves_a_crowd_while_names_change)
{
	struct rig rig;
	struct crowd crowds[4];
	pthread_t threads[RSB_ARRAY_SIZE(crowds)];
	struct rsb_node dir;
	struct rsb_rename_rep renamed;
	struct rsb_unlink_rep gone;
	struct rsb_entry_rep made;

	rig_init(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
	uint64_t fh = open_new(&rig, "f");
	ck_assert_int_eq(rig_write(&rig, fh, 0, "text"), 0);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(crowds); i++) {
		crowds[i] = (struct crowd){ .rig = &rig, .dir = dir, .fh = fh };
		crowds[i].first = (i + 1) * 10000000;
		ck_assert_int_eq(
			rsb_thread_start("crowd", crowd_of_readers, &crowds[i], &threads[i]), 0);
	}
	for (int i = 0; i < 300; i++) {
		const struct rsb_mknod_req make = {
			.parent = dir,
			.name = rsb_bytes_str("a"),
			.id = rig.next++,
			.mode = S_IFREG | 0600,
		};
		const struct rsb_rename_req move = {
			.parent = dir,
			.name = rsb_bytes_str("a"),
			.newparent = dir,
			.newname = rsb_bytes_str("b"),
		};
		const struct rsb_unlink_req drop = { .parent = dir, .name = rsb_bytes_str("b") };

		ck_assert_int_eq(rig_do(&rig, mknod, &make, &made), 0);
		ck_assert_int_eq(rig_do(&rig, rename, &move, &renamed), 0);
		ck_assert_int_eq(rig_do(&rig, unlink, &drop, &gone), 0);
		ck_assert_uint_eq(gone.attr.nlink, 0);
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(crowds); i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(crowds[i].failures, 0);
	}
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		creates_a_file_that_belongs_to_the_command_user,
		creates_or_opens_but_never_through_a_link,
		refuses_numbers_that_make_no_sense,
		goes_on_with_a_file_that_was_unlinked,
		appends_where_the_end_is_and_tells_where_that_was,
		takes_the_flags_that_count,
		drops_set_user_id_before_a_write_that_asks_for_it,
		never_opens_what_could_block_it,
		serves_a_crowd_while_names_change,
	};

	return unit_run("sidecar-file", tests, RSB_ARRAY_SIZE(tests));
}
