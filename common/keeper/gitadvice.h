/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITADVICE_H
#define RSB_GITADVICE_H

/* What whoever brings a repository into a sandbox should know of it beforehand. */

#include "util/ignore.h"

/*
 * notice: a sentence each, about dir: that git here takes hooks from a directory that goes in; and
 * which files under version control ignore leaves out. What cannot be read is not told of.
 */
void rsb_gitadvice(const char *dir, const struct rsb_ignore *ignore,
	void (*notice)(void *arg, const char *text), void *arg);

#endif
