/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/loop.h>

#include "util/cleanup.h"
#include "util/spawn.h"

#define LOOP_TRIES 64
#define PATH_SIZE 64

/* Some file systems have no O_TMPFILE: then a name exists for a moment. */
static int
open_unnamed(const char *dir)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	if (snprintf(path, sizeof(path), "%s/disk-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path); /* ours, in a directory that is ours alone */
	return fd;
}

static int
make_image(const char *dir, uint64_t size, int *ret_fd)
{
	rsb_autoclose int fd = open_unnamed(dir);

	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

/* No journal and no reserve: the image never outlives its sandbox. */
static int
make_fs(int image)
{
	char path[PATH_SIZE];
	const char *argv[] = { "mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E",
		"lazy_itable_init=1,nodiscard", path, NULL };
	struct rsb_spawn spec = {
		.argv = argv, .stdio = { -1, -1, -1 }, .keep = &image, .n_keep = 1
	};
	pid_t pid;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", image);
	r = rsb_spawn(&spec, &pid, NULL);
	if (r < 0)
		return r;
	return rsb_spawn_wait(pid) == 0 ? 0 : -EIO;
}

/* Another process may take the free device between the two calls: then the next one is tried. */
static int
attach_loop(int image, char *ret_path, size_t size, int *ret_loop)
{
	rsb_autoclose int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (unsigned int)image,
		.info = { .lo_flags = LO_FLAGS_AUTOCLEAR },
	};

	if (control < 0)
		return -errno;
	for (int i = 0; i < LOOP_TRIES; i++) {
		rsb_autoclose int loop = -1;
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			return -errno;
		(void)snprintf(ret_path, size, "/dev/loop%d", n);
		loop = open(ret_path, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			return -errno;
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
			*ret_loop = rsb_steal_fd(&loop);
			return 0;
		}
		if (errno != EBUSY)
			return -errno;
	}
	return -EBUSY;
}

int
rsb_disk_init(
	struct rsb_disk *disk, const char *dir, uint64_t size, bool as_root, struct rsb_diag *diag)
{
	int r;

	*disk = (struct rsb_disk){ .size = size, .image = -1 };
	if (size == 0 || !as_root)
		return 0;
	r = make_image(dir, size, &disk->image);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot make a disk image in %s: %s", dir, rsb_diag_text(NULL, r));
	r = make_fs(disk->image);
	if (r < 0)
		return rsb_diag_set(diag, r, "mkfs.ext4 failed: is e2fsprogs installed?");
	return 0;
}

void
rsb_disk_done(struct rsb_disk *disk)
{
	if (disk->image >= 0)
		(void)close(disk->image);
	disk->image = -1;
}

static int
mount_image(const struct rsb_disk *disk, const char *target, struct rsb_diag *diag)
{
	rsb_autoclose int loop = -1;
	char path[PATH_SIZE];
	int r = attach_loop(disk->image, path, sizeof(path), &loop);

	if (r < 0)
		return rsb_diag_set(
			diag, r, "cannot set up a loop device: %s", rsb_diag_text(NULL, r));
	if (mount(path, target, "ext4", MS_NODEV | MS_NOATIME, "") < 0)
		return rsb_diag_set(
			diag, -errno, "cannot mount the disk image: %s", strerror(errno));
	return 0;
}

int
rsb_disk_mount(const struct rsb_disk *disk, const char *target, struct rsb_diag *diag)
{
	char options[PATH_SIZE] = "mode=755";

	if (disk->image >= 0)
		return mount_image(disk, target, diag);
	if (disk->size > 0)
		(void)snprintf(options, sizeof(options), "mode=755,size=%llu",
			(unsigned long long)disk->size);
	if (mount("tmpfs", target, "tmpfs", MS_NODEV | MS_NOATIME, options) < 0)
		return rsb_diag_set(diag, -errno, "cannot mount a tmpfs: %s", strerror(errno));
	return 0;
}
