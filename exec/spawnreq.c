/* SPDX-License-Identifier: MIT */
#include "exec/spawnreq.h"

#include <errno.h>
#include <sys/stat.h>

#include "proto/codec.h"
#include "proto/version.h"

static int
add_strings(char *const *list, struct rsb_buf *out, uint64_t *ret_n)
{
	uint64_t n = 0;

	for (; list[n]; n++) {
		int r = rsb_seq_append_bytes(rsb_bytes_str(list[n]), out);

		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

int
rsb_spawnreq_send(struct rsb_client *client, const struct rsb_run *run, uint64_t proc,
	rsb_client_fn fn, void *arg, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf argv = { .max = RSB_MESSAGE_MAX };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf env = { .max = RSB_MESSAGE_MAX };
	struct rsb_spawn_req req = { .proc = proc, .cwd = rsb_bytes_str(run->cwd) };
	mode_t mask = umask(0);
	uint64_t n_argv;
	uint64_t n_env;
	int r;

	(void)umask(mask);
	req.umask = mask;
	req.flags = run->no_stdin ? RSB_SPAWN_STDIN_NULL : 0;
	r = add_strings(run->argv, &argv, &n_argv);
	if (r >= 0)
		r = add_strings((char *const *)(uintptr_t)run->env, &env, &n_env);
	if (r < 0)
		return r;
	req.argv = rsb_seq_of(&argv, n_argv);
	req.env = rsb_seq_of(&env, n_env);
	r = rsb_client_call(client, RSB_OP_spawn, &req, fn, arg);
	if (r == -EMSGSIZE || r == -EINVAL)
		return rsb_diag_set(
			diag, -E2BIG, "the arguments and the environment are too large");
	return r;
}
