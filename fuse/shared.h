/* SPDX-License-Identifier: MIT */
#ifndef RSB_SHARED_H
#define RSB_SHARED_H

/*
 * What must outlive a crash of the daemon, in memory that the supervisor holds: the nodes that
 * the kernel knows, its requests under way, open files with what was not sent of them, the calls
 * to the sidecar that were not answered, and the link's session. Everything is found by index;
 * there is no pointer in it, so a later process may map it anywhere.
 *
 * Only the daemon writes, under its one lock (fuse/fs.h); the supervisor and the next daemon read
 * after its death, which may come between any two stores. So each entry has one word that says
 * whether it counts (state, id or size), stored last when it begins and first when it ends; what
 * lies between is not believed. Lists of what is free are the process's own (fuse/ledger.h).
 *
 * Pages that were never touched cost no memory, so the tables have their full size from the start.
 */

#include "link/link.h"
#include "proto/limits.h"
#include "util/cleanup.h"

/* Goes up with every change of the layout: another build may take the memory over. */
#define RSB_SHARED_MAGIC UINT64_C(0x7273626d61703130)
#define RSB_SHARED_FLIGHTS_MAX 16384u /* requests of the kernel under way */
#define RSB_SHARED_CALLS_MAX (2u * RSB_CALLS_MAX)
#define RSB_SHARED_NAME_PIECE 16u
#define RSB_SHARED_NAME_PIECES_MAX (4u * RSB_NODES_MAX)
#define RSB_SHARED_ALIASES_MAX 65536u
#define RSB_SHARED_MARK_BITS (1u << 24) /* half of them are set by a million marks and more */
#define RSB_SHARED_BLOCK 1024u
#define RSB_SHARED_BLOCKS_MAX 262144u
#define RSB_SHARED_REQUEST_MAX ((256u << 16) + 4096u) /* libfuse's buffer, with pages of 64 KiB */
#define RSB_SHARED_INIT_MAX 256u
#define RSB_SHARED_WHAT_MAX 96u    /* bytes that say what a command runs */
#define RSB_SHARED_LOSSES_MAX 256u /* the latest, until the event log has them */
#define RSB_SHARED_LOSS_MAX 512u   /* bytes of one */

/* Stores the word that makes an entry count, or ends it. */
#define rsb_shared_publish(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)

/* Bytes in blocks; they count up to size. */
struct rsb_shared_chain {
	uint32_t first;
	uint32_t last; /* a hint: worked out anew by the next process */
	uint64_t size;
};

#define RSB_SHARED_NODE_LEFT 1u /* beside a type: ESTALE; replaced, or of an earlier epoch */
struct rsb_shared_node {
	uint64_t id; /* what the sidecar calls it; 0: the slot is free */
	uint64_t ino;
	int64_t btime_sec;
	uint64_t btime_nsec;
	uint64_t n_kernel;   /* look-ups that the kernel has not forgotten */
	uint64_t n_given;    /* that the sidecar counts */
	uint64_t parent;     /* as in struct rsb_inode, like depth_least */
	uint64_t name;       /* in parent, of fuse/namestore.h; 0: none */
	uint32_t generation; /* of the slot; goes up at each use */
	uint32_t next_free;  /* index; 0: none */
	uint32_t type;       /* S_IFMT, and RSB_SHARED_NODE_LEFT */
	uint32_t depth_least;
	uint32_t git_seen; /* as in struct rsb_inode */
};

/* A name of a node beside the one in it: fuse/alias.h. */
struct rsb_shared_alias {
	uint64_t nodeid; /* whose; 0: free */
	uint64_t parent;
	uint64_t name;
	uint32_t next; /* of that node, or free: worked out anew by the next process */
};

/* How the last upgrade to another program went. */
enum rsb_shared_upgrade {
	RSB_SHARED_NO_UPGRADE,
	RSB_SHARED_UPGRADE_TRIED, /* its daemon is being started */
	RSB_SHARED_UPGRADED,
	RSB_SHARED_UPGRADE_FAILED, /* and the program of before goes on */
};

enum rsb_shared_said { RSB_SHARED_SILENT, RSB_SHARED_SAID_OK, RSB_SHARED_SAID_ERROR };

/* A request of the kernel. */
struct rsb_shared_flight {
	uint32_t state;       /* 0: free */
	uint32_t said;        /* enum rsb_shared_said; stored before the kernel hears it */
	uint32_t said_before; /* the same, of processes that died */
	uint32_t interrupted;
	uint64_t unique;
	uint32_t n_id;
	uint32_t puts;               /* a write: put_from counts */
	uint64_t ids[2];             /* that were chosen for it */
	uint64_t put_from;           /* rsb_handle.put when it began */
	struct rsb_shared_chain raw; /* as it came; of a write without its data */
};

/* A call to the sidecar that was not answered. */
struct rsb_shared_call {
	uint32_t state; /* 0: free */
	uint32_t op;
	uint64_t call;
	uint64_t fifo;      /* of a mutation; 0: never handed to the link */
	uint64_t unique;    /* the request that it is for; 0: none waits for it */
	uint64_t mark;      /* a write: rsb_handle.put up to which all is in this or earlier ones */
	uint64_t n_counted; /* gifts in the reply that rsb_shared_node.n_given has */
	struct rsb_shared_chain req; /* encoded */
};

/* Data that was written and not sent: pieces, each with a head, in the order of writing. */
struct rsb_shared_log {
	struct rsb_shared_chain chain;
	uint64_t base; /* rsb_handle.put where it begins */
};

/* What is read of an open file is a view of fuse/guard.h, and which. */
enum rsb_shared_view {
	RSB_SHARED_VIEWED = 1 << 0,
	RSB_SHARED_VIEW_KEPT = 1 << 1, /* its bytes are in snap */
	RSB_SHARED_VIEW_CHANGED = 1 << 2,
	RSB_SHARED_VIEW_NO_EXEC = 1 << 3,
};

