/* SPDX-License-Identifier: MIT */
#ifndef RSB_RELAY_H
#define RSB_RELAY_H

/*
 * Commands of clients on their way through the daemon: the proc number and the three streams of
 * a command have one name at the client (near) and another on the link (far). Every command is
 * between two barriers, and the daemon itself waits until nothing of it lives any more before it
 * lets the cache go on; also when its client, or the command's record over there, is gone.
 *
 * Main thread. Streams are in fuse/pipe.h.
 */

#include "fuse/guest.h"
#include "util/json.h"

#define RSB_RELAY_PROCS_MAX RSB_PROCS_MAX
#define RSB_RELAY_TOLD_MAX 8u

rsb_nodiscard int rsb_relay_new(struct rsb_control *control, struct rsb_relay **ret_relay);
void rsb_relay_free(struct rsb_relay *relay);
/* Commands of a daemon that died: they are waited for, and ended if they had a client. */
rsb_nodiscard int rsb_relay_recover(struct rsb_relay *relay);
/*
 * The sidecar's process is another one: commands that were to start have lost their streams and do
 * not. Those that ran end by themselves, and are named (fuse/losses.h).
 */
void rsb_relay_anew(struct rsb_relay *relay);
/*
 * No sidecar will be reached: who waits for output, and not for an answer, is told as well, and
 * commands count as ended.
 */
void rsb_relay_give_up(struct rsb_relay *relay);
/*
 * We are about to end: what comes does not begin, and is told r, -ECONNREFUSED where another daemon
 * may take it. By force commands that have a client are ended, which is told as that.
 */
void rsb_relay_close(struct rsb_relay *relay, int r, bool force);
/* We go on. */
void rsb_relay_open(struct rsb_relay *relay);
/* Something of those ended by force may live, and it is not too late to hear that it does not. */
bool rsb_relay_ends(const struct rsb_relay *relay);
/*
 * The link has ended. What did not begin is told by -ECANCELED, what ended with us by -ESHUTDOWN,
 * and by -ECONNABORTED that nobody knows.
 */
void rsb_relay_say_end(struct rsb_relay *relay);
/* Commands of which something may live; or those whose client is still there. */
size_t rsb_relay_count(const struct rsb_relay *relay, bool attended);
/* What the first of the latter run, appended to array. */
rsb_nodiscard int rsb_relay_tell(const struct rsb_relay *relay, struct rsb_json *array);
/* For how long nothing of a command lives; 0: something does. */
uint64_t rsb_relay_idle_ns(const struct rsb_relay *relay);
struct rsb_pipes *rsb_relay_pipes(struct rsb_relay *relay);

/* A request of client that is to be relayed; answers it, now or later. */
void rsb_relay_call(
	struct rsb_relay *relay, struct rsb_guest *client, const struct rsb_call_head *head);
/* The client is gone: its commands are ended. */
void rsb_relay_drop_client(struct rsb_guest *client);
/* The streams that the client calls by chan. NULL: none such. */
struct rsb_pipe *rsb_relay_pipe(struct rsb_guest *client, uint64_t chan);
/* The client took something of its streams. */
void rsb_relay_credit(struct rsb_guest *client);

#endif
