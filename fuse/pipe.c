/* SPDX-License-Identifier: MIT */
#include "fuse/pipe.h"

#include <errno.h>
#include <string.h>

#define N_STREAM 3

struct rsb_pipe {
	struct rsb_pipes *pipes;
	struct rsb_guest *client; /* NULL: gone */
	uint64_t near;
	uint64_t far;
	unsigned int flags;
	uint64_t written[N_STREAM];  /* to the client's buffer */
	uint64_t credited[N_STREAM]; /* of these, what the link got credit for */
	int reset_r[N_STREAM];       /* the link's, behind what the client has not got; 0: none */
	bool fin[N_STREAM];          /* the client's buffer has all of it */
	struct rsb_buf in;           /* from the client, not yet taken by the link */
	bool in_fin;
};

enum event_type { EVENT_DATA, EVENT_WRITABLE, EVENT_RESET };

struct event {
	struct rsb_list link;
	enum event_type type;
	uint64_t chan;
	int r;
	bool fin;
	size_t size;
	uint8_t data[];
};

struct rsb_pipes {
	struct rsb_loop *loop;
	struct rsb_link *link;
	struct rsb_map by_far;
	struct rsb_mutex lock;
	struct rsb_list events; /* {lock} */
	struct rsb_task task;
};

/* ---- towards the sandbox ---- */

static void
push_stdin(struct rsb_pipe *pipe)
{
	struct rsb_link *link = pipe->pipes->link;
	uint64_t chan = RSB_CHAN_STDIN(pipe->far);

	while (rsb_buf_len(&pipe->in)) {
		int n = rsb_link_chan_write(link, chan, rsb_buf_view(&pipe->in));

		if (n == 0)
			return;
		if (n < 0) {
			rsb_buf_clear(&pipe->in);
			if (pipe->client)
				rsb_chan_reset(rsb_guest_chans(pipe->client),
					RSB_CHAN_STDIN(pipe->near), n);
			return;
		}
		rsb_buf_consume(&pipe->in, (size_t)n);
		if (pipe->client)
			rsb_chan_consume(rsb_guest_chans(pipe->client), RSB_CHAN_STDIN(pipe->near),
				(size_t)n);
	}
	if (pipe->in_fin) {
		pipe->in_fin = false;
		/* A stream that was reset meanwhile has had its end. */
		(void)rsb_link_chan_finish(link, chan);
	}
}

void
rsb_pipe_stdin(struct rsb_pipe *pipe, struct rsb_bytes data, bool fin)
{
	/* The client keeps to its credit, or it was dropped before this. */
	if (rsb_buf_append(&pipe->in, data.data, data.size) < 0) {
		rsb_guest_kick(pipe->client);
		return;
	}
	pipe->in_fin = pipe->in_fin || fin;
	push_stdin(pipe);
}

void
rsb_pipe_near_reset(struct rsb_pipe *pipe, uint64_t chan, int r)
{
	rsb_link_chan_reset(pipe->pipes->link, pipe->far * 4 + chan % 4, r);
}

/* ---- towards the client ---- */

/* A reset would throw away what waits for the client, who may be slow, and came before. */
static void
pass_resets(struct rsb_pipe *pipe)
{
	struct rsb_chans *chans = rsb_guest_chans(pipe->client);
	bool passed = false;

	for (unsigned int i = 1; i < N_STREAM; i++) {
		uint64_t near = pipe->near * 4 + i;

		if (!pipe->reset_r[i] || rsb_chan_unsent(chans, near))
			continue;
		rsb_chan_reset(chans, near, pipe->reset_r[i]);
		pipe->reset_r[i] = 0;
		passed = true;
	}
	if (passed)
		rsb_guest_pump(pipe->client);
}

void
rsb_pipe_credit(struct rsb_pipe *pipe)
{
	struct rsb_chans *chans = rsb_guest_chans(pipe->client);

	pass_resets(pipe);
	for (unsigned int i = 1; i < N_STREAM; i++) {
		uint64_t held = RSB_CHAN_WINDOW_MAX - rsb_chan_room(chans, pipe->near * 4 + i);
		uint64_t taken = pipe->written[i] - rsb_min(held, pipe->written[i]);

		if (!(pipe->flags & 1u << i) || taken <= pipe->credited[i])
			continue;
		rsb_link_chan_consume(
			pipe->pipes->link, pipe->far * 4 + i, (size_t)(taken - pipe->credited[i]));
		pipe->credited[i] = taken;
	}
}

