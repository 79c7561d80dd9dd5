/* SPDX-License-Identifier: MIT */
#ifndef RSB_STATE_H
#define RSB_STATE_H

/*
 * What this machine remembers about its sandboxes: one directory for each under
 * $XDG_STATE_HOME/rsb (~/.local/state/rsb), 0700, named as the sandbox is called here.
 *
 *	state.json	struct rsb_state; replaced by rename
 *	key		the sidecar's key, 32 bytes, 0600
 *	intent		of a create under way; removed when state.json has the id
 *	trust		last trusted copies, see keeper/gitcopy.h
 *	events		JSON lines, only ever appended; when full it becomes events.old
 *	lock, daemon.lock	flock(2): who changes the state now; the daemon that serves it
 *	sync.lock	flock(2): who syncs, by a command of his as well, below which the state may
 *			change; taken before lock
 *
 *	socket		the daemon's control socket
 *
 * Beside them is .local, of backend/local.h. Nothing is below XDG_RUNTIME_DIR: it ends with the
 * user's last session, which daemon and server need not, and another session may have another one.
 */

#include "backend/backend.h"
#include "proto/limits.h"

#define RSB_STATE_NAME_MAX 64
/* The sentence for -ENOENT, the same wherever a sandbox is named. */
#define RSB_STATE_NO_SUCH "there is no sandbox '%s'; 'rsb list' names those there are"
/*
 * Its host does not know it any more: -ENOENT, with what to do about it. root: as of
 * rsb_state_open(); its snapshots are there.
 */
int rsb_state_say_gone(const char *root, const char *name, struct rsb_diag *diag);
#define RSB_STATE_LOCAL ".local" /* no name of a sandbox */
#define RSB_STATE_EVENTS "events"
#define RSB_STATE_EVENTS_OLD "events.old"
#define RSB_STATE_EVENTS_MAX ((size_t)1 << 20) /* a full one is kept beside it */

struct rsb_state {
	char name[RSB_STATE_NAME_MAX + 1];
	char backend[16]; /* "e2b", "local" */
	char sandbox_id[RSB_SANDBOX_ID_MAX + 1];
	char intent[RSB_INTENT_SIZE + 1];
	char template[129];
	char user[65];
	char workspace[RSB_PATH_MAX + 1];
	char runtime_dir[RSB_PATH_MAX + 1];
	char local_dir[RSB_PATH_MAX + 1]; /* absolute; what was synced in; empty: nothing */
	char mountpoint[RSB_PATH_MAX +
			1];       /* absolute; where it is or was mounted; empty: nowhere */
	uint64_t made_mountpoint; /* which one we made, keeper/mountpoint.h; 0: it was there */
	uint64_t port;
	uint64_t ttl_ns;
	uint64_t created_ns; /* wall clock */
};

/* 1 to 64 of [A-Za-z0-9._-], not beginning with '.' or '-'. */
bool rsb_state_name_ok(const char *name);
/* The same as 0 or -EINVAL, with the rule in a sentence. */
rsb_nodiscard int rsb_state_name_check(const char *name, struct rsb_diag *diag);

/* $XDG_STATE_HOME/rsb of env, made if need be. Caller frees. */
rsb_nodiscard int rsb_state_root(char *const *env, char **ret_root, struct rsb_diag *diag);

struct rsb_state_dir; /* one opened directory */

/* create: make it if it is not there. -ENOENT without. */
rsb_nodiscard int rsb_state_open(const char *root, const char *name, bool create,
	struct rsb_state_dir **ret_dir, struct rsb_diag *diag);
void rsb_state_close(struct rsb_state_dir *dir); /* gives its locks back; NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_state_dir *, rsb_state_close)
/* False: it was removed since it was opened, and what is locked or saved in it is nobody's. */
bool rsb_state_is_there(const struct rsb_state_dir *dir);
const char *rsb_state_path(const struct rsb_state_dir *dir);
const char *rsb_state_name(const struct rsb_state_dir *dir);

enum rsb_state_lock { RSB_STATE_LOCK, RSB_STATE_LOCK_DAEMON, RSB_STATE_LOCK_SYNC };
/*
 * -EBUSY: somebody else has it (after 200 ms; wait: after 10 s). Held until unlock or close;
 * 0 if it is held already.
 */
