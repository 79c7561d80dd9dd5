/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"
#include "util/list.h"

struct item {
	int value;
	struct rsb_list node;
};

static int
sum_in_order(const struct rsb_list *head)
{
	const struct rsb_list *pos;
	int sum = 0;

	rsb_list_for_each (pos, head)
		sum = sum * 10 + rsb_list_entry(pos, const struct item, node)->value;
	return sum;
}

START_TEST(keeps_order_at_both_ends)
{
	struct item items[] = { { .value = 1 }, { .value = 2 }, { .value = 3 } };
	struct rsb_list head;

	rsb_list_init(&head);
	ck_assert(rsb_list_empty(&head));
	rsb_list_append(&head, &items[1].node);
	rsb_list_append(&head, &items[2].node);
	rsb_list_prepend(&head, &items[0].node);
	ck_assert_int_eq(sum_in_order(&head), 123);
	rsb_list_remove(&items[1].node);
	rsb_list_remove(&items[1].node);
	ck_assert_int_eq(sum_in_order(&head), 13);
}
END_TEST

START_TEST(may_be_emptied_while_it_is_walked)
{
	struct item items[] = { { .value = 1 }, { .value = 2 }, { .value = 3 } };
	struct rsb_list *pos, *tmp;
	struct rsb_list head;
	size_t i;

	rsb_list_init(&head);
	for (i = 0; i < RSB_ARRAY_SIZE(items); i++)
		rsb_list_append(&head, &items[i].node);
	rsb_list_for_each_safe (pos, tmp, &head)
		rsb_list_remove(pos);
	ck_assert(rsb_list_empty(&head));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		keeps_order_at_both_ends,
		may_be_emptied_while_it_is_walked,
	};

	return unit_run("list", tests, RSB_ARRAY_SIZE(tests));
}
