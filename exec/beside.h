/* SPDX-License-Identifier: MIT */
#ifndef RSB_BESIDE_H
#define RSB_BESIDE_H

/*
 * The program called name in the directory of our own, owned by the caller. NULL: none is there, or
 * no memory; then PATH decides.
 */
char *rsb_beside(const char *name);

#endif
