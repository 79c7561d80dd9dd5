/* SPDX-License-Identifier: MIT */
#include "fuse/shared.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/secret.h"

static int
map(int fd, struct rsb_shared **ret_shared)
{
	struct rsb_shared *shared;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (shared == MAP_FAILED)
		return -errno;
	*ret_shared = shared;
	return 0;
}

int
rsb_shared_new(struct rsb_shared **ret_shared, int *ret_fd)
{
	rsb_autoclose int fd = memfd_create("rsb-mount", MFD_CLOEXEC);
	struct rsb_shared *shared = NULL;
	uint64_t salt;
	int r;

	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
		return -errno;
	do {
		r = rsb_random(&salt, sizeof(salt));
	} while (r >= 0 && !salt);
	if (r >= 0)
		r = map(fd, &shared);
	if (r < 0)
		return r;
	shared->git_salt = salt;
	shared->head.magic = RSB_SHARED_MAGIC;
	shared->head.size = sizeof(*shared);
	shared->head.n_node = 1;
	shared->head.no_epoch = 1; /* until it has shown that it can */
	shared->nodes[1].id = 1;
	shared->nodes[1].n_kernel = 1;
	shared->nodes[1].type = S_IFDIR;
	*ret_shared = shared;
	if (ret_fd)
		*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_shared_map(int fd, struct rsb_shared **ret_shared)
{
	RSB_CLEANUP(rsb_shared_freep) struct rsb_shared *shared = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)sizeof(*shared))
		return -EPROTONOSUPPORT;
	r = map(fd, &shared);
	if (r < 0)
		return r;
	if (shared->head.magic != RSB_SHARED_MAGIC || shared->head.size != sizeof(*shared))
		return -EPROTONOSUPPORT;
	*ret_shared = rsb_steal(&shared);
	return 0;
}

void
rsb_shared_free(struct rsb_shared *shared)
{
	if (shared)
		(void)munmap(shared, sizeof(*shared));
}

int
rsb_shared_node_new(struct rsb_shared *shared, uint32_t *ret_index)
{
	struct rsb_shared_head *head = &shared->head;
	uint32_t index = head->first_free;
	struct rsb_shared_node *node;

	if (index) {
		head->first_free = shared->nodes[index].next_free;
	} else {
		if (head->n_node >= RSB_NODES_MAX)
			return -ENFILE;
		index = ++head->n_node;
	}
	node = &shared->nodes[index];
	/* In one store: a generation that is lost would bring back an old name of the kernel's. */
	rsb_shared_publish(&node->generation, node->generation + 1);
	node->ino = 0;
	node->btime_sec = 0;
	node->btime_nsec = 0;
	node->n_kernel = 0;
	node->n_given = 0;
	node->parent = 0;
	node->name = 0;
	node->next_free = 0;
	node->type = 0;
	node->depth_least = 0;
	*ret_index = index;
	return 0;
}

static void
push_free(struct rsb_shared *shared, uint32_t index)
{
	struct rsb_shared_node *node = &shared->nodes[index];

	/* A generation must not come back: at the end of its numbers the slot stays unused. */
	if (node->generation == UINT32_MAX)
		return;
	node->next_free = shared->head.first_free;
	shared->head.first_free = index;
}

void
rsb_shared_node_free(struct rsb_shared *shared, uint32_t index)
{
	rsb_shared_publish(&shared->nodes[index].id, 0);
	push_free(shared, index);
}

void
rsb_shared_recover_fifo(struct rsb_shared *shared)
{
	for (uint32_t i = 0; i < shared->head.n_call; i++) {
		const struct rsb_shared_call *call = &shared->calls[i];

		if (call->state)
			shared->link.fifo = rsb_max(shared->link.fifo, call->fifo);
	}
}

void
rsb_shared_recover_nodes(struct rsb_shared *shared)
{
	shared->head.first_free = 0;
	for (uint32_t i = shared->head.n_node; i > 1; i--) {
		if (!shared->nodes[i].id)
			push_free(shared, i);
	}
}
