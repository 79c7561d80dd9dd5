/* SPDX-License-Identifier: MIT */
/* Directories: readdir, releasedir, fsyncdir. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sidecar/attr.h"
#include "sidecar/fh.h"
#include "sidecar/resolve.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

/*
 * Entries of a page, so that the reply is one frame; and what one entry and the rest take at most.
 */
#define PAGE_SIZE_MAX ((size_t)60000)
#define DIRENT_SIZE_MAX ((size_t)512)

struct page {
	struct rsb_sess *sess;
	uint32_t version;
	const struct rsb_readdir_req *req;
	struct rsb_listing *listing;
	struct rsb_buf entries;
	struct rsb_readdir_rep rep;
};

static int
open_listing(struct rsb_sess *sess, const struct rsb_readdir_req *req, struct rsb_fh **ret_file)
{
	RSB_CLEANUP(rsb_listing_freep) struct rsb_listing *listing = NULL;
	rsb_autoclose int path_fd = rsb_resolve(sess->nodes, &req->node);

	if (path_fd < 0)
		return path_fd;
	rsb_autoclose int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = rsb_listing_new(fd, &listing);
	if (r < 0)
		return r;
	(void)rsb_steal_fd(&fd);
	r = rsb_fhs_add_dir(sess->fhs, req->fh, listing, ret_file);
	if (r < 0)
		return r;
	(void)rsb_steal(&listing);
	return 0;
}

static int
get_listing(struct rsb_sess *sess, const struct rsb_readdir_req *req, struct rsb_fh **ret_file)
{
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_DIR, ret_file);

	if (r == 0)
		return 0;
	/*
	 * A file's number stays an error; two first pages at once share what the faster one opened.
	 */
	r = open_listing(sess, req, ret_file);
	if (r == -EINVAL)
		r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_DIR, ret_file);
	return r;
}

/*
 * Attributes and an id. 0: not there any more; 1: it is an entry, even if nothing is known of it.
 */
static int
examine(const struct page *page, const struct rsb_listing_entry *entry, uint64_t index,
	struct rsb_dirent *d)
{
	struct rsb_nodes *nodes = page->sess->nodes;
	struct rsb_ident ident;
	struct statx st;
	int r = rsb_root_ident(
		rsb_nodes_root(nodes), rsb_listing_fd(page->listing), entry->name, &ident, &st);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return 1;
	d->ino = st.stx_ino;
	d->type = IFTODT((uint64_t)st.stx_mode);
	const struct rsb_binding binding = {
		.ident = &ident,
		.parent = page->req->node.id,
		.name = entry->name,
		.id = page->req->first_id + index,
	};
	if (rsb_nodes_bind(nodes, &binding, &d->id) == 0)
		rsb_attr_of(&st, &d->attr);
	return 1;
}

static int
fill_page(struct page *page)
{
	uint64_t max = page->req->max ? page->req->max : RSB_DIRENTS_MAX;
	bool end = false;
	uint64_t n = 0;
	int r = 0;

	max = rsb_min(max, (uint64_t)RSB_DIRENTS_MAX);
	while (n < max && rsb_buf_len(&page->entries) + DIRENT_SIZE_MAX <= PAGE_SIZE_MAX) {
		struct rsb_listing_entry entry;

		r = rsb_listing_next(page->listing, &entry);
		end = r == 0;
		if (r <= 0)
			break;
		struct rsb_dirent d = {
			.name = rsb_bytes_str(entry.name),
			.ino = entry.ino,
			.type = entry.type,
		};
		if (page->req->plus && !examine(page, &entry, n, &d))
			continue;
		r = rsb_seq_append(&rsb_desc_rsb_dirent, &d, page->version, &page->entries);
		if (r < 0)
			break;
		n++;
	}
	/* What was read goes out; the error comes again. */
	if (r < 0 && n == 0)
		return r;
	page->rep.done = end;
	page->rep.entries = rsb_seq_of(&page->entries, n);
	return 0;
}

static void
page_done(struct page *page)
{
	rsb_buf_done(&page->entries);
}

static int
read_page(struct page *page)
{
	struct rsb_sess *sess = page->sess;
	const struct rsb_readdir_req *req = page->req;
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	int r;

	if (req->fh == 0 ||
		(req->plus && (req->first_id == 0 || req->first_id > UINT64_MAX - RSB_DIRENTS_MAX)))
		return -EINVAL;
	r = get_listing(sess, req, &use.file);
	if (r < 0)
		return r;
	page->listing = use.file->listing;
	rsb_listing_take(page->listing);
	r = fill_page(page);
	rsb_listing_give_back(page->listing);
	if (r < 0)
		return r;
	if (page->rep.done) {
		struct rsb_fh *closed;

		if (rsb_fhs_remove(sess->fhs, req->fh, RSB_FH_DIR, &closed) == 0)
			rsb_fhs_put(sess->fhs, closed);
	}
	return rsb_attr_read(rsb_listing_fd(page->listing), &page->rep.dir);
}

void
rsb_serve_readdir(struct rsb_request *rq, const struct rsb_readdir_req *req)
{
	RSB_CLEANUP(page_done)
	struct page page = { .sess = rq->sess, .version = rq->version, .req = req };
	int r;

	rsb_buf_init(&page.entries, RSB_MESSAGE_MAX);
	r = read_page(&page);
	rsb_request_reply(rq, r, &page.rep);
}

void
rsb_serve_releasedir(struct rsb_request *rq, const struct rsb_fh_req *req)
{
	struct rsb_fh *file;
	int r = rsb_fhs_remove(rq->sess->fhs, req->fh, RSB_FH_DIR, &file);

	if (r == 0)
		rsb_fhs_put(rq->sess->fhs, file);
	rsb_request_reply(rq, r, NULL);
}

static int
sync_dir(struct rsb_sess *sess, const struct rsb_fsyncdir_req *req)
{
	rsb_autoclose int path_fd = rsb_resolve(sess->nodes, &req->node);

	if (path_fd < 0)
		return path_fd;
	rsb_autoclose int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

void
rsb_serve_fsyncdir(struct rsb_request *rq, const struct rsb_fsyncdir_req *req)
{
	rsb_request_reply(rq, sync_dir(rq->sess, req), NULL);
}
