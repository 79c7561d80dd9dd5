/* SPDX-License-Identifier: MIT */
/* Names: every byte, lengths, depth; directories with many, listed while they change. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static void
one_byte(struct pt *t, const void *arg)
{
	const unsigned char *byte = arg;
	const char name[] = { (char)*byte, 0 };
	const char framed[] = { 'a', (char)*byte, 'b', 0 };
	char target[4] = "";
	DIR *dir;
	struct dirent *entry;

	pt_did(t, "mkdir", mkdir(name, 0755));
	pt_did(t, "symlink", symlink(framed, framed));
	pt_got(t, "readlink", readlink(framed, target, sizeof(target)));
	pt_say(t, " same=%d", memcmp(target, framed, 3) == 0);
	pt_did(t, "rename", rename(framed, "plain"));
	pt_did(t, "back", rename("plain", framed));
	dir = opendir(".");
	pt_need(t, dir != NULL, "opendir");
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' && *byte != '.')
			continue;
		pt_say(t, " seen=%d",
			strcmp(entry->d_name, name) == 0 || strcmp(entry->d_name, framed) == 0);
	}
	(void)closedir(dir);
	pt_did(t, "unlink", unlink(framed));
	pt_did(t, "rmdir", rmdir(name));
}

static const char *const odd_names[] = {
	"...",
	" ",
	"-rf",
	"a\nb",
	"\xc3\xa9",
	"e\xcc\x81",
	"\xff\xfe\xfd",
	"CON",
	"a.",
	"A",
	"\xe2\x80\xae",
	"%2f",
	"\\",
	"~",
	"*",
};

static void
odd_name(struct pt *t, const void *arg)
{
	const char *name = arg;

	pt_put(t, name, "odd");
	pt_show(t, "it", name);
	pt_did(t, "link", link(name, "plain"));
	pt_list(t, "list", ".");
	pt_did(t, "other-case", access("a", F_OK));
	pt_did(t, "unlink", unlink(name));
	pt_show(t, "it", name);
}

/* Ways longer than PATH_MAX can be walked but not named. */
static void
deep(struct pt *t, const void *arg)
{
	char name[201];
	char data[8] = "";
	int n = t->big ? 200 : 40;

	(void)arg;
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (int i = 0; i < n; i++) {
		if (mkdir(name, 0755) < 0 || chdir(name) < 0) {
			pt_did(t, "stopped", -1);
			pt_say(t, " at %d", i);
			return;
		}
	}
	pt_put(t, "x", "bottom");
	rsb_autoclose int fd = open("x", O_RDONLY | O_CLOEXEC);
	pt_got(t, "read", read(fd, data, 6));
	pt_did(t, "rename", rename("x", "y"));
	pt_did(t, "link", link("y", "../z"));
	pt_show(t, "z", "../z");
	pt_show(t, "z", "../../z");
	errno = 0;
	pt_say(t, " cwd=%s", getcwd(name, sizeof(name)) ? "known" : strerrorname_np(errno));
	for (int i = 0; i < n; i++)
		pt_need(t, chdir("..") == 0, "up");
	pt_list(t, "top", "top");
	pt_list(t, "..", "..");
}

struct many {
	int n;
	bool removes;
};

static void
count_many(struct pt *t, const void *arg)
{
	const struct many *m = arg;
	int n = t->big ? m->n : m->n / 25;
	rsb_autofree char *seen = calloc((size_t)n, 1);
	DIR *dir;
	struct dirent *entry;
	int twice = 0;
	int missed = 0;

	pt_need(t, mkdir("d", 0755) == 0 && seen, "d");
	dir = opendir("d");
	pt_need(t, dir != NULL, "opendir");
	for (int i = 0; i < n; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "entry-number-%d", i);
		pt_need(t, mknodat(dirfd(dir), name, S_IFREG | 0644, 0) == 0, name);
	}
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		int i;

		if (sscanf(entry->d_name, "entry-number-%d", &i) != 1)
			continue;
		twice += seen[i]++ != 0;
		if (m->removes)
			pt_need(t, unlinkat(dirfd(dir), entry->d_name, 0) == 0, "unlink");
	}
	for (int i = 0; i < n; i++)
		missed += !seen[i];
	pt_say(t, " %d twice=%d missed=%d", n, twice, missed);
	(void)closedir(dir);
	pt_did(t, "rmdir", rmdir("d"));
	if (!m->removes)
		pt_need(t, system("rm -r d") == 0, "rm");
	pt_did(t, "rmdir", rmdir("d"));
}

