/* SPDX-License-Identifier: MIT */
#ifndef RSB_LAYERS_H
#define RSB_LAYERS_H

/*
 * The root directory of a sandbox, built under RSB_LAYERS_ROOT in the private mount namespace of
 * its monitor. The host's system directories are the lower layers, one overlay each, shown through
 * an idmapped mount so that files of the host's root belong to the sandbox's root; all changes go
 * to the disk (disk.h). Where the kernel or the file system has no idmapped mounts, and for an
 * ordinary user, they are read-only binds instead. Everything else is made fresh.
 */

#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/userns.h"

/* A directory that every host has; the tree hides what is below it, in this namespace alone. */
#define RSB_LAYERS_STAGE "/tmp"
#define RSB_LAYERS_ROOT RSB_LAYERS_STAGE "/root"
#define RSB_LAYERS_BOOT_ID RSB_LAYERS_STAGE "/boot_id"

rsb_nodiscard int rsb_layers_build(const struct rsb_bootcfg *cfg, const struct rsb_userns *ns,
	int inner_fd, struct rsb_diag *diag);

#endif
