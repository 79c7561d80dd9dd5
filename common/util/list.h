/* SPDX-License-Identifier: MIT */
#ifndef RSB_LIST_H
#define RSB_LIST_H

/* Intrusive doubly linked ring. A head and an unlinked node point at themselves. */

#include <stdbool.h>

#include "util/macro.h"

struct rsb_list {
	struct rsb_list *prev;
	struct rsb_list *next;
};

static inline void
rsb_list_init(struct rsb_list *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool
rsb_list_empty(const struct rsb_list *l)
{
	return l->next == l;
}

/* Inserts before head: at the tail. */
static inline void
rsb_list_append(struct rsb_list *head, struct rsb_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Inserts after head: at the front. */
static inline void
rsb_list_prepend(struct rsb_list *head, struct rsb_list *node)
{
	rsb_list_append(head->next, node);
}

/* Leaves node unlinked; harmless on an unlinked node. */
static inline void
rsb_list_remove(struct rsb_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	rsb_list_init(node);
}

#define rsb_list_entry(node, type, member) rsb_container_of(node, type, member)

#define rsb_list_for_each(pos, head) \
	for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)

/* pos may be removed in the body. */
#define rsb_list_for_each_safe(pos, tmp, head)                           \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
		(pos) = (tmp), (tmp) = (pos)->next)

#endif
