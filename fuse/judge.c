/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "judge"

#include "fuse/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/gitplace.h"
#include "fuse/gitway.h"
#include "fuse/seen.h"
#include "fuse/wrote.h"
#include "keeper/gitcopy.h"
#include "keeper/gitnames.h"
#include "keeper/gitview.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/str.h"

struct rsb_judge {
	char *trust_file;
	struct rsb_gitcopy *trust;
	uint64_t saved; /* version of trust */
	struct rsb_held_set held;
};

int
rsb_judge_new(const char *trust_file, struct rsb_judge **ret_judge)
{
	RSB_CLEANUP(rsb_judge_freep) struct rsb_judge *judge = rsb_new(struct rsb_judge);
	int r;

	if (!judge)
		return -ENOMEM;
	rsb_held_init(&judge->held);
	r = rsb_gitcopy_new(&judge->trust);
	if (r < 0)
		return r;
	if (trust_file) {
		judge->trust_file = strdup(trust_file);
		if (!judge->trust_file)
			return -ENOMEM;
		/* Without it everything is as if never trusted, which is safe. */
		r = rsb_gitcopy_load(judge->trust, trust_file);
		if (r < 0)
			rsb_warn_r(r, "what was trusted cannot be read from '%s'", trust_file);
	}
	judge->saved = rsb_gitcopy_version(judge->trust);
	*ret_judge = rsb_steal(&judge);
	return 0;
}

void
rsb_judge_free(struct rsb_judge *judge)
{
	if (!judge)
		return;
	rsb_held_done(&judge->held);
	rsb_gitcopy_free(judge->trust);
	free(judge->trust_file);
	free(judge);
}

/* ---- judging ---- */

/* One file at one of its places. */
struct question {
	struct rsb_fs *fs;
	struct rsb_gitplace place;
	struct rsb_gitallow what;
	struct rsb_bytes trusted;
	struct rsb_buf path; /* a C string; empty: not known */
};

static void
question_done(struct question *q)
{
	rsb_buf_done(&q->path);
}

static const char *
path_of(const struct question *q)
{
	return (const char *)rsb_buf_head(&q->path);
}

static void
ask(struct question *q, struct rsb_fs *fs, const struct rsb_inode *inode, struct rsb_bytes text)
{
	int depth = rsb_seen_depth(inode);

	q->fs = fs;
	q->what = (struct rsb_gitallow){
		.kind = q->place.kind,
		.text = text,
		.place = {
			.workspace = fs->workspace ? fs->workspace : "",
			.mountpoint = fs->config.mountpoint,
			.depth = depth < 0 ? 0 : (size_t)depth,
		},
		.id_size = rsb_gitnames_id_size(rsb_gitplace_formats(fs->inodes)),
	};
	/* What has no path was never trusted, and cannot be. */
	if (!q->place.dir || rsb_seen_path(q->place.dir, q->place.name, &q->path) < 0)
		rsb_buf_clear(&q->path);
	if (rsb_buf_len(&q->path))
		q->what.path = path_of(q);
	if (q->what.path && rsb_gitcopy_get(fs->judge->trust, path_of(q), &q->trusted))
		q->what.trusted = &q->trusted;
}

/*
 * A file there is written by what is meant to write it. Elsewhere it may come out of a commit that
 * the sandbox made: git checks out whatever does not lie below .git, and names files of refs and
 * their logs after branches, which may spell a repository.
 */
static bool
is_own_place(const char *path)
{
	bool is_own = false;
	size_t n;

	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n == 4 && strncmp(path, ".git", n) == 0)
			is_own = true;
		else if (is_own && n == 4 &&
			 (strncmp(path, "refs", n) == 0 || strncmp(path, "logs", n) == 0))
			return false;
	}
	return is_own;
}

/* What a local program wrote there, and nowhere else, and what the sandbox has not put there. */
static bool
get_own(const struct question *q, const struct rsb_inode *inode, struct rsb_bytes *ret_text)
{
	return rsb_buf_len(&q->path) && is_own_place(path_of(q)) && rsb_gitplace_is_sure(inode) &&
	       rsb_gitplace_is_sure(q->place.dir) && rsb_wrote_at(inode, path_of(q), ret_text) &&
	       ret_text->size <= RSB_GITALLOW_MAX &&
	       rsb_writer_means_it(rsb_wrote_by(inode), q->place.kind);
}

