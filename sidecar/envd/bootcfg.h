/* SPDX-License-Identifier: MIT */
#ifndef RSB_BOOTCFG_H
#define RSB_BOOTCFG_H

/*
 * What rsb-local tells a new sandbox, as JSON: the monitor outside and pid 1 inside read the same
 * text. Strings are borrowed from the parsed text and live as long as the struct.
 */

#include "util/buf.h"
#include "util/diag.h"
#include "util/json.h"

#define RSB_BOOTCFG_MAX ((size_t)96 << 10) /* one message of the control socket */

struct rsb_bootcfg {
	struct rsb_json *json;
	const char *id;       /* [a-z0-9]+, also the hostname */
	const char *boot_id;  /* text of a fresh UUID */
	const char *token;    /* guards envd; NULL: open */
	struct rsb_json *env; /* default environment of every process; NULL: none */
	const char *disk_dir; /* directory of the host for the disk image */
	uint64_t disk_size;   /* bytes of the writable layers; 0: no limit of ours */
	bool idmap;           /* false: do as if no file system had idmapped mounts */
	uint32_t uid_base;    /* first host id of the sandbox when the host side is root */
};

/* -EBADMSG with a sentence. */
rsb_nodiscard int rsb_bootcfg_parse(
	struct rsb_bytes text, struct rsb_bootcfg *ret_cfg, struct rsb_diag *diag);
void rsb_bootcfg_done(struct rsb_bootcfg *cfg);

#endif
