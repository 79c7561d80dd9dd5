/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "exec/report.h"
#include "exec/verbs.h"
#include "keeper/deploy.h"
#include "keeper/mountpoint.h"
#include "util/cleanup.h"
#include "util/spawn.h"

struct doctor {
	const struct rsb_verb_common *common;
	char **env;
	struct rsb_json *checks; /* an array; NULL: lines are printed */
	bool bad;
};

/* What was looked at, how it is. */
static void
say(struct doctor *d, bool ok, const char *what, const char *how)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	d->bad = d->bad || !ok;
	if (!d->checks) {
		(void)printf("%-4s %-22s %s\n", ok ? "ok" : "BAD", what, how);
		return;
	}
	rsb_report_init(&report);
	rsb_report_str(&report, "what", what);
	rsb_report_bool(&report, "ok", ok);
	rsb_report_str(&report, "how", how);
	/* Without memory the list is short; whether all is well is told apart. */
	(void)rsb_json_set(d->checks, NULL, rsb_steal(&report.json));
}

static void
check_fuse(struct doctor *d)
{
	struct rsb_diag diag = { 0 };
	int r = rsb_mountpoint_check_fuse(&diag);

	say(d, r >= 0, "/dev/fuse", r < 0 ? rsb_diag_text(&diag, r) : "can be opened");
}

static void
check_fusermount(struct doctor *d)
{
	bool found = rsb_spawn_on_path(rsb_config_getenv(d->env, "PATH"), "fusermount3");

	/* Root mounts by itself. */
	say(d, found || geteuid() == 0, "fusermount3",
		found ? "found" : "not found; install fuse3");
}

/* fusermount3(1) looks there for the owner of a mount before it unmounts. */
static void
check_mtab(struct doctor *d)
{
	bool found = access("/etc/mtab", R_OK) == 0;

	say(d, found || geteuid() == 0, "/etc/mtab",
		found ? "can be read" : "not there: ln -s ../proc/self/mounts /etc/mtab");
}

static void
check_sidecar(struct doctor *d)
{
	rsb_autofree char *path = NULL;
	struct rsb_diag diag = { 0 };
	int r = rsb_deploy_find(d->env, &path, &diag);

	say(d, r >= 0, "sidecar program", r < 0 ? rsb_diag_text(&diag, r) : path);
}

static int
count_one(void *arg, const struct rsb_sandbox *sandbox)
{
	size_t *n = arg;

	(void)sandbox;
	(*n)++;
	return 0;
}

static void
check_backend(struct doctor *d)
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	rsb_autofree char *cwd = getcwd(NULL, 0);
	struct rsb_config_source source = {
		.overrides = d->common->overrides, .env = d->env, .project_dir = cwd
	};
	struct rsb_diag diag = { 0 };
	char text[128];
	size_t n = 0;
	int r;

	r = rsb_config_load(&source, &config, &diag);
	say(d, r >= 0, "configuration", r < 0 ? rsb_diag_text(&diag, r) : "read");
	if (r < 0)
		return;
	diag.text[0] = '\0';
	r = rsb_keeper_backend(&config, d->env, NULL, &backend, &diag);
	if (r >= 0)
		r = backend->ops->list(backend, NULL, count_one, &n, &diag);
	if (r < 0) {
		say(d, false, "backend", rsb_diag_text(&diag, r));
		return;
	}
	(void)snprintf(text, sizeof text, "%s answers; %zu sandbox%s of ours", backend->ops->name,
		n, n == 1 ? "" : "es");
	say(d, true, "backend", text);
	if (strcmp(backend->ops->name, "local") == 0)
		say(d, true, "isolation", "namespaces of this kernel, not a virtual machine");
}

static void
check_all(struct doctor *d)
{
	struct utsname uts;

	say(d, true, "rsb", RSB_VERSION);
	if (uname(&uts) == 0)
		say(d, true, "kernel", uts.release);
	check_fuse(d);
	check_fusermount(d);
	check_mtab(d);
	check_sidecar(d);
	check_backend(d);
	say(d, true, "local programs",
		"what the sandbox puts into project files runs here if a local tool runs it");
}

static int
run_doctor(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct doctor d = { .common = &call->common, .env = call->env };
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	if (call->common.json)
		d.checks = rsb_json_new_array();
	check_all(&d);
	if (call->common.json) {
		rsb_report_init(&report);
		rsb_report_bool(&report, "ok", !d.bad);
		rsb_report_json(&report, "checks", d.checks);
		if (rsb_report_print(&report) < 0)
			return rsb_verb_failed(verb, -EIO, NULL);
	}
	return d.bad ? 1 : 0;
}

const struct rsb_verb rsb_verb_doctor = {
	.name = "doctor",
	.usage = "doctor [OPTION]...",
	.help = "Look for what would keep rsb from working here.",
	.wrong_words = "it takes no names",
	.run = run_doctor,
};
