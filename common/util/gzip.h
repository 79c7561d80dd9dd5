/* SPDX-License-Identifier: MIT */
#ifndef RSB_GZIP_H
#define RSB_GZIP_H

/*
 * gzip (RFC 1952), as bodies over HTTP are compressed: a whole file packed, a stream unpacked as it
 * arrives. The only home of zlib. Memory is that of zlib, whatever the data says.
 */

#include "util/buf.h"

/* in_fd from its start, appended to out_fd. An errno of read or write, -ENOMEM. */
rsb_nodiscard int rsb_gzip_fd(int in_fd, int out_fd);

struct rsb_gunzip;

/* Pieces as they are unpacked. A negative result ends it. */
typedef int (*rsb_gunzip_fn)(void *arg, struct rsb_bytes data);

rsb_nodiscard int rsb_gunzip_new(rsb_gunzip_fn fn, void *arg, struct rsb_gunzip **ret_gunzip);
void rsb_gunzip_free(struct rsb_gunzip *gunzip); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_gunzip *, rsb_gunzip_free)

/* -EBADMSG: this is no gzip, -ENOMEM, or what fn said. */
rsb_nodiscard int rsb_gunzip_feed(struct rsb_gunzip *gunzip, struct rsb_bytes data);
/* 0: all was there, its checksum too; -EBADMSG. */
rsb_nodiscard int rsb_gunzip_finish(const struct rsb_gunzip *gunzip);

#endif
