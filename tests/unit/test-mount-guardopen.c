/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "fuse/guard.h"
#include "fuse/guardopen.h"
#include "fuse/ledger.h"
#include "tests/unit/nodes.h"

#define MIB ((size_t)1 << 20)

/* As much of a daemon as has files open. */
struct house {
	struct world world;
	struct rsb_fs fs;
	uint64_t id;
};

static void
house_new(struct house *h)
{
	*h = (struct house){ .id = 10 };
	world_new(&h->world);
	h->fs.inodes = h->world.inodes;
	ck_assert_int_eq(rsb_ledger_new(h->world.shared, &h->fs.ledger), 0);
	ck_assert_int_eq(rsb_handles_new(h->fs.ledger, &h->fs.handles), 0);
	ck_assert_int_eq(rsb_guard_new(false, &h->fs.guard), 0);
}

static void
house_free(struct house *h)
{
	rsb_handles_free(h->fs.handles);
	world_free(&h->world);
	rsb_guard_free(h->fs.guard);
	rsb_ledger_free(h->fs.ledger);
}

static struct rsb_handle *
opened(struct house *h, struct rsb_inode *inode, int flags)
{
	struct rsb_handle *handle;

	ck_assert_int_eq(rsb_handle_open(h->fs.handles, inode, h->id++, flags, &handle), 0);
	return handle;
}

/* Opens a file for itself, which holds no other reference. */
static struct rsb_handle *
opened_other(struct house *h)
{
	struct rsb_inode *inode = given(&h->world, h->id, h->id);
	struct rsb_handle *handle = opened(h, inode, O_RDONLY);

	rsb_inode_unref(inode);
	return handle;
}

static int
show(struct house *h, struct rsb_handle *handle, size_t size, char c)
{
	struct rsb_guard_view *view = calloc(1, sizeof(*view) + size);

	ck_assert_ptr_nonnull(view);
	view->n_ref = 1;
	view->size = size;
	if (c)
		memset(view->data, c, size);
	return rsb_guardopen_show(&h->fs, handle, view);
}

static void
end(struct house *h, struct rsb_handle *handle)
{
	rsb_handle_unref(h->fs.handles, handle);
}

START_TEST(what_is_open_shows_one_text_to_its_end)
{
	struct house h;
	struct rsb_inode *inode;
	struct rsb_handle *handle;

	house_new(&h);
	inode = given(&h.world, 5, 100);
	handle = opened(&h, inode, O_RDONLY);
	ck_assert_int_eq(show(&h, handle, 10, 'a'), 0);
	ck_assert_int_eq(show(&h, handle, 20, 'b'), 0);
	ck_assert_uint_eq(handle->view->size, 10);
	ck_assert_uint_eq(handle->view->data[0], 'a');
	end(&h, handle);
	rsb_inode_unref(inode);
	house_free(&h);
}
END_TEST

START_TEST(one_text_is_shown_at_a_time)
{
	struct house h;
	struct rsb_inode *inode;
	struct rsb_handle *first, *second, *third;

	house_new(&h);
	inode = given(&h.world, 5, 100);
	first = opened(&h, inode, O_RDONLY);
	second = opened(&h, inode, O_RDONLY);
	third = opened(&h, inode, O_RDONLY);
	ck_assert_int_eq(show(&h, first, 10, 'a'), 0);
	ck_assert_int_eq(show(&h, second, 10, 'b'), -EBUSY);
	ck_assert_int_eq(show(&h, second, 9, 'a'), -EBUSY);
	ck_assert_ptr_null(second->view);
	/* Read twice it is kept once. */
	ck_assert_int_eq(show(&h, second, 10, 'a'), 0);
	ck_assert_ptr_eq(second->view, first->view);
	end(&h, first);
	ck_assert_int_eq(show(&h, third, 10, 'b'), -EBUSY);
	ck_assert_uint_eq(rsb_guardopen_shown(inode)->size, 10);
	/* The kernel has released it; a call of it is under way. */
	rsb_handle_set_closed(second);
	ck_assert_ptr_null(rsb_guardopen_shown(inode));
	ck_assert_int_eq(show(&h, third, 10, 'b'), 0);
	end(&h, second);
	end(&h, third);
	rsb_inode_unref(inode);
	house_free(&h);
}
END_TEST

