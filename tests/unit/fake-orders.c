/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-orders.h"

#include <sys/socket.h>

#include <check.h>

static void
order(struct fake_sidecar *fake, bool *flag, bool value)
{
	rsb_mutex_lock(&fake->lock);
	*flag = value;
	rsb_mutex_unlock(&fake->lock);
}

int
fake_sidecar_connect(struct fake_sidecar *fake)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fake_sidecar_serve(fake, fds[1]);
	return fds[0];
}

void
fake_sidecar_serve(struct fake_sidecar *fake, int fd)
{
	rsb_mutex_lock(&fake->lock);
	fake->next_fd = fd;
	fake->frozen = false;
	rsb_mutex_unlock(&fake->lock);
}

void
fake_sidecar_cut(struct fake_sidecar *fake)
{
	order(fake, &fake->cut, true);
}

void
fake_sidecar_freeze(struct fake_sidecar *fake, bool frozen)
{
	order(fake, &fake->frozen, frozen);
}

void
fake_sidecar_answer(struct fake_sidecar *fake, uint64_t id)
{
	rsb_mutex_lock(&fake->lock);
	fake->answer = true;
	fake->answer_id = id;
	rsb_mutex_unlock(&fake->lock);
}

void
fake_sidecar_forget(struct fake_sidecar *fake)
{
	order(fake, &fake->forget, true);
}

void
fake_sidecar_anew(struct fake_sidecar *fake, uint64_t fifo)
{
	rsb_mutex_lock(&fake->lock);
	fake->anew = true;
	fake->fifo = fifo;
	rsb_mutex_unlock(&fake->lock);
}

void
fake_sidecar_lose_locks(struct fake_sidecar *fake)
{
	rsb_mutex_lock(&fake->lock);
	fake->cut = true;
	fake->lock_losses++;
	rsb_mutex_unlock(&fake->lock);
}

void
fake_sidecar_cut_after(struct fake_sidecar *fake, unsigned int n_frame)
{
	rsb_mutex_lock(&fake->lock);
	fake->cut_after = n_frame;
	rsb_mutex_unlock(&fake->lock);
}

unsigned int
fake_sidecar_seen(struct fake_sidecar *fake, uint32_t op)
{
	unsigned int n;

	rsb_mutex_lock(&fake->lock);
	n = fake->n_seen[op];
	rsb_mutex_unlock(&fake->lock);
	return n;
}
