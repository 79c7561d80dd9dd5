/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "util/cleanup.h"
#include "util/fd.h"

#include "sidecar/envd/disk.h"
#include "sidecar/envd/etc.h"
#include "sidecar/envd/hosttree.h"
#include "sidecar/envd/tree.h"

#define DISK RSB_LAYERS_STAGE "/disk"
#define LOWER RSB_LAYERS_STAGE "/lower"

/* On a host with merged directories all but /usr are links, and become the same links. */
static const char *const system_dirs[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64",
	"libx32" };

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

struct fresh_dir {
	const char *path;
	unsigned int mode;
	uint32_t id;
};

static const struct fresh_dir fresh_dirs[] = {
	{ "dev", 0755, 0 },
	{ "home", 0755, 0 },
	{ "home/user", 0755, RSB_USERNS_USER },
	{ "media", 0755, 0 },
	{ "mnt", 0755, 0 },
	{ "opt", 0755, 0 },
	{ "proc", 0555, 0 },
	{ "root", 0700, 0 },
	{ "run", 0755, 0 },
	{ "srv", 0755, 0 },
	{ "sys", 0555, 0 },
	{ "tmp", 01777, 0 },
	{ "var", 0755, 0 },
	{ "var/cache", 0755, 0 },
	{ "var/lib", 0755, 0 },
	{ "var/local", 0755, 0 },
	{ "var/log", 0755, 0 },
	{ "var/mail", 0755, 0 },
	{ "var/spool", 0755, 0 },
	{ "var/tmp", 01777, 0 },
};

static const char *const links[][2] = {
	{ "var/run", "/run" },
	{ "var/lock", "/run/lock" },
};

static const char *const dev_links[][2] = {
	{ "dev/fd", "/proc/self/fd" },
	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" },
	{ "dev/ptmx", "pts/ptmx" },
};

struct layers {
	const struct rsb_bootcfg *cfg;
	const struct rsb_userns *ns;
	int inner_fd;
	struct rsb_tree tree;
};

