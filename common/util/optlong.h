/* SPDX-License-Identifier: MIT */
#ifndef RSB_OPTLONG_H
#define RSB_OPTLONG_H

#include <getopt.h>

/*
 * getopt_long(3), but a long option must be written out: --kil may be another one tomorrow, and
 * whoever wrote it in a script would not be told. Main thread.
 */
int rsb_optlong(int argc, char *const *argv, const char *letters, const struct option *options);

#endif
