/* SPDX-License-Identifier: MIT */
#ifndef RSB_HEAD_H
#define RSB_HEAD_H

/*
 * The head of an answer to an upgrade request, which comes from the sandbox: hostile bytes. Strict
 * and pure; libcurl, which reads all other answers, does not give an upgraded connection back.
 */

#include "util/buf.h"

#define RSB_HEAD_MAX ((size_t)16 << 10)
#define RSB_HEAD_LINES_MAX 64U

struct rsb_head_line {
	char *name;
	char *value;
};

struct rsb_head {
	char *text; /* owns the strings */
	unsigned int status;
	struct rsb_head_line lines[RSB_HEAD_LINES_MAX];
	size_t n_line;
	size_t size; /* bytes of the head, its empty line included */
};

/* 1 with *ret_head, 0 when it is not complete, -EBADMSG for what is no head, -ENOMEM. */
rsb_nodiscard int rsb_head_parse(struct rsb_bytes in, struct rsb_head *ret_head);
void rsb_head_done(struct rsb_head *head);
/* NULL when absent. */
const char *rsb_head_get(const struct rsb_head *head, const char *name);

#endif
