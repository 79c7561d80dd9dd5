/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fuse/handle.h"
#include "fuse/ledger.h"
#include "fuse/seen.h"
#include "tests/unit/nodes.h"

START_TEST(one_node_for_one_id)
{
	struct world w;
	struct rsb_inode *a;
	struct rsb_inode *b;

	world_new(&w);
	a = given(&w, 5, 100);
	b = given(&w, 5, 100);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_eq(rsb_inode_by_nodeid(w.inodes, a->nodeid), a);
	ck_assert_ptr_eq(rsb_inode_by_id(w.inodes, 5), a);
	rsb_inode_unref(a);
	ck_assert_uint_eq(w.forgot_n, 0);
	rsb_inode_unref(b);
	ck_assert_uint_eq(w.forgot_id, 5);
	ck_assert_uint_eq(w.forgot_n, 2);
	ck_assert_ptr_null(rsb_inode_by_id(w.inodes, 5));
	world_free(&w);
}
END_TEST

START_TEST(a_file_made_again_is_another_node)
{
	struct world w;
	struct rsb_inode *a;
	struct rsb_inode *b;

	world_new(&w);
	a = given(&w, 5, 100);
	rsb_inode_looked_up(a);
	rsb_inode_unref(a);
	b = given(&w, 6, 100);
	ck_assert_uint_ne(a->nodeid, b->nodeid);
	rsb_inode_unref(b);
	world_free(&w);
}
END_TEST

START_TEST(a_nodeid_never_comes_back)
{
	struct world w;
	struct rsb_inode *a;
	uint64_t old;

	world_new(&w);
	a = given(&w, 5, 100);
	old = a->nodeid;
	rsb_inode_unref(a);
	ck_assert_ptr_null(rsb_inode_by_nodeid(w.inodes, old));
	a = given(&w, 6, 101);
	ck_assert_uint_eq((uint32_t)a->nodeid, (uint32_t)old);
	ck_assert_ptr_null(rsb_inode_by_nodeid(w.inodes, old));
	rsb_inode_unref(a);
	world_free(&w);
}
END_TEST

START_TEST(lives_until_the_kernel_forgets)
{
	struct world w;
	struct rsb_inode *a;

	world_new(&w);
	a = given(&w, 5, 100);
	rsb_inode_looked_up(a);
	rsb_inode_looked_up(a);
	rsb_inode_unref(a);
	rsb_inode_forget(a, 1);
	ck_assert_ptr_eq(rsb_inode_by_id(w.inodes, 5), a);
	rsb_inode_forget(a, 100);
	ck_assert_ptr_null(rsb_inode_by_id(w.inodes, 5));
	world_free(&w);
}
END_TEST

START_TEST(does_not_believe_a_hostile_sidecar)
{
	struct rsb_attr attr = file(100);
	struct rsb_inode *inode;
	struct rsb_inode *a;
	struct world w;

	world_new(&w);
	a = given(&w, 5, 100);
	attr.ino = 101;
	ck_assert_int_eq(rsb_inode_given(w.inodes, 5, &attr, &inode), -ESTALE);
	attr = file(100);
	attr.mode = S_IFDIR | 0755;
	ck_assert_int_eq(rsb_inode_given(w.inodes, 5, &attr, &inode), -ESTALE);
	attr = file(100);
	ck_assert_int_eq(rsb_inode_given(w.inodes, 1, &attr, &inode), -ESTALE);
	ck_assert_int_eq(rsb_inode_given(w.inodes, 0, &attr, &inode), -ESTALE);
	attr.mode = 0644;
	ck_assert_int_eq(rsb_inode_given(w.inodes, 9, &attr, &inode), -EIO);
	attr = file(100);
	attr.mtime.nsec = 1000000000;
	ck_assert_int_eq(rsb_inode_given(w.inodes, 9, &attr, &inode), -EIO);
	rsb_inode_unref(a);
	world_free(&w);
}
END_TEST

