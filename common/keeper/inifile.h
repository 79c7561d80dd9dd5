/* SPDX-License-Identifier: MIT */
#ifndef RSB_INIFILE_H
#define RSB_INIFILE_H

/*
 * One file of settings, by inih. inih reads lines into 200 bytes and cuts what is over, takes
 * an indented line for the rest of the one before, and drops what follows a blank and a
 * semicolon; here indentation means nothing and what would be cut is refused.
 */

#include "util/diag.h"

#define RSB_INIFILE_LINE_MAX 190
#define RSB_INIFILE_SECTION_MAX 48

struct rsb_inifile_entry {
	const char *section; /* "sandbox", or "sandbox \"NAME\"" as it stands there */
	const char *key;
	const char *value;
	int add; /* 1: "key += value" */
	unsigned int line;
};

/*
 * name: of the file, for the sentence. fn: 0 to go on, negative errno ends it and is
 * returned. -EINVAL with file and line.
 */
rsb_nodiscard int rsb_inifile_parse(const char *name, const char *text,
	int (*fn)(void *arg, const struct rsb_inifile_entry *entry, struct rsb_diag *diag),
	void *arg, struct rsb_diag *diag);

#endif
