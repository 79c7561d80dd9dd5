/* SPDX-License-Identifier: MIT */
/* Extended attributes: names, sizes, flags, on each type. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static const char *const names[] = {
	"user.a",
	"user.",
	"user",
	"",
	"plain",
	"USER.a",
	"user.\xff\x01",
	"trusted.a",
	"security.a",
	"system.a",
	"system.posix_acl_access",
	"btrfs.a",
};

struct on_type {
	const char *name;
	enum pt_type type;
};

static void
name_on_type(struct pt *t, const void *arg)
{
	const struct on_type *on = arg;
	char data[16] = "";

	pt_make(t, on->type, "x");
	pt_got(t, "get", lgetxattr("x", on->name, data, sizeof(data)));
	pt_did(t, "set", lsetxattr("x", on->name, "value", 5, 0));
	pt_got(t, "get", lgetxattr("x", on->name, data, sizeof(data)));
	pt_say(t, "'%.16s'", data);
	pt_got(t, "list", llistxattr("x", NULL, 0));
	pt_did(t, "remove", lremovexattr("x", on->name));
	pt_did(t, "remove", lremovexattr("x", on->name));
	pt_got(t, "list", llistxattr("x", NULL, 0));
}

static void
of_size(struct pt *t, const void *arg)
{
	const size_t *size = arg;
	rsb_autofree char *value = calloc(*size + 1, 1);
	rsb_autofree char *back = calloc(*size + 1, 1);

	pt_need(t, value && back, "memory");
	memset(value, 'v', *size);
	pt_make(t, PT_FILE, "x");
	pt_did(t, "set", setxattr("x", "user.sized", value, *size, 0));
	pt_got(t, "size", getxattr("x", "user.sized", NULL, 0));
	pt_got(t, "get", getxattr("x", "user.sized", back, *size + 1));
	pt_say(t, " same=%d", memcmp(value, back, *size) == 0);
	if (*size > 1)
		pt_got(t, "small", getxattr("x", "user.sized", back, *size - 1));
	pt_cat(t, "x", "x");
}

static void
with_flags(struct pt *t, const void *arg)
{
	(void)arg;
	pt_make(t, PT_FILE, "x");
	pt_did(t, "replace", setxattr("x", "user.k", "1", 1, XATTR_REPLACE));
	pt_did(t, "create", setxattr("x", "user.k", "2", 1, XATTR_CREATE));
	pt_did(t, "create", setxattr("x", "user.k", "3", 1, XATTR_CREATE));
	pt_did(t, "replace", setxattr("x", "user.k", "4", 1, XATTR_REPLACE));
	pt_did(t, "both", setxattr("x", "user.k", "5", 1, XATTR_REPLACE | XATTR_CREATE));
	pt_did(t, "odd", setxattr("x", "user.k", "6", 1, 64));
	char value[4] = "";
	pt_got(t, "get", getxattr("x", "user.k", value, sizeof(value)));
	pt_say(t, "'%s'", value);
}

static void
many_and_long(struct pt *t, const void *arg)
{
	char list[4096];
	char name[300] = "user.";
	ssize_t n;

	(void)arg;
	pt_make(t, PT_FILE, "x");
	for (int i = 0; i < 30; i++) {
		(void)snprintf(name, sizeof(name), "user.number.%d", i);
		pt_need(t, setxattr("x", name, name, strlen(name), 0) == 0, name);
	}
	n = listxattr("x", list, sizeof(list));
	pt_got(t, "list", n);
	pt_got(t, "small", listxattr("x", list, 10));
	for (int length = 254; length <= 257; length++) {
		memset(name + 5, 'n', (size_t)length - 5);
		name[length] = 0;
		pt_did(t, "long", setxattr("x", name, "v", 1, 0));
		pt_got(t, "get", getxattr("x", name, NULL, 0));
	}
	pt_got(t, "list", listxattr("x", NULL, 0));
}

static void
by_descriptor_and_name(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;
	char value[8] = "";

	(void)arg;
	pt_make(t, PT_FILE, "x");
	fd = open("x", O_RDONLY | O_CLOEXEC);
	pt_did(t, "fset", fsetxattr(fd, "user.k", "fd", 2, 0));
	pt_got(t, "get", getxattr("x", "user.k", value, 7));
	pt_say(t, "'%s'", value);
	pt_need(t, link("x", "y") == 0 && symlink("x", "s") == 0, "links");
	pt_did(t, "set", setxattr("s", "user.k", "S", 1, 0));
	pt_got(t, "get", getxattr("y", "user.k", value, 7));
	pt_did(t, "rename", rename("x", "z"));
	pt_got(t, "fget", fgetxattr(fd, "user.k", value, 7));
	pt_did(t, "unlink", unlink("y") < 0 || unlink("z") < 0 ? -1 : 0);
	pt_got(t, "fget", fgetxattr(fd, "user.k", value, 7));
	pt_did(t, "fset", fsetxattr(fd, "user.k", "gone", 4, 0));
	pt_got(t, "fget", fgetxattr(fd, "user.k", value, 7));
	pt_did(t, "fremove", fremovexattr(fd, "user.k"));
	pt_got(t, "flist", flistxattr(fd, NULL, 0));
}

void
pt_cases_xattrs(struct pt_run *run)
{
	static const enum pt_type types[] = { PT_FILE, PT_DIR, PT_LINK, PT_FIFO };
	static const size_t sizes[] = { 0, 1, 100, 3000, 4000, 5000, 65536, 65537 };

	for (size_t n = 0; n < RSB_ARRAY_SIZE(names); n++) {
		for (size_t k = 0; k < RSB_ARRAY_SIZE(types); k++) {
			const struct on_type on = { .name = names[n], .type = types[k] };

			pt_case(run, name_on_type, &on, "xattr.'%s' on %s",
				names[n][4] == '.' && names[n][5] == '\xff' ? "user.bytes"
									    : names[n],
				pt_type_names[types[k]]);
		}
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(sizes); i++)
		pt_case(run, of_size, &sizes[i], "xattr.of %zu bytes", sizes[i]);
	pt_case(run, with_flags, NULL, "xattr.with flags");
	pt_case(run, many_and_long, NULL, "xattr.many and long");
	pt_case(run, by_descriptor_and_name, NULL, "xattr.by descriptor and name");
}
