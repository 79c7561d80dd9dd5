/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "keeper/recover.h"
#include "tests/unit/unit.h"

static const enum rsb_keeper_state bringing_up[] = {
	RSB_KEEPER_STARTING,
	RSB_KEEPER_RECONNECTING,
	RSB_KEEPER_RESUMING,
	RSB_KEEPER_RESTARTING,
};

static void
expect(enum rsb_keeper_state state, enum rsb_recover_event event, unsigned int attempts,
	struct rsb_recover_step want)
{
	struct rsb_recover_step got = rsb_recover_next(state, event, attempts);

	ck_assert_msg(got.state == want.state && got.action == want.action,
		"state %d, event %d, attempts %u: got %d, %d", state, event, attempts, got.state,
		got.action);
}

#define STEP(s, a) ((struct rsb_recover_step){ RSB_KEEPER_##s, RSB_RECOVER_##a })

/* Rows of the table: states that do the same. KEEP: it stays what it is. */
#define KEEP RSB_KEEPER_STOPPED
#define NO                                \
	{                                 \
		KEEP, RSB_RECOVER_NOTHING \
	}
#define TO(s, a)                                \
	{                                       \
		RSB_KEEPER_##s, RSB_RECOVER_##a \
	}
#define STAY(a)                       \
	{                             \
		KEEP, RSB_RECOVER_##a \
	}

enum row { UP, RUNS, MAKES, RESTS, OVER, ROW_N };

static const enum row rows[] = {
	[RSB_KEEPER_STARTING] = UP,
	[RSB_KEEPER_LIVE] = RUNS,
	[RSB_KEEPER_SUSPECT] = RUNS,
	[RSB_KEEPER_RECONNECTING] = UP,
	[RSB_KEEPER_RESUMING] = UP,
	[RSB_KEEPER_RESTARTING] = UP,
	[RSB_KEEPER_RECREATING] = MAKES,
	[RSB_KEEPER_RESTING] = RESTS,
	[RSB_KEEPER_LOST] = OVER,
	[RSB_KEEPER_STOPPED] = OVER,
};

/* What the state that makes another sandbox does as if it were only reconnecting. */
static const struct rsb_recover_step table[RSB_RECOVER_EVENT_N][ROW_N] = {
	[RSB_RECOVER_BEGIN] = { STAY(ASK), NO, TO(RECONNECTING, ASK), NO, NO },
	[RSB_RECOVER_LINK_LIVE] = { TO(LIVE, NOTHING), TO(LIVE, NOTHING), TO(LIVE, NOTHING), NO,
		NO },
	[RSB_RECOVER_LINK_SUSPECT] = { NO, TO(SUSPECT, NOTHING), NO, NO, NO },
	[RSB_RECOVER_LINK_DOWN] = { STAY(WAIT), TO(RECONNECTING, CONNECT), NO, NO, NO },
	[RSB_RECOVER_LINK_REFUSED] = { STAY(WAIT), TO(RECONNECTING, CONNECT), NO, NO, NO },
	[RSB_RECOVER_TIMER] = { STAY(CONNECT), NO, STAY(ASK), NO, NO },
	[RSB_RECOVER_IS_RUNNING] = { STAY(CONNECT), NO, TO(RECONNECTING, CONNECT), NO, NO },
	[RSB_RECOVER_IS_BARE] = { TO(RESTARTING, DEPLOY), NO, TO(RESTARTING, DEPLOY), NO, NO },
	[RSB_RECOVER_IS_PAUSED] = { TO(RESUMING, RESUME), NO, TO(RESUMING, RESUME), NO, NO },
	[RSB_RECOVER_IS_RESTING] = { TO(RESTING, REST), NO, TO(RESTING, REST), NO, NO },
	[RSB_RECOVER_IS_GONE] = { TO(RECREATING, RECREATE), NO, STAY(RECREATE), NO, NO },
	[RSB_RECOVER_HOPELESS] = { TO(LOST, GIVE_UP), NO, TO(LOST, GIVE_UP), NO, NO },
	[RSB_RECOVER_IS_FORBIDDEN] = { TO(LOST, GIVE_UP), NO, TO(LOST, GIVE_UP), NO, NO },
	[RSB_RECOVER_IS_UNCLEAR] = { STAY(WAIT), NO, STAY(WAIT), NO, NO },
	[RSB_RECOVER_USED] = { NO, NO, NO, TO(RESUMING, ASK), NO },
	[RSB_RECOVER_CAP] = { NO, TO(RESUMING, PAUSE), NO, NO, NO },
	[RSB_RECOVER_DONE] = { STAY(CONNECT), NO, TO(RECONNECTING, CONNECT), NO, NO },
	[RSB_RECOVER_FAILED] = { STAY(WAIT), NO, STAY(WAIT), NO, NO },
};

