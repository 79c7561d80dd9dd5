/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "giveback"

#include "fuse/giveback.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fuse/gitplace.h"
#include "fuse/judge.h"
#include "fuse/push.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "fuse/wrote.h"
#include "util/log.h"

/* The write under way. */
struct giving {
	struct rsb_fs *fs;
	struct rsb_inode *inode; /* referenced */
	uint64_t since;
};

static void
on_given(void *arg, int r, const void *rep)
{
	struct giving *giving = arg;
	const struct rsb_write_rep *written = rep;

	rsb_fs_change_end(giving->fs, giving->inode, r < 0 ? NULL : &written->attr, giving->since);
	if (r < 0)
		rsb_warn_r(r, "what is held back from git here is lost in the sandbox");
	rsb_inode_unref(giving->inode);
	free(giving);
}

static int
append(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t offset, struct rsb_bytes data)
{
	const uint64_t fh = rsb_link_new_ids(fs->link, 1);
	const struct rsb_write_req req = { .fh = fh, .offset = offset, .data = data };
	struct giving *giving = rsb_new(struct giving);
	int r;

	if (!giving)
		return -ENOMEM;
	*giving = (struct giving){ .fs = fs, .inode = inode };
	rsb_push_inode(fs, inode);
	rsb_send_post(fs->send, RSB_OP_open,
		&(struct rsb_open_req){ .node = inode->wire, .fh = fh, .flags = O_WRONLY });
	giving->since = rsb_fs_change_begin(fs, inode);
	r = rsb_send_call(fs->send, RSB_OP_write, &req, on_given, giving, NULL);
	if (r < 0) {
		rsb_fs_change_end(fs, inode, NULL, giving->since);
		free(giving);
	} else {
		(void)rsb_inode_ref(inode);
	}
	rsb_send_post(fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = fh });
	return r;
}

/* The file that a local program wrote there, and its text. */
static struct rsb_inode *
find(const struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	struct rsb_bytes *ret_text)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { .max = RSB_PATH_MAX + 1 };

	if (rsb_seen_path(dir, name, &path) < 0)
		return NULL;
	return rsb_wrote_find(fs, (const char *)rsb_buf_head(&path), ret_text);
}

void
rsb_giveback(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	const struct rsb_inode *newdir, const char *newname)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf kept = { .max = RSB_IO_MAX };
	const struct rsb_gitplace place = {
		.kind = rsb_gitplace_kind(newdir, newname),
		.dir = newdir,
		.name = newname,
	};
	struct rsb_inode *inode;
	struct rsb_bytes ours;
	int r;

	if (place.kind != RSB_GIT_CONFIG)
		return;
	inode = find(fs, dir, name, &ours);
	/* Once: a rename that failed may come again. */
	if (!inode || !rsb_wrote_get(inode, &ours))
		return;
	r = rsb_judge_kept(fs, inode, &place, ours, &kept);
	/* Longer it would not be served at all. */
	if (r >= 0 && rsb_buf_len(&kept) > RSB_GITALLOW_MAX - ours.size)
		r = -EMSGSIZE;
	if (r >= 0 && rsb_buf_len(&kept)) {
		r = append(fs, inode, ours.size, rsb_buf_view(&kept));
		if (r >= 0)
			rsb_wrote_set_more(inode);
	}
	if (r < 0)
		rsb_warn_r(r, "what is held back from git here is lost in the sandbox");
}
