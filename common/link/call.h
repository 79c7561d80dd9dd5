/* SPDX-License-Identifier: MIT */
#ifndef RSB_CALL_H
#define RSB_CALL_H

/*
 * rsb_call_<op>_async(link, &req, opts, done, &call) for each op of the table, and
 * rsb_call_<op>(link, &req, timeout_ns, copy, copy_arg), which waits (not on the io or fuse
 * thread). req of an op that takes rsb_empty may be NULL. The reply's views die with the
 * callback: the waiting form hands the reply to copy (may be NULL) on the io thread and
 * returns r.
 */

#include "link/link.h"

typedef void (*rsb_copy_fn)(void *arg, const void *rep);

rsb_nodiscard int rsb_link_call_wait(struct rsb_link *link, uint32_t op, const void *req,
	const struct rsb_call_opts *opts, rsb_copy_fn copy, void *arg);

/* clang-format off */
#define OP(op, number, reqtype, reptype, since, flags) \
	rsb_nodiscard static inline int \
	rsb_call_##op##_async(struct rsb_link *link, const struct reqtype *req, \
		const struct rsb_call_opts *opts, struct rsb_call_done done, uint64_t *ret_call) \
	{ \
		return rsb_link_call(link, number, req, opts, done, ret_call); \
	} \
	rsb_nodiscard static inline int \
	rsb_call_##op(struct rsb_link *link, const struct reqtype *req, \
		const struct rsb_call_opts *opts, rsb_copy_fn copy, void *arg) \
	{ \
		return rsb_link_call_wait(link, number, req, opts, copy, arg); \
	}
#include "proto/ops.def"
/* clang-format on */

#endif
