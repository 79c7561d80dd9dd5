/* SPDX-License-Identifier: MIT */
#include "keeper/deploy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/config.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/hash.h"
#include "util/str.h"

#define START_NS (30 * RSB_NSEC_PER_SEC)
#define OUTPUT_MAX 4096
#define DEFAULT_USER "user"
#define NOT_THERE 127
#define ELF_MAGIC "\177ELF"

/*
 * $0: the program's place, $1: what was uploaded for it or nothing, then the program's
 * arguments. An upload is not atomic, so it gets its name only when it is whole. An agent that
 * does not know of Content-Encoding has stored it compressed. A sidecar of ours that runs already
 * serves another key or nobody, and must be gone before the next one opens its journal.
 */
static const char script[] =
	"d=${0%/*}; part=$1; shift\n"
	"if [ -n \"$part\" ] && gzip -t <\"$part\" 2>/dev/null; then\n"
	"  gzip -dc <\"$part\" >\"$part.x\" && mv -f \"$part.x\" \"$part\" || exit 126\n"
	"fi\n"
	"if [ -n \"$part\" ]; then chmod 755 \"$part\" && mv -f \"$part\" \"$0\" || exit 126; fi\n"
	"[ -x \"$0\" ] || exit 127\n"
	"old=\n"
	"for p in /proc/[0-9]*; do\n"
	"  case $(readlink \"$p/exe\" 2>/dev/null) in\n"
	"  \"$d\"/rsb-sidecar-*) old=\"$old ${p#/proc/}\";;\n"
	"  esac\n"
	"done\n"
	"gone() { n=0; while kill -0 $old && [ $n -lt 20 ]; do sleep 0.1; n=$((n+1)); done; }\n"
	"if [ -n \"$old\" ]; then kill $old; gone; kill -9 $old && gone; fi 2>/dev/null\n"
	"exec \"$0\" \"$@\"\n";

struct start {
	const struct rsb_deploy *deploy;
	char ready[32];
	struct rsb_buf out;
	struct rsb_buf err;
	struct rsb_diag *diag;
};

static int
on_started(void *arg, uint64_t pid)
{
	struct start *start = arg;
	const struct rsb_deploy *deploy = start->deploy;
	const struct rsb_bytes key = { .data = deploy->key->data, .size = deploy->key->size };
	struct rsb_diag why = { 0 };
	int r;

	r = deploy->backend->ops->input(deploy->backend, deploy->sandbox, pid, key, &why);
	/* nobody to give it to: the script may have ended already, and its status says why */
	if (r == 0 || r == -EINVAL || r == -EREMOTEIO)
		return 0;
	return rsb_diag_set(start->diag, r, "%s", rsb_diag_text(&why, r));
}

static int
on_output(void *arg, bool is_stderr, struct rsb_bytes data)
{
	struct start *start = arg;
	struct rsb_buf *buf = is_stderr ? &start->err : &start->out;
	size_t n = strlen(start->ready);

	/* the sandbox may say more than we care to hear */
	data.size = rsb_min(data.size, OUTPUT_MAX - rsb_buf_len(buf));
	if (rsb_buf_append(buf, data.data, data.size) < 0)
		return -ENOMEM;
	if (is_stderr || rsb_buf_len(buf) == 0)
		return 0;
	return memmem(rsb_buf_head(buf), rsb_buf_len(buf), start->ready, n) != NULL;
}

/* The sandbox's words, shown to a person: the last line, visible characters only. */
static void
last_line(const struct rsb_buf *buf, char *out, size_t size)
{
	const char *text = (const char *)rsb_buf_head(buf);
	size_t end = rsb_buf_len(buf);
	size_t begin;
	size_t n = 0;

	while (end > 0 && text[end - 1] == '\n')
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n'; begin--)
		;
	for (; begin < end && n + 1 < size; begin++)
		out[n++] = text[begin] >= ' ' && text[begin] <= '~' ? text[begin] : '?';
	out[n] = '\0';
}

static int
say_end(const struct start *start, const struct rsb_backend_end *end)
{
	char text[160];

	last_line(&start->err, text, sizeof(text));
	if (strstr(text, "in use"))
		return rsb_diag_set(start->diag, -EADDRINUSE,
			"port %u of the sandbox is taken by another program", start->deploy->port);
	if (end->exited && end->code == 126)
		return rsb_diag_set(start->diag, -ENOEXEC,
			"the sidecar cannot be run in the sandbox%s%s", text[0] ? ": " : "", text);
	return rsb_diag_set(start->diag, -EPROTO, "the sidecar did not start (%s %d)%s%s",
		end->exited ? "status" : "signal", end->code, text[0] ? ": " : "", text);
}