/* After some attempts in vain. */
static const struct rsb_recover_step down_again[ROW_N] = { STAY(ASK), TO(RECONNECTING, WAIT), NO,
	NO, NO };
static const struct rsb_recover_step runs_all_the_same[ROW_N] = { STAY(WAIT), NO,
	TO(RECONNECTING, CONNECT), NO, NO };

static struct rsb_recover_step
expected(int state, int event, unsigned int attempts)
{
	struct rsb_recover_step step = table[event][rows[state]];

	if (attempts && (event == RSB_RECOVER_LINK_DOWN || event == RSB_RECOVER_LINK_REFUSED))
		step = down_again[rows[state]];
	else if (attempts && event == RSB_RECOVER_IS_RUNNING)
		step = runs_all_the_same[rows[state]];
	if (step.state == KEEP)
		step.state = (enum rsb_keeper_state)state;
	return step;
}

START_TEST(does_in_every_state_at_every_event_what_the_table_says)
{
	static const unsigned int attempts[] = { 0, RSB_RECOVER_ATTEMPTS, 99 };

	ck_assert_uint_eq(RSB_ARRAY_SIZE(rows), RSB_KEEPER_STOPPED + 1);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(attempts); i++)
		for (int event = 0; event < RSB_RECOVER_EVENT_N; event++)
			for (int state = 0; state <= RSB_KEEPER_STOPPED; state++)
				expect((enum rsb_keeper_state)state, (enum rsb_recover_event)event,
					attempts[i], expected(state, event, attempts[i]));
}
END_TEST

START_TEST(reconnects_at_once_when_the_link_breaks)
{
	expect(RSB_KEEPER_LIVE, RSB_RECOVER_LINK_DOWN, 0, STEP(RECONNECTING, CONNECT));
	expect(RSB_KEEPER_SUSPECT, RSB_RECOVER_LINK_DOWN, 0, STEP(RECONNECTING, CONNECT));
	/* but not if it was of no use the last time */
	expect(RSB_KEEPER_LIVE, RSB_RECOVER_LINK_DOWN, 1, STEP(RECONNECTING, WAIT));
	expect(RSB_KEEPER_LIVE, RSB_RECOVER_LINK_SUSPECT, 0, STEP(SUSPECT, NOTHING));
	expect(RSB_KEEPER_SUSPECT, RSB_RECOVER_LINK_LIVE, 0, STEP(LIVE, NOTHING));
}
END_TEST

START_TEST(asks_the_control_plane_after_some_failed_attempts)
{
	const enum rsb_keeper_state state = RSB_KEEPER_RECONNECTING;

	expect(state, RSB_RECOVER_LINK_DOWN, 1, STEP(RECONNECTING, WAIT));
	expect(state, RSB_RECOVER_TIMER, 1, STEP(RECONNECTING, CONNECT));
	expect(state, RSB_RECOVER_LINK_DOWN, RSB_RECOVER_ATTEMPTS, STEP(RECONNECTING, ASK));
	expect(state, RSB_RECOVER_LINK_REFUSED, RSB_RECOVER_ATTEMPTS, STEP(RECONNECTING, ASK));
	expect(state, RSB_RECOVER_IS_RUNNING, 2, STEP(RECONNECTING, WAIT));
}
END_TEST

