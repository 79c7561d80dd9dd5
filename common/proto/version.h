/* SPDX-License-Identifier: MIT */
#ifndef RSB_VERSION_H
#define RSB_VERSION_H

/*
 * Version of the table in structs.def and ops.def, with its history. tests/golden/wire.txt names
 * it, and the golden test refuses a change of the table that left it as it was.
 *	1	first light: names, files, locks, processes, tar in, control socket
 *
 * A newer peer talks down to the older one's version; a field or an op is sent only when its
 * "since" is at most the version agreed on. Below RSB_PROTO_VERSION_MIN there is no talk: the
 * sidecar is replaced, or the host program is too old; either way it is said in one sentence.
 */
#define RSB_PROTO_VERSION 1u
#define RSB_PROTO_VERSION_MIN 1u

/* Feature bits of challenge and hello: used when both sides have them. */
enum rsb_feature {
	RSB_FEATURE_ZSTD = 1 << 0,
};
#define RSB_FEATURES (RSB_FEATURE_ZSTD)

#endif
