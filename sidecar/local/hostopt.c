/* SPDX-License-Identifier: MIT */
#include "sidecar/local/hostopt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/optlong.h"
#include "util/str.h"

#include "sidecar/local/sandboxes.h"

#define DISK_MIN ((uint64_t)16 << 20)

const char rsb_hostopt_usage[] =
	"Usage: rsb-local [OPTION]...\n"
	"Serve sandboxes made of Linux namespaces on this machine, as E2B does.\n"
	"\n"
	"      --listen ADDR:PORT   where to listen (default: 127.0.0.1:0, any free port)\n"
	"      --state DIR          for the lock and the disk images, mode 0700\n"
	"      --disk SIZE          what a sandbox may write, at least 16M (default: in memory)\n"
	"      --idle TIME          end when nothing was done for so long\n"
	"      --port-file FILE     written when connections are taken: JSON with port and pid\n"
	"      --api-key-file FILE  the one key that is taken (default: any)\n"
	"      --envd PATH          rsb-envd (default: the one that was installed with it)\n"
	"      --max NUMBER         sandboxes at a time, 1 to 100 (default: 16)\n"
	"      --session-cap TIME   for tests: no sandbox runs longer without a pause\n"
	"      --no-idmap           for tests: as if nothing had idmapped mounts\n"
	"  -v, --verbose            a line for each request and sandbox\n"
	"      --help, --version\n";

enum {
	OPT_LISTEN = 256,
	OPT_STATE,
	OPT_DISK,
	OPT_IDLE,
	OPT_PORT_FILE,
	OPT_KEY,
	OPT_ENVD,
	OPT_MAX,
	OPT_CAP,
	OPT_NO_IDMAP
};

static const struct option longs[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "disk", required_argument, NULL, OPT_DISK },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "port-file", required_argument, NULL, OPT_PORT_FILE },
	{ "api-key-file", required_argument, NULL, OPT_KEY },
	{ "envd", required_argument, NULL, OPT_ENVD },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "session-cap", required_argument, NULL, OPT_CAP },
	{ "no-idmap", no_argument, NULL, OPT_NO_IDMAP },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int
