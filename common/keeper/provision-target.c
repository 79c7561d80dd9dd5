/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "keeper/provision.h"
#include "util/cleanup.h"
#include "util/str.h"

#define CONNECT_NS (20 * RSB_NSEC_PER_SEC)
#define LINK_PATH "/rsb"

int
rsb_keeper_target(const struct rsb_keeper_env *env, const struct rsb_state *state,
	const struct rsb_sandbox *sandbox, struct rsb_keeper_target *ret_target)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	const char *url;
	int r;

	r = env->backend->ops->address(
		env->backend, sandbox, (unsigned int)state->port, &target.address);
	if (r < 0)
		return r;
	url = target.address.url;
	if (strncmp(url, "http", 4) != 0)
		return -EINVAL;
	target.url = rsb_str_printf("ws%s" LINK_PATH, url + 4);
	if (!target.url)
		return -ENOMEM;
	*ret_target = target;
	ret_target->target = (struct rsb_link_target){
		.url = target.url,
		.headers = (const char *const *)ret_target->address.headers,
		.ca_file = env->config->e2b.ca_file[0] ? env->config->e2b.ca_file : NULL,
		.fd = -1,
		.timeout_ns = CONNECT_NS,
	};
	target = (struct rsb_keeper_target){ 0 };
	return 0;
}

int
rsb_keeper_target_copy(const struct rsb_keeper_target *target, struct rsb_keeper_target *ret_target)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target copy = { 0 };
	char *const *header = target->address.headers;

	copy.address.url = strdup(target->address.url);
	copy.url = strdup(target->url);
	if (!copy.address.url || !copy.url)
		return -ENOMEM;
	for (size_t i = 0; header[i]; i++) {
		copy.address.headers[i] = strdup(header[i]);
		if (!copy.address.headers[i])
			return -ENOMEM;
	}
	*ret_target = copy;
	ret_target->target = target->target;
	ret_target->target.url = copy.url;
	ret_target->target.headers = (const char *const *)ret_target->address.headers;
	copy = (struct rsb_keeper_target){ 0 };
	return 0;
}

void
rsb_keeper_target_done(struct rsb_keeper_target *target)
{
	rsb_backend_address_done(&target->address);
	free(target->url);
	*target = (struct rsb_keeper_target){ 0 };
}
