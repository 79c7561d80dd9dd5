/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rig.h"
#include "tests/unit/unit.h"

/*
 * Every op with numbers that are mostly right: else new, of the wrong kind, used twice or after
 * their end, while the tree changes under them. Whatever comes, each request gets one reply, and
 * the session can be ended. RSB_SEED=N plays one run again.
 */

#define N_STEP 4000
#define N_SEED 2
#define N_KNOWN 8

/* Chance, and what it remembers of the replies. */
struct dice {
	uint64_t state;
	uint64_t next;
	uint64_t ids[N_KNOWN];
	uint64_t fhs[N_KNOWN];
};

static uint64_t
roll(struct dice *dice, uint64_t n)
{
	dice->state ^= dice->state << 13;
	dice->state ^= dice->state >> 7;
	dice->state ^= dice->state << 17;
	return dice->state % n;
}

static uint64_t
edge(struct dice *dice)
{
	static const uint64_t edges[] = { 0, 1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63 };

	return edges[roll(dice, RSB_ARRAY_SIZE(edges))];
}

/* One of those that were good once. */
static uint64_t
known(struct dice *dice, const uint64_t numbers[static N_KNOWN])
{
	return roll(dice, 16) ? numbers[roll(dice, N_KNOWN)] : edge(dice);
}

static uint64_t
fresh(struct dice *dice)
{
	return roll(dice, 16) ? dice->next++ : roll(dice, dice->next);
}

/* A length or offset; none of them fills a disk. */
static uint64_t
extent(struct dice *dice)
{
	static const uint64_t extents[] = { 0, 1, 511, 4096, 70000, UINT64_C(1) << 33, INT64_MAX,
		UINT64_C(1) << 63, UINT64_MAX };

	return extents[roll(dice, RSB_ARRAY_SIZE(extents))];
}

static struct rsb_bytes
name(struct dice *dice)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "", "..", "a/b" };

	return rsb_bytes_str(names[roll(dice, roll(dice, 10) ? 5 : RSB_ARRAY_SIZE(names))]);
}

static struct rsb_time
moment(struct dice *dice)
{
	return (struct rsb_time){
		.sec = (int64_t)edge(dice),
		.nsec = roll(dice, RSB_NSEC_PER_SEC + RSB_NSEC_PER_SEC / 8),
	};
}

/* The inode is not checked when it is said to be unknown. */
static struct rsb_node
node(struct dice *dice)
{
	struct rsb_node n = { .id = RSB_NODE_ROOT };

	if (roll(dice, 2))
		n.id = known(dice, dice->ids);
	if (roll(dice, 16) == 0)
		n.ino = edge(dice);
	return n;
}

static struct rsb_who
who(struct dice *dice)
{
	return (struct rsb_who){
		.has = roll(dice, 2),
		.uid = roll(dice, 8) ? 1000 : edge(dice),
		.gid = 1000,
	};
}

static uint64_t
plain(struct dice *dice, enum rsb_op_number op, const char *field)
{
	bool opens = op == RSB_OP_open || op == RSB_OP_create || op == RSB_OP_readdir;

	if (strncmp(field, "fh", 2) == 0 && opens)
		return fresh(dice);
	if (strcmp(field, "fh") == 0 && (op == RSB_OP_getattr || op == RSB_OP_setattr))
		return roll(dice, 2) ? known(dice, dice->fhs) : 0;
	if (strncmp(field, "fh", 2) == 0)
		return known(dice, dice->fhs);
	if (strstr(field, "id") && op != RSB_OP_setattr)
		return fresh(dice);
	if (strncmp(field, "off", 3) == 0 || strcmp(field, "start") == 0)
		return extent(dice);
	if (strcmp(field, "length") == 0 || strcmp(field, "size") == 0)
		return extent(dice);
	if (strcmp(field, "mode") == 0 && op != RSB_OP_fallocate)
		return roll(dice, 4) ? S_IFREG | 0644 : roll(dice, 0200000);
	if (strcmp(field, "flags") == 0)
		return roll(dice, 4) ? roll(dice, 3) : roll(dice, 1 << 16);
	if (strcmp(field, "valid") == 0)
		return roll(dice, 1 << 10);
	if (strcmp(field, "whence") == 0)
		return 3 + roll(dice, 3);
	return roll(dice, 8) ? roll(dice, 3) : edge(dice);
}

