/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"

static int
set(struct rig *rig, const struct rsb_node *node, const char *name, const char *value,
	uint64_t flags)
{
	const struct rsb_setxattr_req req = {
		.node = *node,
		.name = rsb_bytes_str(name),
		.value = rsb_bytes_str(value),
		.flags = flags,
	};
	struct rsb_attr_rep rep;

	return rig_do(rig, setxattr, &req, &rep);
}

static int
get(struct rig *rig, const struct rsb_node *node, const char *name, struct rsb_xattr_rep *rep)
{
	const struct rsb_getxattr_req req = { .node = *node, .name = rsb_bytes_str(name) };

	return rig_do(rig, getxattr, &req, rep);
}

static int
drop(struct rig *rig, const struct rsb_node *node, const char *name)
{
	const struct rsb_getxattr_req req = { .node = *node, .name = rsb_bytes_str(name) };
	struct rsb_attr_rep rep;

	return rig_do(rig, removexattr, &req, &rep);
}

/* On a file system that has none there is nothing to test. */
static bool
with_file(struct rig *rig, struct rsb_node *file)
{
	rig_init(rig);
	rig_put(rig, "f", "x");
	ck_assert_int_eq(rig_lookup(rig, &rig_root, "f", file, NULL), 0);
	return set(rig, file, "user.probe", "", 0) == 0 && drop(rig, file, "user.probe") == 0;
}

static void
set_and_get(struct rig *rig, const struct rsb_node *node)
{
	const struct rsb_listxattr_req list = { .node = *node };
	struct rsb_xattr_rep rep;

	ck_assert_int_eq(set(rig, node, "user.a", "one", 0), 0);
	ck_assert_int_eq(set(rig, node, "user.a", "two", XATTR_CREATE), -EEXIST);
	ck_assert_int_eq(set(rig, node, "user.b", "two", XATTR_REPLACE), -ENODATA);
	ck_assert_int_eq(set(rig, node, "user.a", "", XATTR_REPLACE), 0);
	ck_assert_int_eq(get(rig, node, "user.a", &rep), 0);
	ck_assert_uint_eq(rep.value.size, 0);
	ck_assert_int_eq(set(rig, node, "user.a", "three", 0), 0);
	ck_assert_int_eq(get(rig, node, "user.a", &rep), 0);
	ck_assert_uint_eq(rep.value.size, 5);
	ck_assert_mem_eq(rep.value.data, "three", 5);
	ck_assert_int_eq(get(rig, node, "user.none", &rep), -ENODATA);

	ck_assert_int_eq(rig_do(rig, listxattr, &list, &rep), 0);
	ck_assert_uint_eq(rep.value.size, sizeof("user.a"));
	ck_assert_mem_eq(rep.value.data, "user.a", sizeof("user.a"));
	ck_assert_int_eq(drop(rig, node, "user.a"), 0);
	ck_assert_int_eq(drop(rig, node, "user.a"), -ENODATA);
	ck_assert_int_eq(rig_do(rig, listxattr, &list, &rep), 0);
	ck_assert_uint_eq(rep.value.size, 0);
}

START_TEST(sets_gets_lists_and_removes)
{
	struct rig rig;
	struct rsb_node file, dir;

	if (with_file(&rig, &file)) {
		set_and_get(&rig, &file);
		ck_assert_int_eq(rig_mkdir(&rig, &rig_root, "d", &dir), 0);
		set_and_get(&rig, &dir);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(does_without_proc)
{
	struct rig rig;
	struct rsb_node file;

	if (with_file(&rig, &file)) {
		struct rsb_root *root = (struct rsb_root *)rsb_nodes_root(rig.sess.nodes);
		int proc_fd = root->proc_fd;

		root->proc_fd = -1;
		if (root->mount_fd >= 0)
			set_and_get(&rig, &file);
		root->proc_fd = proc_fd;
	}
	rig_done(&rig);
}
END_TEST

START_TEST(refuses_lists_of_access_and_names_that_are_none)
{
	static const char acl[] = "system.posix_acl_access";
	struct rig rig;
	struct rsb_node file;
	struct rsb_xattr_rep rep;

	(void)with_file(&rig, &file);
	ck_assert_int_eq(set(&rig, &file, acl, "x", 0), -EOPNOTSUPP);
	ck_assert_int_eq(get(&rig, &file, acl, &rep), -EOPNOTSUPP);
	ck_assert_int_eq(drop(&rig, &file, "system.posix_acl_default"), -EOPNOTSUPP);
	ck_assert_int_eq(set(&rig, &file, "", "x", 0), -EINVAL);
	ck_assert_int_eq(set(&rig, &file, "user.a", "x", 4), -EINVAL);

	struct rsb_getxattr_req req = {
		.node = file,
		.name = { .data = (const uint8_t *)"user.a\0b", .size = 8 },
	};
	ck_assert_int_eq(rig_do(&rig, getxattr, &req, &rep), -EINVAL);
	rig_done(&rig);
}
END_TEST

START_TEST(does_not_list_what_it_refuses)
{
	/* From setfacl(1): version 2; owner rw, user 1 r, group r, mask r, others none. */
	static const uint8_t acl[] = {
		2, 0, 0, 0,                          /* version */
		1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff,  /* owner */
		2, 0, 4, 0, 1, 0, 0, 0,              /* user 1 */
		4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,  /* group */
		16, 0, 4, 0, 0xff, 0xff, 0xff, 0xff, /* mask */
		32, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, /* others */
	};
	struct rig rig;
	struct rsb_node file;
	struct rsb_xattr_rep rep;

	if (with_file(&rig, &file)) {
		const struct rsb_listxattr_req list = { .node = file };

		ck_assert_int_eq(fchdir(rig.dir_fd), 0);
		(void)setxattr("f", "system.posix_acl_access", acl, sizeof(acl), 0);
		ck_assert_int_eq(set(&rig, &file, "user.z", "x", 0), 0);
		ck_assert_int_eq(rig_do(&rig, listxattr, &list, &rep), 0);
		ck_assert_uint_eq(rep.value.size, sizeof("user.z"));
		ck_assert_mem_eq(rep.value.data, "user.z", sizeof("user.z"));
		ck_assert_int_eq(chdir("/"), 0);
	}
	rig_done(&rig);
}
END_TEST

START_TEST(does_not_touch_the_target_of_a_symlink)
{
	struct rig rig;
	struct rsb_node file, link;
	struct rsb_xattr_rep rep;

	if (with_file(&rig, &file)) {
		ck_assert_int_eq(symlinkat("f", rig.dir_fd, "sym"), 0);
		ck_assert_int_eq(rig_lookup(&rig, &rig_root, "sym", &link, NULL), 0);
		ck_assert_int_eq(set(&rig, &link, "user.a", "x", 0), -EPERM);
		ck_assert_int_eq(get(&rig, &file, "user.a", &rep), -ENODATA);
	}
	rig_done(&rig);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sets_gets_lists_and_removes,
		does_without_proc,
		refuses_lists_of_access_and_names_that_are_none,
		does_not_list_what_it_refuses,
		does_not_touch_the_target_of_a_symlink,
	};

	return unit_run("sidecar-xattr", tests, RSB_ARRAY_SIZE(tests));
}
