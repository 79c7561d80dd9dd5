/* SPDX-License-Identifier: MIT */
#include "fuse/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/optlong.h"

/* What mount(8) and fstab(5) say that needs nothing done. */
static const char *const ignored[] = {
	"auto",
	"noauto",
	"defaults",
	"user",
	"users",
	"nouser",
	"_netdev",
	"nofail",
	"nosuid",
	"nodev",
	"relatime",
	"noatime",
	"nodiratime",
	"loud",
	"silent",
	"exec",
};

static int
set_text(char **place, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*place);
	*place = copy;
	return 0;
}

/* 1; -EINVAL: it is none, or more than max. */
static int
take_number(const char *text, unsigned int max, unsigned int *ret_number)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number > max)
		return -EINVAL;
	*ret_number = (unsigned int)number;
	return 1;
}

/* key=value: 1 taken, 0 not one of these. */
static int
take_value(struct rsb_options *o, const char *word, struct rsb_diag *diag)
{
	const struct {
		const char *prefix;
		char **place;
	} values[] = {
		{ "url=", &o->url },
		{ "key=", &o->key_file },
		{ "socket=", &o->socket },
		{ "idmap=", &o->idmap },
	};
	int r;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(values); i++) {
		size_t n = strlen(values[i].prefix);

		if (strncmp(word, values[i].prefix, n) != 0)
			continue;
		r = set_text(values[i].place, word + n);
		return r < 0 ? r : 1;
	}
	if (strncmp(word, "crashes=", 8) == 0) {
		r = take_number(word + 8, RSB_CRASHES_MAX, &o->crashes);
		return r < 0 ? rsb_diag_set(diag, r, "crashes is a number up to %u, not '%s'",
				       RSB_CRASHES_MAX, word + 8)
			     : r;
	}
	if (strncmp(word, "x-", 2) == 0 || strncmp(word, "comment=", 8) == 0)
		return 1;
	return 0;
}

static int
take_flag(struct rsb_options *o, const char *word)
{
	const struct {
		const char *word;
		bool *place;
		bool value;
	} flags[] = {
		{ "ro", &o->read_only, true },
		{ "rw", &o->read_only, false },
		{ "noexec", &o->noexec, true },
		{ "allow_other", &o->allow_other, true },
		{ "sync", &o->sync, true },
		{ "async", &o->async, true },
		{ "noepoch", &o->no_epoch, true },
		{ "noexpire", &o->no_expire, true },
		{ "noguard", &o->no_guard, true },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(flags); i++) {
		if (strcmp(word, flags[i].word) == 0) {
			*flags[i].place = flags[i].value;
			return 1;
		}
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(ignored); i++) {
		if (strcmp(word, ignored[i]) == 0)
			return 1;
	}
	return 0;
}

/* A key of rsb.conf(5), which may have commas in its value: the whole text of one -o. */
static bool
is_override(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
	size_t m = n && text[n] == '.' ? strspn(text + n + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;

	return m && (text[n + 1 + m] == '=' || strncmp(text + n + 1 + m, "+=", 2) == 0);
}

static int
take_override(struct rsb_options *o, const char *text)
{
	char **overrides = reallocarray(o->overrides, o->n_override + 2, sizeof(*overrides));

	if (!overrides)
		return -ENOMEM;
	o->overrides = overrides;
	overrides[o->n_override] = strdup(text);
	if (!overrides[o->n_override])
		return -ENOMEM;
	overrides[++o->n_override] = NULL;
	return 0;
}

static int
take_words(struct rsb_options *o, const char *text, struct rsb_diag *diag)
{
	char *copy = strdup(text);
	char *save = NULL;
	int r = copy ? 0 : -ENOMEM;

	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word && r >= 0;
		word = strtok_r(NULL, ",", &save)) {
		r = take_flag(o, word);
		if (r == 0)
			r = take_value(o, word, diag);
		/* One that mount(8) has put behind others; there is no comma in its value then. */
		if (r == 0 && is_override(word))
			r = take_override(o, word) < 0 ? -ENOMEM : 1;
		if (r == 0 && !o->sloppy)
			r = rsb_diag_set(diag, -EINVAL, "unknown mount option '%s'", word);
	}
	free(copy);
	return r < 0 ? r : 0;
}

enum { OPT_NO_MOUNT = 256, OPT_UPGRADE, OPT_FORCE };

