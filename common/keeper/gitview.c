/* SPDX-License-Identifier: MIT */
#include "keeper/gitview.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/gitkeys.h"
#include "keeper/gitparse.h"
#include "keeper/gitpath.h"
#include "util/cleanup.h"
#include "util/macro.h"

#define TRUSTED_MAX 256u /* entries of a trusted copy that are not harmless by themselves */

/* ---- the trusted copy ---- */

/* What it has beyond the harmless. */
struct extras {
	const struct rsb_gitallow *what;
	struct {
		char *item;
		struct rsb_bytes raw;
		bool is_there; /* in the text as well */
		bool is_given;
	} items[TRUSTED_MAX];
	size_t n;
};

static void
extras_done(struct extras *extras)
{
	for (size_t i = 0; i < extras->n; i++)
		free(extras->items[i].item);
}

/* "name\nvalue", "name" without one. No name has a newline, so two are one only if they are. */
static char *
item_of(const struct rsb_git_entry *entry)
{
	char *item = NULL;

	if (asprintf(&item, "%s%s%s", entry->name, entry->value ? "\n" : "",
		    entry->value ? entry->value : "") < 0)
		return NULL;
	return item;
}

static bool
is_of_name(const char *item, const char *name)
{
	size_t n = strlen(name);

	return strncmp(item, name, n) == 0 && (item[n] == '\n' || item[n] == '\0');
}

/* As it stands there, without the end of its line. */
static struct rsb_bytes
raw_of(struct rsb_bytes text, const struct rsb_git_entry *entry)
{
	struct rsb_bytes raw = { text.data + entry->begin, entry->end - entry->begin };

	if (raw.size && raw.data[raw.size - 1] == '\r')
		raw.size--;
	return raw;
}

static bool
is_harmless(const struct rsb_gitallow *what, const struct rsb_git_entry *entry)
{
	return rsb_gitkeys_harmless(entry, &what->place) &&
	       (strcmp(entry->name, "core.worktree") != 0 ||
		       rsb_gitpath_is_worktree(what, entry->value));
}

static int
add_extra(void *arg, const struct rsb_git_entry *entry)
{
	struct extras *extras = arg;

	if (extras->n == TRUSTED_MAX || is_harmless(extras->what, entry))
		return 0;
	extras->items[extras->n].item = item_of(entry);
	if (!extras->items[extras->n].item)
		return -ENOMEM;
	extras->items[extras->n].raw = raw_of(*extras->what->trusted, entry);
	extras->n++;
	return 0;
}

