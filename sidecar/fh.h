/* SPDX-License-Identifier: MIT */
#ifndef RSB_FH_H
#define RSB_FH_H

/*
 * What a session has open: files, and directories that are being listed, under numbers that the
 * host chose. An operation holds a reference while it works, so a release that comes meanwhile
 * closes at the end of the last one. Any thread; one lock inside, not held over close(2).
 */

#include <stdbool.h>

#include "proto/op.h"
#include "sidecar/listing.h"
#include "sidecar/sess.h"

struct rsb_fh {
	uint64_t fh;   /* const */
	uint64_t node; /* const; pinned while this is in the table; 0 for directories */
	int fd;        /* const; -1 for directories */
	int access;    /* const; O_RDONLY, O_WRONLY or O_RDWR */
	uint64_t dev;  /* const */
	uint64_t ino;  /* const */
	struct rsb_listing *listing; /* const; of a directory, else NULL */
	uint32_t n_ref;              /* the table's */
};

rsb_nodiscard int rsb_fhs_new(struct rsb_fhs **ret_fhs);
/* Nobody may hold a reference. NULL is fine. */
void rsb_fhs_free(struct rsb_fhs *fhs);
RSB_DEFINE_CLEANUP(struct rsb_fhs *, rsb_fhs_free)

/* Whether fh can be a new one: -EINVAL if it is 0 or in use, -ENFILE if there are too many. */
rsb_nodiscard int rsb_fhs_offer(struct rsb_fhs *fhs, uint64_t fh);
/* fd is taken on success. Errors as rsb_fhs_offer(), of fstat(2), and -ENOMEM. */
rsb_nodiscard int rsb_fhs_add_file(
	struct rsb_fhs *fhs, uint64_t fh, uint64_t node, int fd, int access);
/* listing is taken on success; *ret_file is a reference. */
rsb_nodiscard int rsb_fhs_add_dir(
	struct rsb_fhs *fhs, uint64_t fh, struct rsb_listing *listing, struct rsb_fh **ret_file);

enum rsb_fh_kind { RSB_FH_FILE, RSB_FH_DIR };

/* A reference. -EBADF: not open, or of the other kind. */
rsb_nodiscard int rsb_fhs_get(
	struct rsb_fhs *fhs, uint64_t fh, enum rsb_fh_kind kind, struct rsb_fh **ret_file);
void rsb_fhs_put(struct rsb_fhs *fhs, struct rsb_fh *file);
/* Out of the table; *ret_file is the table's reference. -EBADF. */
rsb_nodiscard int rsb_fhs_remove(
	struct rsb_fhs *fhs, uint64_t fh, enum rsb_fh_kind kind, struct rsb_fh **ret_file);

/* A reference that ends with its scope. */
struct rsb_fh_use {
	struct rsb_fhs *fhs;
	struct rsb_fh *file; /* NULL: none */
};

static inline void
rsb_fh_use_done(struct rsb_fh_use *use)
{
	if (use->file)
		rsb_fhs_put(use->fhs, use->file);
}

/* Locks of flock(2). */
void rsb_fhs_unlock_all(struct rsb_fhs *fhs);
size_t rsb_fhs_count(struct rsb_fhs *fhs);

#endif
