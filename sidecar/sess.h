/* SPDX-License-Identifier: MIT */
#ifndef RSB_SESS_H
#define RSB_SESS_H

/*
 * What one host's session owns in the sidecar: node table, open files, locks, processes, and the
 * protocol session that carries it over connections. Everything a host can make grow hangs here and
 * has its maximum in proto/limits.h.
 *
 * Life: new, then any number of attach and detach (a connection comes and goes), then end, which is
 * asynchronous: what waits is cancelled, processes are killed, and when the last request was
 * answered the session frees itself.
 */

#include <sys/resource.h>
#include <sys/types.h>

#include "proto/session.h"
#include "util/list.h"
#include "util/loop.h"
#include "util/map.h"
#include "util/thread.h"

struct rsb_nodes;
struct rsb_fhs;
struct rsb_locks;
struct rsb_procs;
struct rsb_cgroups;
struct rsb_workers;
struct rsb_journal_part;
struct rsb_revival;

/* Facts of this sidecar, fixed at its start. */
struct rsb_sidecar_config {
	int root_fd;           /* O_PATH of the workspace */
	const char *workspace; /* its absolute path */
	uid_t cmd_uid;         /* commands run as; owner of what is made with idmap=user */
	gid_t cmd_gid;
	const gid_t *cmd_groups;
	size_t n_cmd_groups;
	const char *cmd_user; /* name, home and shell of cmd_uid, from fgetpwent(3) */
	const char *cmd_home;
	const char *cmd_shell;
	int is_root;                 /* the sidecar itself has uid 0: it can change ids */
	struct rsb_cgroups *cgroups; /* where commands get their own; NULL: a supervisor for each */
	struct rlimit cmd_nofile;    /* RLIMIT_NOFILE of commands */
	struct rsb_listkeep *lists;  /* sidecar/listkeep.h; NULL: none are kept */
	const char *journal;         /* path of sidecar/journal.h's file; NULL: none */
};

/* A connection, as the session sees it. */
struct rsb_carrier {
	void (*output)(void *arg);      /* there is something to send */
	void (*lost)(void *arg, int r); /* no longer the session's: close. Not called by detach */
	void *arg;
};

/* Who gets the bytes and events of one channel. Embedded in its owner. */
struct rsb_chan_user {
	void (*data)(struct rsb_chan_user *user, struct rsb_bytes data, bool fin);
	void (*writable)(struct rsb_chan_user *user);
	/* The channel is closed already. -EOWNERDEAD: with the host's process, see restart. */
	void (*reset)(struct rsb_chan_user *user, int r);
};

struct rsb_sess {
	const struct rsb_sidecar_config *config; /* const */
	struct rsb_loop *loop;                   /* const; the io thread's */
	struct rsb_session *proto;               /* {io} */
	struct rsb_nodes *nodes;                 /* own lock inside */
	struct rsb_fhs *fhs;                     /* own lock inside */
	struct rsb_locks *locks;                 /* own lock inside */
	struct rsb_procs *procs;                 /* {io} */
	struct rsb_mutex lock;                   /* of the members of requests that say so */
	struct rsb_workers *pool;                /* const; shared by all sessions */
	struct rsb_workers *mutator;             /* const; one thread, this session's own */
	struct rsb_journal_part *part;           /* const after the first attach; NULL: none */
	struct rsb_revival *revival;             /* the same; NULL: it began with this process */
	uint32_t version;                        /* {io} agreed on at the last attach */
	struct rsb_map calls;                    /* {io} requests by call id, until their reply */
	struct rsb_map chan_users;               /* {io} */
	struct rsb_list after;                   /* {io} requests that wait for a FIFO number */
	uint64_t fifo_seen;                      /* {io} mutations admitted */
	uint64_t fifo_done;                      /* {io} mutations executed */
	uint64_t kept_first;                     /* {io} the mutations whose replies may not */
	uint64_t kept_last;                      /* {io} ... have arrived: numbers between these */
	uint64_t incarnation;                    /* {io} of the host's process */
	struct rsb_map known;                    /* {io} calls that it may make again */
	struct rsb_carrier *carrier;             /* {io} NULL: detached */
	uint64_t detached_ns;                    /* {io} since when, without a carrier */
	uint64_t n_away;                         /* {io} sweeps of the registry since then */
	uint64_t lock_losses;                    /* {io} how often its locks were given up */
	struct rsb_task kick;                    /* {io} */
	bool broken;                             /* {io} cannot be resumed */
	bool ending;                             /* {io} */
	bool procs_gone;                         /* {io} */
	void (*ended)(void *arg);                /* {io} */
	void *ended_arg;                         /* {io} */
};

/* All on the io thread. node.h, fh.h, lock.h and proc.h have the life cycle of what it owns. */

rsb_nodiscard int rsb_sess_new(const struct rsb_sidecar_config *config, struct rsb_loop *loop,
	struct rsb_workers *pool, uint64_t ping_ns, struct rsb_sess **ret_sess);
/*
 * ended(arg) comes when everything is gone and the memory freed; maybe before this returns. Call
 * once.
 */
void rsb_sess_end(struct rsb_sess *sess, void (*ended)(void *arg), void *arg);
/* Takes the next step of an end when the last request or process went. */
void rsb_sess_check_end(struct rsb_sess *sess);

/*
 * A connection carries the session from now on; one that did before is told lost(). zip: borrowed
 * until detach.
 * -ESTALE as rsb_session_attach().
 */
rsb_nodiscard int rsb_sess_attach(struct rsb_sess *sess, struct rsb_carrier *carrier,
	uint32_t version, const struct rsb_stream_state *peer, struct rsb_zip *zip);
/*
 * The host's process died and another one goes on with the session, before it attaches: what it
 * has made here stays, its streams are cut. What was called and not answered, or answered and not
 * acknowledged, is called again by the new one under the same number, and is not executed again.
 * -ENOMEM: the session is broken.
 */
rsb_nodiscard int rsb_sess_restart(struct rsb_sess *sess, uint64_t incarnation);
/*
 * Before the first attach: it goes on with what another process of the sidecar left in part, which
 * is held until the session is gone. first_call: of those that are not made again. -ENOMEM.
 */
rsb_nodiscard int rsb_sess_revive(
	struct rsb_sess *sess, struct rsb_journal_part *part, uint64_t first_call);
/* Whether call was executed, or is, for the process of before. The answer is on its way. */
bool rsb_sess_knows_call(struct rsb_sess *sess, uint64_t call);
/* The connection broke. Nothing happens when another one has taken over. */
void rsb_sess_detach(struct rsb_sess *sess, struct rsb_carrier *carrier);
/* Something was queued: the carrier is told once, after the events of this round. */
void rsb_sess_kick(struct rsb_sess *sess);
/*
 * The host broke the rules, or memory for its reply is missing: the connection ends with r, and no
 * other resumes.
 */
void rsb_sess_fail(struct rsb_sess *sess, int r);

/* As rsb_chan_open_*(); user gets the callbacks until rsb_sess_chan_close() or a reset. */
rsb_nodiscard int rsb_sess_chan_open_receiver(
	struct rsb_sess *sess, uint64_t chan, size_t window_max, struct rsb_chan_user *user);
rsb_nodiscard int rsb_sess_chan_open_sender(
	struct rsb_sess *sess, uint64_t chan, size_t buffer_max, struct rsb_chan_user *user);
/* r: told to the peer by RESET; 0: nothing is told. */
void rsb_sess_chan_close(struct rsb_sess *sess, uint64_t chan, int r);

#endif