rsb_nodiscard int rsb_state_lock(struct rsb_state_dir *dir, enum rsb_state_lock lock, bool wait);
void rsb_state_unlock(struct rsb_state_dir *dir, enum rsb_state_lock lock);
/* For who keeps it over execve(2): the descriptor by which it is held, borrowed; -1: it is not. */
int rsb_state_lock_fd(const struct rsb_state_dir *dir, enum rsb_state_lock lock);
/* Takes such a descriptor. */
void rsb_state_lock_move(struct rsb_state_dir *dir, enum rsb_state_lock lock, int fd);
/* Whether a daemon holds its lock now. */
bool rsb_state_has_daemon(struct rsb_state_dir *dir);

/* -ENOENT: none was saved yet. -EBADMSG with a sentence. */
rsb_nodiscard int rsb_state_load(
	struct rsb_state_dir *dir, struct rsb_state *ret_state, struct rsb_diag *diag);
rsb_nodiscard int rsb_state_save(struct rsb_state_dir *dir, const struct rsb_state *state);
/* The name of one made of dir: the last part of its path, made to be a name. */
void rsb_state_name_of(const char *dir, char name[static RSB_STATE_NAME_MAX + 1]);
/*
 * The name of the one that was made of dir, or for one that is to be. -EINVAL with a sentence:
 * there are several.
 */
rsb_nodiscard int rsb_state_name_for(const char *root, const char *dir,
	char name[static RSB_STATE_NAME_MAX + 1], struct rsb_diag *diag);
/* What was to be written there was not: r, with a sentence that names the directory. */
int rsb_state_say_unwritten(const struct rsb_state_dir *dir, int r, struct rsb_diag *diag);
/*
 * Removes the directory and all in it. dir stays to be closed. -EBUSY: an intent is open; who
 * removes that may lose a sandbox that runs.
 */
rsb_nodiscard int rsb_state_remove(struct rsb_state_dir *dir);

/* The key, made on first use. */
rsb_nodiscard int rsb_state_key(struct rsb_state_dir *dir, struct rsb_secret *ret_key);

/*
 * The intent journal. begin: makes a fresh intent, durable on return. pending: -ENOENT if
 * nothing is open.
 */
rsb_nodiscard int rsb_state_intent_begin(
	struct rsb_state_dir *dir, char ret_intent[static RSB_INTENT_SIZE + 1]);
rsb_nodiscard int rsb_state_intent_pending(
	struct rsb_state_dir *dir, char ret_intent[static RSB_INTENT_SIZE + 1]);
rsb_nodiscard int rsb_state_intent_end(struct rsb_state_dir *dir);

/*
 * Where the daemon's control socket is: in the directory, or where the kernel does not take so long
 * a path, under a hashed name in /tmp/rsb-UID, which is made. -EPERM: that is not ours. Caller
 * frees.
 */
rsb_nodiscard int rsb_state_socket(
	const struct rsb_state_dir *dir, char **ret_path, struct rsb_diag *diag);

/*
 * Appends {"time","kind","text"} to the event log. Failures are logged, not returned: an
 * event must not stop a recovery.
 */
void rsb_state_event(struct rsb_state_dir *dir, const char *kind, const char *text);

/*
 * Calls fn for each that has a state, in order of names; other results than 0 end it and are
 * returned. Damaged ones are skipped.
 */
rsb_nodiscard int rsb_state_list(
	const char *root, int (*fn)(void *arg, const struct rsb_state *state), void *arg);
/* Calls fn for each of those, with a sentence on what is wrong. */
rsb_nodiscard int rsb_state_list_damaged(
	const char *root, void (*fn)(void *arg, const char *text), void *arg);

/*
 * Which one is meant. what NULL: by cwd, an absolute path: the innermost directory that was
 * synced in or is a mount. Else a name, a path of a mount or of a synced directory, or the
 * unique beginning (at least 4 characters) of a sandbox id. -ENOENT, -EEXIST (more than one),
 * each with a sentence.
 */
rsb_nodiscard int rsb_state_find(const char *root, const char *what, const char *cwd,
	struct rsb_state *ret_state, struct rsb_diag *diag);

#endif
