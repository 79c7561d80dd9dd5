/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOSTTREE_H
#define RSB_HOSTTREE_H

/*
 * The host's mounts in the mount namespace of a sandbox's monitor, which begins with a copy of
 * each. A file system lives for as long as anybody has it mounted: a copy of a mount of ours would
 * keep its daemon after the user has unmounted.
 */

#include "util/macro.h"

/*
 * In a new mount namespace: what is unmounted on the host goes here too, where the host tells of
 * it. Mounts of ours go at once: one by one as root; those of an ordinary user are locked, and so
 * all of the tree goes but the directories that the system's are in.
 */
rsb_nodiscard int rsb_hosttree_part(void);

#endif
