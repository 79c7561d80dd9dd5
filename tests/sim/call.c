/* SPDX-License-Identifier: MIT */
#include "tests/sim/call.h"

#include <stdlib.h>

void
sim_call_encode(const struct sim_call *call, uint64_t id, struct rsb_buf *out)
{
	uint8_t *data = sim_bytes(id, 0, call->size);
	const struct rsb_bytes name = rsb_bytes_str("user.sim");
	const struct rsb_setxattr_req set = {
		.name = name,
		.value = { .data = data, .size = call->size },
	};
	const struct rsb_getxattr_req get = { .name = name };
	const struct rsb_tar_in_req tar = { .proc = call->proc };
	const void *req = call->op == RSB_OP_setxattr ? (const void *)&set
			  : call->op == RSB_OP_tar_in ? (const void *)&tar
						      : (const void *)&get;

	rsb_buf_clear(out);
	if (rsb_codec_request(call->op, id, call->after, req, RSB_PROTO_VERSION, out) < 0)
		abort();
	free(data);
}

uint64_t
sim_call_check_request(
	struct sim_world *world, const struct rsb_msg *msg, struct sim_call *ret_call)
{
	const struct sim_call *call;
	struct rsb_setxattr_req set;
	struct rsb_tar_in_req tar;
	struct rsb_call_head head;
	int r;

	r = rsb_codec_head((struct rsb_bytes){ .data = msg->data, .size = msg->size }, &head);
	sim_check(world, r == 0);
	call = sim_call(world, head.id);
	sim_check(world, head.op == call->op && head.after == call->after);
	if (head.op == RSB_OP_setxattr) {
		r = rsb_codec_decode(&rsb_desc_rsb_setxattr_req, head.body, &set);
		sim_check(world, r == 0 && set.value.size == call->size);
		sim_check_bytes(world, head.id, 0, set.value);
	} else if (head.op == RSB_OP_tar_in) {
		r = rsb_codec_decode(&rsb_desc_rsb_tar_in_req, head.body, &tar);
		sim_check(world, r == 0 && tar.proc == call->proc);
	}
	*ret_call = *call;
	return head.id;
}

void
sim_call_encode_reply(const struct sim_call *call, uint64_t id, struct rsb_buf *out)
{
	uint8_t *data = sim_bytes(id, 0, call->size);
	const struct rsb_attr_rep attr = { .attr.ino = id };
	const struct rsb_xattr_rep value = { .value = { .data = data, .size = call->size } };
	const struct rsb_tar_in_rep tar = { .bytes = id };
	const void *rep = call->op == RSB_OP_setxattr ? (const void *)&attr
			  : call->op == RSB_OP_tar_in ? (const void *)&tar
						      : (const void *)&value;

	if (rsb_codec_reply(call->op, id, 0, rep, RSB_PROTO_VERSION, out) < 0)
		abort();
	free(data);
}

void
sim_call_check_reply(const struct sim_world *world, const struct sim_call *call,
	const struct rsb_call_head *head)
{
	struct rsb_attr_rep attr;
	struct rsb_xattr_rep value;
	struct rsb_tar_in_rep tar;

	sim_check(world, head->error == 0);
	if (call->op == RSB_OP_setxattr) {
		sim_check(world, rsb_codec_decode(&rsb_desc_rsb_attr_rep, head->body, &attr) == 0);
		sim_check(world, attr.attr.ino == head->id);
	} else if (call->op == RSB_OP_tar_in) {
		sim_check(world, rsb_codec_decode(&rsb_desc_rsb_tar_in_rep, head->body, &tar) == 0);
		sim_check(world, tar.bytes == head->id);
	} else {
		sim_check(
			world, rsb_codec_decode(&rsb_desc_rsb_xattr_rep, head->body, &value) == 0);
		sim_check(world, value.value.size == call->size);
		sim_check_bytes(world, head->id, 0, value.value);
	}
}