static void
give(struct rsb_pipe *pipe, const struct event *event)
{
	struct rsb_bytes data = { .data = event->data, .size = event->size };
	unsigned int i = (unsigned int)(event->chan % 4);
	struct rsb_chans *chans;
	uint64_t near = pipe->near * 4 + i;
	int n = -EPIPE;

	if (pipe->client) {
		chans = rsb_guest_chans(pipe->client);
		n = rsb_chan_write(chans, near, data);
		if (n >= 0 && (size_t)n < data.size) {
			rsb_chan_reset(chans, near, -ENOBUFS);
			n = -EPIPE;
		}
		if (n >= 0 && event->fin)
			n = rsb_chan_finish(chans, near) < 0 ? -EPIPE : n;
	}
	if (n >= 0) {
		pipe->written[i] += event->size;
		pipe->fin[i] = event->fin;
		rsb_guest_pump(pipe->client);
		return;
	}
	/* Nobody reads it: away with it, so that the command goes on. */
	rsb_link_chan_consume(pipe->pipes->link, event->chan, event->size);
}

static void
take_reset(struct rsb_pipe *pipe, const struct event *event)
{
	unsigned int i = (unsigned int)(event->chan % 4);

	if (i == 0) {
		rsb_buf_clear(&pipe->in);
		if (pipe->client)
			rsb_chan_reset(rsb_guest_chans(pipe->client), RSB_CHAN_STDIN(pipe->near),
				event->r);
		return;
	}
	/* The sidecar's end takes nothing from a stream that has come to its own. */
	if (!pipe->client || pipe->fin[i])
		return;
	rsb_guest_pump(pipe->client);
	pipe->reset_r[i] = event->r;
	pass_resets(pipe);
}

static void
handle(struct rsb_pipes *pipes, const struct event *event)
{
	struct rsb_pipe *pipe = rsb_map_get(&pipes->by_far, RSB_CHAN_PROC(event->chan));

	if (!pipe)
		return;
	switch (event->type) {
	case EVENT_DATA:
		give(pipe, event);
		break;
	case EVENT_WRITABLE:
		push_stdin(pipe);
		break;
	case EVENT_RESET:
		take_reset(pipe, event);
		break;
	}
	if (pipe->client)
		rsb_guest_pump(pipe->client);
}

static void
on_events(struct rsb_task *task)
{
	struct rsb_pipes *pipes = rsb_container_of(task, struct rsb_pipes, task);

	for (;;) {
		struct event *event = NULL;

		rsb_mutex_lock(&pipes->lock);
		if (!rsb_list_empty(&pipes->events)) {
			event = rsb_list_entry(pipes->events.next, struct event, link);
			rsb_list_remove(&event->link);
		}
		rsb_mutex_unlock(&pipes->lock);
		if (!event)
			return;
		handle(pipes, event);
		free(event);
	}
}

/* ---- from the link's thread ---- */

static void
queue_event(struct rsb_pipes *pipes, const struct event *proto, struct rsb_bytes data)
{
	struct event *event = malloc(sizeof(*event) + data.size);

	if (!event) {
		/* Bytes that are lost must not look like the stream went on. */
		rsb_link_chan_reset(pipes->link, proto->chan, -ENOMEM);
		return;
	}
	*event = *proto;
	event->size = data.size;
	if (data.size)
		memcpy(event->data, data.data, data.size);
	rsb_mutex_lock(&pipes->lock);
	rsb_list_append(&pipes->events, &event->link);
	rsb_mutex_unlock(&pipes->lock);
	rsb_loop_post(pipes->loop, &pipes->task);
}

void
rsb_pipe_take_data(struct rsb_pipes *pipes, uint64_t chan, struct rsb_bytes data, bool fin)
{
	queue_event(pipes, &(struct event){ .type = EVENT_DATA, .chan = chan, .fin = fin }, data);
}

void
rsb_pipe_take_writable(struct rsb_pipes *pipes, uint64_t chan)
{
	queue_event(pipes, &(struct event){ .type = EVENT_WRITABLE, .chan = chan },
		(struct rsb_bytes){ .size = 0 });
}

void
rsb_pipe_take_reset(struct rsb_pipes *pipes, uint64_t chan, int r)
{
	queue_event(pipes, &(struct event){ .type = EVENT_RESET, .chan = chan, .r = r },
		(struct rsb_bytes){ .size = 0 });
}

/* ---- life ---- */

int
rsb_pipes_new(struct rsb_loop *loop, struct rsb_link *link, struct rsb_pipes **ret_pipes)
{
	struct rsb_pipes *pipes = rsb_new(struct rsb_pipes);

	if (!pipes)
		return -ENOMEM;
	pipes->loop = loop;
	pipes->link = link;
	pipes->task.fn = on_events;
	rsb_map_init(&pipes->by_far, RSB_PROCS_MAX);
	rsb_mutex_init(&pipes->lock);
	rsb_list_init(&pipes->events);
	*ret_pipes = pipes;
	return 0;
}

