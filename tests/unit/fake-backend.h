/* SPDX-License-Identifier: MIT */
#ifndef RSB_FAKE_BACKEND_H
#define RSB_FAKE_BACKEND_H

/*
 * A control plane with one sandbox, as the test sets it up: results of its calls, and how
 * often each came. Its agent starts the sidecar by calling deployed().
 */

#include "backend/backend.h"
#include "util/thread.h"

struct fake_backend {
	struct rsb_backend backend;
	struct rsb_backend_ops ops;
	struct rsb_mutex lock;
	struct rsb_cond cond;
	bool exists;                      /* {lock} there is the sandbox */
	enum rsb_sandbox_state state;     /* {lock} of it */
	char intent[RSB_INTENT_SIZE + 1]; /* {lock} it was created with */
	int create_r;                     /* {lock} what create answers, having created or not: */
	bool create_works;                /* {lock} */
	bool list_hides;                  /* {lock} */
	int get_r;                        /* {lock} 0: by exists */
	bool hangs;                       /* {lock} get and extend end by an abort alone */
	int start_r;                      /* {lock} 0: the sidecar gets ready */
	bool uploaded;                    /* {lock} the sidecar's program is there */
	unsigned int port;                /* {lock} where address leads on loopback */
	unsigned int n_create, n_get, n_list, n_connect, n_extend, n_pause, n_kill; /* {lock} */
	unsigned int n_upload, n_start;                                             /* {lock} */
	struct rsb_secret input; /* {lock} what the agent was given for the sidecar */
	void (*deployed)(void *arg);
	void *arg;
};

void fake_backend_init(struct fake_backend *fake);
void fake_backend_done(struct fake_backend *fake);

/* Members are set and read under the lock. */
#define FAKE_SET(fake, member, value)            \
	do {                                     \
		rsb_mutex_lock(&(fake)->lock);   \
		(fake)->member = (value);        \
		rsb_mutex_unlock(&(fake)->lock); \
	} while (0)
#define FAKE_GET(fake, member)                                    \
	({                                                        \
		rsb_mutex_lock(&(fake)->lock);                    \
		__typeof__((fake)->member) got_ = (fake)->member; \
		rsb_mutex_unlock(&(fake)->lock);                  \
		got_;                                             \
	})

#endif
