/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "exec/verbs.h"
#include "keeper/deploy.h"
#include "util/cleanup.h"
#include "util/spawn.h"

/* One line: what was looked at, how it is. Returns 1 for a problem. */
static int
say(bool ok, const char *what, const char *how)
{
	(void)printf("%-4s %-22s %s\n", ok ? "ok" : "BAD", what, how);
	return ok ? 0 : 1;
}

static int
check_fuse(void)
{
	rsb_autoclose int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return say(false, "/dev/fuse", strerror(errno));
	return say(true, "/dev/fuse", "can be opened");
}

static int
check_fusermount(char *const *env)
{
	bool found = rsb_spawn_on_path(rsb_config_getenv(env, "PATH"), "fusermount3");

	/* Root mounts by itself. */
	return say(found || geteuid() == 0, "fusermount3",
		found ? "found" : "not found; install fuse3");
}

/* fusermount3(1) looks there for the owner of a mount before it unmounts. */
static int
check_mtab(void)
{
	bool found = access("/etc/mtab", R_OK) == 0;

	return say(found || geteuid() == 0, "/etc/mtab",
		found ? "can be read" : "not there: ln -s ../proc/self/mounts /etc/mtab");
}

static int
check_sidecar(char *const *env)
{
	rsb_autofree char *path = NULL;
	struct rsb_diag diag = { 0 };
	int r = rsb_deploy_find(env, &path, &diag);

	return say(r >= 0, "sidecar program", r < 0 ? rsb_diag_text(&diag, r) : path);
}

static int
count_one(void *arg, const struct rsb_sandbox *sandbox)
{
	size_t *n = arg;

	(void)sandbox;
	(*n)++;
	return 0;
}

static int
check_backend(const struct rsb_verb_common *common, char **env)
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	struct rsb_config_source source = { .overrides = common->overrides, .env = env };
	struct rsb_diag diag = { 0 };
	char text[128];
	size_t n = 0;
	int bad;
	int r;

	r = rsb_config_load(&source, &config, &diag);
	bad = say(r >= 0, "configuration", r < 0 ? rsb_diag_text(&diag, r) : "read");
	if (r < 0)
		return bad;
	diag.text[0] = '\0';
	r = rsb_keeper_backend(&config, env, NULL, &backend, &diag);
	if (r >= 0)
		r = backend->ops->list(backend, NULL, count_one, &n, &diag);
	if (r < 0)
		return bad + say(false, "backend", rsb_diag_text(&diag, r));
	(void)snprintf(
		text, sizeof text, "%s answers; %zu sandboxes of ours", backend->ops->name, n);
	bad += say(true, "backend", text);
	if (strcmp(backend->ops->name, "local") == 0)
		(void)say(true, "isolation", "namespaces of this kernel, not a virtual machine");
	return bad;
}

static int
run_doctor(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = { RSB_VERB_LONG, { 0 } };
	struct rsb_verb_common common = { 0 };
	struct utsname uts;
	int bad = 0;
	int status;
	int c;

	while ((c = getopt_long(argc, argv, RSB_VERB_LETTERS, options, NULL)) != -1)
		if (rsb_verb_option(verb, c, &common, &status))
			return status;
	if (optind < argc)
		return rsb_verb_usage(verb, "it takes no names");
	(void)say(true, "rsb", RSB_VERSION);
	if (uname(&uts) == 0)
		(void)say(true, "kernel", uts.release);
	bad += check_fuse();
	bad += check_fusermount(env);
	bad += check_mtab();
	bad += check_sidecar(env);
	bad += check_backend(&common, env);
	(void)say(true, "local programs",
		"what the sandbox puts into project files runs here if a local tool runs it");
	return bad ? 1 : 0;
}

const struct rsb_verb rsb_verb_doctor = {
	.name = "doctor",
	.usage = "doctor [OPTION]...",
	.help = "Look for what would keep rsb from working here.",
	.run = run_doctor,
};
