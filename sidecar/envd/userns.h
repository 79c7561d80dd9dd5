/* SPDX-License-Identifier: MIT */
#ifndef RSB_USERNS_H
#define RSB_USERNS_H

/*
 * User namespaces of a sandbox. Two levels: the outer one is where the tree is built (the host's
 * own as root, a new one as an ordinary user), the inner one is the sandbox's. Mounts that cross
 * from the outer to the inner one are locked by the kernel (mount_namespaces(7)), so that root in
 * the sandbox can neither remove nor loosen them.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "util/diag.h"

#define RSB_USERNS_IDS 65536U /* ids of a full map */
#define RSB_USERNS_USER 1000U /* uid and gid of "user" with a full map */

struct rsb_userns {
	bool root;      /* the host side is root: layers are idmapped */
	uint32_t base;  /* outer id of the sandbox's id 0 */
	uint32_t count; /* ids in the sandbox: RSB_USERNS_IDS or 1 */
};

/*
 * Makes the calling process, which has one thread, able to build a sandbox. As an ordinary user it
 * enters a user namespace with the subordinate ids of /etc/subuid, or with one id without them.
 */
rsb_nodiscard int rsb_userns_outer(uint32_t base, struct rsb_userns *ret_ns, struct rsb_diag *diag);

/* A descriptor of the inner namespace, below the calling process's. */
rsb_nodiscard int rsb_userns_inner(const struct rsb_userns *ns, int *ret_fd, struct rsb_diag *diag);

/* Enters the inner namespace as its root. */
rsb_nodiscard int rsb_userns_enter(int fd);

/* The id of the building process's namespace for an id of the sandbox. */
static inline uid_t
rsb_userns_id(const struct rsb_userns *ns, uint32_t id)
{
	return ns->base + (id < ns->count ? id : 0);
}

#endif
