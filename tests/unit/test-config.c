/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/config.h"
#include "keeper/trust.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

/* One directory with everything that a load looks at. */
struct place {
	char dir[64];
	char etc[96];
	char project[96];
	char home[128];
	char config_home[128];
	char *env[8];
};

static void
write_file(const struct place *place, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", place->dir, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
setup(struct place *place)
{
	static const char *const dirs[] = { "etc", "etc/rsb", "user", "user/rsb", "project",
		"project/.rsb", "project/sub" };
	char path[256];
	size_t i;

	*place = (struct place){ .dir = "/tmp/rsb-config.XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(place->dir));
	for (i = 0; i < RSB_ARRAY_SIZE(dirs); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", place->dir, dirs[i]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	(void)snprintf(place->etc, sizeof(place->etc), "%s/etc", place->dir);
	(void)snprintf(place->project, sizeof(place->project), "%s/project/sub", place->dir);
	(void)snprintf(place->config_home, sizeof(place->config_home), "XDG_CONFIG_HOME=%s/user",
		place->dir);
	place->env[0] = place->config_home;
}

static void
teardown(struct place *place)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", place->dir);
	ck_assert_int_eq(system(command), 0);
}

static int
load(struct place *place, const char *override, const char *sandbox, struct rsb_config *config,
	struct rsb_diag *diag)
{
	const char *const overrides[] = { override, NULL };
	const struct rsb_config_source source = {
		.overrides = overrides,
		.env = place->env,
		.project_dir = place->project,
		.sandbox = sandbox,
		.etc = place->etc,
	};

	*diag = (struct rsb_diag){ 0 };
	return rsb_config_load(&source, config, diag);
}

START_TEST(has_built_in_values)
{
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_uint_eq(config.backend, RSB_CONFIG_AUTO);
	ck_assert_str_eq(config.e2b.api_url, "https://api.e2b.app");
	ck_assert_str_eq(config.sandbox.user, "user");
	ck_assert_uint_eq(config.sandbox.port, 49201);
	ck_assert_uint_eq(config.keeper.heartbeat_ns, 30 * RSB_NSEC_PER_SEC);
	ck_assert_uint_eq(config.exec.drain_ns, 250 * RSB_NSEC_PER_MSEC);
	ck_assert_uint_eq(config.sync.exclude.n, 4);
	ck_assert_ptr_null(config.sync.exclude.items[4]);
	ck_assert_uint_eq(config.sandbox.on_expire, RSB_CONFIG_EXPIRE_UNSET);
	rsb_config_done(&config);
	teardown(&place);
}
END_TEST

START_TEST(lays_the_sources_over_each_other)
{
	char domain[] = "E2B_DOMAIN=env.example";
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	write_file(&place, "etc/rsb/config",
		"[sandbox]\ntemplate = etc\nmax = 9\n[e2b]\ndomain = etc.example\n"
		"[mount]\nidmap = none\n");
	write_file(&place, "user/rsb/config", "[sandbox]\n\ttemplate = user\n\tttl = 1h\n");
	write_file(&place, "project/.rsb/config", "[sandbox]\ntemplate: project\n");
	place.env[1] = domain;
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_str_eq(config.sandbox.template, "project");
	ck_assert_uint_eq(config.sandbox.ttl_ns, 3600 * RSB_NSEC_PER_SEC);
	ck_assert_uint_eq(config.sandbox.max, 9);
	ck_assert_str_eq(config.e2b.domain, "env.example");
	ck_assert_str_eq(config.e2b.api_url, "https://api.env.example");
	ck_assert_uint_eq(config.mount.idmap, RSB_CONFIG_IDMAP_NONE);
	rsb_config_done(&config);
	ck_assert_int_eq(load(&place, "sandbox.template=option", NULL, &config, &diag), 0);
	ck_assert_str_eq(config.sandbox.template, "option");
	rsb_config_done(&config);
	teardown(&place);
}
END_TEST

START_TEST(reads_the_file_that_is_named)
{
	static const char *const wrong[] = { "/no/such", "/dev/null/x", "/" };
	char named[128];
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	write_file(&place, "user/rsb/config", "[sandbox]\ntemplate = user\n");
	write_file(&place, "other", "[sandbox]\nmax = 9\n");
	place.env[1] = named;
	(void)snprintf(named, sizeof(named), "RSB_CONFIG=%s/other", place.dir);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_uint_eq(config.sandbox.max, 9);
	ck_assert_str_ne(config.sandbox.template, "user");
	rsb_config_done(&config);
	(void)snprintf(named, sizeof(named), "RSB_CONFIG=/dev/null");
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_str_ne(config.sandbox.template, "user");
	rsb_config_done(&config);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(wrong); i++) {
		(void)snprintf(named, sizeof(named), "RSB_CONFIG=%s", wrong[i]);
		ck_assert_int_lt(load(&place, NULL, NULL, &config, &diag), 0);
		ck_assert_ptr_nonnull(strstr(diag.text, wrong[i]));
	}
	(void)snprintf(named, sizeof(named), "RSB_CONFIG=");
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_str_eq(config.sandbox.template, "user");
	rsb_config_done(&config);
	teardown(&place);
}
END_TEST

START_TEST(lets_a_named_section_count_for_its_sandbox)
{
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	write_file(&place, "user/rsb/config",
		"[sandbox \"big\"]\nttl = 2h\n[sandbox]\nttl = 1h\nport = 5000\n");
	ck_assert_int_eq(load(&place, NULL, "big", &config, &diag), 0);
	ck_assert_uint_eq(config.sandbox.ttl_ns, 7200 * RSB_NSEC_PER_SEC);
	ck_assert_uint_eq(config.sandbox.port, 5000);
	rsb_config_done(&config);
	ck_assert_int_eq(load(&place, NULL, "bi", &config, &diag), 0);
	ck_assert_uint_eq(config.sandbox.ttl_ns, 3600 * RSB_NSEC_PER_SEC);
	rsb_config_done(&config);
	teardown(&place);
}
END_TEST

START_TEST(replaces_lists_and_adds_to_them)
{
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	write_file(&place, "etc/rsb/config", "[sync]\nexclude = a\nexclude = b\n");
	write_file(&place, "user/rsb/config", "[sync]\nexclude += c\n");
	ck_assert_int_eq(load(&place, "sync.exclude+=d", NULL, &config, &diag), 0);
	ck_assert_uint_eq(config.sync.exclude.n, 4);
	ck_assert_str_eq(config.sync.exclude.items[0], "a");
	ck_assert_str_eq(config.sync.exclude.items[3], "d");
	rsb_config_done(&config);
	ck_assert_int_eq(load(&place, "sync.exclude=x", NULL, &config, &diag), 0);
	ck_assert_uint_eq(config.sync.exclude.n, 1);
	rsb_config_done(&config);
	ck_assert_int_eq(load(&place, "sync.exclude=", NULL, &config, &diag), 0);
	ck_assert_uint_eq(config.sync.exclude.n, 0);
	ck_assert_ptr_nonnull(config.sync.exclude.items);
	rsb_config_done(&config);
	teardown(&place);
}
END_TEST

START_TEST(takes_nothing_harmful_from_a_project)
{
	static const char *const harmful[] = { "[e2b]\napi_url = http://evil\n",
		"[e2b]\napi_key_command = rm -rf /\n", "[e2b]\nenvd_url = http://evil\n",
		"[exec]\nenv = AWS_SECRET\n", "[sandbox]\nruntime_dir = /x\n" };
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;
	size_t i;

	setup(&place);
	for (i = 0; i < RSB_ARRAY_SIZE(harmful); i++) {
		write_file(&place, "project/.rsb/config", harmful[i]);
		ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), -EACCES);
		ck_assert_ptr_nonnull(strstr(diag.text, "project/.rsb/config, line 2: "));
	}
	teardown(&place);
}
END_TEST

