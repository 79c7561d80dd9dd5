/* SPDX-License-Identifier: MIT */
#ifndef RSB_OPTIONS_H
#define RSB_OPTIONS_H

/*
 * The command line: rsb-mount [-f] [-o OPTIONS] NAME DIRECTORY, rsb-mount --no-mount NAME,
 * rsb-mount -u DIRECTORY, rsb-mount --upgrade NAME, and as mount(8)'s helper mount.fuse.rsb NAME
 * DIRECTORY [-sfnv] [-o OPTIONS].
 */

#include <stdbool.h>

#include "fuse/takeover.h"
#include "util/diag.h"

#define RSB_CRASHES_USUAL 5u
#define RSB_CRASHES_MAX 1000u

struct rsb_options {
	bool helper; /* called as mount.fuse.rsb */
	bool foreground;
	bool fake; /* mount -f: do everything but mount */
	bool unmount;
	bool no_mount; /* serve commands only, and for a while only */
	int n_word;    /* of argv, in front of the operands */
	bool help;
	bool version;
	bool verbose;
	bool sloppy;
	char *name;
	char *directory;
	char *mountpoint; /* absolute, filled in later; empty with no_mount */
	char *url;        /* -o url=: a sidecar's address; no keeper */
	char *key_file;   /* -o key=: for url */
	char *socket;     /* -o socket=: where the control socket is, over the state's */
	char *idmap;      /* "user", "none"; NULL: the configuration's */
	char **overrides; /* -o section.key=value, for rsb.conf(5); NULL-terminated */
	size_t n_override;
	bool sync;
	bool async; /* -o async: over the configuration's mount.sync */
	bool allow_other;
	bool read_only;
	unsigned int crashes; /* -o crashes=: as in struct rsb_supervise */
	bool no_epoch;        /* for tests: as on a kernel before 6.16 */
	bool no_expire;       /* for tests: as on one before 6.2, that has no epoch either */
	bool no_guard;        /* for tests: git here is not guarded */
	bool noexec;
	bool upgrade; /* a mount that runs is to be served by this program */
	bool force;   /* with it: also while commands run */
	/* A process of a running mount has become this program; directory is the mount point. */
	struct rsb_takeover takeover;
	char **again; /* argv for another program that goes on with the mount */
};

/* -EINVAL with a sentence. rsb_options_done() also after failure. */
rsb_nodiscard int rsb_options_parse(
	int argc, char *const *argv, struct rsb_options *ret_options, struct rsb_diag *diag);
void rsb_options_done(struct rsb_options *options);
/*
 * Fills in again, once mountpoint is known. argv as rsb_options_parse() left it, whose texts are
 * borrowed.
 */
rsb_nodiscard int rsb_options_keep(struct rsb_options *options, char *const *argv);

#endif
