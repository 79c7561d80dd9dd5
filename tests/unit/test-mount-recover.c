/* SPDX-License-Identifier: MIT */
/* What a daemon makes of what another one left that was killed, without a kernel and a sidecar. */

#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuse/ledger.h"
#include "fuse/limbo.h"
#include "fuse/recover.h"
#include "fuse/sending.h"
#include "proto/auth.h"
#include "proto/version.h"
#include "tests/unit/unit.h"

struct life {
	struct rsb_link *link;
	struct rsb_fs *fs;
	struct rsb_fuse_session *session;
	int kernel; /* its end of the device */
};

static void
on_state(void *arg, enum rsb_link_state state, int reason, bool new_epoch)
{
	(void)arg;
	(void)state;
	(void)reason;
	(void)new_epoch;
}

/* The link is never connected: what is asked for stays in the ledger. */
static void
life_new(struct life *life, struct rsb_shared *shared)
{
	static const struct rsb_link_ops ops = { .state = on_state };
	const struct rsb_fs_config fs_config = { .name = "box", .mountpoint = "/mnt" };
	struct rsb_link_config config = {
		.sandbox_id = "box",
		.ping_ns = RSB_NSEC_PER_SEC,
		.saved = &shared->link,
		.ops = &ops,
	};
	int socks[2];

	ck_assert_int_eq(rsb_secret_generate(&config.key, RSB_AUTH_KEY_SIZE), 0);
	ck_assert_int_eq(rsb_link_new(&config, &life->link), 0);
	ck_assert_int_eq(rsb_fs_new(&fs_config, life->link, shared, &life->fs), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	life->kernel = socks[0];
	ck_assert_int_eq(rsb_fuse_session_new(life->fs, socks[1], &life->session), 0);
	ck_assert_int_eq(rsb_recover(life->fs, life->session), 0);
}

/* Calls end, and the kernel is answered. */
static void
life_end(struct life *life)
{
	rsb_fuse_session_free(life->session);
	rsb_link_free(life->link);
	rsb_fs_link_gone(life->fs);
	rsb_fs_free(life->fs);
	(void)close(life->kernel);
}

/* The answer to request unique, as an errno; 1: there is none. */
static int
answer_to(const struct life *life, uint64_t unique)
{
	struct fuse_out_header head;
	uint8_t buf[4096];
	ssize_t n;

	while ((n = recv(life->kernel, buf, sizeof(buf), MSG_DONTWAIT)) >= (ssize_t)sizeof(head)) {
		memcpy(&head, buf, sizeof(head));
		if (head.unique == unique)
			return head.error;
	}
	return 1;
}

struct mkdir_request {
	struct fuse_in_header head;
	struct fuse_mkdir_in in;
	char name[8];
};

static struct mkdir_request
mkdir_request(uint64_t unique)
{
	struct mkdir_request request = {
		.head = { .opcode = FUSE_MKDIR, .unique = unique, .nodeid = FUSE_ROOT_ID },
		.in = { .mode = 0755 },
		.name = "made",
	};

	request.head.len = offsetof(struct mkdir_request, name) + sizeof("made");
	return request;
}

/* The memory of a daemon that served a mount. */
static struct rsb_shared *
memory_new(void)
{
	const struct fuse_in_header head = {
		.opcode = FUSE_INIT,
		.unique = 2,
		.len = sizeof(head) + sizeof(struct fuse_init_in),
	};
	const struct fuse_init_in in = { .major = 7, .minor = 36, .max_readahead = 131072 };
	struct rsb_shared *shared;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	shared->link.welcomed = 1;
	memcpy(shared->head.init, &head, sizeof(head));
	memcpy(shared->head.init + sizeof(head), &in, sizeof(in));
	shared->head.init_size = head.len;
	return shared;
}

static unsigned int
n_flight(const struct rsb_shared *shared)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < shared->head.n_flight; i++)
		n += shared->flights[i].state != 0;
	return n;
}

static unsigned int
n_mkdir(const struct rsb_shared *shared)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < shared->head.n_call; i++)
		n += shared->calls[i].state && shared->calls[i].op == RSB_OP_mkdir;
	return n;
}

/* It was read and not begun, or begun and not entered. */
START_TEST(begins_what_was_in_hand)
{
	for (int begun = 0; begun < 2; begun++) {
		const struct mkdir_request request = mkdir_request(42);
		struct rsb_shared *shared = memory_new();
		struct life life;

		memcpy(shared->request, &request, request.head.len);
		shared->hand.unique = 42;
		shared->hand.state = (uint32_t)begun;
		life_new(&life, shared);
		ck_assert_uint_eq(n_flight(shared), 1);
		ck_assert_uint_eq(n_mkdir(shared), 1);
		ck_assert_int_eq(answer_to(&life, 42), 1);
		life_end(&life);
		rsb_shared_free(shared);
	}
}
END_TEST

/*
 * It was killed between the moment when a request was entered and the one when it was let go, and
 * the next one answered it: then it is nobody's any more, whatever stands in the memory that it was
 * read into.
 */
