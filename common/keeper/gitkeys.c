/* SPDX-License-Identifier: MIT */
#include "keeper/gitkeys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"
#include "util/macro.h"
#include "util/str.h"

/* Which values of a key are harmless. */
enum check {
	ANY,
	OFF,     /* a false one, where another names a program */
	REMOTE,  /* a remote's name or address */
	INSIDE,  /* a path that stays inside, from the repository's directory */
	BELOW,   /* a path that stays below, from wherever git runs in it */
	UPDATE,  /* of submodule.*.update, where "!" begins a command */
	VERSION, /* digits */
};

/* Keys in lower case, each with a blank on both sides; "*" is every key. */
struct rule {
	const char *section;
	bool has_sub;
	enum check check;
	const char *keys;
};

/* clang-format off */
static const struct rule rules[] = {
	{ "core", false, ANY,
		" repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode"
		" symlinks autocrlf eol safecrlf checkroundtripencoding abbrev compression"
		" loosecompression sharedrepository quotepath sparsecheckout sparsecheckoutcone"
		" untrackedcache preloadindex trustctime checkstat commentchar commentstring"
		" whitespace packedgitwindowsize packedgitlimit packedrefstimeout filesreflocktimeout"
		" bigfilethreshold deltabasecachelimit multipackindex commitgraph splitindex"
		" fsync fsyncmethod fsyncobjectfiles warnambiguousrefs disambiguate notesref"
		" usereplacerefs ignorestat createobject maxtreedepth fscache longpaths hidedotfiles " },
	{ "core", false, INSIDE, " worktree " },
	{ "core", false, OFF, " fsmonitor usebuiltinfsmonitor " },
	{ "user", false, ANY, " name email useconfigonly " },
	{ "author", false, ANY, " name email " },
	{ "committer", false, ANY, " name email " },
	{ "init", false, ANY, " defaultbranch defaultobjectformat defaultrefformat " },
	{ "extensions", false, ANY,
		" objectformat compatobjectformat refstorage worktreeconfig preciousobjects noop"
		" noop-v1 relativeworktrees " },
	{ "branch", true, ANY,
		" merge rebase description vscode-merge-base github-pr-owner-number"
		" github-pr-base-branch " },
	{ "branch", true, REMOTE, " remote pushremote " },
	{ "branch", false, ANY, " autosetupmerge autosetuprebase sort " },
	{ "remote", true, REMOTE, " url pushurl " },
	{ "remote", true, ANY,
		" fetch push tagopt prune prunetags skipdefaultupdate skipfetchall mirror"
		" followremotehead " },
	{ "remote", true, OFF, " promisor " },
	{ "remote", false, REMOTE, " pushdefault " },
	{ "submodule", true, REMOTE, " url " },
	{ "submodule", true, ANY, " active branch fetchrecursesubmodules ignore shallow " },
	{ "submodule", true, UPDATE, " update " },
	{ "submodule", false, ANY,
		" active recurse fetchjobs propagatebranches alternateerrorstrategy " },
	{ "gc", false, ANY,
		" auto autodetach autopacklimit aggressivedepth aggressivewindow bigpackthreshold"
		" cruftpacks logexpiry packrefs pruneexpire reflogexpire reflogexpireunreachable"
		" rerereresolved rerereunresolved worktreepruneexpire writecommitgraph " },
	{ "gc", true, ANY, " reflogexpire reflogexpireunreachable " },
	{ "maintenance", false, ANY, " auto autodetach strategy " },
	{ "maintenance", true, ANY, " enabled schedule auto " },
	{ "pack", false, ANY,
		" threads window depth windowmemory compression deltacachesize deltacachelimit"
		" indexversion packsizelimit usebitmaps usesparse writebitmaphashcache"
		" writebitmaplookuptable writereverseindex readreverseindex allowpackreuse " },
	{ "repack", false, ANY,
		" packkeptobjects usedeltabaseoffset usedeltaislands writebitmaps updateserverinfo " },
	{ "fetch", false, ANY,
		" all fsckobjects negotiationalgorithm output parallel prune prunetags"
		" recursesubmodules showforcedupdates unpacklimit writecommitgraph " },
	{ "pull", false, ANY, " ff rebase " },
	{ "push", false, ANY,
		" autosetupremote default followtags negotiate recursesubmodules usebitmaps"
		" useforceifincludes " },
	{ "merge", false, ANY,
		" autostash branchdesc conflictstyle defaulttoupstream directoryrenames ff log"
		" renamelimit renames renormalize stat suppressdest verbosity " },
	{ "rebase", false, ANY,
		" abbreviatecommands autosquash autostash backend forkpoint missingcommitscheck"
		" rebasemerges reschedulefailedexec stat updaterefs " },
	{ "diff", false, ANY,
		" algorithm autorefreshindex colormoved colormovedws context dirstat"
		" ignoresubmodules indentheuristic interhunkcontext mnemonicprefix noprefix relative"
		" renamelimit renames statgraphwidth statnamewidth submodule suppressblankempty"
		" wordregex wserrorhighlight " },
	{ "diff", true, ANY, " binary cachetextconv funcname wordregex xfuncname " },
	{ "log", false, ANY,
		" abbrevcommit date decorate diffmerges follow graphcolors initialdecorationset"
		" mailmap showroot " },
	{ "status", false, ANY,
		" aheadbehind branch displaycommentprefix relativepaths renamelimit renames short"
		" showstash showuntrackedfiles submodulesummary " },
	{ "commit", false, ANY, " cleanup status verbose " },
	{ "checkout", false, ANY, " guess thresholdforparallelism workers " },
	{ "checkout", false, REMOTE, " defaultremote " },
	{ "stash", false, ANY, " showincludeuntracked showpatch showstat " },
	{ "tag", false, ANY, " sort " },
	{ "blame", false, ANY,
		" blankboundary coloring date markignoredlines markunblamablelines showemail showroot " },
	{ "blame", false, BELOW, " ignorerevsfile " },
	{ "index", false, ANY,
		" recordendofindexentries recordoffsettable skiphash sparse threads version " },
	{ "feature", false, ANY, " experimental manyfiles " },
	{ "rerere", false, ANY, " autoupdate enabled " },
	{ "notes", false, ANY, " displayref rewritemode rewriteref " },
	{ "i18n", false, ANY, " commitencoding filesencoding logoutputencoding " },
	{ "receive", false, ANY,
		" denycurrentbranch denydeletecurrent denydeletes denynonfastforwards fsckobjects"
		" advertiseatomic autogc unpacklimit updateserverinfo " },
	{ "transfer", false, ANY, " fsckobjects hiderefs unpacklimit " },
	{ "worktree", false, ANY, " guessremote userelativepaths " },
	{ "protocol", false, VERSION, " version " },
	{ "lfs", false, VERSION, " repositoryformatversion " },
	{ "lfs", true, ANY, " access locksverify " },
	{ "pager", false, OFF, " * " },
	{ "advice", false, ANY, " * " },
	{ "color", false, ANY, " * " },
	{ "color", true, ANY, " * " },
	{ "column", false, ANY, " * " },
};
/* clang-format on */

