/* SPDX-License-Identifier: MIT */
#ifndef RSB_RIG_H
#define RSB_RIG_H

/*
 * A session of the sidecar on a temporary directory, without link and worker threads: a test calls
 * a handler and gets the reply as the host would decode it. What a process of the sandbox does, the
 * test does itself below rig->dir_fd.
 */

#include "proto/codec.h"
#include "sidecar/fh.h"
#include "sidecar/lock.h"
#include "sidecar/node.h"
#include "sidecar/request.h"
#include "sidecar/sess.h"
#include "tests/unit/unit.h"

struct rig {
	char path[64];
	int dir_fd;
	struct rsb_sidecar_config config;
	struct rsb_sess sess;
	uint64_t next;       /* ids and fhs; never used again */
	struct rsb_buf last; /* of the last reply, which views it */
};

void rig_init(struct rig *rig);
void rig_done(struct rig *rig);

/* One request whose reply can be waited for. */
struct rig_call;
struct rig_call *rig_start(struct rig *rig, enum rsb_op_number op, const void *req);
/* Whether it was answered within timeout_ms. */
bool rig_answered(struct rig_call *call, unsigned int timeout_ms);
void rig_cancel(struct rig_call *call);
/* Waits for the answer and frees the call. ret_rep may be NULL; it views buf. */
int rig_finish(struct rig_call *call, void *ret_rep, struct rsb_buf *buf);

/* rig_start() and rig_finish(). */
int rig_run(struct rig *rig, enum rsb_op_number op, const void *req, void *ret_rep);
#define rig_do(rig, op, req, rep) rig_run(rig, RSB_OP_##op, req, rep)

/* The same by name; ids are made up here. ret_attr may be NULL. */
extern const struct rsb_node rig_root;
int rig_lookup(struct rig *rig, const struct rsb_node *dir, const char *name,
	struct rsb_node *ret_node, struct rsb_attr *ret_attr);
int rig_mkdir(
	struct rig *rig, const struct rsb_node *dir, const char *name, struct rsb_node *ret_node);
int rig_getattr(struct rig *rig, const struct rsb_node *node, struct rsb_attr *ret_attr);
int rig_open(struct rig *rig, const struct rsb_node *node, uint64_t flags, uint64_t *ret_fh);
int rig_release(struct rig *rig, uint64_t fh);
int rig_write(struct rig *rig, uint64_t fh, uint64_t offset, const char *text);
/* Whether exactly text is there up to the end of the file. */
bool rig_reads(struct rig *rig, uint64_t fh, uint64_t offset, const char *text);
struct rsb_node rig_node_of(const struct rsb_entry_rep *entry);

/* A process of the sandbox makes a file. */
void rig_put(struct rig *rig, const char *name, const char *text);

#endif
