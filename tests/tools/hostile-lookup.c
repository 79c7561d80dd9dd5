/* SPDX-License-Identifier: MIT */
#include "hostile-lookup.h"

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define FLOOD 20000

struct rsb_attr
hostile_attr(uint64_t id, bool is_dir)
{
	return (struct rsb_attr){
		.ino = 1000 + id,
		.mode = is_dir ? S_IFDIR | 0755 : S_IFREG | 0644,
		.nlink = 1,
		.uid = 1000,
		.gid = 1000,
		.size = 4096,
		.blocks = 8,
		.blksize = 4096,
	};
}

/* ---- what is said beside the answer ---- */

void
hostile_flood(struct far_end *far, uint8_t type, uint64_t a, uint64_t b, struct rsb_bytes payload)
{
	const struct rsb_frame frame = { .type = type, .a = a, .b = b, .payload = payload };

	for (int i = 0; i < FLOOD; i++)
		far_end_frame(far, &frame);
}

static void
flood_credit(struct far_end *far, const struct rsb_call_head *head)
{
	static const uint8_t received[8] = { 0 };
	struct rsb_frame frame = { .type = RSB_FRAME_CREDIT, .payload = { received, 8 } };

	(void)head;
	for (uint64_t i = 0; i < FLOOD; i++) {
		frame.a = i;
		frame.b = UINT64_MAX - i;
		far_end_frame(far, &frame);
	}
}

static void
flood_reset(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_frame frame = { .type = RSB_FRAME_RESET, .b = 99999 };

	(void)head;
	for (frame.a = 0; frame.a < FLOOD; frame.a++)
		far_end_frame(far, &frame);
}

static void
flood_stream(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_frame frame = { .type = RSB_FRAME_STREAM, .payload = rsb_bytes_str("bytes") };

	(void)head;
	for (uint64_t i = 0; i < FLOOD; i++) {
		frame.a = i;
		frame.b = i << 40;
		far_end_frame(far, &frame);
	}
}

static void
flood_ping(struct far_end *far, const struct rsb_call_head *head)
{
	hostile_flood(far, RSB_FRAME_PING, 1, 0, (struct rsb_bytes){ 0 });
	hostile_flood(far, RSB_FRAME_PONG, 1, 0, (struct rsb_bytes){ 0 });
	(void)head;
}

static void
flood_unknown(struct far_end *far, const struct rsb_call_head *head)
{
	static const uint8_t raw[RSB_FRAME_HEAD + 4] = { 200, 255 };
	const struct rsb_frame frame = { .type = 200, .payload = { raw, sizeof(raw) } };

	(void)head;
	for (int i = 0; i < FLOOD; i++)
		far_end_frame(far, &frame);
}

static void
ack_the_future(struct far_end *far, const struct rsb_call_head *head)
{
	const struct rsb_frame frame = { .type = RSB_FRAME_ACK, .a = 1 << 30, .b = UINT64_MAX };

	(void)head;
	far_end_frame(far, &frame);
}

static void
never_ending_message(struct far_end *far, const struct rsb_call_head *head)
{
	static const uint8_t part[60000];
	const struct rsb_frame frame = { .type = RSB_FRAME_MESSAGE,
		.flags = RSB_FRAME_MORE,
		.a = 1000000,
		.payload = { part, sizeof(part) } };

	(void)head;
	for (int i = 0; i < 200; i++)
		far_end_frame(far, &frame);
}

static void
reply_to_nobody(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_call_head other = *head;

	for (other.id = 1; other.id < 2000; other.id++)
		if (other.id != head->id)
			far_end_reply(far, &other, 0, NULL);
	/* The right one comes afterwards, twice. */
	far_end_reply(far, head, -EIO, NULL);
	far_end_reply(far, head, -EIO, NULL);
}

/* ---- answers that are wrong themselves ---- */

/* [0, id, 0, body] with body as it comes, however long it says that it is. */
void
hostile_reply(
	struct far_end *far, const struct rsb_call_head *head, struct rsb_bytes body, size_t pad)
{
	struct rsb_buf msg = { .max = RSB_MESSAGE_MAX };
	uint8_t id[9] = { 0xcf };
	uint8_t *tail;

