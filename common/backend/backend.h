/* SPDX-License-Identifier: MIT */
#ifndef RSB_BACKEND_H
#define RSB_BACKEND_H

/*
 * Where sandboxes come from. A backend carries out one request at a time and reports what
 * came of it; when to ask, to repeat or to give up is the keeper's business. Requests wait,
 * up to the backend's deadline. One thread at a time uses a backend.
 *
 * What the errors of every request mean, so that decisions need nothing else:
 *	-ENOENT		404 of the control plane, and nothing less than that
 *	-EACCES		the key is refused (401, 403)
 *	-EBUSY		it is changing its state now, or is there already in the wanted one (409)
 *	-EAGAIN		429 with Retry-After: wait retry_after_ns; nothing was done
 *	-EDQUOT		too many sandboxes at a time (429 without it); nothing was done
 *	-EINVAL		the request was refused as wrong (400)
 *	-EOPNOTSUPP	the server cannot do that at all (501)
 *	-ENOTCONN	the server was not reached; nothing was done
 *	-EREMOTEIO	5xx, connection broken or deadline after sending: unknown whether done
 *	-EBADMSG	an answer that makes no sense; unknown as well
 *	-ECANCELED	rsb_backend_abort()
 */

#include <stdbool.h>

#include "util/buf.h"
#include "util/diag.h"
#include "util/secret.h"

#define RSB_SANDBOX_ID_MAX 128
#define RSB_INTENT_SIZE 32 /* hex digits */

enum rsb_sandbox_state { RSB_SANDBOX_RUNNING, RSB_SANDBOX_PAUSED };
enum rsb_sandbox_expiry {
	RSB_SANDBOX_EXPIRY_UNKNOWN,
	RSB_SANDBOX_IS_PAUSED,
	RSB_SANDBOX_IS_KILLED
};

/*
 * What the control plane says about one sandbox. Plain data; rsb_sandbox_done() wipes the
 * tokens.
 */
struct rsb_sandbox {
	char id[RSB_SANDBOX_ID_MAX + 1];
	char template[129];
	char domain[254]; /* empty: the configured one */
	char envd_version[33];
	char intent[RSB_INTENT_SIZE + 1]; /* of our metadata; empty: not ours */
	char name[65];                    /* of our metadata */
	struct rsb_secret envd_token;     /* size 0: none */
	struct rsb_secret traffic_token;  /* size 0: none */
	enum rsb_sandbox_state state;
	enum rsb_sandbox_expiry expiry; /* what is done with it at its end */
	uint64_t started_ns;            /* wall clock; 0: not said */
	uint64_t end_ns;                /* wall clock; 0: not said */
	uint64_t left_ns;               /* until then, at least, by its host's own clock */
};
void rsb_sandbox_done(struct rsb_sandbox *sandbox);

struct rsb_backend_create {
	const char *template;
	const char *intent; /* metadata: finds the sandbox after a lost reply */
	const char *name;
	uint64_t ttl_ns;
	bool pause_on_expire; /* else it is killed; always sent */
	bool internet;
};

/* A program to start in the sandbox through its agent. */
struct rsb_backend_start {
	const char *user;        /* NULL: the server's default */
	const char *const *argv; /* NULL-terminated; argv[0] is the program */
	const char *cwd;         /* NULL: the server's default */
	/*
	 * What happens, in order: pid, then output; return 0 to go on, > 0 to let go of it
	 * (the program lives on), negative errno to give up with it. Other requests of the
	 * same backend may be made from here.
	 */
	int (*started)(void *arg, uint64_t pid);
	int (*output)(void *arg, bool is_stderr, struct rsb_bytes data);
	void *arg;
	uint64_t timeout_ns; /* for all of it */
};

/* How a program that was not let go of ended. */
struct rsb_backend_end {
	bool exited; /* by exit(2); else by a signal */
	int code;
};

/* Where a port of the sandbox is reached. */
#define RSB_BACKEND_HEADERS_MAX 4
struct rsb_backend_address {
	char *url;                                  /* http(s)://host[:port], without a path */
	char *headers[RSB_BACKEND_HEADERS_MAX + 1]; /* "Name: value", NULL-terminated */
};
void rsb_backend_address_done(struct rsb_backend_address *address);

struct rsb_backend;

/* All may wait. Return values as above. diag is last and may be NULL. */
struct rsb_backend_ops {
	const char *name; /* "e2b", "local" */
	void (*free)(struct rsb_backend *backend);
	int (*create)(struct rsb_backend *backend, const struct rsb_backend_create *req,
		struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);
	int (*get)(struct rsb_backend *backend, const char *id, struct rsb_sandbox *ret_sandbox,
		struct rsb_diag *diag);
	/*
	 * intent: only those that carry it; NULL: all of ours. fn returns 0 to go on; its
	 * other results end the list.
	 */
	int (*list)(struct rsb_backend *backend, const char *intent,
		int (*fn)(void *arg, const struct rsb_sandbox *sandbox), void *arg,
		struct rsb_diag *diag);
	/*
	 * Resumes a paused one; the life of a running one is at least ttl_ns afterwards,
	 * never shortened.
	 */
	int (*connect)(struct rsb_backend *backend, const char *id, uint64_t ttl_ns,
		struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);
	/* Only ever lengthens. */
	int (*extend)(struct rsb_backend *backend, const char *id, uint64_t ttl_ns,
		struct rsb_diag *diag);
	int (*pause)(struct rsb_backend *backend, const char *id, struct rsb_diag *diag);
	int (*kill)(struct rsb_backend *backend, const char *id, struct rsb_diag *diag);

	/* The agent in the sandbox. -ENOTCONN and -EREMOTEIO: ask the control plane. */
	/* Makes path from the size bytes that fd has from its start, as root. -ENOSPC. */
	int (*upload)(struct rsb_backend *backend, const struct rsb_sandbox *sandbox,
		const char *path, int fd, struct rsb_diag *diag);
	/* 0 with *ret_end: it ended; 1: let go of. */
	int (*start)(struct rsb_backend *backend, const struct rsb_sandbox *sandbox,
		const struct rsb_backend_start *req, struct rsb_backend_end *ret_end,
		struct rsb_diag *diag);
	/* To the program's stdin by a call that nobody logs. */
	int (*input)(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, uint64_t pid,
		struct rsb_bytes data, struct rsb_diag *diag);
	int (*address)(struct rsb_backend *backend, const struct rsb_sandbox *sandbox,
		unsigned int port, struct rsb_backend_address *ret_address);
};

struct rsb_backend {
	const struct rsb_backend_ops *ops;
	uint64_t retry_after_ns; /* of the last -EAGAIN */
	int abort_fd;            /* eventfd(2); see rsb_backend_abort() */
};

/* {any} The request under way and all later ones end with -ECANCELED. */
void rsb_backend_abort(struct rsb_backend *backend);
/* Takes that back. */
void rsb_backend_rearm(struct rsb_backend *backend);
void rsb_backend_free(struct rsb_backend *backend); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_backend *, rsb_backend_free)

/* Metadata keys that rsb's sandboxes carry. */
#define RSB_METADATA_INTENT "rsb-intent"
#define RSB_METADATA_NAME "rsb-name"

#endif
