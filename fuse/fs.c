/* SPDX-License-Identifier: MIT */
#include "fuse/fs.h"

#include <errno.h>
#include <string.h>

#include "fuse/guard.h"
#include "fuse/hold.h"
#include "fuse/judge.h"
#include "fuse/ledger.h"
#include "fuse/limbo.h"
#include "fuse/log.h"
#include "fuse/revive.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "fuse/wrote.h"

static void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	struct rsb_fs *fs = arg;

	if (!fs->closing)
		rsb_send_forget(fs->send, id, n);
}

int
rsb_fs_new(const struct rsb_fs_config *config, struct rsb_link *link, struct rsb_shared *shared,
	struct rsb_fs **ret_fs)
{
	RSB_CLEANUP(rsb_fs_freep) struct rsb_fs *fs = rsb_new(struct rsb_fs);
	int r;

	if (!fs)
		return -ENOMEM;
	rsb_mutex_init(&fs->lock);
	rsb_list_init(&fs->fops);
	rsb_list_init(&fs->writers);
	rsb_list_init(&fs->wrotes);
	rsb_cache_init(&fs->cache);
	fs->config = *config;
	fs->link = link;
	fs->shared = shared;
	fs->epoch = 1;
	fs->seq = 1;
	fs->listings.max = RSB_LISTINGS_MAX;
	fs->generation_seq = 1;
	fs->hand = &shared->hand;
	r = rsb_ledger_new(shared, &fs->ledger);
	if (r < 0)
		return r;
	r = rsb_send_new(fs, &fs->send);
	if (r < 0)
		return r;
	r = rsb_hold_new(&fs->hold);
	if (r < 0)
		return r;
	r = rsb_revive_new(fs, &fs->revive);
	if (r < 0)
		return r;
	r = rsb_judge_new(config->trust_file, &fs->judge);
	if (r < 0)
		return r;
	r = rsb_guard_new(config->no_guard, &fs->guard);
	if (r < 0)
		return r;
	r = rsb_inodes_new(shared, on_forget, fs, &fs->inodes);
	if (r < 0)
		return r;
	r = rsb_names_new(RSB_NAMES_MAX, &fs->names);
	if (r < 0)
		return r;
	r = rsb_handles_new(fs->ledger, &fs->handles);
	if (r < 0)
		return r;
	*ret_fs = rsb_steal(&fs);
	return 0;
}

void
rsb_fs_free(struct rsb_fs *fs)
{
	if (!fs)
		return;
	if (fs->judge)
		rsb_judge_save(fs);
	fs->closing = true;
	rsb_handles_free(fs->handles);
	rsb_dirsnap_free(fs->left.snap);
	rsb_names_free(fs->names);
	rsb_inodes_free(fs->inodes);
	rsb_guard_free(fs->guard);
	rsb_judge_free(fs->judge);
	rsb_send_free(fs->send);
	rsb_revive_free(fs->revive);
	rsb_hold_free(fs->hold);
	rsb_ledger_free(fs->ledger);
	free(fs->workspace);
	rsb_mutex_done(&fs->lock);
	free(fs);
}

int
rsb_fs_take_facts(struct rsb_fs *fs)
{
	struct rsb_link_facts facts;
	int r;

	r = rsb_link_facts(fs->link, &facts);
	if (r < 0)
		return r;
	rsb_mutex_lock(&fs->lock);
	fs->config.idmap.far_uid = facts.cmd_uid;
	fs->config.idmap.far_gid = facts.cmd_gid;
	fs->workspace = strdup(facts.workspace);
	if (!fs->workspace)
		r = -ENOMEM;
	rsb_mutex_unlock(&fs->lock);
	return r;
}

void
rsb_fs_drop_locked(struct rsb_fs *fs)
{
	rsb_cache_drop(&fs->cache);
	fs->generation_seq = ++fs->seq;
	rsb_names_clear(fs->names);
}

void
rsb_fs_foreign_begin_locked(struct rsb_fs *fs)
{
	rsb_cache_foreign_begin(&fs->cache);
	rsb_fs_drop_locked(fs);
}

void
rsb_fs_foreign_end_locked(struct rsb_fs *fs)
{
	rsb_cache_foreign_end(&fs->cache);
	rsb_fs_drop_locked(fs);
}

void
rsb_fs_lose_handle(struct rsb_fs *fs, struct rsb_handle *handle, int r)
{
	rsb_handle_set_broken(handle, r);
	fs->unsent -= handle->wbuf.size;
	rsb_wbuf_done(&handle->wbuf);
	rsb_log_cut(rsb_ledger_arena(fs->ledger), handle);
	if (handle->inode->dirty == handle)
		handle->inode->dirty = NULL;
}

