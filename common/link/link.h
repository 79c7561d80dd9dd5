/* SPDX-License-Identifier: MIT */
#ifndef RSB_LINK_H
#define RSB_LINK_H

/*
 * The host's end of the link: one io thread that owns the connection, the session and the
 * table of waiting calls. Above it nobody needs to know that a connection broke: calls made
 * meanwhile wait, and are answered exactly once. The keeper decides when to connect, to what,
 * and when to give up.
 *
 * Threads: functions marked {any} may be called from every thread and never wait. Callbacks
 * run on the io thread, must not wait either, and may make calls. RSB_LINK_SYNC functions
 * wait and are for threads that may.
 */

#include <stdbool.h>

#include "proto/chan.h"
#include "proto/codec.h"
#include "util/diag.h"
#include "util/secret.h"

struct rsb_link;

enum rsb_link_state {
	RSB_LINK_DOWN,       /* no connection; calls wait */
	RSB_LINK_CONNECTING, /* the same, and an attempt is under way */
	RSB_LINK_RESYNC,     /* connected: keys are proved, numbers compared */
	RSB_LINK_LIVE,
	RSB_LINK_SUSPECT, /* no frame for RSB_PING_MISSED_MAX intervals: LIVE with the next one */
	RSB_LINK_FAILED,  /* rsb_link_fail(): calls end at once with its errno */
};
/* "live", "suspect", "down", "resync". */
const char *rsb_link_state_name(enum rsb_link_state state);

/* What welcome said; copied, lives as long as the link. */
struct rsb_link_facts {
	char epoch[65]; /* hex or text, NUL-terminated */
	char boot_id[65];
	char workspace[RSB_PATH_MAX + 1];
	uint64_t uid;
	uint64_t cmd_uid;
	uint64_t cmd_gid;
	uint64_t kill_rung;
	uint64_t landlock_abi;
	int64_t clock_ns; /* the sandbox's clock minus our rsb_boot_ns(), when welcome came */
};

struct rsb_link_ops {
	/*
	 * State changed. reason: negative errno of what broke (0 when it became live). new_epoch:
	 * everything that the session had over there is gone; waiting calls were ended with
	 * -ENOTCONN before this call, streams reset. It comes with DOWN; the next connection begins
	 * a fresh session.
	 */
	void (*state)(void *arg, enum rsb_link_state state, int reason, bool new_epoch);
	/*
	 * The sidecar's process is another one and goes on with the session (PROTOCOL.md 3.9), or
	 * the host's is, which died in the middle of that: no open file, lock or command is there.
	 * fifo: the last mutation that was begun. Before this, calls with opts->revives were ended
	 * with -ERESTART, the others with -EOWNERDEAD, and the streams were reset. Until
	 * rsb_link_go_on() the state is RESYNC, and only calls with opts->first are taken. May
	 * come again before that; after new_epoch there is nothing to go on with. NULL: as
	 * new_epoch.
	 */
	void (*anew)(void *arg, uint64_t fifo);
	/*
	 * A reply to a call that is not under way: of which op it is if it is one of those that
	 * were handed back (ops->anew) and were not made again yet, which has ended then; 0: it is
	 * not.
	 */
	uint32_t (*early)(void *arg, const struct rsb_call_head *head);
	/* Locks of calls that were made before this are gone; it comes before LIVE. May be NULL. */
	void (*locks_lost)(void *arg);
	/* Streams: as in proto/chan.h. */
	void (*chan_data)(void *arg, uint64_t chan, struct rsb_bytes data, bool fin);
	void (*chan_writable)(void *arg, uint64_t chan);
	void (*chan_reset)(void *arg, uint64_t chan, int r);
};

/*
 * What another process needs to go on with the session when this one is killed, in memory that
 * outlives it; all zero at first. The link writes each change in before it can show over there, in
 * an order in which being killed between two stores does no harm. Who goes on with it makes the
 * calls that were not answered again, by their numbers (struct rsb_call_opts).
 */
