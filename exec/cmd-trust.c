/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exec/githeld.h"
#include "exec/report.h"
#include "exec/verbs.h"
#include "keeper/trust.h"
#include "util/cleanup.h"
#include "util/fd.h"

/* The project file of dir, as it is now. */
static int
trust(const char *dir, char **env, char **ret_path, struct rsb_diag *diag)
{
	rsb_autofree char *where = realpath(dir, NULL);
	rsb_autofree char *path = NULL;
	rsb_autofree char *text = NULL;
	rsb_autofree char *root = NULL;
	struct stat st;
	int r;

	if (!where)
		return rsb_diag_set(diag, -errno, "%s: %s", dir, strerror(errno));
	r = rsb_config_project(where, &path);
	if (r < 0)
		return r;
	/* Another file than was named must not be accepted. */
	if (lstat(where, &st) == 0 && !S_ISDIR(st.st_mode) && (!path || strcmp(path, where) != 0))
		return rsb_diag_set(diag, -ENOTDIR,
			"%s is on no mount, and neither a directory nor its .rsb/config", where);
	if (!path)
		return rsb_diag_set(diag, -ENOENT,
			"there is no .rsb/config in %s or above it, or it is the sandbox's own",
			where);
	r = rsb_fd_read_file(AT_FDCWD, path, RSB_CONFIG_FILE_MAX, &text);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot read %s: %s", path, rsb_diag_text(NULL, r));
	r = rsb_state_root(env, &root, diag);
	if (r >= 0)
		r = rsb_trust_add(root, path, text, diag);
	if (r >= 0)
		*ret_path = rsb_steal(&path);
	return r;
}

static int
say(const struct rsb_verb_common *common, const char *path)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	if (common->json) {
		rsb_report_init(&report);
		rsb_report_str(&report, "file", path);
		return rsb_report_print(&report);
	}
	if (!common->quiet)
		(void)printf("%s is trusted until it is changed\n", path);
	return 0;
}

/* 1 when there was nothing. */
static int
say_accepted(const struct rsb_verb *verb, const struct rsb_verb_common *common, const char *where,
	struct rsb_json *array)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	struct rsb_diag diag = { 0 };
	const size_t n = rsb_json_len(array);
	int r = 0;

	for (size_t i = 0; i < n && !common->quiet && !common->json; i++) {
		const char *path = "?";
		const char *why = "?";

		(void)rsb_json_str(rsb_json_at(array, i), "path", &path);
		(void)rsb_json_str(rsb_json_at(array, i), "why", &why);
		(void)printf("trusted: %s (%s)\n", path, why);
	}
	if (common->json) {
		rsb_report_init(&report);
		rsb_report_json(&report, "accepted", rsb_json_ref(array));
		r = rsb_report_print(&report);
	} else if (!n && !common->quiet) {
		(void)fprintf(stderr, "rsb trust: nothing is held back from git here %s%s\n",
			where ? "of " : "on this mount", where ? where : "");
	}
	if (r < 0)
		return rsb_verb_failed(verb, r, &diag);
	return n ? 0 : 1;
}

static int
run_trust(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *accepted = NULL;
	rsb_autofree char *path = NULL;
	const char *where = call->words[0];
	struct rsb_diag diag = { 0 };
	int r;

	r = rsb_githeld_accept(where, call->env, &accepted, &diag);
	if (r > 0)
		return say_accepted(verb, &call->common, where, accepted);
	if (r >= 0)
		r = trust(where ? where : ".", call->env, &path, &diag);
	if (r >= 0)
		r = say(&call->common, path);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_trust = {
	.name = "trust",
	.usage = "trust [OPTION]... [PATH]",
	.help = "Accept what PATH has that is held back: .rsb/config, or on a mount from git.",
	.max_words = 1,
	.wrong_words = "one path at a time",
	.run = run_trust,
};
