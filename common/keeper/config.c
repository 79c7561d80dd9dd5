/* SPDX-License-Identifier: MIT */
#include "keeper/config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/inifile.h"
#include "keeper/mountpoint.h"
#include "keeper/setting.h"
#include "keeper/state.h"
#include "keeper/trust.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/spawn.h"
#include "util/str.h"

#define SECTION "sandbox \""

const char *
rsb_config_getenv(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

void
rsb_config_done(struct rsb_config *config)
{
	rsb_setting_done(config);
}

/* ---- files ---- */

struct file {
	struct rsb_config *config;
	const char *sandbox; /* whose section counts in this pass; NULL: the plain ones */
	int untrusted;
	char *const *env;
};

/* -ENOENT: of another sandbox, or of none. */
static int
pick_section(
	const struct file *file, const struct rsb_inifile_entry *entry, const char **ret_section)
{
	const char *section = entry->section;
	size_t n = strlen(SECTION);
	size_t size;

	if (strncmp(section, SECTION, n) != 0) {
		*ret_section = section;
		return file->sandbox ? -ENOENT : 0;
	}
	section += n;
	size = strlen(section);
	if (size < 2 || section[size - 1] != '"')
		return -EINVAL;
	if (!file->sandbox || strlen(file->sandbox) != size - 1 ||
		strncmp(file->sandbox, section, size - 1) != 0)
		return -ENOENT;
	*ret_section = "sandbox";
	return 0;
}

static int
on_entry(void *arg, const struct rsb_inifile_entry *entry, struct rsb_diag *diag)
{
	const struct file *file = arg;
	struct rsb_setting setting = {
		.key = entry->key,
		.value = entry->value,
		.add = entry->add,
		.untrusted = file->untrusted,
	};
	int r;

	r = pick_section(file, entry, &setting.section);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return rsb_diag_set(diag, r, "[%s] is no section", entry->section);
	return rsb_setting_set(file->config, &setting, diag);
}

static int
load_file(const char *path, struct file *file, const char *sandbox, struct rsb_diag *diag)
{
	rsb_autofree char *root = NULL;
	rsb_autofree char *text = NULL;
	int r;

	r = rsb_fd_read_file(AT_FDCWD, path, RSB_CONFIG_FILE_MAX, &text);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot read %s: %s", path, rsb_diag_text(NULL, r));
	rsb_setting_source(file->config);
	/* Without a state directory nothing was trusted. */
	if (file->untrusted && rsb_state_root(file->env, &root, NULL) >= 0 &&
		rsb_trust_has(root, path, text))
		file->untrusted = 0;
	file->sandbox = NULL;
	r = rsb_inifile_parse(path, text, on_entry, file, diag);
	if (r < 0 || !sandbox)
		return r;
	file->sandbox = sandbox;
	return rsb_inifile_parse(path, text, on_entry, file, diag);
}

int
rsb_config_project(const char *dir, char **ret_path)
{
	rsb_autofree char *at = strdup(dir);
	char *slash;

	*ret_path = NULL;
	if (!at)
		return -ENOMEM;
	if (dir[0] != '/' || rsb_mountpoint_covers(dir))
		return 0;
	for (;;) {
		rsb_autofree char *path = rsb_str_path(at, ".rsb/config");
		rsb_autofree char *git = rsb_str_path(at, ".git");

		if (!path || !git)
			return -ENOMEM;
		if (access(path, F_OK) == 0) {
			*ret_path = rsb_steal(&path);
			return 0;
		}
		slash = strrchr(at, '/');
		if (!slash || access(git, F_OK) == 0)
			return 0;
		*slash = '\0';
	}
}

const char *
rsb_config_home(char *const *env)
{
	const char *home = rsb_config_getenv(env, "HOME");
	const struct passwd *user;

	if (home && home[0] == '/')
		return home;
	user = getpwuid(getuid());
	return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
}

static char *
user_file(char *const *env, const char *name)
{
	const char *base = rsb_config_getenv(env, "XDG_CONFIG_HOME");
	const char *home = rsb_config_home(env);

	if (base && base[0] == '/')
		return rsb_str_printf("%s/rsb/%s", base, name);
	return rsb_str_printf("%s/.config/rsb/%s", home ? home : "", name);
}

static int
load_files(const struct rsb_config_source *source, struct rsb_config *config, struct rsb_diag *diag)
{
	const char *named = rsb_config_getenv(source->env, "RSB_CONFIG");
	rsb_autofree char *etc = rsb_str_path(source->etc ? source->etc : "/etc", "rsb/config");
	rsb_autofree char *user =
		named && named[0] ? strdup(named) : user_file(source->env, "config");
	rsb_autofree char *project = NULL;
	struct file file = { .config = config, .env = source->env };
	int r;

	if (!etc || !user)
		return -ENOMEM;
	/* Whoever names one wants it. */
	if (named && named[0] && access(named, F_OK) < 0)
		return rsb_diag_set(diag, -errno, "RSB_CONFIG, which is %s, cannot be read: %s",
			named, strerror(errno));
	r = load_file(etc, &file, source->sandbox, diag);
	if (r < 0)
		return r;
	r = load_file(user, &file, source->sandbox, diag);
	if (r < 0 || !source->project_dir)
		return r;
	r = rsb_config_project(source->project_dir, &project);
	if (r < 0 || !project)
		return r;
	file.untrusted = 1;
	return load_file(project, &file, source->sandbox, diag);
}

/* ---- environment and options ---- */

static int
load_env(char *const *env, struct rsb_config *config, struct rsb_diag *diag)
{
	static const struct {
		const char *name;
		const char *key;
	} names[] = {
		{ "E2B_API_URL", "api_url" },
		{ "E2B_DOMAIN", "domain" },
		{ "E2B_SANDBOX_URL", "envd_url" },
		{ "RSB_API_URL", "api_url" },
		{ "RSB_DOMAIN", "domain" },
	};
	const char *key = rsb_config_getenv(env, "E2B_API_KEY");
	struct rsb_setting setting = { .section = "e2b" };
	struct rsb_diag why = { 0 };
	size_t i;
	int r;

	for (i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		setting.key = names[i].key;
		setting.value = rsb_config_getenv(env, names[i].name);
		if (!setting.value || !setting.value[0])
			continue;
		r = rsb_setting_set(config, &setting, &why);
		if (r < 0)
			return rsb_diag_set(diag, r, "%s: %s", names[i].name, why.text);
	}
	if (!key)
		return 0;
	free(config->e2b.api_key);
	config->e2b.api_key = strdup(key);
	return config->e2b.api_key ? 0 : -ENOMEM;
}

/* "section.key=value" or "section.key+=value". */
static int
load_override(const char *text, struct rsb_config *config, struct rsb_diag *diag)
{
	rsb_autofree char *copy = strdup(text);
	struct rsb_setting setting = { 0 };
	char *equals, *dot;

	if (!copy)
		return -ENOMEM;
	equals = strchr(copy, '=');
	if (equals)
		*equals = '\0';
	dot = strchr(copy, '.');
	if (!equals || !dot)
		return rsb_diag_set(diag, -EINVAL, "'%s' is no section.key=value", text);
	if (equals[-1] == '+') {
		setting.add = 1;
		equals[-1] = '\0';
	}
	*dot = '\0';
	setting.section = copy;
	setting.key = dot + 1;
	setting.value = equals + 1;
	return rsb_setting_set(config, &setting, diag);
}

int
rsb_config_check_override(const char *text, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	int r = rsb_setting_defaults(&config);

	rsb_setting_source(&config);
	return r < 0 ? r : load_override(text, &config, diag);
}

/* What depends on other values. */
static int
complete(const struct rsb_config_source *source, struct rsb_config *config)
{
	char **url = &config->e2b.api_url;
	char **credentials = &config->e2b.credentials;
	size_t n = strlen(*url);

	while (n > 0 && (*url)[n - 1] == '/')
		(*url)[--n] = '\0';
	if (n == 0) {
		free(*url);
		*url = rsb_str_printf("https://api.%s", config->e2b.domain);
	}
	if ((*credentials)[0] == '\0') {
		free(*credentials);
		*credentials = user_file(source->env, "credentials");
	}
	return *url && *credentials ? 0 : -ENOMEM;
}

int
rsb_config_load(const struct rsb_config_source *source, struct rsb_config *ret_config,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_config_done) struct rsb_config config = { 0 };
	size_t i;
	int r;

	r = rsb_setting_defaults(&config);
	if (r == 0)
		r = load_files(source, &config, diag);
	if (r == 0)
		r = load_env(source->env, &config, diag);
	rsb_setting_source(&config);
	for (i = 0; r == 0 && source->overrides && source->overrides[i]; i++)
		r = load_override(source->overrides[i], &config, diag);
	if (r == 0)
		r = complete(source, &config);
	if (r < 0)
		return r;
	*ret_config = config;
	config = (struct rsb_config){ 0 };
	return 0;
}

