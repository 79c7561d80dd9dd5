/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define RSB_LOG_MODULE "test"
#include "util/log.h"

static int sink = -1;
static char text[65536];

static void
open_sink(enum rsb_log_level level)
{
	sink = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_ge(sink, 0);
	rsb_log_init("prog", level, sink);
}

static const char *
written(void)
{
	ssize_t n = pread(sink, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	return text;
}

START_TEST(writes_lines_that_say_who_and_what)
{
	open_sink(RSB_LOG_DBG);
	rsb_err("a %d", 1);
	rsb_warn("b");
	rsb_info("c");
	rsb_dbg("d");
	ck_assert_str_eq(written(), "prog: error: a 1\n"
				    "prog: warning: b\n"
				    "prog: c\n"
				    "prog: debug: test: d\n");
}
END_TEST

START_TEST(keeps_quiet_above_its_level)
{
	open_sink(RSB_LOG_WARN);
	rsb_info("c");
	rsb_dbg("d");
	ck_assert_str_eq(written(), "");
	ck_assert_int_eq(rsb_log_level(), RSB_LOG_WARN);
}
END_TEST

START_TEST(names_the_error_and_returns_it)
{
	open_sink(RSB_LOG_DBG);
	errno = EPIPE;
	ck_assert_int_eq(rsb_err_r(-ENOENT, "cannot open '%s'", "x"), -ENOENT);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert_str_eq(written(), "prog: error: cannot open 'x': No such file or directory\n");
}
END_TEST

START_TEST(escapes_what_could_forge_a_line_or_move_the_cursor)
{
	open_sink(RSB_LOG_DBG);
	rsb_err("%s", "a\nb\x1b[2J\xc3\xa4\x7f~");
	ck_assert_str_eq(written(), "prog: error: a\\x0ab\\x1b[2J\\xc3\\xa4\\x7f~\n");
}
END_TEST

START_TEST(cuts_a_long_message_but_ends_the_line)
{
	char message[9000];
	const char *s;

	open_sink(RSB_LOG_DBG);
	memset(message, '\x01', sizeof(message));
	message[sizeof(message) - 1] = '\0';
	rsb_err("%s", message);
	s = written();
	ck_assert_uint_le(strlen(s), 4096);
	ck_assert_ptr_eq(strchr(s, '\n'), s + strlen(s) - 1);
}
END_TEST

START_TEST(limits_each_place_on_its_own)
{
	const char *s;
	size_t n = 0;
	int i;

	open_sink(RSB_LOG_DBG);
	for (i = 0; i < 1000; i++)
		rsb_err("again");
	rsb_err("another");
	for (s = written(); (s = strchr(s, '\n')); s++)
		n++;
	ck_assert_uint_eq(n, 11);
	ck_assert_ptr_nonnull(strstr(text, "another"));
}
END_TEST

START_TEST(says_how_many_it_left_out)
{
	struct rsb_log_site site = { 0 };
	int i;

	open_sink(RSB_LOG_DBG);
	for (i = 0; i < 25; i++)
		rsb_log_write(RSB_LOG_ERR, &site, "test", 0, "again");
	site.window_ns = 1; /* as if it had begun at boot */
	rsb_log_write(RSB_LOG_ERR, &site, "test", 0, "again");
	ck_assert_ptr_nonnull(strstr(written(), "again (and 15 more like it)\n"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		writes_lines_that_say_who_and_what,
		keeps_quiet_above_its_level,
		names_the_error_and_returns_it,
		escapes_what_could_forge_a_line_or_move_the_cursor,
		cuts_a_long_message_but_ends_the_line,
		limits_each_place_on_its_own,
		says_how_many_it_left_out,
	};

	return unit_run("log", tests, RSB_ARRAY_SIZE(tests));
}
