/* SPDX-License-Identifier: MIT */
#ifndef RSB_LIMITS_H
#define RSB_LIMITS_H

/*
 * Every maximum that a peer could make something grow to, on the wire and in tables that requests
 * fill. Both sides include this file: a limit is checked by the receiver and respected by the
 * sender.
 */

/* Link. */
#define RSB_FRAME_MAX (64u << 10)        /* bytes of one WebSocket payload, head included */
#define RSB_MESSAGE_MAX (4u << 20)       /* bytes of one message, over all its frames */
#define RSB_HOST_SEND_MAX (64u << 20)    /* host: unacknowledged bytes kept for resending */
#define RSB_SIDECAR_SEND_MAX (16u << 20) /* sidecar: the same, reservations for replies included */
#define RSB_HOST_WINDOW (16u << 20)      /* host: received bytes not yet consumed */
#define RSB_SIDECAR_WINDOW (8u << 20)    /* sidecar: received bytes not yet admitted */
#define RSB_ZSTD_MIN 1024u               /* payloads below are never compressed */
#define RSB_PING_MOUNT_MS 1000u          /* while a mount exists */
#define RSB_PING_EXEC_MS 15000u          /* link that only serves commands */
#define RSB_PING_MISSED_MAX 3u           /* intervals without a frame: SUSPECT */
#define RSB_PING_LOST_MAX 6u             /* the same: the connection is given up */
#define RSB_STUCK_MS 30000u              /* answers pings but acknowledges nothing: closed */
#define RSB_CALLS_MAX 65536u             /* requests waiting for their reply */
#define RSB_SESSIONS_MAX 16u             /* sessions that a sidecar remembers */

/* Streams. */
#define RSB_CHANS_MAX 4096u          /* open at a time in one session */
#define RSB_CHAN_WINDOW (256u << 10) /* credit of a stream at its start, bytes */

/* File operations. */
#define RSB_IO_MAX 61440u /* bytes of one read or write message: fits one frame */
#define RSB_NAME_MAX 255u
#define RSB_PATH_MAX 4095u
#define RSB_XATTR_NAME_MAX 255u
#define RSB_XATTR_MAX 65536u
#define RSB_DIRENTS_MAX 1024u         /* entries of one readdir reply */
#define RSB_LISTINGS_MAX (128u << 20) /* host: bytes of all directory listings of a mount */
#define RSB_FORGETS_MAX 4096u         /* entries of one forget */
#define RSB_ADOPTS_MAX 1024u          /* entries of one adopt */
#define RSB_NODES_MAX (1u << 20)      /* nodes that a sidecar remembers in a session */
#define RSB_DIR_FDS_MAX 4096u         /* directory descriptors it keeps open for them */
#define RSB_FHS_MAX 16384u            /* open files and directories in a session */
#define RSB_LOCKS_WAITING_MAX 1024u   /* blocked lock requests in a session */
#define RSB_LOCKS_AWAY_MS 300000u     /* locks of a session without a connection end */

/* Trees: lists and archives of the workspace. */
#define RSB_TREE_WANTED_MAX (256u << 20) /* sidecar: bytes of paths or patterns that one asks for */

/* Processes. */
#define RSB_ARGS_MAX 65536u       /* entries of argv or of env */
#define RSB_ARG_MAX 131071u       /* bytes of one; Linux: MAX_ARG_STRLEN less the NUL */
#define RSB_PROCS_MAX 1024u       /* commands known in a session */
#define RSB_PIDS_REPORTED_MAX 64u /* held-by list of a wait reply */

#endif