static int
path_of(char *out, size_t size, const char *prefix, const char *name)
{
	int n = snprintf(out, size, "%s/%s", prefix, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int
make_dir(const char *path, unsigned int mode, uid_t owner)
{
	if (mkdir(path, mode) < 0)
		return -errno;
	if (chown(path, owner, owner) < 0 || chmod(path, mode) < 0)
		return -errno;
	return 0;
}

/* ---- system directories ---- */

/* The host's directory, with its root's files belonging to the sandbox's root. -EINVAL: cannot. */
static int
attach_idmapped(const struct layers *l, const char *host, const char *lower)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV,
		.userns_fd = (unsigned int)l->inner_fd,
	};
	rsb_autoclose int fd = open_tree(AT_FDCWD, host, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	if (move_mount(fd, "", AT_FDCWD, lower, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int
overlay(const struct layers *l, const char *name, const char *target)
{
	char host[64], upper[128], work[128], options[512];
	uid_t owner = rsb_userns_id(l->ns, 0);
	int r;

	(void)path_of(host, sizeof(host), "", name);
	(void)path_of(upper, sizeof(upper), DISK "/upper", name);
	(void)path_of(work, sizeof(work), DISK "/scratch", name);
	r = attach_idmapped(l, host, LOWER);
	if (r < 0)
		return r;
	r = make_dir(upper, 0755, owner);
	if (r == 0)
		r = make_dir(work, 0755, owner);
	(void)snprintf(options, sizeof(options),
		"lowerdir=" LOWER ",upperdir=%s,workdir=%s,redirect_dir=on", upper, work);
	if (r == 0 && mount("overlay", target, "overlay", MS_NODEV, options) < 0)
		r = -errno;
	/* The overlay has its own reference to the layer. */
	if (umount2(LOWER, MNT_DETACH) < 0 && r == 0)
		r = -errno;
	return r;
}

static int
bind_read_only(const char *host, const char *target)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOSUID };

	if (mount(host, target, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	if (mount_setattr(AT_FDCWD, target, AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	return 0;
}

static int
add_system_dir(struct layers *l, const char *name)
{
	char host[64], target[128], link[PATH_MAX];
	struct stat st;
	ssize_t n;
	int r;

	(void)path_of(host, sizeof(host), "", name);
	(void)path_of(target, sizeof(target), RSB_LAYERS_ROOT, name);
	if (lstat(host, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(host, link, sizeof(link) - 1);
		if (n < 0)
			return -errno;
		link[n] = '\0';
		return rsb_tree_link(&l->tree, name, link);
	}
	r = rsb_tree_dir(&l->tree, name, 0755, 0);
	if (r < 0)
		return r;
	if (l->ns->root && l->cfg->idmap && overlay(l, name, target) == 0)
		return 0;
	return bind_read_only(host, target);
}

/*
 * /usr/local is the one system directory that an ordinary user may fill: the upper layer brings
 * directories of the sandbox's root, which then show what the host has below them.
 */
static int
open_local(struct layers *l)
{
	static const char *const below[] = { "", "bin", "etc", "include", "lib", "sbin", "share",
		"src" };
	uid_t owner = rsb_userns_id(l->ns, 0);
	char path[128];
	int r;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(below); i++) {
		(void)path_of(path, sizeof(path), DISK "/upper/local", below[i]);
		r = make_dir(path, 0755, owner);
		if (r < 0)
			return r;
	}
	r = make_dir(DISK "/scratch/local", 0755, owner);
	if (r < 0)
		return r;
	if (mount("overlay", RSB_LAYERS_ROOT "/usr/local", "overlay", MS_NODEV | MS_NOSUID,
		    "lowerdir=/usr/local,upperdir=" DISK "/upper/local,workdir=" DISK
		    "/scratch/local,userxattr") < 0)
		return -errno;
	return 0;
}

/* Of the mount: access(2) may say EACCES first. */
static bool
is_read_only(const char *path)
{
	struct statvfs st;

	return statvfs(path, &st) == 0 && (st.f_flag & ST_RDONLY);
}

static int
add_system_dirs(struct layers *l)
{
	int r;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(system_dirs); i++) {
		r = add_system_dir(l, system_dirs[i]);
		if (r < 0)
			return r;
	}
	/* A kernel that refuses leaves /usr/local read-only like the rest. */
	if (is_read_only(RSB_LAYERS_ROOT "/usr"))
		(void)open_local(l);
	return 0;
}

/* ---- the rest ---- */

static int
add_fresh(struct layers *l)
{
	int r;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(fresh_dirs); i++) {
		const struct fresh_dir *dir = &fresh_dirs[i];

		r = rsb_tree_dir(&l->tree, dir->path, dir->mode, dir->id);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(links); i++) {
		r = rsb_tree_link(&l->tree, links[i][0], links[i][1]);
		if (r < 0)
			return r;
	}
	r = rsb_tree_copy(&l->tree, "/etc/skel", "home/user", RSB_USERNS_USER);
	if (r < 0)
		return r;
	return rsb_etc_build(&l->tree, l->cfg->id);
}

static int
mount_tmpfs(const struct layers *l, const char *target, unsigned int mode, const char *more)
{
	char options[128];
	uid_t owner = rsb_userns_id(l->ns, 0);

	(void)snprintf(
		options, sizeof(options), "mode=%o,uid=%u,gid=%u,%s", mode, owner, owner, more);
	if (mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	return 0;
}

/*
 * Nodes are bound from the host, as nobody can make any in a user namespace. The directory is
 * without the sticky bit: fs.protected_regular would refuse "> /dev/null" by other users.
 */
static int
add_dev(struct layers *l)
{
	int r = mount_tmpfs(l, RSB_LAYERS_ROOT "/dev", 0755, "size=1M");

	for (size_t i = 0; r == 0 && i < RSB_ARRAY_SIZE(devices); i++) {
		char host[64], path[64], target[128];

		(void)path_of(host, sizeof(host), "/dev", devices[i]);
		(void)path_of(path, sizeof(path), "dev", devices[i]);
		(void)path_of(target, sizeof(target), RSB_LAYERS_ROOT "/dev", devices[i]);
		r = rsb_tree_text(&l->tree, path, 0666, "");
		if (r == 0 && mount(host, target, NULL, MS_BIND, NULL) < 0)
			r = -errno;
	}
	for (size_t i = 0; r == 0 && i < RSB_ARRAY_SIZE(dev_links); i++)
		r = rsb_tree_link(&l->tree, dev_links[i][0], dev_links[i][1]);
	if (r == 0)
		r = rsb_tree_dir(&l->tree, "dev/pts", 0755, 0);
	if (r == 0)
		r = rsb_tree_dir(&l->tree, "dev/shm", 01777, 0);
	if (r == 0)
		r = mount_tmpfs(l, RSB_LAYERS_ROOT "/dev/shm", 01777, "size=50%");
	return r;
}

static int
add_run(struct layers *l)
{
	int r = mount_tmpfs(l, RSB_LAYERS_ROOT "/run", 0755, "size=20%");

	return r < 0 ? r : rsb_tree_dir(&l->tree, "run/lock", 01777, 0);
}

static int
write_boot_id(const struct layers *l)
{
	rsb_autoclose int fd =
		open(RSB_LAYERS_BOOT_ID, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	char text[64];

	if (fd < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "%s\n", l->cfg->boot_id);
	return rsb_fd_write_full(fd, text, strlen(text));
}

static int
make_stage(const struct layers *l, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_disk_done) struct rsb_disk disk = { 0 };
	uid_t owner = rsb_userns_id(l->ns, 0);
	int r;

	/* First, as the state directory may be below what the stage hides. */
	r = rsb_disk_init(&disk, l->cfg->disk_dir, l->cfg->disk_size, l->ns->root, diag);
	if (r < 0)
		return r;
	r = rsb_hosttree_part();
	if (r < 0)
		return r;
	if (mount("tmpfs", RSB_LAYERS_STAGE, "tmpfs", MS_NODEV, "mode=755,size=1M") < 0)
		return -errno;
	if (mkdir(DISK, 0755) < 0 || mkdir(LOWER, 0755) < 0 || mkdir(RSB_LAYERS_ROOT, 0755) < 0)
		return -errno;
	r = rsb_disk_mount(&disk, DISK, diag);
	if (r < 0)
		return r;
	if (mkdir(DISK "/upper", 0755) < 0 || mkdir(DISK "/scratch", 0755) < 0)
		return -errno;
	r = make_dir(DISK "/root", 0755, owner);
	if (r < 0)
		return r;
	if (mount(DISK "/root", RSB_LAYERS_ROOT, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return write_boot_id(l);
}

int
rsb_layers_build(const struct rsb_bootcfg *cfg, const struct rsb_userns *ns, int inner_fd,
	struct rsb_diag *diag)
{
	struct layers l = { .cfg = cfg, .ns = ns, .inner_fd = inner_fd };
	rsb_autoclose int root = -1;
	int r;

	r = make_stage(&l, diag);
	if (r < 0)
		return diag->text[0] ? r
				     : rsb_diag_set(diag, r, "cannot prepare the sandbox: %s",
					       rsb_diag_text(NULL, r));
	root = open(RSB_LAYERS_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	l.tree = (struct rsb_tree){ .fd = root, .ns = ns };
	r = add_system_dirs(&l);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot show the system directories: %s", rsb_diag_text(NULL, r));
	r = add_fresh(&l);
	if (r == 0)
		r = add_run(&l);
	if (r == 0)
		r = add_dev(&l);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot fill the sandbox's root: %s", rsb_diag_text(NULL, r));
	/* What the host mounts from now on below what is bound here is not the sandbox's. */
	return mount(NULL, RSB_LAYERS_STAGE, NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}
