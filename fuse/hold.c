/* SPDX-License-Identifier: MIT */
#include "fuse/hold.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuse/judge.h"
#include "fuse/losses.h"
#include "fuse/notify.h"
#include "fuse/reply.h"
#include "fuse/revive.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "util/awake.h"
#include "util/clock.h"
#include "util/str.h"

#define HOLD_MAX_NS (RSB_HOLD_MAX_S * RSB_NSEC_PER_SEC)
#define SILENT_NS (RSB_PING_MISSED_MAX * RSB_PING_MOUNT_MS * RSB_NSEC_PER_MSEC)
#define AWAKE_STEP_NS (2 * RSB_NSEC_PER_SEC)
#define CALM_NS RSB_NSEC_PER_SEC
#define PATH_SIZE (RSB_SHARED_LOSS_MAX - 128u)
#define PATH_DEPTH_MAX 512u

struct rsb_hold {
	struct rsb_awake awake;
	uint64_t not_live_ns; /* awake, since when; 0: live */
	uint64_t live_ns;     /* awake, since when */
};

int
rsb_hold_new(struct rsb_hold **ret_hold)
{
	struct rsb_hold *hold = rsb_new(struct rsb_hold);

	if (!hold)
		return -ENOMEM;
	hold->awake.step_ns = AWAKE_STEP_NS;
	*ret_hold = hold;
	return 0;
}

void
rsb_hold_free(struct rsb_hold *hold)
{
	free(hold);
}

static uint64_t
now_ns(struct rsb_fs *fs)
{
	return rsb_awake_ns(&fs->hold->awake, rsb_now_ns());
}

void
rsb_hold_limit(struct rsb_fop *fop)
{
	fop->began_ns = now_ns(fop->fs);
	fop->hold_ns = HOLD_MAX_NS;
}

void
rsb_hold_never(struct rsb_fop *fop)
{
	fop->began_ns = now_ns(fop->fs);
	fop->hold_ns = 1;
}

void
rsb_hold_link_state(struct rsb_fs *fs, enum rsb_link_state state)
{
	struct rsb_hold *hold = fs->hold;
	uint64_t now = now_ns(fs);

	if (state == RSB_LINK_LIVE) {
		hold->live_ns = hold->not_live_ns || !hold->live_ns ? now : hold->live_ns;
		hold->not_live_ns = 0;
	} else if (hold->not_live_ns == 0) {
		hold->not_live_ns =
			state == RSB_LINK_SUSPECT && now > SILENT_NS ? now - SILENT_NS : now;
	}
}

bool
rsb_hold_is_calm(struct rsb_fs *fs)
{
	const struct rsb_hold *hold = fs->hold;

	return !hold->not_live_ns && now_ns(fs) >= hold->live_ns + CALM_NS;
}

/* Its call ends; what only waits for something of ours is answered here. */
static void
give_up(struct rsb_fop *fop)
{
	fop->hold_ns = 0;
	if (fop->serial)
		rsb_send_withdraw(fop->fs->send, fop->serial);
	else
		rsb_reply_err(fop, -EIO);
}

static void
check(struct rsb_fs *fs, uint64_t next_ns)
{
	struct rsb_list *pos = fs->fops.next;
	uint64_t now = now_ns(fs);
	uint64_t next = now + next_ns;

	if (fs->hold->not_live_ns == 0)
		return;
	while (pos != &fs->fops) {
		struct rsb_fop *fop = rsb_list_entry(pos, struct rsb_fop, all);

		pos = pos->next;
		if (!fop->req || fop->hold_ns == 0 ||
			rsb_max(fop->began_ns, fs->hold->not_live_ns) + fop->hold_ns > next)
			continue;
		give_up(fop);
		/* that may have ended others */
		pos = fs->fops.next;
	}
}

