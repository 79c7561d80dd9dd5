/* SPDX-License-Identifier: MIT */
#include "keeper/gitlists.h"

#include <errno.h>
#include <string.h>

#include "keeper/gitnames.h"
#include "keeper/gitout.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/str.h"

/* Bits of the configuration below root_fd; what is none says nothing. -ENOMEM. */
static int
add_formats(int root_fd, const char *path, unsigned int *formats)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_GITALLOW_MAX };
	int r = rsb_beneath_read(root_fd, path, &text);

	if (r >= 0)
		*formats |= rsb_gitnames_formats(rsb_buf_view(&text));
	return r == -ENOMEM ? r : 0;
}

/* As git would have it that finds what is here, or what comes. */
static int
find_id_size(const struct rsb_syncplan *plan, const struct rsb_stage *stage, const char *path,
	size_t root, size_t *ret_size)
{
	rsb_autofree char *config =
		rsb_str_printf("%.*s%sconfig", (int)root, path, root ? "/" : "");
	unsigned int formats = 0;
	int r;

	if (!config)
		return -ENOMEM;
	r = add_formats(plan->root_fd, config, &formats);
	if (r >= 0)
		r = add_formats(rsb_stage_fd(stage), config, &formats);
	*ret_size = rsb_gitnames_id_size(formats);
	return r;
}

static int
hold(struct rsb_syncplan_job *job, const char *why)
{
	job->said = strdup(why);
	job->held = job->said;
	return job->said ? 0 : -ENOMEM;
}

int
rsb_gitlists_look(const struct rsb_syncplan *plan, struct rsb_syncplan_job *job,
	const struct rsb_stage *stage)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_GITNAMES_MAX };
	const char *path = job->at.path;
	struct rsb_gitallow what = { .kind = rsb_gitout_list(path) };
	char why[RSB_GITALLOW_WHY_MAX];
	struct rsb_gitout_place place;
	int r;

	if (!rsb_gitout_find(path, &plan->here, &plan->there, &place))
		return 0;
	r = rsb_beneath_read(rsb_stage_fd(stage), path, &text);
	if (r == -ENOENT)
		return 0; /* it did not come */
	if (r == -EINVAL || r == -EMSGSIZE)
		return hold(job, "it is no file, or too long to be looked at");
	if (r >= 0)
		r = find_id_size(plan, stage, path, place.root, &what.id_size);
	if (r < 0)
		return r;
	what.text = rsb_buf_view(&text);
	r = rsb_gitnames_judge(&what, why);
	return r == RSB_GITALLOW_DENIED ? hold(job, why) : r;
}
