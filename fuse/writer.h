/* SPDX-License-Identifier: MIT */
#ifndef RSB_WRITER_H
#define RSB_WRITER_H

/*
 * Which program asks. Git writes into a repository what its user told it, and everywhere else what
 * is in a commit; where "everywhere else" lies is decided by directories that the sandbox can swap
 * with a link while git walks them. So what git itself writes at a place where programs are named
 * is the user's own only if git writes there in that way when it is told to.
 *
 * By /proc/PID/exe (proc(5)), which cannot be read of a process of another user, or of one that
 * the mount's namespace of processes does not have: then it may be git. Who asks waits for the
 * answer, so it is the one. Git under another name counts as any program, and so does one that is
 * not git's and lies among git's (git-lfs, where a distribution puts it there).
 */

#include <sys/types.h>

#include "fuse/inode.h"
#include "keeper/gitallow.h"

enum rsb_writer {             /* a later one is trusted in less */
	RSB_WRITER_PROGRAM,   /* not git */
	RSB_WRITER_GIT_LOCK,  /* into the file that it renames to the real one */
	RSB_WRITER_GIT,       /* into a file, whatever was in it */
	RSB_WRITER_GIT_FRESH, /* into one that it made, as it does with files of a commit */
};

/* pid: 0 if it is not known. */
bool rsb_writer_is_git(pid_t pid);
/* flags: of the open(2) of what it writes to, 0 without one. */
enum rsb_writer rsb_writer_of(pid_t pid, const struct rsb_inode *inode, int flags);
/* Whether git, told by its user to, writes a file of that kind so. */
bool rsb_writer_means_it(enum rsb_writer writer, enum rsb_git_kind kind);

#endif
