/* SPDX-License-Identifier: MIT */
#include "fuse/losses.h"

#include <errno.h>
#include <stdio.h>

#include "util/clock.h"

/* NULL: it has given way to a newer one, or was being written when a daemon was killed. */
static const struct rsb_shared_loss *
find(const struct rsb_shared *shared, uint64_t number)
{
	const struct rsb_shared_loss *loss = &shared->losses[number % RSB_SHARED_LOSSES_MAX];

	return loss->number == number ? loss : NULL;
}

static const char *
kind_of(const struct rsb_shared_loss *loss)
{
	static const char *const names[] = {
		[RSB_LOSS_LOST] = "lost",
		[RSB_LOSS_UNKNOWN] = "unknown",
		[RSB_LOSS_RESTORED] = "restored",
	};

	return loss->kind < RSB_ARRAY_SIZE(names) ? names[loss->kind] : "lost";
}

/* After this one, the first that is still there. */
static uint64_t
first_left(const struct rsb_shared *shared, uint64_t number)
{
	uint64_t n = shared->head.n_loss;

	return rsb_max(number, n - rsb_min(n, (uint64_t)RSB_SHARED_LOSSES_MAX)) + 1;
}

void
rsb_losses_add(struct rsb_shared *shared, enum rsb_loss kind, const char *text, bool told)
{
	uint64_t number = shared->head.n_loss + 1;
	struct rsb_shared_loss *loss = &shared->losses[number % RSB_SHARED_LOSSES_MAX];

	rsb_shared_publish(&loss->number, (uint64_t)0);
	loss->wall_ns = rsb_wall_ns();
	loss->kind = kind;
	loss->told = told;
	(void)snprintf(loss->text, sizeof(loss->text), "%s", text);
	rsb_shared_publish(&loss->number, number);
	rsb_shared_publish(&shared->head.n_loss, number);
}

const char *
rsb_losses_say(struct rsb_shared *shared, char *text, size_t size)
{
	struct rsb_shared_head *head = &shared->head;
	uint64_t first = first_left(shared, head->loss_said);
	const uint64_t besides = first - 1 - head->loss_said;
	const struct rsb_shared_loss *loss;

	if (besides) {
		(void)snprintf(text, size, "%llu %s besides %s lost, or may have been done or not",
			(unsigned long long)besides,
			besides == 1 ? "change, file or command" : "changes, files or commands",
			besides == 1 ? "is" : "are");
		rsb_shared_publish(&head->loss_said, first - 1);
		return "unknown";
	}
	while (head->loss_said < head->n_loss) {
		loss = find(shared, head->loss_said + 1);
		rsb_shared_publish(&head->loss_said, head->loss_said + 1);
		if (!loss)
			continue;
		(void)snprintf(text, size, "%s", loss->text);
		return kind_of(loss);
	}
	return NULL;
}

/* ---- as JSON ---- */

static int
append(struct rsb_json *array, const struct rsb_shared_loss *loss)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *object = rsb_json_new_object();
	char time[RSB_RFC3339_SIZE];
	int r = object ? 0 : -ENOMEM;

	rsb_clock_rfc3339(loss->wall_ns, time);
	if (r >= 0)
		r = rsb_json_set_str(object, "time", time);
	if (r >= 0)
		r = rsb_json_set_str(object, "kind", kind_of(loss));
	if (r >= 0)
		r = rsb_json_set_str(object, "text", loss->text);
	return r < 0 ? r : rsb_json_set(array, NULL, rsb_steal(&object));
}

int
rsb_losses_tell(struct rsb_shared *shared, struct rsb_json *object)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_shared_head *head = &shared->head;
	uint64_t first = first_left(shared, head->loss_told);
	uint64_t n_more = first - 1 - head->loss_told;
	int r = array ? 0 : -ENOMEM;

	for (uint64_t i = first; i <= head->n_loss && r >= 0; i++) {
		const struct rsb_shared_loss *loss = find(shared, i);

		if (!loss || loss->told)
			continue;
		if (rsb_json_len(array) < RSB_LOSSES_TOLD_MAX)
			r = append(array, loss);
		else
			n_more++;
	}
	if (r < 0 || (!rsb_json_len(array) && !n_more))
		return r;
	r = rsb_json_set(object, "losses", rsb_steal(&array));
	if (r >= 0)
		r = rsb_json_set_i64(object, "more", (int64_t)n_more);
	if (r >= 0)
		rsb_shared_publish(&head->loss_told, head->n_loss);
	return r;
}

int
rsb_losses_list(const struct rsb_shared *shared, struct rsb_json *array)
{
	uint64_t n = shared->head.n_loss;
	int r = 0;

	for (uint64_t i = n - rsb_min(n, (uint64_t)RSB_LOSSES_TOLD_MAX) + 1; i <= n && r >= 0;
		i++) {
		const struct rsb_shared_loss *loss = find(shared, i);

		if (loss)
			r = append(array, loss);
	}
	return r;
}