START_TEST(lets_go_of_what_is_under_way)
{
	const struct mkdir_request request = mkdir_request(42);
	struct rsb_shared *shared = memory_new();
	struct rsb_shared_flight *flight;
	struct rsb_ledger *ledger;
	struct life life;

	memcpy(shared->request, &request, request.head.len);
	shared->hand.unique = 42;
	shared->hand.state = 1;
	ck_assert_int_eq(rsb_ledger_new(shared, &ledger), 0);
	ck_assert_int_eq(rsb_ledger_flight(ledger, &shared->hand,
				 (struct rsb_bytes){ shared->request, request.head.len }, &flight),
		0);
	rsb_ledger_free(ledger);
	life_new(&life, shared);
	ck_assert_uint_eq(n_flight(shared), 1);
	ck_assert_uint_eq(n_mkdir(shared), 1);
	ck_assert_int_eq(answer_to(&life, 42), 1);
	life_end(&life);
	ck_assert_uint_eq(n_flight(shared), 0);
	life_new(&life, shared);
	ck_assert_uint_eq(n_mkdir(shared), 0);
	ck_assert_int_eq(answer_to(&life, 42), 1);
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

static unsigned int
n_call(const struct rsb_shared *shared)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < shared->head.n_call; i++)
		n += shared->calls[i].state != 0;
	return n;
}

/* Said twice it takes away what was given in between. */
START_TEST(never_gives_back_twice)
{
	struct rsb_shared *shared = memory_new();
	struct life life;
	unsigned int n;

	life_new(&life, shared);
	rsb_mutex_lock(&life.fs->lock);
	n = n_call(shared);
	ck_assert_uint_eq(rsb_send_pending(life.fs->send), n);
	rsb_send_forget(life.fs->send, 5, 1);
	rsb_send_flush_forgets(life.fs->send);
	ck_assert_uint_eq(rsb_send_pending(life.fs->send), n + 1);
	ck_assert_uint_eq(n_call(shared), n);
	/* And what has gathered is not for the next sidecar. */
	rsb_send_forget(life.fs->send, 5, 1);
	rsb_limbo_end_unentered(life.fs->send);
	rsb_send_flush_forgets(life.fs->send);
	ck_assert_uint_eq(rsb_send_pending(life.fs->send), n + 1);
	rsb_mutex_unlock(&life.fs->lock);
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

struct heard {
	unsigned int n;
	int r;
	uint64_t ino;
};

static void
on_attr(void *arg, int r, const void *rep)
{
	const struct rsb_attr_rep *attr = rep;
	struct heard *heard = arg;

	heard->n++;
	heard->r = r;
	heard->ino = attr ? attr->attr.ino : 0;
}

/* One that was handed back by the link, as it lies there until it is made again. */
static uint64_t
put_in_limbo(struct rsb_fs *fs, struct heard *heard)
{
	struct rsb_shared_call from = { .op = RSB_OP_getattr, .call = rsb_link_new_call(fs->link) };
	struct rsb_sending *call = rsb_new(struct rsb_sending);

	ck_assert_ptr_nonnull(call);
	*call = (struct rsb_sending){
		.send = fs->send, .op = from.op, .fn = on_attr, .arg = heard
	};
	call->serial = UINT64_MAX;
	rsb_list_init(&call->parked);
	ck_assert_int_eq(
		rsb_ledger_call(fs->ledger, &from, (struct rsb_bytes){ 0 }, &call->shared), 0);
	ck_assert_int_eq(rsb_map_put(&fs->send->calls, call->serial, call), 0);
	rsb_limbo_put(call);
	return from.call;
}

/* The process before had made it again, and was killed before it heard. */
START_TEST(takes_an_answer_that_comes_before_it_asks_again)
{
	const struct rsb_attr_rep rep = { .attr = { .ino = 77, .mode = 0100644, .nlink = 1 } };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };
	struct rsb_shared *shared = memory_new();
	struct heard heard = { 0 };
	struct rsb_call_head head;
	struct life life;
	unsigned int n;

	ck_assert_int_eq(
		rsb_codec_encode(&rsb_desc_rsb_attr_rep, &rep, RSB_PROTO_VERSION, &buf), 0);
	life_new(&life, shared);
	rsb_mutex_lock(&life.fs->lock);
	n = n_call(shared);
	head = (struct rsb_call_head){ .id = put_in_limbo(life.fs, &heard) };
	head.body = rsb_buf_view(&buf);
	head.id++;
	ck_assert_uint_eq(rsb_limbo_answer(life.fs->send, &head), 0);
	head.id--;
	ck_assert_uint_eq(rsb_limbo_answer(life.fs->send, &head), RSB_OP_getattr);
	ck_assert_uint_eq(heard.n, 1);
	ck_assert_int_eq(heard.r, 0);
	ck_assert_uint_eq(heard.ino, 77);
	ck_assert_uint_eq(n_call(shared), n);
	ck_assert_uint_eq(rsb_limbo_answer(life.fs->send, &head), 0);
	/* What makes no sense is an error of it alone. */
	head.id = put_in_limbo(life.fs, &heard);
	head.body.size--;
	ck_assert_uint_eq(rsb_limbo_answer(life.fs->send, &head), RSB_OP_getattr);
	ck_assert_uint_eq(heard.n, 2);
	ck_assert_int_lt(heard.r, 0);
	rsb_mutex_unlock(&life.fs->lock);
	life_end(&life);
	rsb_shared_free(shared);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		begins_what_was_in_hand,
		lets_go_of_what_is_under_way,
		never_gives_back_twice,
		takes_an_answer_that_comes_before_it_asks_again,
	};

	return unit_run("mount-recover", tests, RSB_ARRAY_SIZE(tests));
}
