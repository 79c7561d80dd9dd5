/* SPDX-License-Identifier: MIT */
#ifndef RSB_OP_H
#define RSB_OP_H

/*
 * What structs.def and ops.def say, as C: a struct for each message, a number for each op, and
 * the descriptors by which the one codec walks them. Decoded bytes and lists are views into the
 * bytes that were decoded and live as long as those. A REC is inline; a SEQ or STRS is a
 * struct rsb_seq.
 */

#include "proto/limits.h"
#include "util/buf.h"

/*
 * A list as it stands on the wire: n elements, already validated when it came from the decoder.
 * Walk it with rsb_seq_next().
 */
struct rsb_seq {
	uint64_t n;
	struct rsb_bytes raw;
};

/* clang-format off */
#define RSB_KIND_u64	uint64_t
#define RSB_KIND_i64	int64_t
#define RSB_KIND_bytes	struct rsb_bytes
#define RSB_KIND_name	struct rsb_bytes

#define MESSAGE(owner)				struct owner {
#define FIELD(owner, kind, name, since, limit)	RSB_KIND_##kind name;
#define REC(owner, type, name, since)		struct type name;
#define SEQ(owner, type, name, since, limit)	struct rsb_seq name;
#define STRS(owner, name, since, limit, each)	struct rsb_seq name;
#define END(owner)				char end_; };
#include "proto/structs.def" /* IWYU pragma: keep */
/* clang-format on */

enum rsb_op_flag {
	RSB_OP_WRITES = 1 << 0,
	RSB_OP_SLOW = 1 << 1,
	RSB_OP_WAITS = 1 << 2,
	RSB_OP_LOCAL = 1 << 3,
	RSB_OP_INLINE = 1 << 4,
	RSB_OP_ORDERED = 1 << 5,
};

/* clang-format off */
enum rsb_op_number {
#define OP(op, number, req, rep, since, flags) RSB_OP_##op = number,
#include "proto/ops.def"
};
/* clang-format on */

#define RSB_OP_NUMBER_MAX 127

/* tree_out: what. */
enum rsb_tree_what {
	RSB_TREE_LIST = 1,
	RSB_TREE_PACK = 2,
	RSB_TREE_REMOVE = 3,
	RSB_TREE_CHANGES = 4,
};

/* setattr: which members count. */
enum rsb_set {
	RSB_SET_MODE = 1 << 0,
	RSB_SET_UID = 1 << 1,
	RSB_SET_GID = 1 << 2,
	RSB_SET_SIZE = 1 << 3,
	RSB_SET_ATIME = 1 << 4,
	RSB_SET_MTIME = 1 << 5,
	RSB_SET_ATIME_NOW = 1 << 6, /* by the sandbox's clock */
	RSB_SET_MTIME_NOW = 1 << 7,
	RSB_SET_KILL_SUIDGID = 1 << 8,
};

/* Among the flags of open and create, which are those of open(2). */
enum rsb_open_flag {
	RSB_OPEN_KEEP_SUIDGID = 1 << 30, /* truncating does not drop set-user-ID */
};

enum rsb_write_flag {
	RSB_WRITE_APPEND = 1 << 0,       /* at the end of the file, whatever offset says */
	RSB_WRITE_KILL_SUIDGID = 1 << 1, /* drop set-user-ID and set-group-ID first */
};

enum rsb_lock_kind { RSB_LOCK_POSIX = 0, RSB_LOCK_FLOCK = 1 };

enum rsb_spawn_flag {
	RSB_SPAWN_STDIN_NULL = 1 << 0,   /* /dev/null instead of a stream */
	RSB_SPAWN_MERGE_STDERR = 1 << 1, /* stderr is the same pipe as stdout */
};

enum rsb_spawn_stage {
	RSB_SPAWN_STAGE_CHDIR = 1,
	RSB_SPAWN_STAGE_EXEC = 2,
	RSB_SPAWN_STAGE_SETUP = 3
};

enum rsb_wait_what { RSB_WAIT_LEADER = 0, RSB_WAIT_TREE = 1 };

enum rsb_signal_to { RSB_SIGNAL_LEADER = 0, RSB_SIGNAL_GROUP = 1, RSB_SIGNAL_TREE = 2 };

enum rsb_field_kind {
	RSB_FIELD_U64,
	RSB_FIELD_I64,
	RSB_FIELD_BYTES,
	RSB_FIELD_NAME,
	RSB_FIELD_REC,
	RSB_FIELD_SEQ,
	RSB_FIELD_STRS,
};

struct rsb_message_desc;

struct rsb_field_desc {
	const char *name;
	enum rsb_field_kind kind;
	uint32_t offset; /* in the struct */
	uint32_t since;
	uint32_t limit;                      /* bytes of BYTES and NAME, elements of SEQ and STRS */
	uint32_t each;                       /* bytes of one element of STRS */
	const struct rsb_message_desc *type; /* of REC and SEQ */
};

struct rsb_message_desc {
	const char *name;
	uint32_t size; /* of the struct */
	uint32_t n_field;
	const struct rsb_field_desc *fields;
};

struct rsb_op {
	const char *name; /* NULL: no such op */
	const struct rsb_message_desc *req;
	const struct rsb_message_desc *rep;
	uint32_t since;
	uint32_t flags; /* enum rsb_op_flag */
};

/* Indexed by number, 0..RSB_OP_NUMBER_MAX. */
extern const struct rsb_op rsb_ops[RSB_OP_NUMBER_MAX + 1];

/* rsb_desc_rsb_lookup_req and so on. */
/* clang-format off */
#define MESSAGE(owner) extern const struct rsb_message_desc rsb_desc_##owner;
#include "proto/structs.def"
/* clang-format on */

/* All message descriptors in order of structs.def, for printers and fuzzers; NULL-terminated. */
extern const struct rsb_message_desc *const rsb_messages[];

/* FNV-1a over the printed table: tells apart two builds that call the same version differently. */
uint64_t rsb_op_table_hash(void);

#endif
