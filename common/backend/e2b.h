/* SPDX-License-Identifier: MIT */
#ifndef RSB_E2B_H
#define RSB_E2B_H

/*
 * The E2B control plane and the envd agent in a sandbox, as a backend: HTTP requests and what
 * their answers mean, without any policy. Also serves compatible servers: rsb-local,
 * self-hosted E2B, AgentENV. Un-versioned paths, every field that a server could read a
 * default into is sent.
 */

#include "backend/backend.h"

/*
 * An answer that takes longer was lost with its connection, as after a change of network. The
 * keeper, which looks for the link meanwhile, asks again.
 */
#define RSB_E2B_ASK_NS (10 * RSB_NSEC_PER_SEC)

struct rsb_e2b_config {
	const char *name;          /* "e2b" or "local"; a literal */
	const char *api_url;       /* without a slash at the end */
	const char *domain;        /* for {domain} where the sandbox has none of its own */
	const char *envd_url;      /* with {port}, {id}, {domain}; the headers tell the rest */
	unsigned int envd_port;    /* 49983 */
	const char *ca_file;       /* NULL: the system's */
	uint64_t timeout_ns;       /* of one request */
	uint64_t ask_ns;           /* of one that asks for a sandbox or prolongs its life */
	struct rsb_secret api_key; /* copied */
	/*
	 * Not NULL: the server is the rsb-local of this directory (backend/local.h), which is
	 * looked for again, with this environment, when it is not reached. env: borrowed for life.
	 */
	const char *local_dir;
	char *const *local_env;
};

/* Strings are copied. */
rsb_nodiscard int rsb_e2b_new(const struct rsb_e2b_config *config, struct rsb_backend **ret_backend,
	struct rsb_diag *diag);

#endif