read_listen(const char *text, struct sockaddr_in *ret_addr)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	rsb_autofree char *host = rsb_str_dup(rsb_bytes_str(text));
	char *colon = host ? strrchr(host, ':') : NULL;
	uint64_t port;

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &addr.sin_addr) != 1)
		return -EINVAL;
	if (rsb_str_u64(colon + 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	addr.sin_port = htons((uint16_t)port);
	*ret_addr = addr;
	return 0;
}

/* Absolute: those who use it, monitors of sandboxes too, work in other directories. */
static int
copy_path(char out[static PATH_MAX], const char *path)
{
	rsb_autofree char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
	int n;

	if (path[0] == '\0')
		return -EINVAL;
	if (path[0] != '/' && !cwd)
		return -errno;
	n = snprintf(out, PATH_MAX, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static const char *
name_of(int opt)
{
	const struct option *o = longs;

	while (o->name && o->val != opt)
		o++;
	return o->name;
}

static int
read_key(const char *path, struct rsb_secret *key)
{
	rsb_autofree char *text = NULL;
	size_t n;
	int r = rsb_fd_read_file(AT_FDCWD, path, RSB_SECRET_MAX, &text);

	if (r < 0)
		return r;
	n = strcspn(text, "\r\n");
	r = n ? rsb_secret_set(key, text, n) : -EINVAL;
	explicit_bzero(text, strlen(text));
	return r;
}

static int
read_one(int opt, const char *value, struct rsb_hostopt *o, struct rsb_diag *diag)
{
	uint64_t number = 0;
	int r = 0;

	switch (opt) {
	case OPT_LISTEN:
		r = read_listen(value, &o->listen);
		break;
	case OPT_STATE:
		r = copy_path(o->state_dir, value);
		break;
	case OPT_DISK:
		r = rsb_str_size(value, &o->disk_size);
		if (r == 0 && o->disk_size < DISK_MIN)
			r = -EINVAL;
		break;
	case OPT_IDLE:
		r = rsb_str_duration(value, &o->idle_ns);
		break;
	case OPT_CAP:
		r = rsb_str_duration(value, &o->cap_ns);
		break;
	case OPT_PORT_FILE:
		o->port_file = value;
		break;
	case OPT_KEY:
		r = read_key(value, &o->api_key);
		break;
	case OPT_ENVD:
		r = copy_path(o->envd, value);
		break;
	case OPT_MAX:
		r = rsb_str_u64(value, RSB_SANDBOXES_MAX, &number);
		o->max = (size_t)number;
		if (number == 0)
			r = -EINVAL;
		break;
	case OPT_NO_IDMAP:
		o->no_idmap = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'h':
		o->help = true;
		break;
	case 'V':
		o->version = true;
		break;
	default:
		return -EINVAL; /* which was said */
	}
	if (r < 0)
		return rsb_diag_set(diag, -EINVAL, "--%s cannot be '%s': %s", name_of(opt), value,
			rsb_diag_text(NULL, r));
	return 0;
}

/* $XDG_RUNTIME_DIR/rsb/local, else a directory of this user's in /tmp. */
static int
default_state(char out[static PATH_MAX], struct rsb_diag *diag)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	/* It is not ours to make: under su it may be another user's, or of a session that ended. */
	if (runtime && runtime[0] == '/' &&
		(stat(runtime, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
		return rsb_diag_set(diag, -EINVAL,
			"XDG_RUNTIME_DIR, which is %s, is no directory of yours: name one by --state",
			runtime);
	if (runtime && runtime[0] == '/')
		n = snprintf(out, PATH_MAX, "%s/rsb/local", runtime);
	else
		n = snprintf(out, PATH_MAX, "/tmp/rsb-%u/local", getuid());
	if (n < 0 || n >= PATH_MAX)
		return rsb_diag_set(diag, -EINVAL, "XDG_RUNTIME_DIR is too long");
	return 0;
}

/* Beside this program (a build's neighbour folder too), else where it is installed. */
static int
find_envd(char out[static PATH_MAX])
{
	static const char *const places[] = { "rsb-envd", "../envd/rsb-envd",
		"../libexec/rsb/rsb-envd", "../libexec/rsb-envd" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < RSB_ARRAY_SIZE(places); i++) {
		int len = snprintf(out, PATH_MAX, "%s/%s", self, places[i]);

		if (len > 0 && len < PATH_MAX && access(out, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int
fill_defaults(struct rsb_hostopt *o, struct rsb_diag *diag)
{
	int r = o->state_dir[0] == '\0' ? default_state(o->state_dir, diag) : 0;

	if (r < 0)
		return r;
	if (o->envd[0] == '\0' && find_envd(o->envd) < 0)
		return rsb_diag_set(diag, -EINVAL, "rsb-envd was not found; name it with --envd");
	return 0;
}

int
rsb_hostopt_read(int argc, char *argv[], struct rsb_hostopt *ret_options, struct rsb_diag *diag)
{
	struct rsb_hostopt o = { .max = RSB_HOSTOPT_SANDBOXES };
	int opt, r;

	o.listen.sin_family = AF_INET;
	o.listen.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while ((opt = rsb_optlong(argc, argv, "vhV", longs, diag)) != -1) {
		r = read_one(opt, optarg, &o, diag);
		if (r < 0)
			return r;
	}
	if (optind < argc)
		return rsb_diag_set(diag, -EINVAL, "'%s' is not an option", argv[optind]);
	if (!o.help && !o.version) {
		r = fill_defaults(&o, diag);
		if (r < 0)
			return r;
	}
	*ret_options = o;
	return 0;
}

void
rsb_hostopt_done(struct rsb_hostopt *o)
{
	rsb_secret_done(&o->api_key);
}
