/* SPDX-License-Identifier: MIT */
#include "keeper/syncfetch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "keeper/gitlists.h"
#include "keeper/gitsettings.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/pack.h"
#include "util/str.h"

#define WANTED_MAX ((size_t)256 << 20)
/* What may come beyond the sizes that were listed: files that grow, and tries. */
#define SLACK ((uint64_t)256 << 20)

bool
rsb_syncfetch_unsure(const struct rsb_syncplan_job *job)
{
	return rsb_syncplan_wants(job) && job->unsure;
}

void
rsb_syncfetch_done(struct rsb_syncfetch *fetch)
{
	rsb_stage_close(fetch->stage);
	rsb_tree_done(&fetch->staged);
	fetch->stage = NULL;
}

/* Before anything of it comes: a file without a block may be as large as it likes. */
static int
check_size(const struct rsb_syncfetch *fetch, uint64_t size, const struct rsb_tree_leaf *largest,
	struct rsb_diag *diag)
{
	const uint64_t max = fetch->out->max;
	rsb_autofree char *quoted = NULL;

	if (!max || size <= max)
		return 0;
	quoted = rsb_str_quote(largest->path);
	return rsb_diag_set(diag, -EFBIG,
		"%llu MiB would come from the sandbox, and sync.out_max is %llu MiB: nothing is "
		"changed here; leave out by .rsbignore or --exclude what is not needed, as %.200s "
		"with its %llu MiB, or allow more",
		(unsigned long long)(size >> 20), (unsigned long long)(max >> 20),
		quoted ? quoted : "?", (unsigned long long)(largest->size >> 20));
}

static int
ask(struct rsb_syncfetch *fetch, struct rsb_tar_limits *ret_limits, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf wanted = { .max = WANTED_MAX };
	const struct rsb_syncplan *plan = &fetch->sides->plan;
	const struct rsb_tree_leaf *largest = NULL;
	struct rsb_haul *haul = fetch->sides->haul;
	int r = 0;

	*ret_limits = (struct rsb_tar_limits){ .files = 1, .size = SLACK };
	for (size_t i = 0; i < plan->n && r >= 0; i++) {
		const struct rsb_syncplan_job *job = &plan->jobs[i];

		if (!fetch->wanted(job))
			continue;
		r = rsb_buf_append(&wanted, job->at.path, strlen(job->at.path) + 1);
		ret_limits->files += 4;
		ret_limits->size += rsb_min(job->at.there->size, UINT64_MAX / 2 - ret_limits->size);
		if (!largest || job->at.there->size > largest->size)
			largest = job->at.there;
	}
	if (r >= 0 && largest)
		r = check_size(fetch, ret_limits->size - SLACK, largest, diag);
	if (r < 0 || !rsb_buf_len(&wanted))
		return r;
	r = rsb_haul_begin(haul, RSB_HAUL_PACK, diag);
	if (r < 0)
		return r;
	r = rsb_haul_write(haul, rsb_buf_view(&wanted));
	if (r >= 0)
		r = rsb_haul_end_writing(haul);
	if (r < 0)
		rsb_haul_explain(haul, r, diag);
	return r < 0 ? r : 1;
}

static void
moved(void *arg, uint64_t bytes)
{
	struct rsb_syncfetch *fetch = arg;
	const struct rsb_sync *sync = fetch->out->sync;

	fetch->packed += bytes;
	if (sync->progress)
		sync->progress(sync->arg, &(struct rsb_sync_stats){ .bytes = fetch->packed });
}

/* What it could not read in peace: neither taken nor gone. */
static void
tell_left_out(const struct rsb_syncfetch *fetch)
{
	rsb_autoclose int fd = rsb_beneath_open(
		rsb_stage_fd(fetch->stage), RSB_PACK_LEFT_OUT, O_RDONLY | O_NONBLOCK);
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_PACK_LEFT_OUT_MAX };

	if (fd < 0 || rsb_fd_read_all(fd, &text) < 0 || rsb_buf_append(&text, "", 1) < 0)
		return;
	for (size_t at = 0; at < rsb_buf_len(&text);) {
		const char *path = (const char *)rsb_buf_head(&text) + at;
		struct rsb_syncplan_job *job = rsb_syncplan_find(&fetch->sides->plan, path);

		if (job && !job->held)
			rsb_syncplan_miss(job, "it cannot be read, or changes meanwhile");
		at += strlen(path) + 1;
	}
}

static int
filter(const struct rsb_syncfetch *fetch)
{
	struct rsb_syncplan *plan = &fetch->sides->plan;
	int r = 0;

	for (size_t i = 0; i < plan->n && r >= 0; i++) {
		if (plan->jobs[i].filtered)
			r = rsb_gitsettings_filter(plan, &plan->jobs[i], fetch->stage);
		else if (plan->jobs[i].listed && !plan->jobs[i].held)
			r = rsb_gitlists_look(plan, &plan->jobs[i], fetch->stage);
	}
	return r;
}

int
rsb_syncfetch_run(struct rsb_syncfetch *fetch, struct rsb_diag *diag)
{
	struct rsb_stage_fill fill = { .haul = fetch->sides->haul, .moved = moved, .arg = fetch };
	int r;

	r = ask(fetch, &fill.limits, diag);
	if (r < 0)
		return r;
	if (r > 0) {
		r = rsb_stage_open(fetch->sides->root_fd, fetch->out->name, &fetch->stage, diag);
		if (r >= 0)
			r = rsb_stage_fill(fetch->stage, &fill, diag);
		if (r >= 0)
			r = filter(fetch);
		if (r >= 0 && fetch->publishes)
			r = rsb_stage_flush(fetch->stage);
		if (r >= 0)
			r = rsb_stage_tree(fetch->stage, &fetch->staged);
		if (r < 0)
			return r;
		tell_left_out(fetch);
	}
	rsb_syncplan_settle(&fetch->sides->plan, &fetch->staged);
	return 0;
}