/* 1: the program is not there. */
static int
try_start(
	const struct rsb_deploy *deploy, const char *path, const char *part, struct rsb_diag *diag)
{
	const char *user = deploy->user[0] ? deploy->user : DEFAULT_USER;
	char port[8];
	const char *const argv[] = { "/bin/sh", "-c", script, path, part, "--port", port,
		"--workspace", deploy->workspace, "--user", user, "--key-fd", "0", NULL };
	struct start start = { .deploy = deploy, .diag = diag };
	const struct rsb_backend_start req = {
		.user = "root",
		.argv = argv,
		.cwd = "/",
		.started = on_started,
		.output = on_output,
		.arg = &start,
		.timeout_ns = START_NS,
	};
	struct rsb_backend_end end = { 0 };
	int r;

	(void)snprintf(port, sizeof(port), "%u", deploy->port & UINT16_MAX);
	(void)snprintf(start.ready, sizeof(start.ready), "ready %s\n", port);
	rsb_buf_init(&start.out, OUTPUT_MAX);
	rsb_buf_init(&start.err, OUTPUT_MAX);
	r = deploy->backend->ops->start(deploy->backend, deploy->sandbox, &req, &end, diag);
	if (r > 0)
		r = 0;
	else if (r == 0 && end.exited && end.code == NOT_THERE && !part[0])
		r = 1;
	else if (r == 0)
		r = say_end(&start, &end);
	rsb_buf_done(&start.out);
	rsb_buf_done(&start.err);
	return r;
}

static int
upload(const struct rsb_deploy *deploy, int fd, const char *path, char **ret_part,
	struct rsb_diag *diag)
{
	rsb_autofree char *part = NULL;
	uint8_t random[8];
	char hex[17];
	int r;

	r = rsb_random(random, sizeof(random));
	if (r < 0)
		return r;
	rsb_str_hex(random, sizeof(random), hex);
	part = rsb_str_printf("%s.%s", path, hex);
	if (!part)
		return -ENOMEM;
	r = deploy->backend->ops->upload(deploy->backend, deploy->sandbox, part, fd, diag);
	if (r == -ENOSPC)
		return rsb_diag_set(diag, r, "the sandbox's disk is full");
	if (r < 0)
		return r;
	*ret_part = rsb_steal(&part);
	return 0;
}

int
rsb_deploy(const struct rsb_deploy *deploy, struct rsb_diag *diag)
{
	uint8_t digest[RSB_SHA256_SIZE];
	char hex[17];
	rsb_autofree char *path = NULL;
	rsb_autofree char *part = NULL;
	rsb_autoclose int fd = open(deploy->sidecar, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return rsb_diag_set(
			diag, -errno, "cannot read %s: %s", deploy->sidecar, strerror(errno));
	r = rsb_sha256_fd(fd, digest);
	if (r < 0)
		return r;
	rsb_str_hex(digest, 8, hex);
	path = rsb_str_printf("%s/rsb-sidecar-%s", deploy->runtime_dir, hex);
	if (!path)
		return -ENOMEM;
	r = try_start(deploy, path, "", diag);
	if (r <= 0)
		return r;
	r = upload(deploy, fd, path, &part, diag);
	if (r < 0)
		return r;
	return try_start(deploy, path, part, diag);
}

/* One that is named, perhaps by mistake; what we find ourselves is ours. */
static int
check_program(const char *path, struct rsb_diag *diag)
{
	/* It may be a FIFO. */
	rsb_autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char magic[sizeof(ELF_MAGIC) - 1];
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return rsb_diag_set(diag, -errno, "RSB_SIDECAR, which is %s, cannot be read: %s",
			path, strerror(errno));
	if (!S_ISREG(st.st_mode) || rsb_fd_read_full(fd, magic, sizeof(magic), &n) < 0 ||
		n < sizeof(magic) || memcmp(magic, ELF_MAGIC, sizeof(magic)) != 0)
		return rsb_diag_set(
			diag, -ENOEXEC, "RSB_SIDECAR, which is %s, is no program", path);
	return 0;
}

int
rsb_deploy_find(char *const *env, char **ret_path, struct rsb_diag *diag)
{
	static const char *const places[] = { "rsb-sidecar", "../sidecar/rsb-sidecar",
		"../libexec/rsb/rsb-sidecar", "../lib/rsb/rsb-sidecar" };
	const char *named = rsb_config_getenv(env, "RSB_SIDECAR");
	char self[PATH_MAX];
	ssize_t n;
	size_t i;
	int r;

	if (named && named[0]) {
		r = check_program(named, diag);
		if (r < 0)
			return r;
		*ret_path = strdup(named);
		return *ret_path ? 0 : -ENOMEM;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return -errno;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < RSB_ARRAY_SIZE(places); i++) {
		rsb_autofree char *path = rsb_str_path(self, places[i]);

		if (!path)
			return -ENOMEM;
		if (access(path, R_OK) == 0) {
			*ret_path = rsb_steal(&path);
			return 0;
		}
	}
	return rsb_diag_set(diag, -ENOENT, "rsb-sidecar is not installed beside %s", self);
}
