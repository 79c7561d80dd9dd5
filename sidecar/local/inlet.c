/* SPDX-License-Identifier: MIT */
#include "sidecar/local/inlet.h"

#include <errno.h>
#include <sys/socket.h>

#include "util/cleanup.h"
#include "util/list.h"
#include "util/thread.h"

#include "sidecar/local/ask.h"

struct rsb_inlets {
	struct rsb_mutex lock;
	struct rsb_list list; /* {lock} */
	bool cut;             /* {lock} */
	size_t refs;          /* {lock} the sandbox, and each inlet */
	int control;          /* const after new */
};

struct rsb_inlet {
	struct rsb_list node; /* {inlets->lock} */
	struct rsb_inlets *inlets;
	int fd;
};

int
rsb_inlets_new(int control, struct rsb_inlets **ret_inlets)
{
	struct rsb_inlets *inlets = rsb_new(struct rsb_inlets);

	if (!inlets)
		return -ENOMEM;
	rsb_mutex_init(&inlets->lock);
	rsb_list_init(&inlets->list);
	inlets->refs = 1;
	inlets->control = control;
	*ret_inlets = inlets;
	return 0;
}

static void
unref(struct rsb_inlets *inlets)
{
	size_t left;

	rsb_mutex_lock(&inlets->lock);
	left = --inlets->refs;
	rsb_mutex_unlock(&inlets->lock);
	if (left > 0)
		return;
	rsb_mutex_done(&inlets->lock);
	free(inlets);
}

void
rsb_inlets_end(struct rsb_inlets *inlets)
{
	if (!inlets)
		return;
	rsb_inlets_cut(inlets);
	unref(inlets);
}

void
rsb_inlets_cut(struct rsb_inlets *inlets)
{
	struct rsb_list *pos;

	rsb_mutex_lock(&inlets->lock);
	inlets->cut = true;
	/* Both ends see an end of file; who owns it closes it. */
	rsb_list_for_each (pos, &inlets->list)
		(void)shutdown(rsb_list_entry(pos, struct rsb_inlet, node)->fd, SHUT_RDWR);
	rsb_mutex_unlock(&inlets->lock);
}

void
rsb_inlets_join(struct rsb_inlets *inlets)
{
	rsb_mutex_lock(&inlets->lock);
	inlets->cut = false;
	rsb_mutex_unlock(&inlets->lock);
}

/* -ENOTCONN: it was cut before it was there. */
static int
add(struct rsb_inlets *inlets, struct rsb_inlet *inlet)
{
	int r = -ENOTCONN;

	rsb_mutex_lock(&inlets->lock);
	if (!inlets->cut) {
		inlets->refs++;
		rsb_list_append(&inlets->list, &inlet->node);
		r = 0;
	}
	rsb_mutex_unlock(&inlets->lock);
	return r;
}

int
rsb_inlet_open(struct rsb_inlets *inlets, unsigned int port, struct rsb_inlet **ret_inlet)
{
	rsb_autofree struct rsb_inlet *inlet = rsb_new(struct rsb_inlet);
	rsb_autoclose int fd = -1;
	bool cut;
	int r;

	if (!inlet)
		return -ENOMEM;
	rsb_mutex_lock(&inlets->lock);
	cut = inlets->cut;
	rsb_mutex_unlock(&inlets->lock);
	r = cut ? -ENOTCONN : rsb_ask_connect(inlets->control, port, &fd);
	if (r < 0)
		return r;
	inlet->inlets = inlets;
	inlet->fd = fd;
	r = add(inlets, inlet);
	if (r < 0)
		return r;
	(void)rsb_steal_fd(&fd);
	*ret_inlet = rsb_steal(&inlet);
	return 0;
}

int
rsb_inlet_fd(const struct rsb_inlet *inlet)
{
	return inlet->fd;
}

void
rsb_inlet_close(struct rsb_inlet *inlet)
{
	struct rsb_inlets *inlets;

	if (!inlet)
		return;
	inlets = inlet->inlets;
	rsb_mutex_lock(&inlets->lock);
	rsb_list_remove(&inlet->node);
	rsb_mutex_unlock(&inlets->lock);
	(void)close(inlet->fd);
	free(inlet);
	unref(inlets);
}
