/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/eventlog.h"
#include "keeper/state.h"
#include "tests/unit/unit.h"
#include "util/fd.h"

static char root[64];
static struct rsb_state_dir *dir;
static struct rsb_eventlog *events;

static void
setup(void)
{
	const struct rsb_state state = { .name = "one", .backend = "local", .sandbox_id = "iabc" };

	strcpy(root, "/tmp/rsb-eventlog.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(rsb_state_open(root, "one", true, &dir, NULL), 0);
	ck_assert_int_eq(rsb_state_save(dir, &state), 0);
	ck_assert_int_eq(rsb_eventlog_open(rsb_state_path(dir), &events), 0);
}

static void
teardown(void)
{
	char command[128];

	rsb_eventlog_free(events);
	rsb_state_close(dir);
	(void)snprintf(command, sizeof(command), "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static void
append(const void *bytes, size_t n)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/" RSB_STATE_EVENTS, rsb_state_path(dir));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rsb_fd_write_full(fd, bytes, n), 0);
	(void)close(fd);
}

static void
next_is(const char *text)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *event = NULL;
	const char *got;

	ck_assert_int_eq(rsb_eventlog_next(events, &event), 1);
	ck_assert_int_eq(rsb_json_str(event, "text", &got), 0);
	ck_assert_str_eq(got, text);
}

static void
there_is_no_more(void)
{
	struct rsb_json *event;

	ck_assert_int_eq(rsb_eventlog_next(events, &event), 0);
}

START_TEST(reads_as_it_grows)
{
	setup();
	there_is_no_more();
	rsb_state_event(dir, "live", "first");
	rsb_state_event(dir, "down", "second");
	ck_assert_int_eq(rsb_eventlog_wait(events, 1000), 0);
	next_is("first");
	next_is("second");
	there_is_no_more();
	rsb_state_event(dir, "live", "third");
	ck_assert_int_eq(rsb_eventlog_wait(events, 1000), 0);
	next_is("third");
	ck_assert_int_eq(rsb_eventlog_wait(events, 1), -ETIMEDOUT);
	teardown();
}
END_TEST

START_TEST(reads_on_over_a_full_file)
{
	static char filler[RSB_STATE_EVENTS_MAX];

	setup();
	rsb_state_event(dir, "live", "in the old one");
	next_is("in the old one");
	memset(filler, '\n', sizeof(filler));
	append(filler, sizeof(filler));
	rsb_state_event(dir, "live", "in the new one");
	next_is("in the new one");
	there_is_no_more();
	/* And from the beginning. */
	rsb_eventlog_free(events);
	ck_assert_int_eq(rsb_eventlog_open(rsb_state_path(dir), &events), 0);
	next_is("in the old one");
	next_is("in the new one");
	there_is_no_more();
	teardown();
}
END_TEST

START_TEST(skips_what_is_damaged)
{
	static const char half[] = "{\"text\":\"whole";
	static const char damaged[] = "no JSON\n\n[1]\n\"text\"\n{\"text\":\n\0\xff\n";
	static char endless[300 << 10];

	setup();
	append(damaged, sizeof(damaged) - 1);
	append(half, sizeof(half) - 1);
	there_is_no_more();
	append("\"}\n", 3);
	next_is("whole");
	memset(endless, 'x', sizeof(endless));
	append(endless, sizeof(endless));
	there_is_no_more();
	append(half, sizeof(half) - 1);
	append("\"}\n", 3); /* still of the same line */
	append(half, sizeof(half) - 1);
	append("\"}\n", 3);
	next_is("whole");
	there_is_no_more();
	teardown();
}
END_TEST

START_TEST(ends_with_the_sandbox)
{
	setup();
	rsb_state_event(dir, "lost", "the last");
	ck_assert_int_eq(rsb_state_remove(dir), 0);
	rsb_state_close(rsb_steal(&dir));
	while (rsb_eventlog_wait(events, 1000) == 0)
		there_is_no_more();
	ck_assert_int_eq(rsb_eventlog_wait(events, 1000), -ENOENT);
	teardown();
}
END_TEST

START_TEST(needs_a_directory)
{
	struct rsb_eventlog *none;

	ck_assert_int_eq(rsb_eventlog_open("/nonexistent", &none), -ENOENT);
	ck_assert_int_eq(rsb_eventlog_open("/dev/null", &none), -ENOTDIR);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_as_it_grows,
		reads_on_over_a_full_file,
		skips_what_is_damaged,
		ends_with_the_sandbox,
		needs_a_directory,
	};

	return unit_run("eventlog", tests, RSB_ARRAY_SIZE(tests));
}