/* Fills the fields by their kinds, numbers by their names. */
static void
fill(struct dice *dice, enum rsb_op_number op, uint8_t *msg)
{
	const struct rsb_message_desc *desc = rsb_ops[op].req;

	for (uint32_t i = 0; i < desc->n_field; i++) {
		const struct rsb_field_desc *f = &desc->fields[i];
		void *at = msg + f->offset;

		switch (f->kind) {
		case RSB_FIELD_U64:
			*(uint64_t *)at = plain(dice, op, f->name);
			break;
		case RSB_FIELD_NAME:
			*(struct rsb_bytes *)at = name(dice);
			break;
		case RSB_FIELD_BYTES:
			*(struct rsb_bytes *)at =
				rsb_bytes_str(roll(dice, 4) ? "user.a" : "some text");
			break;
		case RSB_FIELD_REC:
			if (f->type == &rsb_desc_rsb_node)
				*(struct rsb_node *)at = node(dice);
			else if (f->type == &rsb_desc_rsb_who)
				*(struct rsb_who *)at = who(dice);
			else
				*(struct rsb_time *)at = moment(dice);
			break;
		case RSB_FIELD_I64:
		case RSB_FIELD_SEQ:
		case RSB_FIELD_STRS:
			break;
		}
	}
}

/* A process of the sandbox does something of its own. */
static void
disturb(struct rig *rig, struct dice *dice)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	const char *from = names[roll(dice, RSB_ARRAY_SIZE(names))];
	const char *to = names[roll(dice, RSB_ARRAY_SIZE(names))];

	switch (roll(dice, 5)) {
	case 0:
		(void)unlinkat(rig->dir_fd, from, 0);
		break;
	case 1:
		(void)renameat(rig->dir_fd, from, rig->dir_fd, to);
		break;
	case 2:
		(void)symlinkat("..", rig->dir_fd, from);
		break;
	case 3:
		(void)mkfifoat(rig->dir_fd, from, 0600);
		break;
	default:
		(void)mkdirat(rig->dir_fd, from, 0700);
		break;
	}
}

static void
forget_some(struct rig *rig, struct dice *dice)
{
	struct rsb_buf buf = { .max = 0 };
	const struct rsb_forget_one one = { .id = known(dice, dice->ids), .n = roll(dice, 3) };

	ck_assert_int_eq(rsb_seq_append(&rsb_desc_rsb_forget_one, &one, 1, &buf), 0);
	const struct rsb_forget_req req = { .nodes = rsb_seq_of(&buf, 1) };
	ck_assert_int_eq(rig_do(rig, forget, &req, NULL), 0);
	rsb_buf_done(&buf);
}

/* What a good reply gave, or a good request named. */
static void
remember(struct dice *dice, enum rsb_op_number op, const void *req, const void *rep)
{
	if (rsb_ops[op].rep == &rsb_desc_rsb_entry_rep)
		dice->ids[roll(dice, N_KNOWN)] = ((const struct rsb_entry_rep *)rep)->id;
	if (op == RSB_OP_open)
		dice->fhs[roll(dice, N_KNOWN)] = ((const struct rsb_open_req *)req)->fh;
	if (op == RSB_OP_create)
		dice->fhs[roll(dice, N_KNOWN)] = ((const struct rsb_create_req *)req)->fh;
}

static void
step(struct rig *rig, struct dice *dice)
{
	_Alignas(16) uint8_t req[1024] = { 0 };
	_Alignas(16) uint8_t rep[1024];
	enum rsb_op_number op = (enum rsb_op_number)(1 + roll(dice, RSB_OP_copy));
	struct rig_call *call;

	if (op == RSB_OP_forget) {
		forget_some(rig, dice);
		return;
	}
	ck_assert_uint_le(rsb_ops[op].req->size, sizeof(req));
	ck_assert_uint_le(rsb_ops[op].rep->size, sizeof(rep));
	fill(dice, op, req);
	call = rig_start(rig, op, req);
	if (!rig_answered(call, 0)) {
		ck_assert_uint_eq(op, RSB_OP_lock);
		rig_cancel(call);
	}
	if (rig_finish(call, rep, &rig->last) == 0)
		remember(dice, op, req, rep);
}

static void
run(uint64_t seed)
{
	struct rig rig;
	struct dice dice = {
		.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
		.next = 2,
	};

	rig_init(&rig);
	for (int i = 0; i < N_STEP; i++) {
		if (roll(&dice, 16) == 0)
			disturb(&rig, &dice);
		step(&rig, &dice);
	}
	rig_done(&rig);
}

START_TEST(answers_whatever_comes)
{
	const char *seed = getenv("RSB_SEED");

	for (uint64_t i = 1; !seed && i <= N_SEED; i++)
		run(i);
	if (seed)
		run(strtoull(seed, NULL, 10));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { answers_whatever_comes };

	return unit_run("sidecar-hostile", tests, RSB_ARRAY_SIZE(tests));
}