struct rsb_link_saved {
	uint64_t welcomed; /* 1: the rest counts; facts do with any workspace */
	uint64_t reviving; /* ops->anew came, and rsb_link_go_on() not yet: its fifo + 1 */
	uint64_t incarnation;
	uint64_t next_id;
	uint64_t next_call; /* at least; RSB_LINK_CALLS_SKIPPED later is free for certain */
	uint64_t fifo;
	uint64_t fifo_done;
	uint64_t lock_losses; /* as the last welcome said */
	uint8_t client_id[16];
	uint8_t session_id[16];
	uint64_t epoch_at; /* which of epochs counts */
	char epochs[2][65];
	struct rsb_link_facts facts;
};
#define RSB_LINK_CALLS_SKIPPED (UINT64_C(1) << 32)

struct rsb_link_config {
	struct rsb_secret key;
	char sandbox_id[129];
	uint64_t ping_ns;
	struct rsb_link_saved *saved; /* borrowed; NULL: nobody goes on with it */
	const struct rsb_link_ops *ops;
	void *arg;
};

/* Starts the io thread. config is copied. */
rsb_nodiscard int rsb_link_new(const struct rsb_link_config *config, struct rsb_link **ret_link);
/*
 * Says BYE, stops the thread; waiting calls end with -ECANCELED, and later ones are refused with
 * it. Who has calls or streams can be freed then, and closes these as always. Not from a callback.
 */
void rsb_link_stop(struct rsb_link *link);
/* Stops it, if that was not done. */
void rsb_link_free(struct rsb_link *link);
RSB_DEFINE_CLEANUP(struct rsb_link *, rsb_link_free)

/* Where to connect. Strings are copied. */
struct rsb_link_target {
	const char *url; /* ws://host:port/path or wss://...; NULL: fd */
	const char *const
		*headers;    /* "Name: value", NULL-terminated, e.g. E2b-Sandbox-Id; may be NULL */
	const char *ca_file; /* NULL: the system's */
	int fd;              /* with url NULL: a connected socket, taken over also on failure */
	uint64_t timeout_ns; /* for connection and handshake together */
};
/* {any} Begins one attempt to connect (only when DOWN); its end is reported by ops->state. */
rsb_nodiscard int rsb_link_connect(struct rsb_link *link, const struct rsb_link_target *target);
/* {any} Drops the connection. */
void rsb_link_disconnect(struct rsb_link *link, int reason);
/*
 * {any} The keeper gave up (or takes that back with r = 0): every call, waiting or new, ends
 * with r, and is not executed later; those that were sent, if only in part, end with -ENOTCONN.
 * What only gives something back (release, forget, unlock_all, kill...) still goes out later; that
 * and wait are taken on meanwhile, too.
 */
void rsb_link_fail(struct rsb_link *link, int r);
/*
 * {any} Another sandbox or sidecar from now on: new id and key, new session; waiting calls
 * end with -ENOTCONN.
 */
rsb_nodiscard int rsb_link_reset(
	struct rsb_link *link, const char *sandbox_id, const struct rsb_secret *key);
enum rsb_link_state rsb_link_state(struct rsb_link *link); /* {any} */
/* {any} The same without regard to rsb_link_fail(). */
enum rsb_link_state rsb_link_connection(struct rsb_link *link);
/* {any} -ENOTCONN before the first welcome. */
rsb_nodiscard int rsb_link_facts(struct rsb_link *link, struct rsb_link_facts *ret_facts);
/* {any} Round trip in ns, smoothed over the pings; 0 unknown. */
uint64_t rsb_link_rtt(struct rsb_link *link);
/*
 * {any} The sandbox's clock minus ours, now. That ours was set shows at once, that its own was with
 * the next connection. 0 before the first welcome.
 */
int64_t rsb_link_skew_ns(struct rsb_link *link);
/* {any} The sentence about the last connection or attempt that ended; may be empty. */
void rsb_link_why(struct rsb_link *link, struct rsb_diag *ret_why);

/* ---- calls ---- */