void
rsb_pipes_free(struct rsb_pipes *pipes)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (!pipes)
		return;
	rsb_list_for_each_safe (pos, tmp, &pipes->events)
		free(rsb_list_entry(pos, struct event, link));
	rsb_map_done(&pipes->by_far);
	rsb_mutex_done(&pipes->lock);
	free(pipes);
}

static void
close_streams(struct rsb_pipe *pipe)
{
	for (unsigned int i = 0; i < N_STREAM; i++) {
		if (!(pipe->flags & 1u << i))
			continue;
		if (pipe->client)
			rsb_chan_close(rsb_guest_chans(pipe->client), pipe->near * 4 + i);
		rsb_link_chan_close(pipe->pipes->link, pipe->far * 4 + i);
	}
}

static int
open_streams(struct rsb_pipe *pipe)
{
	struct rsb_link *link = pipe->pipes->link;
	struct rsb_chans *chans = rsb_guest_chans(pipe->client);
	int r = 0;

	for (unsigned int i = 0; i < N_STREAM && r >= 0; i++) {
		uint64_t near = pipe->near * 4 + i;
		uint64_t far = pipe->far * 4 + i;

		if (!(pipe->flags & 1u << i))
			continue;
		if (i == 0) {
			r = rsb_chan_open_receiver(chans, near, RSB_CHAN_WINDOW_MAX);
			if (r >= 0)
				r = rsb_link_chan_open_sender(link, far, RSB_CHAN_WINDOW_MAX);
		} else {
			r = rsb_chan_open_sender(chans, near, RSB_CHAN_WINDOW_MAX);
			if (r >= 0)
				r = rsb_link_chan_open_receiver(link, far, RSB_CHAN_WINDOW_MAX);
		}
	}
	return r;
}

unsigned int
rsb_pipe_streams(const struct rsb_spawn_req *spawn)
{
	unsigned int flags = RSB_PIPE_STDIN | RSB_PIPE_STDOUT | RSB_PIPE_STDERR;

	if (!spawn)
		return RSB_PIPE_STDIN;
	if (spawn->flags & RSB_SPAWN_STDIN_NULL)
		flags &= ~(unsigned int)RSB_PIPE_STDIN;
	if (spawn->flags & RSB_SPAWN_MERGE_STDERR)
		flags &= ~(unsigned int)RSB_PIPE_STDERR;
	return flags;
}

int
rsb_pipe_new(struct rsb_pipes *pipes, struct rsb_guest *client, uint64_t near, uint64_t far,
	unsigned int flags, struct rsb_pipe **ret_pipe)
{
	struct rsb_pipe *pipe = rsb_new(struct rsb_pipe);
	int r;

	if (!pipe)
		return -ENOMEM;
	*pipe = (struct rsb_pipe){
		.pipes = pipes,
		.client = client,
		.near = near,
		.far = far,
		.flags = flags,
	};
	rsb_buf_init(&pipe->in, RSB_CHAN_WINDOW_MAX + RSB_FRAME_MAX);
	r = rsb_map_put(&pipes->by_far, far, pipe);
	if (r >= 0)
		r = open_streams(pipe);
	if (r < 0) {
		rsb_pipe_free(pipe);
		return r;
	}
	*ret_pipe = pipe;
	return 0;
}

void
rsb_pipe_free(struct rsb_pipe *pipe)
{
	if (!pipe)
		return;
	close_streams(pipe);
	(void)rsb_map_del(&pipe->pipes->by_far, pipe->far);
	rsb_buf_done(&pipe->in);
	free(pipe);
}

void
rsb_pipe_give_up(struct rsb_pipe *pipe)
{
	for (unsigned int i = 1; i < N_STREAM; i++) {
		if (pipe->flags & 1u << i)
			rsb_pipe_take_reset(pipe->pipes, pipe->far * 4 + i, -ENOTCONN);
	}
}

void
rsb_pipe_orphan(struct rsb_pipe *pipe)
{
	if (!pipe->client)
		return;
	/* What its buffer held is taken by nobody now. */
	for (unsigned int i = 1; i < N_STREAM; i++)
		rsb_link_chan_consume(pipe->pipes->link, pipe->far * 4 + i,
			(size_t)(pipe->written[i] - pipe->credited[i]));
	pipe->client = NULL;
	if (pipe->flags & RSB_PIPE_STDIN)
		rsb_link_chan_reset(pipe->pipes->link, RSB_CHAN_STDIN(pipe->far), -EPIPE);
}