START_TEST(another_sidecar_voids_all_but_the_root)
{
	struct world w;
	struct rsb_inodes *next;
	struct rsb_inode *a, *b;

	world_new(&w);
	a = given(&w, 5, 100);
	rsb_inodes_set_epoch(w.inodes, 2);
	ck_assert_int_eq(rsb_inode_check(a), -ESTALE);
	ck_assert_int_eq(rsb_inode_check(rsb_inode_root(w.inodes)), 0);
	rsb_inode_unref(a);
	/* The new one never gave it. */
	ck_assert_uint_eq(w.forgot_n, 0);
	/* Also for the next process. */
	a = given(&w, 6, 100);
	rsb_inode_looked_up(a);
	rsb_inodes_set_epoch(w.inodes, 3);
	b = given(&w, 7, 100);
	rsb_inode_looked_up(b);
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &next), 0);
	ck_assert_int_eq(rsb_inode_check(rsb_inode_by_nodeid(next, a->nodeid)), -ESTALE);
	ck_assert_ptr_null(rsb_inode_by_id(next, 6));
	ck_assert_int_eq(rsb_inode_check(rsb_inode_by_nodeid(next, b->nodeid)), 0);
	rsb_inodes_free(next);
	rsb_inode_unref(a);
	rsb_inode_unref(b);
	world_free(&w);
}
END_TEST

START_TEST(nodes_come_back_with_another_process)
{
	uint64_t n_counted = 0;
	const struct rsb_attr attr = file(100);
	struct rsb_inodes *killed;
	struct rsb_inode *a;
	struct rsb_inode *d;
	uint64_t nodeid;
	struct world w;

	world_new(&w);
	killed = w.inodes;
	d = given(&w, 4, 99);
	rsb_inodes_take_gifts(w.inodes, &n_counted);
	a = given(&w, 5, 100);
	ck_assert_uint_eq(n_counted, 1);
	rsb_seen_hint(a, d, rsb_bytes_str("name"));
	rsb_seen_hint(d, rsb_inode_root(w.inodes), rsb_bytes_str("dir"));
	rsb_inode_looked_up(a);
	rsb_inode_looked_up(d);
	nodeid = a->nodeid;
	/* It is killed here. */
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &w.inodes), 0);
	a = rsb_inode_by_nodeid(w.inodes, nodeid);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(rsb_inode_by_id(w.inodes, 5), a);
	ck_assert_uint_eq(a->wire.ino, 100);
	ck_assert_uint_eq(a->attr.mode, S_IFREG);
	ck_assert_int_eq(rsb_seen_depth(a), 1);
	/* The reply comes once more: its gift is not counted again. */
	rsb_inodes_take_gifts(w.inodes, &n_counted);
	ck_assert_int_eq(rsb_inode_given(w.inodes, 5, &attr, &a), 0);
	rsb_inodes_take_gifts(w.inodes, NULL);
	rsb_inode_unref(a);
	rsb_inodes_sweep(w.inodes);
	ck_assert_uint_eq(w.forgot_id, 0);
	rsb_inode_forget(a, 1);
	ck_assert_uint_eq(w.forgot_id, 5);
	ck_assert_uint_eq(w.forgot_n, 1);
	rsb_inodes_free(killed);
	world_free(&w);
}
END_TEST

START_TEST(handles_hold_their_node)
{
	struct rsb_handles *handles;
	struct rsb_ledger *ledger;
	struct rsb_handle *h;
	struct rsb_inode *a;
	struct world w;

	world_new(&w);
	ck_assert_int_eq(rsb_ledger_new(w.shared, &ledger), 0);
	ck_assert_int_eq(rsb_handles_new(ledger, &handles), 0);
	a = given(&w, 5, 100);
	ck_assert_int_eq(rsb_handle_open(handles, a, 7, O_WRONLY | O_APPEND, &h), 0);
	rsb_inode_unref(a);
	ck_assert_ptr_eq(rsb_handle_get(handles, 7), h);
	ck_assert_uint_eq(a->n_open, 1);
	ck_assert_uint_eq(a->n_writer, 1);
	ck_assert(h->wbuf.append);
	h->error = -ENOSPC;
	ck_assert_int_eq(rsb_handle_take_error(h), -ENOSPC);
	ck_assert_int_eq(rsb_handle_take_error(h), 0);
	rsb_handle_unref(handles, h);
	ck_assert_ptr_null(rsb_handle_get(handles, 7));
	ck_assert_uint_eq(w.forgot_id, 5);
	rsb_handles_free(handles);
	rsb_ledger_free(ledger);
	world_free(&w);
}
END_TEST

