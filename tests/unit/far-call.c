/* SPDX-License-Identifier: MIT */
/* The calls that tests make, and what the host knows by their replies. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/far.h"
#include "util/fd.h"

#define ROOT UINT64_C(1)

struct far_node *
far_node(struct far *far, uint64_t id)
{
	for (size_t i = 0; i < far->n_node; i++)
		if (far->nodes[i].one.node.id == id)
			return &far->nodes[i];
	return NULL;
}

static struct far_node *
node_named(struct far *far, uint64_t parent, const char *name)
{
	for (size_t i = 0; i < far->n_node; i++)
		if (far->nodes[i].one.parent == parent && strcmp(far->nodes[i].name, name) == 0)
			return &far->nodes[i];
	return NULL;
}

static void
learn_made(struct far *far, const struct far_call *call)
{
	struct far_node *node = &far->nodes[far->n_node++];
	struct rsb_entry_rep rep;

	ck_assert_uint_lt(far->n_node, FAR_NODES_MAX);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_entry_rep, call->body, &rep), 0);
	ck_assert_ptr_null(far_node(far, rep.id));
	node->one = (struct rsb_adopt_one){
		.node = { .id = rep.id, .ino = rep.attr.ino, .btime = rep.attr.btime },
		.type = rep.attr.mode & S_IFMT,
		.n_given = 1,
		.parent = call->parent,
	};
	(void)strcpy(node->name, call->name);
	node->fh = call->fh;
	node->flags = call->flags;
}

void
far_learn(struct far *far, const struct far_call *call)
{
	struct far_node *node;

	switch (call->op) {
	case RSB_OP_create:
	case RSB_OP_mkdir:
		learn_made(far, call);
		break;
	case RSB_OP_rename:
		node = far_node(far, call->node);
		if (node)
			(void)strcpy(node->name, call->name);
		break;
	case RSB_OP_release:
		for (size_t i = 0; i < far->n_node; i++)
			if (far->nodes[i].fh == call->fh)
				far->nodes[i].fh = 0;
		break;
	default:
		break;
	}
}

uint64_t
far_create(struct far *far, const char *name, uint64_t id)
{
	const struct rsb_create_req req = {
		.parent = { .id = ROOT },
		.name = rsb_bytes_str(name),
		.id = id,
		.fh = id,
		.flags = 2 /* O_RDWR */,
		.mode = S_IFREG | 0644,
	};
	const struct far_effect effect = {
		.parent = ROOT,
		.name = name,
		.fh = id,
		.flags = 2,
	};

	return far_call(far, RSB_OP_create, &req, &effect);
}

uint64_t
far_append(struct far *far, uint64_t fh, const char *text)
{
	const struct rsb_write_req req = {
		.fh = fh,
		.flags = RSB_WRITE_APPEND,
		.data = rsb_bytes_str(text),
	};

	return far_call(far, RSB_OP_write, &req, NULL);
}

uint64_t
far_release(struct far *far, uint64_t fh)
{
	const struct rsb_fh_req req = { .fh = fh };
	const struct far_effect effect = { .fh = fh };

	return far_call(far, RSB_OP_release, &req, &effect);
}

uint64_t
far_mkdir(struct far *far, const char *name, uint64_t id)
{
	const struct rsb_mkdir_req req = {
		.parent = { .id = ROOT },
		.name = rsb_bytes_str(name),
		.id = id,
		.mode = 0755,
	};
	const struct far_effect effect = { .parent = ROOT, .name = name };

	return far_call(far, RSB_OP_mkdir, &req, &effect);
}

uint64_t
far_rename(struct far *far, const char *name, const char *newname)
{
	const struct far_node *node = node_named(far, ROOT, name);
	const struct rsb_rename_req req = {
		.parent = { .id = ROOT },
		.name = rsb_bytes_str(name),
		.newparent = { .id = ROOT },
		.newname = rsb_bytes_str(newname),
	};
	const struct far_effect effect = {
		.name = newname,
		.node = node ? node->one.node.id : 0,
	};

	return far_call(far, RSB_OP_rename, &req, &effect);
}

char *
far_read(struct far *far, const char *name)
{
	char path[128], *text;

	(void)snprintf(path, sizeof(path), "%s/%s", far->workspace, name);
	return rsb_fd_read_file(AT_FDCWD, path, 1 << 20, &text) < 0 ? NULL : text;
}
