/* SPDX-License-Identifier: MIT */
#ifndef RSB_FS_H
#define RSB_FS_H

/*
 * The mounted file system: everything that the handlers of fuse/op-*.c stand on.
 *
 * One lock. The fuse thread holds it while it handles a request, the io thread while it runs the
 * callback of a call, the main thread while it looks or changes something. Nobody waits under it:
 * a call is queued, a reply to the kernel is one write(2), a notify is a message to the notifier
 * process. Order: this lock, then those inside the link and libfuse.
 *
 * seq is a clock without time: it goes up with every mutation that is sent and every new
 * generation of the cache. Reads are executed after all mutations sent before
 * (fuse/send.h), so what a reply says about a node is the latest if no mutation of it was
 * sent after the read; and it may be kept if the generation is still the one of its sending.
 */

#include "fuse/attr.h"
#include "fuse/cache.h"
#include "fuse/handle.h"
#include "fuse/names.h"
#include "link/link.h"
#include "util/thread.h"

struct rsb_fuse_session;
struct rsb_guard;
struct rsb_hold;
struct rsb_judge;
struct rsb_ledger;
struct rsb_notify;
struct rsb_revive;
struct rsb_send;

struct rsb_fs_config {
	const char *name;       /* of the sandbox */
	const char *mountpoint; /* absolute */
	struct rsb_idmap idmap; /* far ids are filled in from the link's facts */
	const char *trust_file; /* of keeper/gitcopy.h; NULL: none */
	bool no_guard;          /* of fuse/guard.h, for tests */
	bool no_expire;         /* for tests: as before Linux 6.2 */
	bool sync;              /* -o sync */
	bool read_only;
};

struct rsb_fs_stats {
	uint64_t requests; /* of the kernel */
	uint64_t calls;    /* to the sidecar */
	uint64_t hits;     /* answered from our tables */
	uint64_t parked;   /* calls that waited for room in the link */
	uint64_t refused_links;
	uint64_t lost_writes; /* failed after their file was closed */
	uint64_t withdrawn;   /* given up, never sent */
	uint64_t unknown;     /* sent, and the answer never came */
};

struct rsb_fs {
	struct rsb_mutex lock;
	struct rsb_fs_config config;      /* const */
	struct rsb_link *link;            /* const */
	struct rsb_shared *shared;        /* const */
	struct rsb_fuse_session *session; /* const while the fuse thread runs */
	struct rsb_notify *notify;        /* const; NULL: nobody to tell, in tests */
	char *workspace;                  /* {lock} over there; set when the link is live first */

	struct rsb_ledger *ledger;      /* {lock} as all below */
	struct rsb_shared_flight *hand; /* what is remembered of the request at hand */
	bool recovering;                /* calls of the process before are under way */
	bool names_told;                /* the kernel was told to drop all, after a crash */
	uint32_t n_hand_id;             /* of its ids, those that were asked for */
	struct rsb_inodes *inodes;
	struct rsb_names *names;
	struct rsb_handles *handles;
	struct rsb_send *send;
	struct rsb_hold *hold;
	struct rsb_revive *revive;
	struct rsb_judge *judge;
	struct rsb_guard *guard;
	struct rsb_cache cache;
	struct rsb_list fops; /* of struct rsb_fop.all */
	uint64_t seq;
	uint64_t generation_seq; /* seq at the start of the cache's generation */
	uint64_t epoch;          /* of the sidecar; goes up with each new one */
	uint64_t lock_round;     /* goes up when the sidecar has lost locks */
	size_t sent;             /* bytes of writes on their way */
	size_t unsent;           /* bytes in all write buffers */
	size_t n_wait;           /* calls about commands, which bring nothing that was written */
	struct rsb_list writers; /* of struct rsb_fop.wait: wait for sent to shrink */
	size_t ahead_size;       /* bytes read ahead and not given out */
	struct rsb_list wrotes;  /* of struct rsb_wrote.age, the oldest first */
	size_t wrote_size;       /* bytes of all those */
	size_t n_wrote;
	struct rsb_fs_stats stats;
	struct rsb_statfs_rep statfs; /* the latest */
	uint64_t statfs_ns;           /* when it came; 0: never */
	struct rsb_dirsnaps listings;
	struct {
		struct rsb_dirsnap *snap; /* the whole listing that was closed last */
		uint64_t nodeid;
		uint64_t since;
	} left;
	bool closing;
	bool watch;           /* some caller got a signal that did not kill, or not yet */
	bool kernel_expires;  /* a name can be expired, not only taken away */
	uint32_t kernel_kill; /* the request at hand asks to drop set-user-ID: fuse/session.c */
};

