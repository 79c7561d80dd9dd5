/* SPDX-License-Identifier: MIT */
#ifndef RSB_TEST_LWS_ECHO_H
#define RSB_TEST_LWS_ECHO_H

/*
 * One WebSocket connection served by libwebsockets, which nobody here wrote. It echoes binary
 * messages; the first byte of one may ask for something else:
 *	P	ping us, then send "pong:" and what the pong brought
 *	F	echo in three fragments
 *	C	close with the code that follows
 * When we close, the code that it saw (2 bytes, as on the wire) goes to report_fd.
 */

#define LWS_ECHO_PING "are you there"
#define LWS_ECHO_QUEUE_MAX 64 /* messages that may wait for their echo */

/*
 * port 0: a server on loopback, whose port (uint16_t) goes to report_fd; else a client. Until the
 * end; 0 or 1.
 */
int lws_echo(int port, int report_fd);

#endif
