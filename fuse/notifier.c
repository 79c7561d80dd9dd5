/* SPDX-License-Identifier: MIT */
#include "fuse/notifier.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fd.h"

#define NOTIFY_INC_EPOCH 8 /* FUSE_NOTIFY_INC_EPOCH of Linux 6.16, newer than our headers */

/* One notify: 0 or negative errno. What the kernel does not know needs no telling. */
static int
tell(int fd, int32_t code, const void *body, size_t size, struct rsb_bytes name)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size + name.size),
		.error = code,
	};
	struct iovec iov[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)body, .iov_len = size },
		{ .iov_base = (void *)(uintptr_t)name.data, .iov_len = name.size },
	};

	if (writev(fd, iov, 3) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

static int
tell_inode(int fd, uint64_t nodeid, bool pages)
{
	struct fuse_notify_inval_inode_out out = { .ino = nodeid, .off = pages ? 0 : -1 };

	return tell(
		fd, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out), (struct rsb_bytes){ .size = 0 });
}

/*
 * Data for the last byte raises the size that the kernel knows, before the data is looked at. There
 * is none to be had: any that we knew could be older than what a program has just stored there, so
 * the kernel is given an address that it cannot read, and the page stays what it is.
 */
static int
tell_size(int fd, const struct rsb_notifier_size *file)
{
	struct fuse_notify_store_out out = {
		.nodeid = file->nodeid,
		.offset = file->size - 1,
		.size = 1,
	};
	int r;

	r = tell(fd, FUSE_NOTIFY_STORE, &out, sizeof(out),
		(struct rsb_bytes){ .data = NULL, .size = 1 });
	return r == -EFAULT ? 0 : r;
}

static int
tell_name(int fd, const struct rsb_notifier_name *entry, const uint8_t *text, bool expire)
{
	const struct fuse_notify_inval_entry_out out = {
		.parent = entry->parent,
		.namelen = (uint32_t)entry->size,
		.flags = expire ? FUSE_EXPIRE_ONLY : 0,
	};

	/* The NUL goes with it, and is not counted in namelen. */
	return tell(fd, FUSE_NOTIFY_INVAL_ENTRY, &out, sizeof(out),
		(struct rsb_bytes){ .data = text, .size = entry->size + 1 });
}

static int
tell_names(int fd, const uint8_t *body, size_t size, bool expire)
{
	struct rsb_notifier_name entry;
	int r = 0;

	while (size > sizeof(entry)) {
		memcpy(&entry, body, sizeof(entry));
		body += sizeof(entry);
		size -= sizeof(entry);
		if (entry.size >= size)
			return -EBADMSG;
		r = tell_name(fd, &entry, body, expire);
		body += entry.size + 1;
		size -= entry.size + 1;
	}
	return r;
}

static int
carry_out(int fd, const struct rsb_notifier_head *head, const uint8_t *body, size_t size)
{
	int r = 0;

	if (head->type == RSB_NOTIFIER_INODES) {
		for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
			uint64_t nodeid;

			memcpy(&nodeid, body + i, sizeof(nodeid));
			r = tell_inode(fd, nodeid, head->how);
		}
	} else if (head->type == RSB_NOTIFIER_SIZES) {
		for (size_t i = 0; i + sizeof(struct rsb_notifier_size) <= size;
			i += sizeof(struct rsb_notifier_size)) {
			struct rsb_notifier_size file;

			memcpy(&file, body + i, sizeof(file));
			r = tell_size(fd, &file);
		}
	} else if (head->type == RSB_NOTIFIER_NAMES) {
		r = tell_names(fd, body, size, head->how);
	} else if (head->type == RSB_NOTIFIER_EPOCH) {
		r = tell(fd, NOTIFY_INC_EPOCH, NULL, 0, (struct rsb_bytes){ .size = 0 });
		if (r == -EINVAL)
			r = -EOPNOTSUPP;
	}
	return r;
}

void
rsb_notifier_main(int sock)
{
	rsb_autofree uint8_t *packet = malloc(RSB_NOTIFIER_PACKET_MAX);
	struct rsb_notifier_head head;
	int fuse_fd = -1;

	for (;;) {
		int fds[1];
		size_t n_fd = 1;
		int32_t r;
		int n;

		n = packet ? rsb_fd_recv(sock, packet, RSB_NOTIFIER_PACKET_MAX, fds, &n_fd) : 0;
		if (n < (int)sizeof(head))
			break;
		memcpy(&head, packet, sizeof(head));
		if (n_fd && head.type == RSB_NOTIFIER_ATTACH)
			fuse_fd = fds[0];
		r = carry_out(fuse_fd, &head, packet + sizeof(head), (size_t)n - sizeof(head));
		if ((head.type == RSB_NOTIFIER_EPOCH || head.type == RSB_NOTIFIER_FENCE) &&
			send(sock, &r, sizeof(r), MSG_NOSIGNAL) < 0)
			break;
	}
	rsb_cleanup_close(&fuse_fd);
	(void)close(sock);
}