	for (int i = 0; i < 8; i++)
		id[1 + i] = (uint8_t)(head->id >> (56 - 8 * i));
	if (rsb_buf_append(&msg, "\x94\x00", 2) < 0 || rsb_buf_append(&msg, id, 9) < 0 ||
		rsb_buf_append(&msg, "\x00", 1) < 0 ||
		rsb_buf_append(&msg, body.data, body.size) < 0 ||
		rsb_buf_reserve(&msg, pad, &tail) < 0)
		errx(1, "no memory");
	memset(tail, 0, pad);
	rsb_buf_commit(&msg, pad);
	far_end_message(far, rsb_buf_view(&msg));
	rsb_buf_done(&msg);
}

/* An array of one field too many, and that is a bin of almost all that a message may have. */
static void
huge_reply(struct far_end *far, const struct rsb_call_head *head)
{
	static const char body[] = "\x94\x01\x90\x90\xc6\x00\x3f\xff\x00";

	hostile_reply(far, head, HOSTILE_RAW(body), 0x3fff00);
}

static void
counts_too_many(struct far_end *far, const struct rsb_call_head *head)
{
	hostile_reply(far, head, HOSTILE_RAW("\xdd\xff\xff\xff\xff"), 0);
}

static void
nests_deeply(struct far_end *far, const struct rsb_call_head *head)
{
	static uint8_t deep[100000];

	memset(deep, 0x91, sizeof(deep));
	hostile_reply(far, head, (struct rsb_bytes){ deep, sizeof(deep) }, 1);
}

static void
reply_attr(struct far_end *far, const struct rsb_call_head *head, struct rsb_attr attr)
{
	const struct rsb_entry_rep rep = { .id = head->id << 32, .attr = attr };

	far_end_reply(far, head, 0, &rep);
}

static void
odd_attr(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_attr attr = hostile_attr(1, false);

	attr.size = UINT64_MAX;
	attr.nlink = UINT64_MAX;
	attr.mtime = (struct rsb_time){ .sec = INT64_MIN, .nsec = UINT64_MAX };
	reply_attr(far, head, attr);
}

static void
no_type(struct far_end *far, const struct rsb_call_head *head)
{
	reply_attr(far, head, (struct rsb_attr){ .mode = UINT64_MAX });
}

static void
root_again(struct far_end *far, const struct rsb_call_head *head)
{
	const struct rsb_entry_rep rep = { .id = 1, .attr = hostile_attr(1, false) };

	far_end_reply(far, head, 0, &rep);
}

static void
odd_errno(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_buf msg = { 0 };

	/* [0, id, 2^32 - 1] */
	if (rsb_buf_printf(&msg, "%c%c%c%c%c%c%c%c%c%c", 0x93, 0, 0xcd, (int)(head->id >> 8 & 255),
		    (int)(head->id & 255), 0xce, 255, 255, 255, 255) < 0)
		errx(1, "no memory");
	far_end_message(far, rsb_buf_view(&msg));
	rsb_buf_done(&msg);
}

/* ---- by name ---- */

static const struct {
	const char *name;
	void (*say)(struct far_end *far, const struct rsb_call_head *head);
	bool answered; /* it was the answer */
} lookups[] = {
	{ "f-credit", flood_credit, false },
	{ "f-reset", flood_reset, false },
	{ "f-stream", flood_stream, false },
	{ "f-ping", flood_ping, false },
	{ "f-unknown", flood_unknown, false },
	{ "f-ack", ack_the_future, false },
	{ "f-message", never_ending_message, false },
	{ "f-nobody", reply_to_nobody, true },
	{ "f-huge", huge_reply, true },
	{ "f-count", counts_too_many, true },
	{ "f-deep", nests_deeply, true },
	{ "f-attr", odd_attr, true },
	{ "f-type", no_type, true },
	{ "f-root", root_again, true },
	{ "f-errno", odd_errno, true },
};

bool
hostile_lookup(struct far_end *far, const struct rsb_call_head *head, const char *name)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(lookups); i++)
		if (strcmp(name, lookups[i].name) == 0) {
			lookups[i].say(far, head);
			return lookups[i].answered;
		}
	return false;
}