/* How much of a listing that was read from is in snap. */
enum rsb_shared_snap { RSB_SHARED_SNAP_UNUSED, RSB_SHARED_SNAP_KEPT, RSB_SHARED_SNAP_CUT };

struct rsb_shared_handle {
	uint32_t state; /* 0: free */
	int32_t flags;
	uint64_t fh;
	uint64_t nodeid;
	int32_t error; /* not told, or told since the last crash */
	int32_t broken;
	uint32_t viewed;  /* bits of enum rsb_shared_view */
	uint32_t opening; /* the kernel has not been told of it */
	uint32_t closed;
	uint32_t posix_locks;
	uint32_t flocks;
	uint32_t kill_suidgid;
	uint32_t locked; /* it holds locks: fuse/lockset.h */
	uint32_t log;    /* which of logs counts */
	struct rsb_shared_log logs[2];
	uint64_t snap_used;           /* enum rsb_shared_snap */
	uint64_t snap_n;              /* entries in snap, without "." and ".." */
	uint64_t snap_whole;          /* entries that there are; 0: more may come */
	struct rsb_shared_chain snap; /* a directory's listing, as far as it came; or a view */
};

struct rsb_shared_proc {
	uint64_t far;                   /* 0: free */
	uint64_t left;                  /* it goes on without a client */
	char what[RSB_SHARED_WHAT_MAX]; /* for people; empty: not known */
};

/* Of fuse/losses.h. */
struct rsb_shared_loss {
	uint64_t number; /* from 1 up; stored last */
	uint64_t wall_ns;
	uint32_t kind; /* enum rsb_loss */
	uint32_t told; /* by other means */
	char text[RSB_SHARED_LOSS_MAX];
};

struct rsb_shared_head {
	uint64_t magic;
	uint64_t size;
	uint32_t n_node; /* slots ever used, as the next six; nodes from 1 up */
	uint32_t n_flight;
	uint32_t n_call;
	uint32_t n_handle;
	uint32_t n_block;
	uint32_t n_name_piece;
	uint32_t n_alias;
	uint32_t first_free; /* node */
	uint32_t live;       /* the mount answered once: a crash is survived */
	uint32_t no_epoch;   /* the kernel cannot drop all names at once */
	uint32_t n_restart;  /* daemons that died */
	int32_t last_signal; /* that ended the one before; 0: it made way for an upgrade */
	uint32_t n_upgrade;
	uint32_t upgrade;   /* enum rsb_shared_upgrade */
	uint64_t n_loss;    /* the number of the latest */
	uint64_t loss_said; /* up to this the event log has them */
	uint64_t loss_told; /* and a rsb-exec told them, if nobody else did */
	uint32_t init_size;
	uint8_t init[RSB_SHARED_INIT_MAX]; /* the kernel's first request */
};

struct rsb_shared {
	struct rsb_shared_head head;
	struct rsb_link_saved link;
	/*
	 * The request that the fuse thread has in its hands: state 1 when it was begun. It may be
	 * in flights too, by its unique number; that one counts then.
	 */
	struct rsb_shared_flight hand;
	uint8_t request[RSB_SHARED_REQUEST_MAX]; /* it, as libfuse read it; unique 0: none */
	struct rsb_shared_proc procs[RSB_PROCS_MAX];
	struct rsb_shared_loss losses[RSB_SHARED_LOSSES_MAX];
	struct rsb_shared_flight flights[RSB_SHARED_FLIGHTS_MAX];
	struct rsb_shared_handle handles[RSB_FHS_MAX];
	struct rsb_shared_call calls[RSB_SHARED_CALLS_MAX];
	struct rsb_shared_node nodes[RSB_NODES_MAX + 1];             /* 0 is nobody, 1 the root */
	struct rsb_shared_alias aliases[RSB_SHARED_ALIASES_MAX + 1]; /* 0 is none */
	uint64_t git_salt; /* of fuse/gitmarks.h, as the next; never 0 */
	uint8_t git_marks[RSB_SHARED_MARK_BITS / 8];
	uint32_t git_led; /* of fuse/gitway.h: something led git somewhere */
	uint8_t names[RSB_SHARED_NAME_PIECES_MAX * RSB_SHARED_NAME_PIECE];
	uint32_t block_next[RSB_SHARED_BLOCKS_MAX];
	uint8_t blocks[RSB_SHARED_BLOCKS_MAX][RSB_SHARED_BLOCK];
};

/*
 * Kept over fork(2), and by *ret_fd (may be NULL; the caller's) over execve(2). Root is in it.
 */
rsb_nodiscard int rsb_shared_new(struct rsb_shared **ret_shared, int *ret_fd);
/* That of another process. -EPROTONOSUPPORT: it is not laid out as this build has it. */
rsb_nodiscard int rsb_shared_map(int fd, struct rsb_shared **ret_shared);
void rsb_shared_free(struct rsb_shared *shared);
RSB_DEFINE_CLEANUP(struct rsb_shared *, rsb_shared_free)

/* A free slot, zero but for its generation: it counts when its id is published. -ENFILE: none. */
rsb_nodiscard int rsb_shared_node_new(struct rsb_shared *shared, uint32_t *ret_index);
void rsb_shared_node_free(struct rsb_shared *shared, uint32_t index);
/*
 * After a crash, before there is a link, which begins with what is counted: mutations that were
 * entered were handed on, or will be under the number entered.
 */
void rsb_shared_recover_fifo(struct rsb_shared *shared);
/* After a crash: the list of free ones is made anew. */
void rsb_shared_recover_nodes(struct rsb_shared *shared);

#endif