/* It may be the user's own, or accepted. */
static bool
may_be_trusted(int verdict)
{
	return verdict == RSB_GITALLOW_HELD || verdict == RSB_GITALLOW_REFUSED;
}

static void
trust(struct question *q, struct rsb_bytes text)
{
	int r;

	if (!rsb_buf_len(&q->path))
		return;
	r = rsb_gitcopy_put(q->fs->judge->trust, path_of(q), text);
	q->what.trusted = NULL;
	if (r < 0)
		rsb_warn_r(r, "'%s' cannot be trusted", path_of(q));
}

/* Served as it is, with all that was trusted in it: the next time this is the last copy. */
static void
renew_trust(struct question *q)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { .max = RSB_GITALLOW_MAX };
	struct rsb_gitallow reverse = q->what;
	char why[RSB_GITALLOW_WHY_MAX];

	if (!q->what.trusted || q->what.kind != RSB_GIT_CONFIG)
		return;
	reverse.text = q->trusted;
	reverse.trusted = &q->what.text;
	if (rsb_gitallow_judge(&reverse, &view, why) == RSB_GITALLOW_AS_IS &&
		(q->trusted.size != q->what.text.size ||
			memcmp(q->trusted.data, q->what.text.data, q->trusted.size) != 0))
		trust(q, q->what.text);
}

static void
note_held(struct question *q, const char *why, bool acceptable)
{
	struct rsb_judge *judge = q->fs->judge;
	const char *path = rsb_buf_len(&q->path) ? path_of(q) : NULL;
	const char *name = path ? path : (q->place.name ? q->place.name : "?");
	rsb_autofree char *quoted = NULL;

	if (path && !rsb_held_add(&judge->held, path, why, acceptable ? &q->what.text : NULL))
		return;
	quoted = rsb_str_quote(name);
	rsb_warn("held back from git here: %s, for: %s", quoted ? quoted : "?", why);
}

/* The answer for one place: a verdict, and a view unless it is "as is". */
static int
answer(struct question *q, const struct rsb_inode *inode, struct rsb_buf *view)
{
	char why[RSB_GITALLOW_WHY_MAX];
	struct rsb_bytes own;
	int r;

	r = rsb_gitallow_judge(&q->what, view, why);
	if (may_be_trusted(r) && get_own(q, inode, &own) && own.size == q->what.text.size &&
		(!own.size || memcmp(own.data, q->what.text.data, own.size) == 0)) {
		rsb_buf_clear(view);
		trust(q, own);
		r = RSB_GITALLOW_AS_IS;
	}
	if (may_be_trusted(r) || r == RSB_GITALLOW_DENIED)
		note_held(q, why, may_be_trusted(r) && q->what.text.size <= RSB_GITALLOW_MAX);
	else if (r >= 0 && rsb_buf_len(&q->path))
		rsb_held_remove(&q->fs->judge->held, path_of(q));
	if (r == RSB_GITALLOW_AS_IS)
		renew_trust(q);
	return r;
}

static int
judge_place(struct question *q, const struct rsb_inode *inode, struct rsb_buf *view,
	struct rsb_verdict *verdict)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf other = { .max = 2 * RSB_GITALLOW_MAX };
	int r;

	r = answer(q, inode, &other);
	if (r < 0)
		return r;
	if (!q->place.dir ||
		(q->place.kind == RSB_GIT_HOOK && r == RSB_GITALLOW_HELD && !q->what.trusted))
		verdict->no_exec = true;
	if (q->place.kind == RSB_GIT_CONFIG)
		rsb_gitplace_note_formats(q->fs->inodes,
			rsb_gitnames_formats(
				r == RSB_GITALLOW_AS_IS ? q->what.text : rsb_buf_view(&other)));
	verdict->denied |= r == RSB_GITALLOW_DENIED || r == RSB_GITALLOW_REFUSED;
	/* Where it is in two repositories, the first that objects decides. */
	if (r == RSB_GITALLOW_AS_IS || verdict->denied || verdict->changed)
		return 0;
	verdict->changed = true;
	return rsb_buf_append(view, rsb_buf_head(&other), rsb_buf_len(&other));
}

/* Git goes where given says, as it is at each place. */
static void
note_leads(struct rsb_fs *fs, const struct rsb_inode *inode, struct rsb_bytes given)
{
	struct rsb_gitplace place;
	struct rsb_bytes path;
	size_t cursor = 0;

	while (rsb_gitplace_next(inode, &cursor, &place)) {
		if (place.dir && rsb_gitallow_pointer(place.kind, given, &path))
			rsb_gitway_lead(place.dir, fs->config.mountpoint, path);
	}
}