void
rsb_hold_tick(struct rsb_fs *fs, uint64_t next_ns)
{
	rsb_mutex_lock(&fs->lock);
	rsb_fop_check_interrupted(fs);
	check(fs, next_ns);
	rsb_revive_step(fs->revive);
	rsb_send_flush_forgets(fs->send);
	rsb_send_retry(fs->send);
	rsb_mutex_unlock(&fs->lock);
	rsb_judge_save(fs);
}

/* ---- what nobody knows ---- */

/* Where name (may be empty) in inode lies, for people: from its end as far as is known and fits. */
static void
write_path(const struct rsb_inode *inode, const char *name, char ret_path[static PATH_SIZE])
{
	char path[PATH_SIZE];
	size_t at = sizeof(path) - 1;
	size_t n = strlen(name);
	struct rsb_inode *parent;
	const char *above;

	path[at] = '\0';
	for (uint32_t i = 0; n < at && i < PATH_DEPTH_MAX; i++) {
		at -= n;
		memcpy(path + at, name, n);
		above = inode ? rsb_seen_last(inode, &parent) : NULL;
		if (!above || at < 2)
			break;
		if (n)
			path[--at] = '/';
		name = above;
		n = strlen(name);
		inode = parent;
	}
	rsb_str_escape(rsb_bytes_str(path + at), ret_path, PATH_SIZE);
}

static void
note(struct rsb_fs *fs, const char *what, const struct rsb_inode *dir, const char *name)
{
	char path[PATH_SIZE];
	char text[RSB_SHARED_LOSS_MAX];

	fs->stats.unknown++;
	write_path(dir, name, path);
	(void)snprintf(text, sizeof(text),
		"%s %s: no answer came before the link or the sidecar ended, it may have been done "
		"or not",
		what, path);
	rsb_losses_add(fs->shared, RSB_LOSS_UNKNOWN, text, false);
}

void
rsb_hold_note_lost(struct rsb_fs *fs, const struct rsb_inode *inode, const char *why)
{
	char path[PATH_SIZE];
	char text[RSB_SHARED_LOSS_MAX];

	write_path(inode, "", path);
	(void)snprintf(text, sizeof(text), "%s %s", path, why);
	rsb_losses_add(fs->shared, RSB_LOSS_LOST, text, false);
}

/* The kernel keeps what it was told before; so does our own table. */
static void
forget_name(struct rsb_fs *fs, struct rsb_inode *dir, const char *name)
{
	struct rsb_inode *inode = NULL;

	if (rsb_names_get(fs->names, dir, rsb_bytes_str(name), &inode) == 1) {
		inode->attr_gen = 0;
		if (fs->notify)
			(void)rsb_notify_inode(fs->notify, inode->nodeid, false);
	}
	rsb_names_drop(fs->names, dir, rsb_bytes_str(name));
	dir->listed_gen = 0;
	if (!fs->notify)
		return;
	/* Over the queue's maximum the kernel keeps them; a barrier finds that out. */
	if (rsb_names_is_lent(fs->names, dir, rsb_bytes_str(name)))
		(void)rsb_notify_entry(fs->notify, dir->nodeid, name, strlen(name));
	(void)rsb_notify_inode(fs->notify, dir->nodeid, true);
}

void
rsb_hold_unknown(struct rsb_fop *fop)
{
	struct rsb_fs *fs = fop->fs;

	note(fs, rsb_ops[fop->op].name, fop->inode, fop->name);
	if (fop->name[0])
		forget_name(fs, fop->inode, fop->name);
	else if (fs->notify)
		(void)rsb_notify_inode(fs->notify, fop->inode->nodeid, false);
	if (fop->newname[0])
		forget_name(fs, fop->other, fop->newname);
	else if (fop->other && fs->notify)
		(void)rsb_notify_inode(fs->notify, fop->other->nodeid, false);
}

void
rsb_hold_unknown_data(struct rsb_fs *fs, const struct rsb_inode *inode)
{
	note(fs, "write", inode, "");
}
