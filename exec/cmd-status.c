/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/daemon.h"
#include "exec/until.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/str.h"

#define SHOWN_MAX 4096u

static void
print_member(const char *prefix, const char *name, const struct rsb_json *value)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	const char *str = rsb_json_as_str(value);

	if (str) {
		char shown[SHOWN_MAX];

		/* The sandbox chooses some of them, and has no way to a terminal. */
		rsb_str_clean(str, shown, sizeof(shown));
		(void)printf("%s%s: %s\n", prefix, name, shown);
	} else if (rsb_json_is_object(value)) {
		void *cursor = NULL;
		struct rsb_json *inner;
		const char *key;

		(void)printf("%s%s:\n", prefix, name);
		while ((key = rsb_json_member(value, &cursor, &inner)))
			print_member("  ", key, inner);
	} else if (rsb_json_write(value, false, &text) >= 0) {
		(void)printf("%s%s: %.*s\n", prefix, name, (int)rsb_buf_len(&text),
			(const char *)rsb_buf_head(&text));
	}
}

/* What is held back, a line each. */
static void
print_held(const struct rsb_json *held)
{
	(void)printf("held back from git here, until 'rsb trust':\n");
	for (size_t i = 0; i < rsb_json_len(held); i++) {
		const char *path;
		const char *why;

		if (rsb_json_str(rsb_json_at(held, i), "path", &path) == 0 &&
			rsb_json_str(rsb_json_at(held, i), "why", &why) == 0)
			(void)printf("  %s (%s)\n", path, why);
	}
}

static void
print_losses(const struct rsb_json *losses)
{
	(void)printf("lost, or nobody knows whether it was done:\n");
	for (size_t i = 0; i < rsb_json_len(losses); i++) {
		const struct rsb_json *loss = rsb_json_at(losses, i);
		const char *kind, *text, *time;

		if (rsb_json_str(loss, "time", &time) == 0 &&
			rsb_json_str(loss, "kind", &kind) == 0 &&
			rsb_json_str(loss, "text", &text) == 0)
			(void)printf("  %s %s: %s\n", time, kind, text);
	}
}

static int
print_status(const struct rsb_buf *out, bool as_json, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	void *cursor = NULL;
	struct rsb_json *value;
	const char *key;
	int r;

	if (as_json) {
		(void)fwrite(rsb_buf_head(out), 1, rsb_buf_len(out), stdout);
		(void)putchar('\n');
		return 0;
	}
	r = rsb_json_parse(rsb_buf_view(out), &json, diag);
	if (r < 0)
		return r;
	while ((key = rsb_json_member(json, &cursor, &value))) {
		if (strcmp(key, "held") == 0)
			print_held(value);
		else if (strcmp(key, "losses") == 0)
			print_losses(value);
		else
			print_member("", key, value);
	}
	return 0;
}

/* There is no daemon that could tell. To mount it is no advice where it is gone. */
static int
say_unserved(const struct rsb_where *where, const struct rsb_verb_call *call, int r,
	struct rsb_diag *diag)
{
	const struct rsb_state *state = &where->state;
	const int found = rsb_until_state(state, &call->common, call->env, NULL);

	if (found == -ENOENT)
		return rsb_state_say_gone(where->root, state->name, diag);
	if (found != RSB_SANDBOX_PAUSED)
		return r;
	return rsb_diag_set(diag, r,
		"the sandbox %s is paused, and not mounted; 'rsb mount %s%s' or a command by "
		"'rsb exec -s %s' lets it go on",
		state->name, state->name, state->mountpoint[0] ? "" : " DIR", state->name);
}

static int
run_status(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	struct rsb_diag diag = { 0 };
	int r;

	r = rsb_where_find(call->words[0], call->env, &where, &diag);
	if (r >= 0)
		r = rsb_daemon_check(&where, false, &diag);
	if (r == -ENOTCONN)
		r = say_unserved(&where, call, r, &diag);
	if (r >= 0)
		r = rsb_daemon_status(&where, &out, &diag);
	if (r >= 0)
		r = print_status(&out, call->common.json, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_status = {
	.name = "status",
	.usage = "status [OPTION]... [SANDBOX]",
	.help = "Tell how a mounted sandbox is doing.",
	.max_words = 1,
	.wrong_words = "one sandbox at a time",
	.run = run_status,
};
