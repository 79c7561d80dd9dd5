/* SPDX-License-Identifier: MIT */
#include "keeper/state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "keeper/config.h"
#include "keeper/snapstore.h"
#include "keeper/state-json.h"
#include "proto/auth.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/str.h"

#define RSB_LOG_MODULE "state"
#include "util/log.h"

#define FILE_MAX ((size_t)256 << 10)
#define LOCK_WAIT_NS (10 * RSB_NSEC_PER_SEC)
#define SOCKET_PATH_MAX 107
#define N_LOCK 3

static const char *const lock_names[N_LOCK] = {
	[RSB_STATE_LOCK] = "lock",
	[RSB_STATE_LOCK_DAEMON] = "daemon.lock",
	[RSB_STATE_LOCK_SYNC] = "sync.lock",
};

struct rsb_state_dir {
	char *path;
	char name[RSB_STATE_NAME_MAX + 1];
	int fd;
	int lock_fds[N_LOCK]; /* -1: not held */
};

bool
rsb_state_name_ok(const char *name)
{
	size_t n =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return n > 0 && n <= RSB_STATE_NAME_MAX && name[n] == '\0' && name[0] != '.' &&
	       name[0] != '-';
}

int
rsb_state_name_check(const char *name, struct rsb_diag *diag)
{
	return rsb_state_name_ok(name)
		       ? 0
		       : rsb_diag_set(diag, -EINVAL,
				 "'%s' cannot be the name of a sandbox: a name has 1 to 64 of A-Z a-z "
				 "0-9 . _ - and begins with none of '.' and '-'",
				 name);
}

void
rsb_state_name_of(const char *dir, char name[static RSB_STATE_NAME_MAX + 1])
{
	const char *base = strrchr(dir, '/');
	size_t n = 0;

	base = base ? base + 1 : dir;
	for (; *base && n < RSB_STATE_NAME_MAX; base++) {
		bool ok = isalnum((unsigned char)*base) || (n > 0 && strchr("._-", *base));

		if (ok || n > 0)
			name[n++] = ok ? *base : '-';
	}
	name[n] = '\0';
	if (n == 0)
		(void)strcpy(name, "sandbox");
}

static bool
has_snapshot(const char *root, const char *name)
{
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	rsb_autofree char *dir = rsb_str_path(root, name);

	if (!dir || rsb_snapstore_look(dir, &store, NULL) < 0)
		return false;
	for (size_t i = 0; i < rsb_snapstore_count(store); i++)
		if (rsb_snapstore_is_there(store, i))
			return true;
	return false;
}

int
rsb_state_say_gone(const char *root, const char *name, struct rsb_diag *diag)
{
	if (!has_snapshot(root, name))
		return rsb_diag_set(diag, -ENOENT,
			"the sandbox %s is gone, and there is no snapshot of it; 'rsb destroy %s' "
			"forgets it",
			name, name);
	return rsb_diag_set(diag, -ENOENT,
		"the sandbox %s is gone; 'rsb snapshot restore %s' makes another of its newest "
		"snapshot, 'rsb destroy %s' forgets it",
		name, name, name);
}

int
rsb_state_root(char *const *env, char **ret_root, struct rsb_diag *diag)
{
	const char *base = rsb_config_getenv(env, "XDG_STATE_HOME");
	const char *home = rsb_config_home(env);
	rsb_autofree char *root = NULL;
	int r;

	if (base && base[0] == '/')
		root = rsb_str_printf("%s/rsb", base);
	else if (home)
		root = rsb_str_printf("%s/.local/state/rsb", home);
	else
		return rsb_diag_set(
			diag, -ENOENT, "HOME is not set, and you have no home directory");
	if (!root)
		return -ENOMEM;
	r = rsb_fd_mkdir_parents(root, 0700);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot make %s: %s", root, rsb_diag_text(NULL, r));
	*ret_root = rsb_steal(&root);
	return 0;
}

/* ---- life ---- */

void
rsb_state_close(struct rsb_state_dir *dir)
{
	size_t i;

	if (!dir)
		return;
	for (i = 0; i < N_LOCK; i++)
		rsb_cleanup_close(&dir->lock_fds[i]);
	rsb_cleanup_close(&dir->fd);
	free(dir->path);
	free(dir);
}

int
rsb_state_open(const char *root, const char *name, bool create, struct rsb_state_dir **ret_dir,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;
	size_t i;
	int r;

	r = rsb_state_name_check(name, diag);
	if (r < 0)
		return r;
	dir = rsb_new(struct rsb_state_dir);
	if (!dir)
		return -ENOMEM;
	dir->fd = -1;
	for (i = 0; i < N_LOCK; i++)
		dir->lock_fds[i] = -1;
	strcpy(dir->name, name);
	dir->path = rsb_str_path(root, name);
	if (!dir->path)
		return -ENOMEM;
	if (create && mkdir(dir->path, 0700) < 0 && errno != EEXIST)
		return rsb_diag_set(diag, -errno, "cannot make %s: %s", dir->path, strerror(errno));
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return rsb_diag_set(diag, -errno,
			errno == ENOENT ? RSB_STATE_NO_SUCH : "cannot use the state of '%s'", name);
	*ret_dir = rsb_steal(&dir);
	return 0;
}