START_TEST(takes_all_from_a_project_that_is_trusted_until_it_changes)
{
	static const char *const text = "[exec]\nenv = MINE\n";
	char state[128], root[128], path[128];
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	(void)snprintf(state, sizeof(state), "XDG_STATE_HOME=%s", place.dir);
	(void)snprintf(root, sizeof(root), "%s/rsb", place.dir);
	(void)snprintf(path, sizeof(path), "%s/project/.rsb/config", place.dir);
	place.env[1] = state;
	write_file(&place, "project/.rsb/config", text);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "rsb trust"));
	ck_assert_int_eq(rsb_trust_add(root, path, text, NULL), 0);
	ck_assert_int_eq(rsb_trust_add(root, path, text, NULL), 0);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_str_eq(config.exec.env.items[0], "MINE");
	rsb_config_done(&config);
	write_file(&place, "project/.rsb/config", "[exec]\nenv = OTHER\n");
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), -EACCES);
	/* The same words at another place are another file. */
	ck_assert(rsb_trust_has(root, path, text));
	ck_assert(!rsb_trust_has(root, "/elsewhere/.rsb/config", text));
	teardown(&place);
}
END_TEST

START_TEST(forgets_the_oldest_trust_when_there_is_too_much)
{
	char name[32], root[128];
	struct place place;
	unsigned int i;

	setup(&place);
	(void)snprintf(root, sizeof(root), "%s/user", place.dir);
	for (i = 0; i < RSB_TRUST_MAX + 1; i++) {
		(void)snprintf(name, sizeof(name), "/%u", i);
		ck_assert_int_eq(rsb_trust_add(root, name, "", NULL), 0);
	}
	ck_assert(!rsb_trust_has(root, "/0", ""));
	ck_assert(rsb_trust_has(root, "/1", ""));
	ck_assert(rsb_trust_has(root, name, ""));
	teardown(&place);
}
END_TEST

