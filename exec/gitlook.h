/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITLOOK_H
#define RSB_GITLOOK_H

/*
 * Looks at what git would read of a repository on a mount, so that the daemon judges it
 * (fuse/guard.h), and knows what it holds back without a git that came by.
 */

#define RSB_GITLOOK_MAX 4096u /* files and directories; a sandbox can make any number */

/* name below mountpoint: a file, a directory of a repository, that, or what it is the .git of. */
void rsb_gitlook(const char *mountpoint, const char *name);

#endif