/* All nodes and open files of the sidecar before are void. */
static void
begin_epoch(struct rsb_fs *fs)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	fs->epoch++;
	rsb_inodes_set_epoch(fs->inodes, fs->epoch);
	fs->lock_round++;
	rsb_revive_abort(fs->revive);
	rsb_send_reset(fs->send);
	rsb_fs_drop_locked(fs);
	while ((handle = rsb_handle_next(fs->handles, &cursor))) {
		if (handle->wbuf.size)
			rsb_hold_note_lost(fs, handle->inode, RSB_HOLD_UNSENT);
		rsb_fs_lose_handle(fs, handle, -EIO);
		handle->snap_fh = 0;
	}
}

void
rsb_fs_link_state_locked(struct rsb_fs *fs, enum rsb_link_state state, bool new_epoch)
{
	fs->cache.link_live = state == RSB_LINK_LIVE;
	rsb_hold_link_state(fs, state);
	if (new_epoch)
		begin_epoch(fs);
	/* What the keeper gave up is not made again. */
	if (state == RSB_LINK_FAILED)
		rsb_limbo_end(fs->send, -EIO);
	rsb_revive_step(fs->revive);
	/* What waits for room ends with the others, or goes on. */
	rsb_send_retry(fs->send);
}

void
rsb_fs_link_gone(struct rsb_fs *fs)
{
	if (!fs)
		return;
	rsb_mutex_lock(&fs->lock);
	rsb_send_reset(fs->send);
	rsb_mutex_unlock(&fs->lock);
}

bool
rsb_fs_keeps(const struct rsb_fs *fs, uint64_t since)
{
	return rsb_cache_on(&fs->cache) && since >= fs->generation_seq;
}

bool
rsb_fs_unchanged(const struct rsb_fs *fs, const struct rsb_inode *inode, uint64_t since)
{
	return rsb_fs_keeps(fs, since) && inode->changed <= since && !inode->n_mutating &&
	       !inode->dirty;
}

void
rsb_fs_learn(
	struct rsb_fs *fs, struct rsb_inode *inode, const struct rsb_attr *attr, uint64_t since)
{
	if (inode->changed > since || inode->dirty)
		return;
	/* The type never changes in one node's life; a peer that says so is not believed. */
	if (rsb_attr_check(attr) < 0 ||
		(inode->attr.mode & S_IFMT && (inode->attr.mode ^ attr->mode) & S_IFMT))
		return;
	inode->attr = *attr;
	inode->attr_gen = rsb_fs_keeps(fs, since) ? fs->cache.generation : 0;
}

uint64_t
rsb_fs_change_begin(struct rsb_fs *fs, struct rsb_inode *inode)
{
	inode->changed = ++fs->seq;
	inode->n_mutating++;
	inode->attr_gen = 0;
	return fs->seq;
}

void
rsb_fs_change_end(
	struct rsb_fs *fs, struct rsb_inode *inode, const struct rsb_attr *attr, uint64_t since)
{
	inode->n_mutating--;
	/* An empty one comes with nothing of use, e.g. for a node that the peer did not know. */
	if (attr && attr->mode)
		rsb_fs_learn(fs, inode, attr, since);
}

bool
rsb_fs_knows(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	return rsb_cache_valid(&fs->cache, inode->attr_gen) && !inode->dirty &&
	       !inode->n_mutating && rsb_inode_check(inode) == 0;
}

void
rsb_fs_name(struct rsb_fs *fs, struct rsb_inode *dir, struct rsb_bytes name,
	struct rsb_inode *inode, uint64_t since)
{
	if (inode)
		rsb_seen_hint(inode, dir, name);
	else
		rsb_judge_gone(fs, dir, name);
	/* A change of the directory sent later may have undone what this reply tells. */
	if (dir->changed <= since)
		rsb_wrote_named(fs, dir, name, inode);
	if (rsb_fs_keeps(fs, since) && dir->changed <= since) {
		rsb_names_put(fs->names, dir, name, inode);
		/* It may have changed places with a file. */
		if (inode && S_ISDIR(inode->attr.mode) && !fs->kernel_expires)
			rsb_names_take_back(fs->names, dir, name);
		return;
	}
	rsb_names_drop(fs->names, dir, name);
	/* Not in the table, it would be taken for absent. */
	if (inode)
		dir->listed_gen = 0;
}

bool
rsb_fs_idle_locked(const struct rsb_fs *fs)
{
	return !fs->sent && rsb_send_pending(fs->send) <= fs->n_wait;
}