bool
rsb_state_is_there(const struct rsb_state_dir *dir)
{
	struct stat ours;
	struct stat there;

	return fstat(dir->fd, &ours) == 0 && lstat(dir->path, &there) == 0 &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

const char *
rsb_state_path(const struct rsb_state_dir *dir)
{
	return dir->path;
}

const char *
rsb_state_name(const struct rsb_state_dir *dir)
{
	return dir->name;
}

/* ---- locks ---- */

int
rsb_state_lock(struct rsb_state_dir *dir, enum rsb_state_lock lock, bool wait)
{
	rsb_autoclose int fd = -1;
	int r;

	if (dir->lock_fds[lock] >= 0)
		return 0;
	fd = openat(dir->fd, lock_names[lock], O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = rsb_fd_lock(fd, wait ? LOCK_WAIT_NS : RSB_FD_LOCK_PROBE_NS);
	if (r < 0)
		return r;
	dir->lock_fds[lock] = rsb_steal_fd(&fd);
	return 0;
}

void
rsb_state_unlock(struct rsb_state_dir *dir, enum rsb_state_lock lock)
{
	rsb_cleanup_close(&dir->lock_fds[lock]);
	dir->lock_fds[lock] = -1;
}

int
rsb_state_lock_fd(const struct rsb_state_dir *dir, enum rsb_state_lock lock)
{
	return dir->lock_fds[lock];
}

void
rsb_state_lock_move(struct rsb_state_dir *dir, enum rsb_state_lock lock, int fd)
{
	rsb_cleanup_close(&dir->lock_fds[lock]);
	dir->lock_fds[lock] = fd;
}

bool
rsb_state_has_daemon(struct rsb_state_dir *dir)
{
	rsb_autoclose int fd =
		openat(dir->fd, lock_names[RSB_STATE_LOCK_DAEMON], O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

/* ---- files ---- */

int
rsb_state_load(struct rsb_state_dir *dir, struct rsb_state *ret_state, struct rsb_diag *diag)
{
	rsb_autofree char *text = NULL;
	struct rsb_diag why = { 0 };
	int r;

	r = rsb_fd_read_file(dir->fd, "state.json", FILE_MAX, &text);
	if (r == -ENOENT)
		return rsb_diag_set(diag, r, RSB_STATE_NO_SUCH, dir->name);
	if (r == 0)
		r = rsb_state_read(rsb_bytes_str(text), ret_state, &why);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot read %s/state.json: %s", dir->path,
			rsb_diag_text(&why, r));
	return 0;
}

int
rsb_state_save(struct rsb_state_dir *dir, const struct rsb_state *state)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	r = rsb_state_write(state, &text);
	if (r < 0)
		return r;
	return rsb_fd_replace_file(dir->fd, "state.json", rsb_buf_view(&text), 0600);
}

int
rsb_state_say_unwritten(const struct rsb_state_dir *dir, int r, struct rsb_diag *diag)
{
	return rsb_diag_set(diag, r, "the state in %s cannot be written: %s", dir->path,
		rsb_diag_text(NULL, r));
}

int
rsb_state_remove(struct rsb_state_dir *dir)
{
	rsb_autoclosedir DIR *entries = NULL;
	struct dirent *entry;
	int fd;

	/* a create whose end is unknown: by this directory alone its sandbox is found again */
	if (faccessat(dir->fd, "intent", F_OK, 0) == 0)
		return -EBUSY;
	/* the state first: what is interrupted after it is no sandbox any more */
	if (unlinkat(dir->fd, "state.json", 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	entries = fd < 0 ? NULL : fdopendir(fd);
	if (!entries)
		return -errno;
	while ((entry = readdir(entries)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			unlinkat(dir->fd, entry->d_name, 0) < 0 && errno != ENOENT)
			return -errno;
	return rmdir(dir->path) < 0 && errno != ENOENT ? -errno : 0;
}

int
rsb_state_key(struct rsb_state_dir *dir, struct rsb_secret *ret_key)
{
	char hex[2 * RSB_AUTH_KEY_SIZE + 1];
	rsb_autofree char *text = NULL;
	struct rsb_secret key = { .size = RSB_AUTH_KEY_SIZE };
	int r;

	r = rsb_fd_read_file(dir->fd, "key", sizeof(hex), &text);
	if (r == 0)
		r = rsb_str_unhex(rsb_bytes_str(text), key.data, key.size);
	if (text)
		explicit_bzero(text, strlen(text));
	if (r == -ENOENT) {
		r = rsb_secret_generate(&key, RSB_AUTH_KEY_SIZE);
		if (r < 0)
			return r;
		rsb_str_hex(key.data, key.size, hex);
		r = rsb_fd_replace_file(dir->fd, "key", rsb_bytes_str(hex), 0600);
		explicit_bzero(hex, sizeof(hex));
	}
	if (r == 0)
		*ret_key = key;
	rsb_secret_done(&key);
	return r;
}

int
rsb_state_intent_begin(struct rsb_state_dir *dir, char ret_intent[static RSB_INTENT_SIZE + 1])
{
	uint8_t bytes[RSB_INTENT_SIZE / 2];
	int r;

	r = rsb_random(bytes, sizeof(bytes));
	if (r < 0)
		return r;
	rsb_str_hex(bytes, sizeof(bytes), ret_intent);
	return rsb_fd_replace_file(dir->fd, "intent", rsb_bytes_str(ret_intent), 0600);
}

int
rsb_state_intent_pending(struct rsb_state_dir *dir, char ret_intent[static RSB_INTENT_SIZE + 1])
{
	rsb_autofree char *text = NULL;
	int r;

	r = rsb_fd_read_file(dir->fd, "intent", RSB_INTENT_SIZE, &text);
	if (r < 0)
		return r;
	if (strlen(text) != RSB_INTENT_SIZE || text[strspn(text, "0123456789abcdef")] != '\0')
		return -EBADMSG;
	strcpy(ret_intent, text);
	return 0;
}

int
rsb_state_intent_end(struct rsb_state_dir *dir)
{
	return unlinkat(dir->fd, "intent", 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* ---- socket and events ---- */

static int
short_socket(const struct rsb_state_dir *dir, char **ret_path, struct rsb_diag *diag)
{
	rsb_autofree char *base = rsb_str_printf("/tmp/rsb-%u", (unsigned int)geteuid());
	uint8_t digest[RSB_SHA256_SIZE];
	char hex[17];
	int r;

	if (!base)
		return -ENOMEM;
	r = rsb_fd_open_own_dir(base);
	if (r < 0)
		return rsb_diag_set(diag, r,
			"%s, where sockets with long paths go, cannot be used: %s", base,
			rsb_diag_text(NULL, r));
	(void)close(r);
	rsb_sha256(rsb_bytes_str(dir->path), digest);
	rsb_str_hex(digest, 8, hex);
	*ret_path = rsb_str_printf("%s/%s.sock", base, hex);
	return *ret_path ? 0 : -ENOMEM;
}

int
rsb_state_socket(const struct rsb_state_dir *dir, char **ret_path, struct rsb_diag *diag)
{
	rsb_autofree char *path = rsb_str_path(dir->path, "socket");

	if (!path)
		return -ENOMEM;
	if (strlen(path) > SOCKET_PATH_MAX)
		return short_socket(dir, ret_path, diag);
	*ret_path = rsb_steal(&path);
	return 0;
}

/* A sandbox that drops every connection at once makes some lines each time. */
static int
make_room_for_event(const struct rsb_state_dir *dir)
{
	struct stat st;

	if (fstatat(dir->fd, RSB_STATE_EVENTS, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_size < (off_t)RSB_STATE_EVENTS_MAX)
		return 0;
	return renameat(dir->fd, RSB_STATE_EVENTS, dir->fd, RSB_STATE_EVENTS_OLD) < 0 ? -errno : 0;
}

static int
write_event(struct rsb_state_dir *dir, const char *kind, const char *text)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf line = { 0 };
	rsb_autoclose int fd = -1;
	char now[RSB_RFC3339_SIZE];
	int r;

	if (!json)
		return -ENOMEM;
	rsb_clock_rfc3339(rsb_wall_ns(), now);
	r = rsb_json_set_str(json, "time", now);
	if (r == 0)
		r = rsb_json_set_str(json, "kind", kind);
	if (r == 0)
		r = rsb_json_set_str(json, "text", text);
	if (r == 0)
		r = rsb_json_write(json, false, &line);
	if (r == 0)
		r = rsb_buf_append(&line, "\n", 1);
	if (r < 0)
		return r;
	r = make_room_for_event(dir);
	if (r < 0)
		return r;
	fd = openat(dir->fd, RSB_STATE_EVENTS,
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* one write: two writers never mix their lines */
	return rsb_fd_write_full(fd, rsb_buf_head(&line), rsb_buf_len(&line));
}

void
rsb_state_event(struct rsb_state_dir *dir, const char *kind, const char *text)
{
	int r = write_event(dir, kind, text);

	if (r < 0)
		(void)rsb_warn_r(r, "event is not written (%s)", kind);
}