/*
 * r: 0 or the negative errno of the operation, of the link (-ENOTCONN: it is unknown whether
 * it was done; -ETIMEDOUT: the deadline passed, and it was cancelled over there; -EOPNOTSUPP:
 * the peer does not know it). rep: the decoded reply, borrowed with all its views until the
 * callback returns; NULL when r < 0.
 */
typedef void (*rsb_call_fn)(void *arg, int r, const void *rep);
struct rsb_call_done {
	rsb_call_fn fn;
	void *arg;
};

struct rsb_call_opts {
	uint64_t after;      /* FIFO number to execute first; 0: none; RSB_AFTER_ALL: all so far */
	uint64_t timeout_ns; /* 0: none */
	uint64_t call;       /* its number, of rsb_link_new_call(); 0: the next one */
	bool again;          /* it may have been sent: it has its FIFO number */
	bool revives;        /* who made it makes it again, see ops->anew */
	bool first;          /* goes out before rsb_link_go_on() */
};
#define RSB_AFTER_ALL UINT64_MAX

/*
 * {any} Encodes and queues a request (typed forms in link/call.h). opts may be NULL. On 0 done is
 * called exactly once, on the io thread, maybe before this returns. *ret_call (may be NULL) names
 * it for cancel. -EAGAIN: the send buffer or RSB_CALLS_MAX is full; or the errno of
 * rsb_link_fail(). -EAGAIN too between ops->anew and rsb_link_go_on().
 */
rsb_nodiscard int rsb_link_call(struct rsb_link *link, uint32_t op, const void *req,
	const struct rsb_call_opts *opts, struct rsb_call_done done, uint64_t *ret_call);
/*
 * {any} Asks the far side to give it up; the callback still comes, with -EINTR or the result. What
 * was not sent yet never will be.
 */
void rsb_link_cancel(struct rsb_link *link, uint64_t call);
/*
 * {any} The callback comes soon, whatever the link does: with -ECANCELED when nothing was sent, and
 * it is never executed; with -ENOTCONN when it was; or with the result if that is here first.
 */
void rsb_link_withdraw(struct rsb_link *link, uint64_t call);
/* Io thread, after ops->anew: what had to be made again was; LIVE comes soon. */
void rsb_link_go_on(struct rsb_link *link);
/* {any} A number for a call to come, so that it can be written down before it is sent. */
uint64_t rsb_link_new_call(struct rsb_link *link);
/* {any} Number of the last mutation that was queued. */
uint64_t rsb_link_fifo(struct rsb_link *link);
/*
 * {any} Numbers that never repeat in the life of the link object: node ids, fhs, procs. n >=
 * 1; returns the first. Starts at 2: 1 is the root.
 */
uint64_t rsb_link_new_ids(struct rsb_link *link, uint64_t n);

/* ---- streams {any} ---- */

rsb_nodiscard int rsb_link_chan_open_sender(
	struct rsb_link *link, uint64_t chan, size_t buffer_max);
rsb_nodiscard int rsb_link_chan_open_receiver(
	struct rsb_link *link, uint64_t chan, size_t window_max);
rsb_nodiscard int rsb_link_chan_write(struct rsb_link *link, uint64_t chan, struct rsb_bytes data);
rsb_nodiscard int rsb_link_chan_finish(struct rsb_link *link, uint64_t chan);
void rsb_link_chan_consume(struct rsb_link *link, uint64_t chan, size_t size);
void rsb_link_chan_reset(struct rsb_link *link, uint64_t chan, int r);
void rsb_link_chan_close(struct rsb_link *link, uint64_t chan);

/* ---- counters, for status ---- */

struct rsb_link_stats {
	uint64_t calls;
	uint64_t replies;
	uint64_t waiting;   /* calls without a reply now */
	uint64_t bytes_out; /* on the wire, after compression */
	uint64_t bytes_in;
	uint64_t frames_out;
	uint64_t frames_in;
	uint64_t reconnects;
};
void rsb_link_stats(struct rsb_link *link, struct rsb_link_stats *ret_stats); /* {any} */

#endif
