/* SPDX-License-Identifier: MIT */
#ifndef RSB_NEAR_H
#define RSB_NEAR_H

/*
 * Both ends of a session in one process and one thread: the sidecar's real session with gate,
 * workers and processes, and the host's end of the protocol, joined by memory. A test makes calls,
 * moves bytes and cuts the connection wherever it likes.
 */

#include "proto/op.h"
#include "sidecar/sess.h"
#include "sidecar/worker.h"
#include "tests/unit/unit.h"
#include "util/buf.h"

#define NEAR_CALLS_MAX 8192
#define NEAR_CHANS_MAX 16384
#define NEAR_WAIT_NS (120 * RSB_NSEC_PER_SEC) /* of a sanitizer on a busy machine */

struct near_call {
	bool done;
	int error;
	uint32_t op;
	struct rsb_buf req;  /* encoded, until it is done */
	struct rsb_msg *msg; /* the reply, which what is decoded views */
	struct rsb_bytes body;
};

struct near_chan {
	uint64_t chan;
	struct rsb_buf data; /* received; to be read and cleared by the test */
	uint64_t size;       /* received in all */
	bool fin;
	int reset;
	bool hold; /* the test consumes by itself */
};

struct near {
	char workspace[64];
	struct rsb_sidecar_config config;
	struct rsb_loop *loop;
	struct rsb_workers *pool;
	struct rsb_sess *sess;
	struct rsb_carrier carrier;
	bool lost;
	bool ended;
	struct rsb_session *host;
	struct rsb_map chans;
	struct near_call calls[NEAR_CALLS_MAX]; /* by id */
	uint64_t n_call;
	uint64_t next_proc;
	uint64_t cut_after; /* frames until the connection is cut, 0: never */
	uint64_t n_cut;
	uint64_t crash_after; /* frames until the host's process dies, 0: never */
	bool deaf;            /* the host hears nothing, so acknowledges nothing */
	bool crash_slow;      /* its successor comes when the mutations that came in are executed */
	uint64_t n_crash;
	uint64_t n_double; /* replies that came again */
};

/*
 * cgroups: whether commands get cgroups where there are any. A fresh workspace, a session, a
 * connection.
 */
struct near *near_new(bool cgroups);
/* Ends the session and waits until it is gone. */
void near_free(struct near *near);

/* The connection breaks: what is on its way is lost. Then both ends go on. */
void near_cut(struct near *near);
/*
 * The host's process dies. Its successor knows the calls that were made and not answered, and
 * makes them again; the streams of commands are gone.
 */
void near_crash(struct near *near);
/* Moves frames both ways until there are none. */
void near_pump(struct near *near);
/* The same, and runs the loop once, at most timeout_ms. The connection must live. */
void near_step(struct near *near, int timeout_ms);
/* Steps until the condition holds; fails the test after NEAR_WAIT_NS. */
#define near_until(near, condition)                                                          \
	do {                                                                                 \
		uint64_t deadline_ns_ = rsb_now_ns() + NEAR_WAIT_NS;                         \
		while (!(condition)) {                                                       \
			ck_assert_msg(rsb_now_ns() < deadline_ns_, "too late: " #condition); \
			near_step((near), 10);                                               \
		}                                                                            \
	} while (0)

/* Sends a request; the id of the call. */
uint64_t near_call(struct near *near, uint32_t op, const void *req, uint64_t after);
/* Waits for the reply: its error. ret_rep (may be NULL) views the call. */
int near_reply(struct near *near, uint64_t call, void *ret_rep);
/* Both. */
int near_do(struct near *near, uint32_t op, const void *req, void *ret_rep);

/* Opened at the first use of a number, as receiver or (stdin) as sender. */
struct near_chan *near_chan(struct near *near, uint64_t chan);
/* All of it into a sender, and its end if fin; fails when the peer resets it, which *chan says. */
int near_send(struct near *near, uint64_t chan, const void *data, size_t size, bool fin);

/* ---- commands ---- */

struct near_spawn {
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* may be NULL */
	const char *cwd;         /* may be NULL */
	uint64_t flags;
	uint64_t after;
};
/* Opens the streams and sends the request; *ret_proc is its number. */
uint64_t near_spawn_async(struct near *near, const struct near_spawn *spawn, uint64_t *ret_proc);
/* Fails the test unless it runs. Its number. */
uint64_t near_spawn(struct near *near, const struct near_spawn *spawn, uint64_t *ret_pid);
/* bash -c script; its number. */
uint64_t near_script(struct near *near, const char *script);
void near_wait(
	struct near *near, uint64_t proc, enum rsb_wait_what what, struct rsb_wait_rep *ret_rep);
/* Waits until all that the leader wrote is here; output as a C string, to be freed. */
char *near_output(struct near *near, uint64_t proc, const struct rsb_wait_rep *rep);

/* The script ends with code and wrote this. */
void near_check_output(struct near *near, const char *script, const char *expected, uint64_t code);
/* The program called name does not start, at that stage, with that errno. */
void near_check_failure(
	struct near *near, const char *name, const char *cwd, uint64_t stage, uint64_t error);
void near_free_proc(struct near *near, uint64_t proc);

/* How often: quick with RSB_TEST_QUICK, that is with a sanitizer, where each fork takes long. */
int near_rounds(int full, int quick);
/* main() of a suite: each of plain once, each of twice with _i 0 and 1. Returns the exit status. */
int near_run(const char *name, const TTest *const *plain, size_t n_plain, const TTest *const *twice,
	size_t n_twice);

/* Processes whose command line holds the text, zombies not counted. */
int near_count_processes(const char *text);

#endif