static bool
is_off(const char *value)
{
	return value &&
	       (!*value || strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0 ||
		       strcasecmp(value, "off") == 0 || strcmp(value, "0") == 0);
}

static bool
is_digits(const char *value)
{
	return value && *value && value[strspn(value, "0123456789")] == '\0';
}

/*
 * It is handed on as it is, and behind a name may be a link: ".." leads up from wherever that
 * leads, while the rule for links takes it for the way back.
 */
static bool
turns_back(const char *path)
{
	bool named = false;

	while (*path) {
		size_t n = strcspn(path, "/");
		bool up = n == 2 && memcmp(path, "..", 2) == 0;

		if (up && named)
			return true;
		named |= n && !up && !(n == 1 && *path == '.');
		path += n + (path[n] == '/');
	}
	return false;
}

/* The path stays inside, and means here what it means there. */
static bool
is_inside(const char *value, const struct rsb_target_place *place)
{
	rsb_autofree char *mapped = NULL;

	if (!value || !*value || *value == '~' || *value == '-' || *value == ':' ||
		turns_back(value))
		return false;
	if (rsb_target_map(place, rsb_bytes_str(value), &mapped) < 0)
		return false;
	return *value != '/' || strcmp(mapped, value) == 0;
}

/* From any directory inside. */
static bool
is_below(const char *value, const struct rsb_target_place *place)
{
	struct rsb_target_place root = *place;

	root.depth = 0;
	return is_inside(value, &root);
}

/*
 * Of gitremote-helpers(7): "transport::address" runs git-remote-transport, and so does an unknown
 * scheme. What looks like an option is refused by git too. A file outside is not fetched from: its
 * objects would go into the sandbox.
 */
static bool
is_remote(const char *value, const struct rsb_target_place *place)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://",
		"git+ssh://", "ssh+git://" };
	size_t n;

	if (!value || *value == '-' || strstr(value, "://-") || strchr(value, '\n'))
		return false;
	n = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
	if (strncmp(value + n, "::", 2) == 0)
		return false;
	if (strncmp(value + n, "://", 3) == 0) {
		for (size_t i = 0; i < RSB_ARRAY_SIZE(schemes); i++) {
			if (strncmp(value, schemes[i], strlen(schemes[i])) == 0)
				return true;
		}
		return false;
	}
	/* host:path, unless a slash comes first. */
	n = strcspn(value, ":/");
	if (n && value[n] == ':')
		return true;
	return !*value || is_below(value, place);
}

static bool
is_update(const char *value)
{
	static const char *const ways[] = { "checkout", "rebase", "merge", "none" };

	for (size_t i = 0; value && i < RSB_ARRAY_SIZE(ways); i++) {
		if (strcmp(value, ways[i]) == 0)
			return true;
	}
	return false;
}

static bool
is_value_ok(enum check check, const char *value, const struct rsb_target_place *place)
{
	switch (check) {
	case ANY:
		return true;
	case OFF:
		return is_off(value);
	case REMOTE:
		return is_remote(value, place);
	case INSIDE:
		return is_inside(value, place);
	case BELOW:
		return is_below(value, place);
	case UPDATE:
		return is_update(value);
	case VERSION:
		return is_digits(value);
	default:
		return false;
	}
}

bool
rsb_gitkeys_harmless(const struct rsb_git_entry *entry, const struct rsb_target_place *place)
{
	size_t n_section = strcspn(entry->name, ".");

	for (size_t i = 0; i < RSB_ARRAY_SIZE(rules); i++) {
		const struct rule *rule = &rules[i];

		if (strlen(rule->section) == n_section &&
			memcmp(rule->section, entry->name, n_section) == 0 &&
			rule->has_sub == (entry->sub != NULL) &&
			(strcmp(rule->keys, " * ") == 0 ||
				rsb_str_has_word(rsb_bytes_str(entry->key), rule->keys)))
			return is_value_ok(rule->check, entry->value, place);
	}
	return false;
}
