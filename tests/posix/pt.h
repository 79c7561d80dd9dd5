/* SPDX-License-Identifier: MIT */
#ifndef RSB_POSIX_PT_H
#define RSB_POSIX_PT_H

/*
 * Cases about what a file system does, to be run in two directories and compared: a case makes
 * calls and says what came of them, in one line without anything that differs from run to run
 * (numbers of inodes, the time). What is right is what the other directory says.
 *
 * Each case runs in a process of its own, whose current directory is a fresh one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "util/macro.h"

#define PT_TEXT_MAX 16384
#define PT_NAME_MAX 128
#define PT_USER 1234 /* somebody else, in runs as root */
#define PT_GROUP 5678

/* One case that runs. */
struct pt {
	char text[PT_TEXT_MAX];
	size_t n;
	bool root; /* it may become others */
	bool big;  /* as many of everything as in the full set */
	bool dirty;
};

struct pt_run;

typedef void (*pt_case_fn)(struct pt *t, const void *arg);

/* A case by the name that format gives. arg lives as long as the call. */
void pt_case(struct pt_run *run, pt_case_fn fn, const void *arg, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* In a tree that make() fills, kept from one case to the next unless it was changed. */
void pt_case_in_tree(struct pt_run *run, void (*make)(struct pt *t), pt_case_fn fn, const void *arg,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Adds to the line. */
void pt_say(struct pt *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* " what=0" or the name of errno; gives r back. */
long pt_did(struct pt *t, const char *what, long r);
/* The same with the number itself. */
long pt_got(struct pt *t, const char *what, long r);
/* What a case stands on. The line says it, and the case ends. */
void pt_need(struct pt *t, bool is_so, const char *what);
/* True in runs that may not become others, after the line said so. */
bool pt_skip_unless_root(struct pt *t);
/* Becomes the other user, for good. No effect in runs as a user. */
void pt_become(struct pt *t, uid_t uid, gid_t gid);
/* fn in a child, whose words go into the line. */
void pt_child(struct pt *t, void (*fn)(struct pt *t, const void *arg), const void *arg);

/* Type, mode, links, size, owner of what path names itself. */
void pt_show(struct pt *t, const char *what, const char *path);
void pt_show_stat(struct pt *t, const char *what, const struct stat *st);
void pt_put(struct pt *t, const char *path, const char *text);
/* Contents, bytes that do not print as \xHH; at most 200. */
void pt_cat(struct pt *t, const char *what, const char *path);
/* The names of a directory, sorted. */
void pt_list(struct pt *t, const char *what, const char *path);
/* Whole below the current directory: a digest that says if something has changed. */
char *pt_tree(struct pt *t);
/* What differs from an earlier one, which is freed. */
void pt_tree_changes(struct pt *t, char *before);

enum pt_type {
	PT_NONE,
	PT_FILE,
	PT_DIR,
	PT_FULL, /* a directory with something in it */
	PT_LINK, /* symbolic, to a file */
	PT_LINKDIR,
	PT_DANGLING,
	PT_FIFO,
	PT_SOCKET,
	PT_N_TYPE
};

extern const char *const pt_type_names[PT_N_TYPE];
/* Makes one; what links point to is made by the first of them. */
void pt_make(struct pt *t, enum pt_type type, const char *name);

void pt_cases_paths(struct pt_run *run);
void pt_cases_fds(struct pt_run *run);
void pt_cases_open(struct pt_run *run);
void pt_cases_rename(struct pt_run *run);
void pt_cases_modes(struct pt_run *run);
void pt_cases_owners(struct pt_run *run);
void pt_cases_times(struct pt_run *run);
void pt_cases_data(struct pt_run *run);
void pt_cases_maps(struct pt_run *run);
void pt_cases_names(struct pt_run *run);
void pt_cases_links(struct pt_run *run);
void pt_cases_locks(struct pt_run *run);
void pt_cases_xattrs(struct pt_run *run);

#endif
