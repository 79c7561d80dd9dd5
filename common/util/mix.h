/* SPDX-License-Identifier: MIT */
#ifndef RSB_MIX_H
#define RSB_MIX_H

/* Cheap hashes for tables in memory: no secret in them, and nothing that is written down. */

#include "util/buf.h"

#define RSB_MIX_BASIS UINT64_C(0xcbf29ce484222325)

/* FNV-1a, going on from hash; RSB_MIX_BASIS at first. */
static inline uint64_t
rsb_mix_bytes(uint64_t hash, struct rsb_bytes bytes)
{
	for (size_t i = 0; i < bytes.size; i++)
		hash = (hash ^ bytes.data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* The finaliser of splitmix64: each bit of x changes half of those of the result. */
static inline uint64_t
rsb_mix_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#endif