START_TEST(refuses_with_file_and_line)
{
	static const struct {
		const char *text;
		unsigned int line;
	} bad[] = {
		{ "[sandbox]\nttl = 1h\nnonsense = 1\n", 3 },
		{ "[nonsense]\nttl = 1h\n", 2 },
		{ "ttl = 1h\n", 1 },
		{ "[sandbox]\nttl = soon\n", 2 },
		{ "[sandbox]\nttl = 14s\n", 2 },
		{ "[sandbox]\nport = 0\n", 2 },
		{ "[sandbox]\nport = 70000\n", 2 },
		{ "[sandbox]\nworkspace = relative\n", 2 },
		{ "[sandbox]\non_down = explode\n", 2 },
		{ "[sandbox]\ntemplate =\n", 2 },
		{ "[sandbox]\nttl += 1h\n", 2 },
		{ "[sandbox]\ntemplate = a ; not a comment\n", 2 },
		{ "[e2b]\napi_key = e2b_123\n", 2 },
		{ "[e2b]\napi_url = ftp://x\n", 2 },
		{ "[sandbox]\n\njust words\n", 3 },
		{ "[sandbox\nttl = 1\n", 1 },
		{ "[sandbox \"x]\nttl = 1\n", 2 },
		{ "[sandbox \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]\n", 1 },
		{ "[sandbox]\nuser = a b\n", 2 },
	};
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;
	char want[64];
	size_t i;

	setup(&place);
	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		write_file(&place, "user/rsb/config", bad[i].text);
		ck_assert_int_lt(load(&place, NULL, NULL, &config, &diag), 0);
		(void)snprintf(want, sizeof(want), "user/rsb/config, line %u: ", bad[i].line);
		ck_assert_msg(strstr(diag.text, want), "case %zu: %s", i, diag.text);
	}
	teardown(&place);
}
END_TEST

START_TEST(refuses_a_line_that_would_be_cut)
{
	char text[400] = "[sandbox]\ntemplate = ";
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	memset(text + strlen(text), 'x', 178);
	write_file(&place, "user/rsb/config", text);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_uint_eq(strlen(config.sandbox.template), 178);
	rsb_config_done(&config);
	memset(text + strlen(text), 'x', 100);
	write_file(&place, "user/rsb/config", text);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "line 2: the line is too long"));
	teardown(&place);
}
END_TEST

START_TEST(refuses_bad_overrides)
{
	static const char *const bad[] = { "", "x", "sandbox.ttl", "ttl=1h", "=",
		".=", "+=", "sandbox.nonsense=1", "sandbox.ttl=x", "e2b.api_key=x" };
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;
	size_t i;

	setup(&place);
	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		ck_assert_int_lt(load(&place, bad[i], NULL, &config, &diag), 0);
		ck_assert_str_ne(diag.text, "");
	}
	teardown(&place);
}
END_TEST

START_TEST(finds_the_key_in_order_of_its_sources)
{
	char key_env[] = "E2B_API_KEY=from_env";
	char directory[128];
	char path[160];
	struct rsb_secret key;
	struct rsb_config config;
	struct rsb_diag diag;
	struct place place;

	setup(&place);
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), -ENOKEY);
	rsb_config_done(&config);

	place.env[1] = key_env;
	ck_assert_int_eq(load(&place, NULL, NULL, &config, &diag), 0);
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), 0);
	ck_assert_mem_eq(key.data, "from_env", key.size);

	write_file(&place, "user/rsb/credentials", "from_file\n");
	(void)snprintf(path, sizeof(path), "%s/user/rsb/credentials", place.dir);
	ck_assert_int_eq(chmod(path, 0644), 0);
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), -EACCES);
	ck_assert_int_eq(chmod(path, 0600), 0);
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), 0);
	ck_assert_mem_eq(key.data, "from_file", key.size);
	rsb_config_done(&config);

	ck_assert_int_eq(
		load(&place, "e2b.api_key_command=echo from_command", NULL, &config, &diag), 0);
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), 0);
	ck_assert_mem_eq(key.data, "from_command", key.size);
	rsb_config_done(&config);
	ck_assert_int_eq(load(&place, "e2b.api_key_command=false", NULL, &config, &diag), 0);
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), -ENOKEY);

	write_file(&place, "rsb-api-key", "from_systemd");
	(void)snprintf(directory, sizeof(directory), "CREDENTIALS_DIRECTORY=%s", place.dir);
	place.env[2] = directory;
	ck_assert_int_eq(rsb_config_api_key(&config, place.env, &key, &diag), 0);
	ck_assert_mem_eq(key.data, "from_systemd", key.size);
	rsb_config_done(&config);
	teardown(&place);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		has_built_in_values,
		lays_the_sources_over_each_other,
		reads_the_file_that_is_named,
		lets_a_named_section_count_for_its_sandbox,
		replaces_lists_and_adds_to_them,
		takes_nothing_harmful_from_a_project,
		takes_all_from_a_project_that_is_trusted_until_it_changes,
		forgets_the_oldest_trust_when_there_is_too_much,
		refuses_with_file_and_line,
		refuses_a_line_that_would_be_cut,
		refuses_bad_overrides,
		finds_the_key_in_order_of_its_sources,
	};

	return unit_run("config", tests, RSB_ARRAY_SIZE(tests));
}