START_TEST(who_writes_reads_nothing_that_others_have_mapped)
{
	struct house h;
	struct rsb_inode *inode;
	struct rsb_handle *writer, *reader;

	house_new(&h);
	inode = given(&h.world, 5, 100);
	writer = opened(&h, inode, O_RDWR);
	reader = opened(&h, inode, O_RDONLY);
	ck_assert(rsb_guardopen_may_read(writer));
	ck_assert_int_eq(show(&h, reader, 10, 'a'), 0);
	ck_assert(!rsb_guardopen_may_read(writer));
	end(&h, reader);
	ck_assert(rsb_guardopen_may_read(writer));
	end(&h, writer);
	rsb_inode_unref(inode);
	house_free(&h);
}
END_TEST

START_TEST(a_text_that_went_with_a_crash_is_another)
{
	struct house h;
	struct rsb_inode *inode;
	struct rsb_handle *first, *second;

	house_new(&h);
	inode = given(&h.world, 5, 100);
	first = opened(&h, inode, O_RDONLY);
	second = opened(&h, inode, O_RDONLY);
	first->shared->viewed = RSB_SHARED_VIEWED;
	ck_assert_int_eq(show(&h, second, 10, 'a'), -EBUSY);
	ck_assert_ptr_null(rsb_guardopen_shown(inode));
	end(&h, first);
	ck_assert_int_eq(show(&h, second, 10, 'a'), 0);
	end(&h, second);
	rsb_inode_unref(inode);
	house_free(&h);
}
END_TEST

START_TEST(all_that_are_open_have_a_bound)
{
	const size_t size = 62 * MIB;
	struct rsb_handle *handles[RSB_GUARDOPEN_MAX / (62 * MIB)];
	struct rsb_handle *again, *small, *other;
	struct house h;
	size_t n = 0;
	int r = 0;

	house_new(&h);
	while (r == 0) {
		ck_assert_uint_lt(n, RSB_ARRAY_SIZE(handles));
		handles[n] = opened_other(&h);
		r = show(&h, handles[n++], size, 0);
	}
	ck_assert_int_eq(r, -ENFILE);
	ck_assert_uint_eq(n - 1, (RSB_GUARDOPEN_MAX - RSB_GUARDOPEN_SMALL_MAX) / size);
	/* One that is open is not counted again. */
	again = opened(&h, handles[0]->inode, O_RDONLY);
	ck_assert_int_eq(show(&h, again, size, 0), 0);
	small = opened_other(&h);
	ck_assert_int_eq(show(&h, small, RSB_GITALLOW_MAX, 0), 0);
	end(&h, handles[1]);
	other = handles[n - 1];
	ck_assert_int_eq(show(&h, other, size, 0), 0);
	end(&h, handles[0]);
	handles[0] = opened_other(&h);
	ck_assert_int_eq(show(&h, handles[0], size, 0), -ENFILE);
	house_free(&h);
}
END_TEST

START_TEST(all_that_are_read_at_one_time_have_a_bound)
{
	struct house h;

	house_new(&h);
	ck_assert_int_eq(rsb_guard_take_room(&h.fs, RSB_GUARD_LOADING_MAX - 1), 0);
	ck_assert_int_eq(rsb_guard_take_room(&h.fs, 2), -ENOMEM);
	ck_assert_int_eq(rsb_guard_take_room(&h.fs, 1), 0);
	ck_assert_int_eq(rsb_guard_take_room(&h.fs, 1), -ENOMEM);
	ck_assert_int_eq(rsb_guard_take_room(&h.fs, SIZE_MAX), -ENOMEM);
	rsb_guard_give_room(&h.fs, RSB_GUARD_LOADING_MAX - 1);
	ck_assert_int_eq(rsb_guard_take_room(&h.fs, 2), 0);
	house_free(&h);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		what_is_open_shows_one_text_to_its_end,
		one_text_is_shown_at_a_time,
		who_writes_reads_nothing_that_others_have_mapped,
		a_text_that_went_with_a_crash_is_another,
		all_that_are_open_have_a_bound,
		all_that_are_read_at_one_time_have_a_bound,
	};

	return unit_run("mount-guardopen", tests, RSB_ARRAY_SIZE(tests));
}
