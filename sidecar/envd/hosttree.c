/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/hosttree.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_SIZE 16384 /* of /proc/self/mounts */
#define TYPE "fuse.rsb"
#define NEW_ROOT "/tmp" /* for a moment */

/* Below "/"; what else there is, only the host needs. */
static const char *const kept[] = { "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc",
	"run", "sbin", "sys", "usr" };

/* Detaches mounts of ours, or only looks for them; how many there are, or negative errno. */
static int
find_ours(bool detach)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	char line[LINE_SIZE];
	struct mntent entry;
	int n = 0;

	if (!mounts)
		return -errno;
	while (getmntent_r(mounts, &entry, line, sizeof(line))) {
		if (strcmp(entry.mnt_type, TYPE) != 0)
			continue;
		n++;
		/* A locked one stays, which is looked at afterwards. */
		if (detach)
			(void)umount2(entry.mnt_dir, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	(void)endmntent(mounts);
	return n;
}

static int
keep(const char *name)
{
	char from[32] = "/", to[32] = NEW_ROOT "/", link[PATH_MAX];
	struct stat st;
	ssize_t n;

	(void)strcat(from, name);
	(void)strcat(to, name);
	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(from, link, sizeof(link) - 1);
		if (n < 0)
			return -errno;
		link[n] = '\0';
		return symlink(link, to) < 0 ? -errno : 0;
	}
	if (mkdir(to, 0755) < 0 || mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return 0;
}

static int
shrink(void)
{
	int r = 0;

	if (mount("tmpfs", NEW_ROOT, "tmpfs", MS_NODEV, "mode=755,size=1M") < 0)
		return -errno;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(kept) && r == 0; i++)
		r = keep(kept[i]);
	if (r < 0)
		return r;
	if (mkdir(NEW_ROOT "/tmp", 0755) < 0 || chdir(NEW_ROOT) < 0)
		return -errno;
	/* Both trees at "/", the old one on top, is pivot_root(2)'s own recipe. */
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

int
rsb_hosttree_part(void)
{
	int r;

	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	r = find_ours(true);
	if (r > 0)
		r = find_ours(false);
	return r > 0 ? shrink() : r;
}
