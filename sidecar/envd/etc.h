/* SPDX-License-Identifier: MIT */
#ifndef RSB_ETC_H
#define RSB_ETC_H

/*
 * The sandbox's /etc: an allow-list of what programs need from the host's, and generated files for
 * everything that names users, hosts or this machine. A file that is not listed does not exist.
 */

#include "sidecar/envd/tree.h"

/* Fills etc/ of the tree; hostname is the sandbox's. */
rsb_nodiscard int rsb_etc_build(struct rsb_tree *tree, const char *hostname);

#endif
