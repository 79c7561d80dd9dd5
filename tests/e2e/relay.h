/* SPDX-License-Identifier: MIT */
#ifndef RSB_E2E_RELAY_H
#define RSB_E2E_RELAY_H

/*
 * A thread between the link and the port of a sidecar that passes bytes on, one connection at a
 * time, and breaks when it is told to. A new connection while the one of before still stands
 * freezes that one, as a network does that forgets a flow.
 */

#include <stddef.h>
#include <stdint.h>

struct relay;

struct relay *relay_new(uint16_t target);
void relay_free(struct relay *relay);
uint16_t relay_port(const struct relay *relay);

/* Cuts each connection, with a reset, after so many bytes in both directions together; 0: never. */
void relay_cut_after(struct relay *relay, size_t size);
/* From the next bytes on, neither forwards nor closes the connection of now; the next one works. */
void relay_freeze(struct relay *relay);
/* Connections so far. */
unsigned int relay_count(struct relay *relay);

#endif