/* Bytes of writes on their way beyond which write(2) is answered only when some arrived. */
#define RSB_FS_SENT_MAX ((size_t)32 << 20)

/* Bytes in write buffers beyond which a write is sent at once. */
#define RSB_FS_UNSENT_MAX ((size_t)64 << 20)

/* config's strings are borrowed for life. */
rsb_nodiscard int rsb_fs_new(const struct rsb_fs_config *config, struct rsb_link *link,
	struct rsb_shared *shared, struct rsb_fs **ret_fs);
/* No call may be under way. */
void rsb_fs_free(struct rsb_fs *fs);
RSB_DEFINE_CLEANUP(struct rsb_fs *, rsb_fs_free)

/* The link is live for the first time: whose files are whose over there. */
rsb_nodiscard int rsb_fs_take_facts(struct rsb_fs *fs);
/* What the link told; new_epoch: another sidecar, all nodes and open files are void. */
void rsb_fs_link_state_locked(struct rsb_fs *fs, enum rsb_link_state state, bool new_epoch);
/* Nothing can be done with it any more but to close it; what it had not sent is lost. r: why. */
void rsb_fs_lose_handle(struct rsb_fs *fs, struct rsb_handle *handle, int r);
/* The link was freed: calls that it never took end now, while those who made them are there. */
void rsb_fs_link_gone(struct rsb_fs *fs);

/* A new generation of the cache: nothing learnt counts any more. */
void rsb_fs_drop_locked(struct rsb_fs *fs);
/* Somebody else may change things from now on; may no more. */
void rsb_fs_foreign_begin_locked(struct rsb_fs *fs);
void rsb_fs_foreign_end_locked(struct rsb_fs *fs);

/* What was learnt by a request sent at since may be kept. */
bool rsb_fs_keeps(const struct rsb_fs *fs, uint64_t since);
/* What a request sent at since said about inode, or about the names in it, is still so. */
bool rsb_fs_unchanged(const struct rsb_fs *fs, const struct rsb_inode *inode, uint64_t since);
/* What the reply to a read that was sent at since says about a node. */
void rsb_fs_learn(
	struct rsb_fs *fs, struct rsb_inode *inode, const struct rsb_attr *attr, uint64_t since);
/* A mutation of it is sent: the value of seq for its end. */
uint64_t rsb_fs_change_begin(struct rsb_fs *fs, struct rsb_inode *inode);
/* It was answered; attr NULL: without attributes. */
void rsb_fs_change_end(
	struct rsb_fs *fs, struct rsb_inode *inode, const struct rsb_attr *attr, uint64_t since);
/* The attributes known may be answered. */
bool rsb_fs_knows(const struct rsb_fs *fs, const struct rsb_inode *inode);
/* name in dir is inode (NULL: absent), as the reply to a request sent at since says. */
void rsb_fs_name(struct rsb_fs *fs, struct rsb_inode *dir, struct rsb_bytes name,
	struct rsb_inode *inode, uint64_t since);
/* All bytes and calls are answered, but those about commands; for the end of the mount. */
bool rsb_fs_idle_locked(const struct rsb_fs *fs);

#endif