/* A trusted copy that cannot be read was trusted as a whole, and as that alone. */
static int
read_extras(struct extras *extras, const struct rsb_gitallow *what)
{
	extras->what = what;
	if (what->trusted && rsb_gitparse(*what->trusted, add_extra, extras) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

/* 1: it is held back; 0: it may be given. */
static int
is_held(struct extras *extras, const struct rsb_git_entry *entry)
{
	rsb_autofree char *item = NULL;
	int held = 1;

	if (is_harmless(extras->what, entry))
		return 0;
	item = item_of(entry);
	if (!item)
		return -ENOMEM;
	for (size_t i = 0; i < extras->n; i++) {
		if (strcmp(extras->items[i].item, item) == 0) {
			extras->items[i].is_there = true;
			held = 0;
		}
	}
	return held;
}

/* ---- the view ---- */

struct filter {
	struct extras *extras;
	struct rsb_bytes text;
	struct rsb_buf *out;
	size_t copied;
	/* A header that is given only if something below it is. */
	bool has_head;
	size_t head; /* where it began, as head_begin of its entries */
	struct rsb_bytes head_text;
};

static int
give(struct filter *f, size_t end)
{
	size_t begin = f->copied;

	f->copied = end;
	return rsb_buf_append(f->out, f->text.data + begin, end - begin);
}

static bool
is_blank(const struct filter *f, size_t begin, size_t end)
{
	for (; begin < end; begin++) {
		if (!strchr(" \t\r\n", f->text.data[begin]))
			return false;
	}
	return true;
}

static bool
is_at_line(const struct filter *f, size_t pos)
{
	return pos == 0 || f->text.data[pos - 1] == '\n';
}

/* Where the line of pos begins, if there is nothing but blanks before it; pos otherwise. */
static size_t
line_begin(const struct filter *f, size_t pos)
{
	size_t at = pos;

	while (at > 0 && (f->text.data[at - 1] == ' ' || f->text.data[at - 1] == '\t'))
		at--;
	return is_at_line(f, at) ? at : pos;
}

/* What comes next is in the section whose header is at head. */
static int
settle_head(struct filter *f, size_t head)
{
	if (!f->has_head)
		return 0;
	f->has_head = false;
	/* Comments are something too. */
	if (f->head != head && is_blank(f, f->copied, head))
		return 0;
	return rsb_buf_append(f->out, f->head_text.data, f->head_text.size);
}

/* What the trusted copy says instead. */
static int
give_trusted(struct filter *f, const struct rsb_git_entry *entry, bool *ret_some)
{
	bool some = false;
	int r = 0;

	for (size_t i = 0; i < f->extras->n && r >= 0; i++) {
		struct rsb_bytes raw = f->extras->items[i].raw;

		if (f->extras->items[i].is_there || f->extras->items[i].is_given ||
			!is_of_name(f->extras->items[i].item, entry->name))
			continue;
		if (!some) {
			r = settle_head(f, entry->head_begin);
			if (r >= 0)
				r = give(f, entry->begin);
		}
		if (r >= 0 && some)
			r = rsb_buf_append(f->out, "\n\t", 2);
		if (r >= 0)
			r = rsb_buf_append(f->out, raw.data, raw.size);
		f->extras->items[i].is_given = true;
		some = true;
	}
	if (some)
		f->copied = entry->end;
	*ret_some = some;
	return r;
}

/* Its section's header waits for what follows, if it has its own line and nothing follows yet. */
static int
put_off_head(struct filter *f, const struct rsb_git_entry *entry, size_t begin)
{
	size_t head;
	int r;

	/* Looked at once, whatever is before it and how much there is after. */
	if (entry->head_begin < f->copied)
		return give(f, begin);
	head = line_begin(f, entry->head_begin);
	if (!is_at_line(f, head) || head < f->copied || !is_blank(f, entry->head_end, begin))
		return give(f, begin);
	r = give(f, head);
	f->has_head = true;
	f->head = entry->head_begin;
	f->head_text = (struct rsb_bytes){ f->text.data + head, begin - head };
	return r;
}

/* Leaves out entry, with its line if it has one of its own. */
static int
leave_out(struct filter *f, const struct rsb_git_entry *entry)
{
	const size_t begin = line_begin(f, entry->begin);
	const bool is_line = is_at_line(f, begin);
	int r = 0;

	if (!f->has_head || f->head != entry->head_begin || f->copied != begin) {
		r = settle_head(f, entry->head_begin);
		if (r >= 0)
			r = is_line ? put_off_head(f, entry, begin) : give(f, begin);
	}
	f->copied = entry->end;
	if (is_line && f->copied < f->text.size)
		f->copied++;
	return r;
}

static int
filter_entry(void *arg, const struct rsb_git_entry *entry)
{
	struct filter *f = arg;
	bool is_replaced = false;
	int r;

	r = is_held(f->extras, entry);
	if (r < 0)
		return r;
	if (r == 0)
		return settle_head(f, entry->head_begin);
	r = give_trusted(f, entry, &is_replaced);
	if (r >= 0 && !is_replaced)
		r = leave_out(f, entry);
	return rsb_min(r, 0);
}

static int
filter(const struct rsb_gitallow *what, struct extras *extras, struct rsb_buf *view)
{
	struct filter f = { .extras = extras, .text = what->text, .out = view };
	int r;

	r = rsb_gitparse(what->text, filter_entry, &f);
	if (r >= 0)
		r = settle_head(&f, what->text.size);
	return r < 0 ? r : give(&f, what->text.size);
}

/* ---- judging ---- */

#define WHY_REST_MAX 32u /* ", and N more" */

struct look {
	struct extras *extras;
	char *why;
	size_t used; /* of why */
	size_t n;    /* that are held */
	size_t n_named;
};

/* All that fit: who accepts them accepts every one. Their number cannot be crowded out. */
static void
name_held(struct look *look, const char *name)
{
	const char *comma = look->n++ ? ", " : "";
	const size_t room = RSB_GITALLOW_WHY_MAX - WHY_REST_MAX - look->used;

	if (look->n_named + 1 < look->n || (look->used && strlen(comma) + strlen(name) >= room))
		return;
	(void)snprintf(look->why + look->used, room, "%s%s", comma, name);
	look->used += strlen(look->why + look->used);
	look->n_named++;
}

static int
look_at(void *arg, const struct rsb_git_entry *entry)
{
	struct look *look = arg;
	int r = is_held(look->extras, entry);

	if (r > 0)
		name_held(look, entry->name);
	return rsb_min(r, 0);
}

int
rsb_gitview_config(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX])
{
	RSB_CLEANUP(extras_done) struct extras extras = { .n = 0 };
	struct look look = { .extras = &extras, .why = why };
	int r;

	r = read_extras(&extras, what);
	if (r < 0)
		return r;
	r = rsb_gitparse(what->text, look_at, &look);
	if (r == -ENOMEM)
		return r;
	if (r >= 0 && !look.n)
		return RSB_GITALLOW_AS_IS;
	if (r >= 0) {
		if (look.n > look.n_named)
			(void)snprintf(why + look.used, WHY_REST_MAX, ", and %zu more",
				look.n - look.n_named);
		r = filter(what, &extras, view);
		return r < 0 ? r : RSB_GITALLOW_HELD;
	}
	(void)snprintf(why, RSB_GITALLOW_WHY_MAX, "it cannot be read as a configuration");
	r = what->trusted ? rsb_buf_append(view, what->trusted->data, what->trusted->size) : 0;
	return r < 0 ? r : RSB_GITALLOW_HELD;
}

/* ---- what comes back ---- */

struct kept {
	struct extras *extras;
	struct {
		char *item;
		struct rsb_bytes head;
		struct rsb_bytes raw;
	} items[RSB_GITVIEW_KEPT_MAX];
	size_t n;
};

static void
kept_done(struct kept *kept)
{
	for (size_t i = 0; i < kept->n; i++)
		free(kept->items[i].item);
}

static int
keep_entry(void *arg, const struct rsb_git_entry *entry)
{
	struct kept *kept = arg;
	struct rsb_bytes text = kept->extras->what->text;
	int r;

	r = kept->n == RSB_GITVIEW_KEPT_MAX ? 0 : is_held(kept->extras, entry);
	if (r <= 0)
		return r;
	kept->items[kept->n].item = item_of(entry);
	if (!kept->items[kept->n].item)
		return -ENOMEM;
	kept->items[kept->n].raw = raw_of(text, entry);
	kept->items[kept->n].head = (struct rsb_bytes){ text.data + entry->head_begin,
		entry->head_end - entry->head_begin };
	kept->n++;
	return 0;
}

/* It is written already: once for one. */
static int
drop_entry(void *arg, const struct rsb_git_entry *entry)
{
	struct kept *kept = arg;
	rsb_autofree char *item = item_of(entry);

	if (!item)
		return -ENOMEM;
	for (size_t i = 0; i < kept->n; i++) {
		if (kept->items[i].item && strcmp(kept->items[i].item, item) == 0) {
			free(rsb_steal(&kept->items[i].item));
			break;
		}
	}
	return 0;
}

static int
append_kept(const struct kept *kept, struct rsb_bytes ours, struct rsb_buf *out)
{
	const uint8_t *head = NULL;
	int r = 0;

	for (size_t i = 0; i < kept->n && r >= 0; i++) {
		if (!kept->items[i].item)
			continue;
		if (!head && ours.size && ours.data[ours.size - 1] != '\n')
			r = rsb_buf_append(out, "\n", 1);
		if (r >= 0 && kept->items[i].head.data != head) {
			head = kept->items[i].head.data;
			r = rsb_buf_append(out, head, kept->items[i].head.size);
			if (r >= 0)
				r = rsb_buf_append(out, "\n", 1);
		}
		if (r >= 0)
			r = rsb_buf_append(out, "\t", 1);
		if (r >= 0)
			r = rsb_buf_append(out, kept->items[i].raw.data, kept->items[i].raw.size);
		if (r >= 0)
			r = rsb_buf_append(out, "\n", 1);
	}
	return r;
}

int
rsb_gitview_kept(const struct rsb_gitallow *what, struct rsb_bytes ours, struct rsb_buf *out)
{
	RSB_CLEANUP(extras_done) struct extras extras = { .n = 0 };
	RSB_CLEANUP(kept_done) struct kept kept = { .extras = &extras };
	int r;

	r = read_extras(&extras, what);
	if (r >= 0)
		r = rsb_gitparse(what->text, keep_entry, &kept);
	if (r >= 0)
		r = rsb_gitparse(ours, drop_entry, &kept);
	return r < 0 ? r : append_kept(&kept, ours, out);
}