int
rsb_judge_text(struct rsb_fs *fs, const struct rsb_inode *inode, struct rsb_bytes text,
	struct rsb_buf *view, struct rsb_verdict *ret_verdict)
{
	struct rsb_verdict verdict = { .changed = false };
	struct rsb_gitplace place;
	unsigned int kinds = 0;
	size_t cursor = 0;
	int r = 0;

	while (r >= 0 && rsb_gitplace_next(inode, &cursor, &place)) {
		RSB_CLEANUP(question_done) struct question q = { .place = place };

		ask(&q, fs, inode, text);
		r = judge_place(&q, inode, view, &verdict);
		kinds |= 1U << place.kind;
	}
	/* What is harmless as one may be anything as the other, but for nothing at all. */
	if (verdict.changed && kinds & (kinds - 1))
		rsb_buf_clear(view);
	if (r < 0)
		return r;
	note_leads(fs, inode, verdict.changed ? rsb_buf_view(view) : text);
	*ret_verdict = verdict;
	return 0;
}

void
rsb_judge_refuse(struct rsb_fs *fs, const struct rsb_inode *inode, const char *why)
{
	const struct rsb_inode *dir = rsb_inode_by_nodeid(fs->inodes, inode->parent);
	RSB_CLEANUP(question_done)
	struct question q = {
		.place = { .kind = RSB_GIT_NONE,
			.dir = inode->name ? dir : NULL,
			.name = inode->name },
	};

	ask(&q, fs, inode, (struct rsb_bytes){ 0 });
	note_held(&q, why, false);
}

/* ---- what local programs do ---- */

void
rsb_judge_placed(struct rsb_fs *fs, const struct rsb_inode *inode)
{
	struct rsb_gitplace place;
	struct rsb_bytes own;
	size_t cursor = 0;

	if (!inode->wrote)
		return;
	while (rsb_gitplace_next(inode, &cursor, &place)) {
		RSB_CLEANUP(question_done) struct question q = { .place = place };
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { .max = 2 * RSB_GITALLOW_MAX };
		char why[RSB_GITALLOW_WHY_MAX];

		ask(&q, fs, inode, (struct rsb_bytes){ 0 });
		if (!get_own(&q, inode, &own))
			continue;
		q.what.text = own;
		/* A copy that was trusted before gives way to what the user wants now. */
		if (q.what.trusted || may_be_trusted(rsb_gitallow_judge(&q.what, &view, why)))
			trust(&q, own);
	}
}

void
rsb_judge_placed_at(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { .max = RSB_PATH_MAX + 1 };
	const struct rsb_inode *inode;
	struct rsb_bytes text;

	if (rsb_list_empty(&fs->wrotes) || rsb_seen_path(dir, name, &path) < 0)
		return;
	inode = rsb_wrote_find(fs, (const char *)rsb_buf_head(&path), &text);
	if (inode)
		rsb_judge_placed(fs, inode);
}

void
rsb_judge_moved(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	const struct rsb_inode *newdir, const char *newname, bool swap)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf from = { .max = RSB_PATH_MAX + 1 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf to = { .max = RSB_PATH_MAX + 1 };

	if ((!rsb_gitcopy_count(fs->judge->trust) && rsb_list_empty(&fs->wrotes)) ||
		rsb_seen_path(dir, name, &from) < 0 || rsb_seen_path(newdir, newname, &to) < 0)
		return;
	rsb_wrote_moved(fs,
		&(struct rsb_wrote_name){ dir, name, (const char *)rsb_buf_head(&from) },
		&(struct rsb_wrote_name){ newdir, newname, (const char *)rsb_buf_head(&to) }, swap);
	if (swap || !rsb_gitplace_is_sure(newdir) || !rsb_gitplace_is_sure(dir))
		return;
	if (rsb_gitcopy_move(fs->judge->trust, (const char *)rsb_buf_head(&from),
		    (const char *)rsb_buf_head(&to)) < 0)
		rsb_warn("without memory, what was trusted stays at its old name");
}