/* ---- the key ---- */

static int
take_key(char *text, struct rsb_secret *ret_key)
{
	size_t n = strcspn(text, "\r\n");
	int r;

	r = n > 0 ? rsb_secret_set(ret_key, text, n) : -ENOKEY;
	explicit_bzero(text, strlen(text));
	return r;
}

/* Refused when others can read it. -ENOENT. */
static int
key_file(const char *path, bool strict, struct rsb_secret *ret_key, struct rsb_diag *diag)
{
	rsb_autofree char *text = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	if (strict && (st.st_mode & 077))
		return rsb_diag_set(
			diag, -EACCES, "%s must not be readable by others: chmod 600", path);
	r = rsb_fd_read_file(AT_FDCWD, path, RSB_SECRET_MAX + 2, &text);
	return r < 0 ? r : take_key(text, ret_key);
}

static int
key_command(const char *command, struct rsb_secret *ret_key, struct rsb_diag *diag)
{
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = RSB_SECRET_MAX + 2 };
	rsb_autoclose int pid_fd = -1;
	rsb_autofree char *text = NULL;
	struct rsb_spawn spawn = { .argv = argv };
	pid_t pid;
	int fds[2];
	int r, status;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	spawn.stdio[0] = -1;
	spawn.stdio[1] = fds[1];
	spawn.stdio[2] = STDERR_FILENO;
	r = rsb_spawn(&spawn, &pid, &pid_fd);
	(void)close(fds[1]);
	if (r == 0) {
		r = rsb_fd_read_all(fds[0], &out);
		(void)close(fds[0]);
		status = rsb_spawn_wait(pid);
		if (r == 0 && status != 0)
			r = -ENOKEY;
	} else {
		(void)close(fds[0]);
	}
	if (r == 0) {
		text = rsb_buf_steal_str(&out);
		r = text ? take_key(text, ret_key) : -ENOMEM;
	}
	if (out.data)
		explicit_bzero(out.data, out.cap);
	return r < 0 ? rsb_diag_set(diag, r, "e2b.api_key_command gives no key") : 0;
}

int
rsb_config_api_key(const struct rsb_config *config, char *const *env, struct rsb_secret *ret_key,
	struct rsb_diag *diag)
{
	const char *directory = rsb_config_getenv(env, "CREDENTIALS_DIRECTORY");
	rsb_autofree char *path = NULL;
	int r;

	if (directory && directory[0] == '/') {
		path = rsb_str_path(directory, "rsb-api-key");
		/* systemd's own modes there are its business */
		r = path ? key_file(path, false, ret_key, diag) : -ENOMEM;
		if (r != -ENOENT)
			return r;
	}
	if (config->e2b.api_key_command[0])
		return key_command(config->e2b.api_key_command, ret_key, diag);
	r = key_file(config->e2b.credentials, true, ret_key, diag);
	if (r != -ENOENT && r != -ENOTDIR)
		return r;
	if (config->e2b.api_key[0])
		return rsb_secret_set(ret_key, config->e2b.api_key, strlen(config->e2b.api_key));
	return rsb_diag_set(diag, -ENOKEY, "no API key: set E2B_API_KEY, or write it to %s",
		config->e2b.credentials);
}