/* What is there from begin to end is seen once, whatever comes and goes meanwhile. */
static void
list_while_it_changes(struct pt *t, const void *arg)
{
	enum { N = 300 };
	char seen[N] = "";
	DIR *dir;
	struct dirent *entry;
	int steps = 0;
	int bad = 0;

	(void)arg;
	for (int i = 0; i < N; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "s%d", i);
		pt_put(t, name, "");
	}
	dir = opendir(".");
	pt_need(t, dir != NULL, "opendir");
	while ((entry = readdir(dir))) {
		char name[16];
		int i;

		if (sscanf(entry->d_name, "s%d", &i) == 1)
			seen[i]++;
		(void)snprintf(name, sizeof(name), "new%d", steps++);
		if (steps < N)
			pt_put(t, name, "");
		(void)snprintf(name, sizeof(name), "new%d", steps - 5);
		(void)unlink(name);
	}
	for (int i = 0; i < N; i++)
		bad += seen[i] != 1;
	pt_say(t, " bad=%d", bad);
	(void)closedir(dir);
}

static void
seek_in_a_listing(struct pt *t, const void *arg)
{
	enum { N = 500, AT = 123 };
	char names[N][16];
	long place = 0;
	struct dirent *entry;
	DIR *dir;
	int n = 0;
	int same = 0;

	(void)arg;
	for (int i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "f%d", i);
		pt_put(t, names[i], "");
	}
	dir = opendir(".");
	pt_need(t, dir != NULL, "opendir");
	while (n < N && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(names[n], sizeof(names[n]), "%.15s", entry->d_name);
		if (++n == AT)
			place = telldir(dir);
	}
	seekdir(dir, place);
	for (int i = AT; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		same += i < N && strcmp(entry->d_name, names[i]) == 0;
		i++;
	}
	pt_say(t, " n=%d same=%d", n, same);
	rewinddir(dir);
	for (n = 0; readdir(dir);)
		n++;
	pt_say(t, " again=%d", n);
	(void)closedir(dir);
}

static void
types_in_a_listing(struct pt *t, const void *arg)
{
	struct dirent *entry;
	DIR *dir;
	int bad = 0;
	int n = 0;

	(void)arg;
	for (int type = PT_FILE; type < PT_N_TYPE; type++)
		pt_make(t, (enum pt_type)type, pt_type_names[type]);
	dir = opendir(".");
	pt_need(t, dir != NULL, "opendir");
	while ((entry = readdir(dir))) {
		struct stat st;

		pt_need(t, lstat(entry->d_name, &st) == 0, "lstat");
		if (strcmp(entry->d_name, "..") != 0)
			bad += entry->d_ino != st.st_ino;
		bad += entry->d_type != IFTODT(st.st_mode);
		n++;
	}
	(void)closedir(dir);
	pt_say(t, " n=%d bad=%d", n, bad);
}

static void
listing_of_a_removed_directory(struct pt *t, const void *arg)
{
	DIR *dir;
	int n = 0;

	(void)arg;
	pt_make(t, PT_FULL, "d");
	dir = opendir("d");
	pt_need(t, dir != NULL, "opendir");
	pt_did(t, "rmdir", rmdir("d"));
	pt_did(t, "unlink", unlink("d/inside"));
	pt_did(t, "rmdir", rmdir("d"));
	errno = 0;
	rewinddir(dir);
	while (readdir(dir))
		n++;
	pt_say(t, " n=%d errno=%d", n, errno);
	pt_did(t, "creat", openat(dirfd(dir), "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	pt_did(t, "mkdir", mkdirat(dirfd(dir), "x", 0755));
	pt_did(t, "stat", faccessat(dirfd(dir), "x", F_OK, 0));
	pt_did(t, "up", faccessat(dirfd(dir), "..", F_OK, 0));
	pt_did(t, "here", faccessat(dirfd(dir), ".", F_OK, 0));
	(void)closedir(dir);
}

void
pt_cases_names(struct pt_run *run)
{
	static const struct many kept = { 50000, false };
	static const struct many removed = { 50000, true };

	for (int i = 1; i < 256; i++) {
		unsigned char byte = (unsigned char)i;

		if (i != '/' && i != '.')
			pt_case(run, one_byte, &byte, "name.of byte %02x", i);
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(odd_names); i++)
		pt_case(run, odd_name, odd_names[i], "name.odd %zu", i);
	pt_case(run, deep, NULL, "name.deep");
	pt_case(run, count_many, &kept, "name.many");
	pt_case(run, count_many, &removed, "name.many removed while listed");
	pt_case(run, list_while_it_changes, NULL, "name.list while it changes");
	pt_case(run, seek_in_a_listing, NULL, "name.seek in a listing");
	pt_case(run, types_in_a_listing, NULL, "name.types in a listing");
	pt_case(run, listing_of_a_removed_directory, NULL, "name.listing of a removed directory");
}