static int
take_option(struct rsb_options *o, int c, struct rsb_diag *diag)
{
	switch (c) {
	case 'f':
		/* mount(8) says -f for "fake". */
		if (o->helper)
			o->fake = true;
		else
			o->foreground = true;
		return 0;
	case 'o':
		return is_override(optarg) ? take_override(o, optarg) : take_words(o, optarg, diag);
	case 'u':
		o->unmount = true;
		return 0;
	case OPT_NO_MOUNT:
		o->no_mount = true;
		return 0;
	case OPT_UPGRADE:
		o->upgrade = true;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case 's':
		o->sloppy = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	case 'V':
		o->version = true;
		return 0;
	case 'n':
	case 'N':
	case 't':
		return 0;
	default:
		return -EINVAL; /* which was said */
	}
}

static int
take_operands(struct rsb_options *o, int n, char *const *operands, struct rsb_diag *diag)
{
	const char *name = operands[0];
	int r;

	if (o->unmount)
		return n == 1 ? set_text(&o->directory, operands[0])
			      : rsb_diag_set(diag, -EINVAL, "-u takes one directory");
	if (o->force && !o->upgrade)
		return rsb_diag_set(diag, -EINVAL, "--force goes with --upgrade");
	if ((o->no_mount || o->upgrade) && n != 1)
		return rsb_diag_set(diag, -EINVAL, "%s takes the name of a sandbox",
			o->upgrade ? "--upgrade" : "--no-mount");
	if (!o->no_mount && !o->upgrade && n != 2)
		return rsb_diag_set(
			diag, -EINVAL, "it takes the name of a sandbox and a directory");
	/* As it stands in /proc/mounts. */
	if (strncmp(name, "rsb:", 4) == 0)
		name += 4;
	r = set_text(&o->name, name);
	if (r >= 0)
		r = n == 1 ? set_text(&o->mountpoint, "") : set_text(&o->directory, operands[1]);
	if (r >= 0 && o->idmap && strcmp(o->idmap, "user") != 0 && strcmp(o->idmap, "none") != 0)
		r = rsb_diag_set(diag, -EINVAL, "idmap is user or none, not '%s'", o->idmap);
	return r;
}

/* No option for people: always the first word, and nobody's mistake. */
static int
take_takeover(struct rsb_options *o, const char *text, struct rsb_diag *diag)
{
	int r = rsb_takeover_parse(text, &o->takeover);

	return r < 0 ? rsb_diag_set(diag, r, RSB_TAKEOVER_OPTION " is for rsb-mount itself") : 0;
}

int
rsb_options_parse(
	int argc, char *const *argv, struct rsb_options *ret_options, struct rsb_diag *diag)
{
	static const struct option longs[] = {
		{ "foreground", no_argument, NULL, 'f' },
		{ "no-mount", no_argument, NULL, OPT_NO_MOUNT },
		{ "unmount", no_argument, NULL, 'u' },
		{ "upgrade", no_argument, NULL, OPT_UPGRADE },
		{ "force", no_argument, NULL, OPT_FORCE },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct rsb_options *o = ret_options;
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *base = slash ? slash + 1 : (argc ? argv[0] : "");
	int c;
	int r = 0;

	*o = (struct rsb_options){
		.helper = strncmp(base, "mount.fuse", 10) == 0,
		.crashes = RSB_CRASHES_USUAL,
	};
	o->unmount = strncmp(base, "umount.fuse", 11) == 0;
	optind = 0;
	if (argc > 1 && strncmp(argv[1], RSB_TAKEOVER_OPTION, strlen(RSB_TAKEOVER_OPTION)) == 0) {
		r = take_takeover(o, argv[1] + strlen(RSB_TAKEOVER_OPTION), diag);
		argc--;
		argv++;
	}
	while (r >= 0 && (c = rsb_optlong(argc, argv, "fo:usvnN:t:hV", longs, diag)) >= 0)
		r = take_option(o, c, diag);
	if (r < 0 || o->help || o->version)
		return r;
	o->n_word = optind + (o->takeover.role ? 1 : 0);
	return take_operands(o, argc - optind, argv + optind, diag);
}

int
rsb_options_keep(struct rsb_options *options, char *const *argv)
{
	char **again = rsb_new_array(char *, (size_t)options->n_word + 3);
	size_t n = 0;

	if (!again)
		return -ENOMEM;
	for (int i = 0; i < options->n_word; i++) {
		if (i != 1 || !options->takeover.role)
			again[n++] = argv[i];
	}
	again[n++] = options->name;
	again[n] = options->mountpoint;
	options->again = again;
	return 0;
}

void
rsb_options_done(struct rsb_options *options)
{
	for (size_t i = 0; i < options->n_override; i++)
		free(options->overrides[i]);
	free(options->overrides);
	free(options->again);
	free(options->name);
	free(options->directory);
	free(options->mountpoint);
	free(options->url);
	free(options->key_file);
	free(options->socket);
	free(options->idmap);
	*options = (struct rsb_options){ .helper = false };
}
