/* SPDX-License-Identifier: MIT */
#include "keeper/gitsettings.h"

#include <errno.h>
#include <string.h>

#include "keeper/gitallow.h"
#include "keeper/gitconfig.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/str.h"

/* What was cut from the copy that went in would be lost here. */
static int
has_credentials(struct rsb_bytes ours)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf left = { .max = RSB_GITALLOW_MAX };
	bool cut = false;
	int r = rsb_gitconfig_strip(ours, &left, &cut);

	return r < 0 ? r : cut;
}

static size_t
depth_of(const char *path)
{
	size_t depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

static bool
is_same(struct rsb_bytes a, struct rsb_bytes b)
{
	return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

static int
judge(struct rsb_syncplan_job *job, const struct rsb_stage *stage, struct rsb_bytes text,
	const struct rsb_bytes *ours)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { .max = 2 * RSB_GITALLOW_MAX };
	const struct rsb_gitallow what = { .kind = RSB_GIT_CONFIG,
		.text = text,
		.trusted = ours,
		.place = { .workspace = "", .mountpoint = "", .depth = depth_of(job->at.path) },
		.path = job->at.path };
	char why[RSB_GITALLOW_WHY_MAX];
	char shown[RSB_GITALLOW_WHY_MAX];
	int r = rsb_gitallow_judge(&what, &view, why);

	if (r < 0 || r == RSB_GITALLOW_AS_IS)
		return rsb_min(r, 0);
	/* The sandbox chose the name. */
	rsb_str_escape(rsb_bytes_str(why), shown, sizeof(shown));
	job->said = rsb_str_printf("settings by which git here could run programs (%s); "
				   "'rsb sync out --trust-git' brings them",
		shown);
	if (!job->said)
		return -ENOMEM;
	if (!rsb_buf_len(&view) || (ours && is_same(rsb_buf_view(&view), *ours))) {
		job->held = job->said;
		return 0;
	}
	job->partly = true;
	return rsb_stage_replace(stage, job->at.path, rsb_buf_view(&view));
}

int
rsb_gitsettings_filter(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job,
	const struct rsb_stage *stage)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_GITALLOW_MAX };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf here = { .max = RSB_GITALLOW_MAX };
	struct rsb_bytes ours;
	int there, r;

	there = rsb_beneath_read(rsb_stage_fd(stage), job->at.path, &text);
	if (there == -ENOENT)
		return 0; /* it did not come */
	r = rsb_beneath_read(plan->root_fd, job->at.path, &here);
	if (there == -EINVAL || there == -EMSGSIZE || r == -EINVAL || r == -EMSGSIZE) {
		job->held = "it cannot be taken for the settings of a repository";
		return 0;
	}
	/* A file here may be a directory there. */
	if (there < 0 || (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP))
		return there < 0 ? there : r;
	ours = rsb_buf_view(&here);
	if (r >= 0 && has_credentials(ours) > 0)
		job->held = "it has credentials here, which would be lost; change it here, too";
	else if (!plan->trust_git)
		return judge(job, stage, rsb_buf_view(&text), r >= 0 ? &ours : NULL);
	return 0;
}
