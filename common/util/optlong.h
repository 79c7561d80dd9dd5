/* SPDX-License-Identifier: MIT */
#ifndef RSB_OPTLONG_H
#define RSB_OPTLONG_H

#include <getopt.h>

#include "util/diag.h"

/*
 * getopt_long(3), but a long option must be written out: --kil may be another one tomorrow, and
 * whoever wrote it in a script would not be told. With '?' the sentence names the option and what
 * is wrong with it; nothing is printed. letters: without ':' in front. Main thread.
 */
int rsb_optlong(int argc, char *const *argv, const char *letters, const struct option *options,
	struct rsb_diag *diag);

#endif
