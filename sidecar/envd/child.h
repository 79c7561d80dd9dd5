/* SPDX-License-Identifier: MIT */
#ifndef RSB_CHILD_H
#define RSB_CHILD_H

/*
 * One process of the table (children.h): its life, and its output on the loop's thread. Shared by
 * child.c and children.c alone, which is why the structs are open.
 */

#include "util/json.h"
#include "util/list.h"
#include "util/loop.h"
#include "util/thread.h"

#include "sidecar/envd/event.h"
#include "sidecar/envd/fanout.h"
#include "sidecar/envd/launch.h"

#define RSB_CHILD_CHUNK ((size_t)32 << 10)
#define RSB_CHILD_REMEMBER_NS (30 * RSB_NSEC_PER_SEC)

struct rsb_child;

struct rsb_child_output {
	struct rsb_child *proc;
	enum rsb_event_stream kind;
	int fd;                    /* {loop} -1 after end of file */
	struct rsb_source *source; /* {loop} */
};

struct rsb_children {
	struct rsb_loop *loop;
	struct rsb_mutex lock;
	struct rsb_cond idle_stdin;
	struct rsb_list list; /* {lock} */
	size_t n;             /* {lock} */
};

struct rsb_child {
	struct rsb_list node; /* {lock} */
	struct rsb_children *children;
	struct rsb_json *config; /* const after start */
	char *tag;               /* const after start */
	pid_t pid;               /* const after start */
	struct rsb_fanout *fanout;
	size_t refs;        /* {lock} */
	int stdin_fd;       /* {lock} the writer may use it while stdin_busy */
	bool stdin_busy;    /* {lock} */
	bool stdin_closing; /* {lock} */
	bool exited;        /* {lock} the pid may be another's from here */
	bool hasty;         /* {lock} was killed by us: what holds its output is not waited for */
	bool overdue;       /* {lock} its deadline passed */
	int status;         /* {lock} of waitpid(2) */
	bool ended;         /* {loop} */
	struct rsb_child_output out[2];
	struct rsb_source *drain; /* {loop} */
	struct rsb_timer *timer;  /* {loop} the deadline, then the end of memory */
	uint64_t deadline_ns;     /* const after start */
	struct rsb_task start_task;
	struct rsb_task exit_task;
};

/* With one reference, the caller's; nothing is running yet. tag may be NULL. */
rsb_nodiscard int rsb_child_new(
	struct rsb_children *children, const char *tag, struct rsb_child **ret_proc);
void rsb_child_unref(struct rsb_child *p);

/* Runs the program and puts the process into the table. -EAGAIN when that is full. */
rsb_nodiscard int rsb_child_launch(struct rsb_child *p, const struct rsb_launch *spec, size_t max);

/* -ECHILD when it has ended. */
int rsb_child_kill_locked(struct rsb_children *children, struct rsb_child *p, int sig)
	RSB_REQUIRES(children->lock);

#endif
