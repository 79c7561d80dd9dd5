/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/daemon.h"
#include "exec/outcome.h"
#include "exec/report.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "keeper/mountpoint.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/localtime.h"
#include "util/str.h"

struct list {
	const struct rsb_verb_common *common;
	const char *root;
	char **env;
	struct rsb_json *json; /* array; NULL: a table */
	size_t n;
	bool incomplete;      /* something could not be read, which was said */
	struct rsb_diag said; /* the last of it: one broken file concerns all sandboxes */
};

static void
say_damaged(void *arg, const char *text)
{
	struct list *list = arg;

	list->incomplete = true;
	if (strcmp(list->said.text, text) == 0)
		return;
	(void)fprintf(stderr, "rsb list: %s\n", text);
	(void)rsb_diag_set(&list->said, 0, "%s", text);
}

/* What the control plane says of it; "unknown" when it cannot be asked. */
static const char *
state_of(struct list *list, const struct rsb_state *state, uint64_t *ret_end_ns)
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_config_source source = {
		.overrides = list->common->overrides, .env = list->env, .sandbox = state->name
	};
	struct rsb_diag diag = { 0 };
	int r;

	*ret_end_ns = 0;
	r = rsb_config_load(&source, &config, &diag);
	if (r >= 0)
		r = rsb_keeper_backend(&config, list->env, state->backend, &backend, &diag);
	if (r < 0) {
		say_damaged(list, rsb_diag_text(&diag, r));
		return "unknown";
	}
	r = backend->ops->get(backend, state->sandbox_id, &sandbox, NULL);
	if (r == -ENOENT)
		return "gone";
	if (r < 0)
		return "unknown";
	if (sandbox.state == RSB_SANDBOX_PAUSED)
		return "paused";
	*ret_end_ns = sandbox.end_ns;
	return "running";
}

static int
add_json(struct list *list, const struct rsb_state *state, const char *what, uint64_t end_ns,
	bool mounted)
{
	const bool kept = end_ns && rsb_daemon_keeps(state->name, list->env);

	RSB_CLEANUP(rsb_report_done) struct rsb_report row = { 0 };
	char end[RSB_RFC3339_SIZE];

	rsb_report_init(&row);
	rsb_report_sandbox(&row, state);
	rsb_report_str(&row, "backend", state->backend);
	rsb_report_str(&row, "state", what);
	if (end_ns)
		rsb_report_bool(&row, "kept", kept);
	if (end_ns && !kept) {
		rsb_clock_rfc3339(end_ns, end);
		rsb_report_str(&row, "end", end);
	}
	if (mounted)
		rsb_report_str(&row, "mount", state->mountpoint);
	rsb_report_str(&row, "dir", state->local_dir);
	return row.r < 0 ? row.r : rsb_json_set(list->json, NULL, rsb_steal(&row.json));
}

static int
list_one(void *arg, const struct rsb_state *state)
{
	struct list *list = arg;
	bool mounted = rsb_mountpoint_is_ours(state->mountpoint, state->name);
	char shown[RSB_PATH_MAX + 1];
	char end[RSB_LOCALTIME_SIZE] = "-";
	uint64_t end_ns;
	const char *what = state_of(list, state, &end_ns);

	if (list->json)
		return add_json(list, state, what, end_ns, mounted);
	if (end_ns && rsb_daemon_keeps(state->name, list->env))
		(void)strcpy(end, "kept");
	else if (end_ns)
		rsb_localtime(end_ns, rsb_wall_ns(), end);
	if (list->n++ == 0)
		(void)printf("%-20s %-24s %-8s %-8s %-16s %s\n", "NAME", "SANDBOX", "BACKEND",
			"STATE", "END", "MOUNT");
	rsb_str_clean(mounted ? state->mountpoint : "-", shown, sizeof(shown));
	(void)printf("%-20s %-24s %-8s %-8s %-16s %s\n", state->name, state->sandbox_id,
		state->backend, what, end, shown);
	return 0;
}

static int
print_json(const struct rsb_json *json)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	int r;

	r = rsb_json_write(json, false, &out);
	if (r >= 0 && fwrite(rsb_buf_head(&out), 1, rsb_buf_len(&out), stdout) != rsb_buf_len(&out))
		r = -EIO;
	(void)putchar('\n');
	return r;
}

static int
run_list(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	rsb_autofree char *root = NULL;
	struct list list = { .common = &call->common, .env = call->env };
	struct rsb_diag diag = { 0 };
	int r;

	r = rsb_state_root(call->env, &root, &diag);
	if (r < 0)
		return rsb_verb_failed(verb, r, &diag);
	list.root = root;
	if (call->common.json)
		list.json = json = rsb_json_new_array();
	r = call->common.json && !json ? -ENOMEM : rsb_state_list(root, list_one, &list);
	if (r >= 0)
		r = rsb_state_list_damaged(root, say_damaged, &list);
	if (r >= 0 && json)
		r = print_json(json);
	if (r < 0)
		return rsb_verb_failed(verb, r, &diag);
	return list.incomplete ? RSB_EXIT_FAILED : 0;
}

const struct rsb_verb rsb_verb_list = {
	.name = "list",
	.usage = "list [OPTION]...",
	.help = "List the sandboxes that this machine knows.",
	.wrong_words = "it takes no names",
	.run = run_list,
};