START_TEST(brings_back_what_lives)
{
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(bringing_up); i++) {
		expect(bringing_up[i], RSB_RECOVER_IS_PAUSED, 2, STEP(RESUMING, RESUME));
		expect(bringing_up[i], RSB_RECOVER_IS_BARE, 2, STEP(RESTARTING, DEPLOY));
		expect(bringing_up[i], RSB_RECOVER_LINK_LIVE, 2, STEP(LIVE, NOTHING));
	}
	expect(RSB_KEEPER_RESUMING, RSB_RECOVER_DONE, 0, STEP(RESUMING, CONNECT));
	expect(RSB_KEEPER_RESTARTING, RSB_RECOVER_DONE, 0, STEP(RESTARTING, CONNECT));
	expect(RSB_KEEPER_RESTARTING, RSB_RECOVER_FAILED, 0, STEP(RESTARTING, WAIT));
	expect(RSB_KEEPER_STARTING, RSB_RECOVER_BEGIN, 0, STEP(STARTING, ASK));
	expect(RSB_KEEPER_STARTING, RSB_RECOVER_IS_RUNNING, 0, STEP(STARTING, CONNECT));
}
END_TEST

/* In every state and at every count: gone is only what the control plane calls so. */
START_TEST(makes_another_one_by_the_control_planes_word_alone)
{
	struct rsb_recover_step step;
	unsigned int attempts;
	int state, event;

	for (state = 0; state <= RSB_KEEPER_STOPPED; state++)
		for (event = 0; event <= RSB_RECOVER_EVENT_N; event++)
			for (attempts = 0; attempts < 100; attempts++) {
				step = rsb_recover_next((enum rsb_keeper_state)state,
					(enum rsb_recover_event)event, attempts);
				if (step.action == RSB_RECOVER_RECREATE)
					ck_assert_int_eq(event, RSB_RECOVER_IS_GONE);
				if (step.action != RSB_RECOVER_GIVE_UP)
					continue;
				ck_assert(event == RSB_RECOVER_HOPELESS ||
					  event == RSB_RECOVER_IS_FORBIDDEN);
				ck_assert_int_eq(step.state, RSB_KEEPER_LOST);
			}
	expect(RSB_KEEPER_LIVE, RSB_RECOVER_IS_GONE, 0, STEP(LIVE, NOTHING));
	for (state = 0; state < (int)RSB_ARRAY_SIZE(bringing_up); state++) {
		expect(bringing_up[state], RSB_RECOVER_IS_GONE, 2, STEP(RECREATING, RECREATE));
		expect(bringing_up[state], RSB_RECOVER_IS_UNCLEAR, 99,
			(struct rsb_recover_step){ bringing_up[state], RSB_RECOVER_WAIT });
	}
}
END_TEST

START_TEST(does_nothing_any_more_once_it_is_lost_or_stopped)
{
	int event;

	for (event = 0; event <= RSB_RECOVER_EVENT_N; event++) {
		expect(RSB_KEEPER_LOST, (enum rsb_recover_event)event, 1, STEP(LOST, NOTHING));
		expect(RSB_KEEPER_STOPPED, (enum rsb_recover_event)event, 1,
			STEP(STOPPED, NOTHING));
	}
}
END_TEST

START_TEST(tells_a_broken_link_from_a_refused_one)
{
	ck_assert_int_eq(rsb_recover_link_event(-ECONNRESET), RSB_RECOVER_LINK_DOWN);
	ck_assert_int_eq(rsb_recover_link_event(-ETIMEDOUT), RSB_RECOVER_LINK_DOWN);
	ck_assert_int_eq(rsb_recover_link_event(-EKEYREJECTED), RSB_RECOVER_LINK_DOWN);
	ck_assert_int_eq(rsb_recover_link_event(-ECONNREFUSED), RSB_RECOVER_LINK_REFUSED);
	ck_assert_int_eq(rsb_recover_link_event(-EACCES), RSB_RECOVER_LINK_REFUSED);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		does_in_every_state_at_every_event_what_the_table_says,
		reconnects_at_once_when_the_link_breaks,
		asks_the_control_plane_after_some_failed_attempts,
		brings_back_what_lives,
		makes_another_one_by_the_control_planes_word_alone,
		does_nothing_any_more_once_it_is_lost_or_stopped,
		tells_a_broken_link_from_a_refused_one,
	};

	return unit_run("recover", tests, RSB_ARRAY_SIZE(tests));
}
