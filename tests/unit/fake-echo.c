/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-echo.h"

#include <check.h>

#include "proto/session.h"

static void
echo(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct rsb_session **session = arg;
	struct rsb_chans *chans = rsb_session_chans(*session);
	uint64_t back = RSB_CHAN_STDOUT(RSB_CHAN_PROC(chan));

	ck_assert_int_eq(rsb_chan_write(chans, back, data), (int)data.size);
	rsb_chan_consume(chans, chan, data.size);
	if (fin)
		ck_assert_int_eq(rsb_chan_finish(chans, back), 0);
}

static void
ignore_writable(void *arg, uint64_t chan)
{
	(void)arg;
	(void)chan;
}

static void
ignore_reset(void *arg, uint64_t chan, int r)
{
	(void)arg;
	(void)chan;
	(void)r;
}

const struct rsb_chan_ops fake_echo_ops = {
	.data = echo,
	.writable = ignore_writable,
	.reset = ignore_reset,
};
