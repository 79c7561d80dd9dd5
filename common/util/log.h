/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOG_H
#define RSB_LOG_H

/*
 * Leveled messages to one descriptor. A source file says
 *	#define RSB_LOG_MODULE "link"
 * before it includes this header. The level and the sink are the only mutable
 * globals of the program (set once in main, before threads). Lines are written whole
 * by one write(2). The same message of one call site is limited to 10 in 10 s, so a
 * peer cannot fill the log; the next one that is written says how many were not. Bytes of
 * the message outside 0x20-0x7e are escaped, and it is cut at 1023 bytes. errno is kept.
 * Floors below the programs log at debug only: the one who decides logs once.
 */

#include "util/macro.h"

enum rsb_log_level { RSB_LOG_ERR, RSB_LOG_WARN, RSB_LOG_INFO, RSB_LOG_DBG };

/* fd is borrowed. prefix (string literal, e.g. "rsb-mount") starts each line. */
void rsb_log_init(const char *prefix, enum rsb_log_level level, int fd);
enum rsb_log_level rsb_log_level(void);

/* Per call site state of the rate limit; zero-initialised, atomic inside. */
struct rsb_log_site {
	uint64_t window_ns;
	uint32_t count;
};

void rsb_log_write(enum rsb_log_level level, struct rsb_log_site *site, const char *module, int r,
	const char *fmt, ...) RSB_PRINTF(5, 6);

#define rsb_log_(level, r, ...)                                                               \
	do {                                                                                  \
		static struct rsb_log_site log_site_;                                         \
		if ((level) <= rsb_log_level())                                               \
			rsb_log_write((level), &log_site_, RSB_LOG_MODULE, (r), __VA_ARGS__); \
	} while (0)

#define rsb_err(...) rsb_log_(RSB_LOG_ERR, 0, __VA_ARGS__)
#define rsb_warn(...) rsb_log_(RSB_LOG_WARN, 0, __VA_ARGS__)
#define rsb_info(...) rsb_log_(RSB_LOG_INFO, 0, __VA_ARGS__)
#define rsb_dbg(...) rsb_log_(RSB_LOG_DBG, 0, __VA_ARGS__)

/* The same with ": <error text>" of the negative errno r; the value is r. */
#define rsb_log_r_(level, r, ...)                     \
	({                                            \
		int log_r_ = (r);                     \
		rsb_log_(level, log_r_, __VA_ARGS__); \
		log_r_;                               \
	})
#define rsb_err_r(r, ...) rsb_log_r_(RSB_LOG_ERR, r, __VA_ARGS__)
#define rsb_warn_r(r, ...) rsb_log_r_(RSB_LOG_WARN, r, __VA_ARGS__)
#define rsb_dbg_r(r, ...) rsb_log_r_(RSB_LOG_DBG, r, __VA_ARGS__)

#endif