void
rsb_judge_meant(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	const struct rsb_inode *newdir, const char *newname)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf from = { .max = RSB_PATH_MAX + 1 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf to = { .max = RSB_PATH_MAX + 1 };
	struct rsb_inode *inode;
	struct rsb_bytes text;

	if (rsb_seen_path(dir, name, &from) < 0 || rsb_seen_path(newdir, newname, &to) < 0 ||
		is_own_place((const char *)rsb_buf_head(&from)) ||
		!is_own_place((const char *)rsb_buf_head(&to)))
		return;
	inode = rsb_wrote_find(fs, (const char *)rsb_buf_head(&to), &text);
	if (inode)
		rsb_wrote_adopt(inode);
}

void
rsb_judge_linked(
	struct rsb_fs *fs, struct rsb_inode *inode, const struct rsb_inode *dir, const char *name)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { .max = RSB_PATH_MAX + 1 };

	if (!inode->wrote || rsb_seen_path(dir, name, &path) < 0)
		return;
	rsb_wrote_linked(inode, (const char *)rsb_buf_head(&path));
	rsb_judge_placed(fs, inode);
}

int
rsb_judge_kept(struct rsb_fs *fs, const struct rsb_inode *inode, const struct rsb_gitplace *place,
	struct rsb_bytes ours, struct rsb_buf *out)
{
	RSB_CLEANUP(question_done) struct question q = { .place = *place };
	const struct rsb_held *held;

	if (place->kind != RSB_GIT_CONFIG)
		return 0;
	ask(&q, fs, inode, (struct rsb_bytes){ 0 });
	held = rsb_buf_len(&q.path) ? rsb_held_find(&fs->judge->held, path_of(&q)) : NULL;
	if (!held || held->fixed)
		return 0;
	q.what.text = (struct rsb_bytes){ held->text, held->size };
	return rsb_gitview_kept(&q.what, ours, out);
}

void
rsb_judge_gone(struct rsb_fs *fs, const struct rsb_inode *dir, struct rsb_bytes name)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { .max = RSB_PATH_MAX + 1 };
	rsb_autofree char *text = NULL;

	if (!fs->judge->held.n || !(text = rsb_str_dup(name)) ||
		rsb_seen_path(dir, text, &path) < 0)
		return;
	rsb_held_remove(&fs->judge->held, (const char *)rsb_buf_head(&path));
}

/* ---- for people ---- */

int
rsb_judge_trust(struct rsb_judge *judge, const char *path, struct rsb_json *array)
{
	struct rsb_list *cursor = NULL;
	struct rsb_held *held;
	size_t n = 0;
	int r = 0;

	while (r >= 0 && (held = rsb_held_next(&judge->held, path, &cursor))) {
		if (held->fixed)
			continue;
		r = rsb_gitcopy_put(judge->trust, held->path,
			(struct rsb_bytes){ .data = held->text, .size = held->size });
		if (r >= 0 && n++ < RSB_HELD_TOLD_MAX)
			r = rsb_held_tell(held, array);
		if (r >= 0) {
			rsb_info("trusted: '%s'", held->path);
			rsb_held_remove(&judge->held, held->path);
		}
	}
	return r < 0 || n ? r : -ENOENT;
}

int
rsb_judge_tell(const struct rsb_judge *judge, struct rsb_json *array, size_t *ret_n)
{
	const struct rsb_held_set *set = &judge->held;
	struct rsb_list *cursor = NULL;
	struct rsb_held *held;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < RSB_HELD_TOLD_MAX; i++) {
		held = rsb_held_next(set, "", &cursor);
		if (!held)
			break;
		r = rsb_held_tell(held, array);
	}
	if (r >= 0)
		*ret_n = set->n;
	return r;
}

void
rsb_judge_save(struct rsb_fs *fs)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = 2 * RSB_GITCOPY_BYTES_MAX };
	struct rsb_judge *judge = fs->judge;
	int r = 0;

	rsb_mutex_lock(&fs->lock);
	if (judge->trust_file && judge->saved != rsb_gitcopy_version(judge->trust)) {
		judge->saved = rsb_gitcopy_version(judge->trust);
		r = rsb_gitcopy_write(judge->trust, &data);
	}
	rsb_mutex_unlock(&fs->lock);
	if (r >= 0 && rsb_buf_len(&data))
		r = rsb_fd_replace_file(AT_FDCWD, judge->trust_file, rsb_buf_view(&data), 0600);
	if (r < 0)
		rsb_warn_r(r, "what is trusted cannot be saved");
}
