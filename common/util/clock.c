/* SPDX-License-Identifier: MIT */
#include "util/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SEC_PER_DAY 86400
/* The last second that an unsigned count of nanoseconds can name is in 2554. */
#define WALL_SEC_MAX ((int64_t)(UINT64_MAX / RSB_NSEC_PER_SEC) - 1)

static uint64_t
read_clock(clockid_t id)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(id, &ts); /* cannot fail for clocks that Linux always has */
	return (uint64_t)ts.tv_sec * RSB_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t
rsb_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t
rsb_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t
rsb_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

static uint64_t
monotonic_now(rsb_unused void *arg)
{
	return rsb_now_ns();
}

const struct rsb_clock *
rsb_clock_monotonic(void)
{
	static const struct rsb_clock clock = { .now_ns = monotonic_now };

	return &clock;
}

/*
 * The calendar is computed here, since gmtime_r(3) reads /etc/localtime first. Years begin in
 * March, so that the leap day is the last of its year; 1970-01-01 is day 719468 of that count.
 */
static int64_t
days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t m = month <= 2 ? month + 9 : month - 3;

	return y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static void
date_of(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
	int64_t era_day, year_day, y, m;

	days += 719468;
	era_day = days % 146097;
	y = (era_day - era_day / 1460 + era_day / 36524 - era_day / 146096) / 365;
	year_day = era_day - (y * 365 + y / 4 - y / 100);
	m = (5 * year_day + 2) / 153;
	*ret_day = year_day - (153 * m + 2) / 5 + 1;
	*ret_month = m < 10 ? m + 3 : m - 9;
	*ret_year = y + days / 146097 * 400 + (*ret_month <= 2 ? 1 : 0);
}

void
rsb_clock_rfc3339(uint64_t wall_ns, char out[static RSB_RFC3339_SIZE])
{
	uint64_t sec = wall_ns / RSB_NSEC_PER_SEC;
	unsigned int of_day = (unsigned int)(sec % SEC_PER_DAY);
	int64_t year, month, day;

	date_of((int64_t)(sec / SEC_PER_DAY), &year, &month, &day);
	(void)snprintf(out, RSB_RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
		(unsigned int)year % 10000, (unsigned int)month % 100, (unsigned int)day % 100,
		of_day / 3600, of_day / 60 % 60, of_day % 60,
		(unsigned int)(wall_ns % RSB_NSEC_PER_SEC / 1000));
}

/* Exactly n digits, then the byte end (0: whatever comes). Advances *sp past both. */
static bool
scan(const char **sp, int n, char end, int64_t *ret_value)
{
	const char *s = *sp;
	int64_t value = 0;

	for (; n > 0; n--, s++) {
		if (*s < '0' || *s > '9')
			return false;
		value = value * 10 + (*s - '0');
	}
	if (end) {
		if (*s != end)
			return false;
		s++;
	}
	*sp = s;
	*ret_value = value;
	return true;
}

/* "Z", or "+hh:mm" in seconds east of UTC; then the end of the text. */
static bool
scan_offset(const char *s, int64_t *ret_sec)
{
	int64_t hour, min, sign;

	if (*s == 'Z' || *s == 'z') {
		*ret_sec = 0;
		return s[1] == '\0';
	}
	if (*s != '+' && *s != '-')
		return false;
	sign = *s == '+' ? 1 : -1;
	s++;
	if (!scan(&s, 2, ':', &hour) || !scan(&s, 2, 0, &min) || *s || hour > 23 || min > 59)
		return false;
	*ret_sec = sign * (hour * 3600 + min * 60);
	return true;
}

static bool
is_date(int64_t year, int64_t month, int64_t day)
{
	static const int8_t n_days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	if (year < 1 || month < 1 || month > 12 || day < 1)
		return false;
	return day <= n_days[month - 1] + (month == 2 && leap ? 1 : 0);
}

int
rsb_clock_parse_rfc3339(const char *s, uint64_t *ret_wall_ns)
{
	int64_t year, month, day, hour, min, sec, offset;
	uint64_t frac = 0;
	uint64_t unit = RSB_NSEC_PER_SEC / 10;

	if (!scan(&s, 4, '-', &year) || !scan(&s, 2, '-', &month) || !scan(&s, 2, 0, &day))
		return -EINVAL;
	if (!is_date(year, month, day) || (*s != 'T' && *s != 't' && *s != ' '))
		return -EINVAL;
	s++;
	if (!scan(&s, 2, ':', &hour) || !scan(&s, 2, ':', &min) || !scan(&s, 2, 0, &sec))
		return -EINVAL;
	if (hour > 23 || min > 59 || sec > 60) /* 60: a leap second */
		return -EINVAL;
	if (*s == '.') {
		s++;
		if (*s < '0' || *s > '9')
			return -EINVAL;
		for (; *s >= '0' && *s <= '9'; s++, unit /= 10)
			frac += unit * (uint64_t)(*s - '0');
	}
	if (!scan_offset(s, &offset))
		return -EINVAL;

	sec += days_of(year, month, day) * SEC_PER_DAY + hour * 3600 + min * 60 - offset;
	if (sec < 0 || sec > WALL_SEC_MAX)
		return -EINVAL;
	*ret_wall_ns = (uint64_t)sec * RSB_NSEC_PER_SEC + frac;
	return 0;
}