/* A write(2) of two requests of which the second one fails is short: nobody sees the error. */
START_TEST(an_error_is_told_by_a_close_or_by_two_writes)
{
	struct rsb_handles *handles;
	struct rsb_handle *handle;
	struct rsb_ledger *ledger;
	struct rsb_inode *a;
	struct world w;

	world_new(&w);
	ck_assert_int_eq(rsb_ledger_new(w.shared, &ledger), 0);
	ck_assert_int_eq(rsb_handles_new(ledger, &handles), 0);
	a = given(&w, 5, 100);
	ck_assert_int_eq(rsb_handle_open(handles, a, 9, O_RDWR, &handle), 0);
	ck_assert_int_eq(rsb_handle_show_error(handle), 0);
	rsb_handle_set_error(handle, -ENOSPC);
	ck_assert_int_eq(rsb_handle_show_error(handle), -ENOSPC);
	ck_assert_int_eq(rsb_handle_take_error(handle), -ENOSPC);
	ck_assert_int_eq(rsb_handle_take_error(handle), 0);
	rsb_handle_set_error(handle, -EIO);
	ck_assert_int_eq(rsb_handle_show_error(handle), -EIO);
	ck_assert_int_eq(rsb_handle_show_error(handle), -EIO);
	ck_assert_int_eq(rsb_handle_show_error(handle), 0);
	ck_assert_int_eq(rsb_handle_take_error(handle), 0);
	rsb_handle_unref(handles, handle);
	rsb_inode_unref(a);
	rsb_handles_free(handles);
	rsb_ledger_free(ledger);
	world_free(&w);
}
END_TEST

START_TEST(a_full_table_returns_the_gift_and_recovers)
{
	const struct rsb_attr attr = file(103);
	struct rsb_inode *a, *b, *c;
	struct world w;

	world_new(&w);
	w.shared->head.n_node = RSB_NODES_MAX - 2;
	a = given(&w, 5, 101);
	b = given(&w, 6, 102);
	ck_assert_int_eq(rsb_inode_given(w.inodes, 7, &attr, &c), -ENFILE);
	ck_assert_uint_eq(w.forgot_id, 7);
	ck_assert_uint_eq(w.forgot_n, 1);
	/* What is known can be given again. */
	ck_assert_ptr_eq(given(&w, 6, 102), b);
	rsb_inode_unref(b);
	rsb_inode_unref(a);
	c = given(&w, 7, 103);
	rsb_inode_unref(b);
	rsb_inode_unref(c);
	world_free(&w);
}
END_TEST

START_TEST(a_full_table_of_handles_recovers)
{
	struct rsb_handles *handles;
	struct rsb_ledger *ledger;
	struct rsb_handle *h, *over;
	struct rsb_inode *a;
	struct world w;

	world_new(&w);
	ck_assert_int_eq(rsb_ledger_new(w.shared, &ledger), 0);
	ck_assert_int_eq(rsb_handles_new(ledger, &handles), 0);
	a = given(&w, 5, 100);
	for (uint64_t fh = 1; fh <= RSB_FHS_MAX; fh++)
		ck_assert_int_eq(rsb_handle_open(handles, a, fh, O_RDONLY, &h), 0);
	ck_assert_int_eq(rsb_handle_open(handles, a, UINT64_MAX, O_RDONLY, &over), -ENFILE);
	ck_assert_uint_eq(a->n_open, RSB_FHS_MAX);
	rsb_handle_unref(handles, h);
	ck_assert_int_eq(rsb_handle_open(handles, a, UINT64_MAX, O_RDONLY, &over), 0);
	rsb_handles_free(handles);
	rsb_ledger_free(ledger);
	rsb_inode_unref(a);
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		one_node_for_one_id,
		a_file_made_again_is_another_node,
		a_nodeid_never_comes_back,
		lives_until_the_kernel_forgets,
		does_not_believe_a_hostile_sidecar,
		another_sidecar_voids_all_but_the_root,
		nodes_come_back_with_another_process,
		handles_hold_their_node,
		an_error_is_told_by_a_close_or_by_two_writes,
		a_full_table_returns_the_gift_and_recovers,
		a_full_table_of_handles_recovers,
	};

	return unit_run("mount-inode", tests, RSB_ARRAY_SIZE(tests));
}
