/* SPDX-License-Identifier: MIT */
#ifndef RSB_UTF8_H
#define RSB_UTF8_H

/* Text for those who take UTF-8 alone. */

/* A copy of text in which each byte that is no UTF-8 is U+FFFD. Caller frees; NULL: no memory. */
char *rsb_utf8_of(const char *text);

#endif
