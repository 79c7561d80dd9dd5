/* SPDX-License-Identifier: MIT */
/*
 * A sidecar that was taken over: a mount and commands work through it, but what the names say is
 * answered as no sidecar would. Directories begin with "d-", everything else is a file; looking it
 * up or listing it, or running a command of that name, is what does it. The names are in the
 * tables at the end. How it takes an archive is said by a last line of the program file itself,
 * "mode=...", since that is all that reaches it through a deployment.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/errmap.h"
#include "util/clock.h"
#include "util/fd.h"

#include "hostile-lookup.h"

#define NAMES_MAX 4096

struct node {
	uint64_t id;
	char name[RSB_NAME_MAX + 1];
};

struct hostile {
	struct far_end far;
	struct node nodes[NAMES_MAX]; /* the latest */
	size_t n_node;
	char mode[32];
	uint64_t next_id;
	uint64_t tar_chan;
	struct rsb_call_head tar; /* id 0: none is under way */
	struct rsb_call_head tree;
	uint64_t tree_chan;
	char argv0[64]; /* of the last command */
};

static struct hostile *
of(struct far_end *far)
{
	return rsb_container_of(far, struct hostile, far);
}

static const char *
name_of(struct hostile *hostile, uint64_t id)
{
	size_t n = rsb_min(hostile->n_node, (size_t)NAMES_MAX);

	for (size_t i = 0; i < n; i++)
		if (hostile->nodes[i].id == id)
			return hostile->nodes[i].name;
	return "d-root";
}

/* ---- listings ---- */

struct listing {
	const char *name;
	uint64_t n_entry; /* of a page */
	bool same_id;
	const char *text; /* of each name, before its number */
	bool done;
};

static void
reply_page(struct far_end *far, const struct rsb_call_head *head, const struct rsb_readdir_req *req,
	const struct listing *listing)
{
	struct hostile *hostile = of(far);
	struct rsb_readdir_rep rep = { .done = listing->done, .dir = hostile_attr(2, true) };
	struct rsb_buf entries = { .max = RSB_MESSAGE_MAX };
	char name[RSB_NAME_MAX + 1];

	for (uint64_t i = 0; i < listing->n_entry; i++) {
		uint64_t id = listing->same_id ? req->first_id : req->first_id + i;
		struct rsb_dirent d = { .ino = id + 1, .type = DT_REG };

		(void)snprintf(name, sizeof(name), "%s%llu", listing->text,
			(unsigned long long)(listing->same_id ? i : ++hostile->next_id));
		d.name = rsb_bytes_str(name);
		d.id = req->plus ? id : 0;
		d.attr = hostile_attr(id, listing->same_id && i & 1);
		if (rsb_seq_append(&rsb_desc_rsb_dirent, &d, 1, &entries) < 0)
			errx(1, "no memory");
	}
	rep.entries = rsb_seq_of(&entries, listing->n_entry);
	far_end_reply(far, head, 0, &rep);
	rsb_buf_done(&entries);
}

#define LONG_NAME                                                                      \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345" \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345" \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345"

static const struct listing listings[] = {
	{ "d-root", 0, false, "", true },
	{ "d-plain", 3, false, "f", true },
	{ "d-empty", 0, false, "", false },
	{ "d-single", 1, false, "f", false },
	{ "d-endless", 1024, false, LONG_NAME, false },
	{ "d-same", 1024, true, "f", true },
};

static void
list(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_readdir_req req;
	const char *name;

	if (rsb_codec_decode(&rsb_desc_rsb_readdir_req, head->body, &req) < 0)
		errx(1, "a bad readdir");
	name = name_of(of(far), req.node.id);
	/* done, attributes of nothing, and more entries than bytes; a name that leads out. */
	if (strcmp(name, "d-count") == 0)
		hostile_reply(far, head, HOSTILE_RAW("\x93\x01\x90\xdd\xff\xff\xff\xff"), 0);
	else if (strcmp(name, "d-dots") == 0)
		hostile_reply(far, head, HOSTILE_RAW("\x93\x01\x90\x91\x93\xa2..\x01\x04"), 0);
	else if (strcmp(name, "d-slash") == 0)
		hostile_reply(far, head, HOSTILE_RAW("\x93\x01\x90\x91\x93\xa5../ab\x01\x04"), 0);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(listings); i++)
		if (strcmp(name, listings[i].name) == 0)
			reply_page(far, head, &req, &listings[i]);
}

/* ---- names ---- */

static void
look_up(struct far_end *far, const struct rsb_call_head *head)
{
	struct hostile *hostile = of(far);
	struct rsb_entry_rep rep = { 0 };
	struct rsb_lookup_req req;
	struct node *node;

	if (rsb_codec_decode(&rsb_desc_rsb_lookup_req, head->body, &req) < 0)
		errx(1, "a bad lookup");
	node = &hostile->nodes[hostile->n_node++ % NAMES_MAX];
	node->id = req.id;
	(void)snprintf(node->name, sizeof(node->name), "%.*s", (int)req.name.size, req.name.data);
	if (hostile_lookup(far, head, node->name))
		return;
	if (strcmp(node->name, "d-made") == 0 || strcmp(node->name, "f-made") == 0) {
		far_end_reply(far, head, -ENOENT, NULL);
		return;
	}
	rep.id = req.id;
	rep.attr = hostile_attr(req.id, strncmp(node->name, "d-", 2) == 0);
	far_end_reply(far, head, 0, &rep);
}

/* What is made is a directory that was looked up long ago. */
static void
make(struct far_end *far, const struct rsb_call_head *head)
{
	const struct hostile *hostile = of(far);
	struct rsb_entry_rep rep = { .dir = hostile_attr(1, true) };
	size_t n = rsb_min(hostile->n_node, (size_t)NAMES_MAX);

	for (size_t i = 0; i < n; i++)
		if (strcmp(hostile->nodes[i].name, "d-inside") == 0)
			rep.id = hostile->nodes[i].id;
	rep.attr = hostile_attr(rep.id, true);
	far_end_reply(far, head, 0, &rep);
}

/* ---- commands ---- */

static void
run(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_chans *chans = rsb_session_chans(far->session);
	struct rsb_spawn_rep rep = { .pid = UINT64_MAX };
	struct hostile *hostile = of(far);
	struct rsb_spawn_req req;
	struct rsb_bytes argv0;
	uint64_t out;

	if (rsb_codec_decode(&rsb_desc_rsb_spawn_req, head->body, &req) < 0 ||
		rsb_seq_next_bytes(&req.argv, &argv0) != 1)
		errx(1, "a bad spawn");
	(void)snprintf(hostile->argv0, sizeof(hostile->argv0), "%.*s", (int)argv0.size, argv0.data);
	if (strcmp(hostile->argv0, "stage") == 0) {
		rep.stage = UINT64_MAX;
		rep.error = UINT64_MAX;
	}
	out = RSB_CHAN_STDOUT(req.proc);
	/* More than the credit, from where nothing was before. */
	if (strcmp(hostile->argv0, "beyond") == 0)
		hostile_flood(far, RSB_FRAME_STREAM, out, UINT64_MAX - 10,
			rsb_bytes_str("0123456789abc"));
	if (rsb_chan_open_receiver(chans, RSB_CHAN_STDIN(req.proc), 1 << 20) < 0 ||
		rsb_chan_open_sender(chans, out, 1 << 20) < 0 ||
		rsb_chan_open_sender(chans, RSB_CHAN_STDERR(req.proc), 1 << 20) < 0)
		errx(1, "no streams");
	far_end_reply(far, head, 0, &rep);
	(void)!rsb_chan_write(chans, out, rsb_bytes_str("hello\n"));
	(void)!rsb_chan_finish(chans, out);
	(void)!rsb_chan_finish(chans, RSB_CHAN_STDERR(req.proc));
}

static void
end(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_wait_rep rep = { .exited = 1, .out_size = 6, .tree_empty = 1 };
	struct hostile *hostile = of(far);

	if (strcmp(hostile->argv0, "code") == 0)
		rep.code = UINT64_MAX - 1;
	if (strcmp(hostile->argv0, "signal") == 0)
		rep = (struct rsb_wait_rep){ .signal = 1 << 20, .out_size = 6, .tree_empty = 1 };
	if (strcmp(hostile->argv0, "less") == 0)
		rep.out_size = 3;
	far_end_reply(far, head, 0, &rep);
}

/* ---- archives ---- */

static void
finish_tar(struct hostile *hostile)
{
	static const char text[] = "\x1b[2J\x07\nproblem";
	char problem[513];
	struct rsb_tar_in_rep rep = { 0 };
	struct rsb_call_head head = hostile->tar;

	hostile->tar.id = 0;
	for (size_t i = 0; i < sizeof(problem); i++)
		problem[i] = text[i % (sizeof(text) - 1)];
	if (strcmp(hostile->mode, "tar-problem") == 0)
		rep.problem = (struct rsb_bytes){ (const uint8_t *)problem, 512 };
	if (strcmp(hostile->mode, "tar-long") == 0)
		hostile_reply(&hostile->far, &head, HOSTILE_RAW("\x93\x00\x00\xc6\x00\x10\x00\x00"),
			0x100000);
	else
		far_end_reply(&hostile->far, &head,
			strcmp(hostile->mode, "tar-error") == 0 ? -ENOSPC : 0, &rep);
}

static void
take_tar(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_chans *chans = rsb_session_chans(far->session);
	struct hostile *hostile = of(far);
	struct rsb_tar_in_req req;

	if (rsb_codec_decode(&rsb_desc_rsb_tar_in_req, head->body, &req) < 0)
		errx(1, "a bad tar_in");
	hostile->tar = *head;
	hostile->tar_chan = RSB_CHAN_STDIN(req.proc);
	if (rsb_chan_open_receiver(chans, hostile->tar_chan, 1 << 20) < 0)
		errx(1, "no stream");
	if (strcmp(hostile->mode, "tar-credit") == 0)
		hostile_flood(far, RSB_FRAME_CREDIT, hostile->tar_chan, UINT64_MAX,
			(struct rsb_bytes){
				(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8 });
	if (strcmp(hostile->mode, "tar-reset") == 0)
		rsb_chan_reset(chans, hostile->tar_chan, -EIO);
	if (strcmp(hostile->mode, "tar-early") == 0 || strcmp(hostile->mode, "tar-reset") == 0)
		finish_tar(hostile);
}

static void
take_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct hostile *hostile = arg;

	rsb_chan_consume(rsb_session_chans(hostile->far.session), chan, data.size);
	if (fin && hostile->tar.id && chan == hostile->tar_chan)
		finish_tar(hostile);
}

/* The end of an empty list, or archive, is there. */
static void
take_writable(void *arg, uint64_t chan)
{
	static const struct rsb_tree_out_rep rep;
	struct hostile *hostile = arg;
	struct rsb_chans *chans = rsb_session_chans(hostile->far.session);

	if (!hostile->tree.id || chan != hostile->tree_chan || !rsb_chan_drained(chans, chan))
		return;
	rsb_chan_close(chans, chan);
	far_end_reply(&hostile->far, &hostile->tree, 0, &rep);
	hostile->tree.id = 0;
}

static void
take_tree(struct far_end *far, const struct rsb_call_head *head)
{
	struct rsb_chans *chans = rsb_session_chans(far->session);
	struct hostile *hostile = of(far);
	struct rsb_tree_out_req req;

	if (rsb_codec_decode(&rsb_desc_rsb_tree_out_req, head->body, &req) < 0)
		errx(1, "a bad tree_out");
	hostile->tree = *head;
	hostile->tree_chan = RSB_CHAN_STDOUT(req.proc);
	if (rsb_chan_open_receiver(chans, RSB_CHAN_STDIN(req.proc), 1 << 20) < 0 ||
		rsb_chan_open_sender(chans, hostile->tree_chan, 1 << 20) < 0 ||
		rsb_chan_finish(chans, hostile->tree_chan) < 0)
		errx(1, "no stream");
}

static void
ignore_reset(void *arg rsb_unused, uint64_t chan rsb_unused, int r rsb_unused)
{
}

static const struct rsb_chan_ops chan_ops = {
	.data = take_data,
	.writable = take_writable,
	.reset = ignore_reset,
};

/* ---- calls ---- */

static void
answer(struct far_end *far, const struct rsb_call_head *head)
{
	/* Zeros for all else: attributes of nothing, no bytes. */
	static const uint64_t zeros[128];
	const struct rsb_attr_rep root = { .attr = hostile_attr(1, true) };

	if (head->op == RSB_OP_lookup)
		look_up(far, head);
	else if (head->op == RSB_OP_getattr)
		far_end_reply(far, head, 0, &root);
	else if (head->op == RSB_OP_readdir)
		list(far, head);
	else if (head->op == RSB_OP_mkdir || head->op == RSB_OP_mknod ||
		 head->op == RSB_OP_create || head->op == RSB_OP_symlink)
		make(far, head);
	else if (head->op == RSB_OP_spawn)
		run(far, head);
	else if (head->op == RSB_OP_wait)
		end(far, head);
	else if (head->op == RSB_OP_tar_in)
		take_tar(far, head);
	else if (head->op == RSB_OP_tree_out)
		take_tree(far, head);
	else
		far_end_reply(far, head, 0, zeros);
}

static int
listen_on(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		bind(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0 || listen(fd, 16) < 0)
		err(1, "port %u", (unsigned int)port);
	return fd;
}

static void
read_mode(char *mode, size_t size)
{
	rsb_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char tail[64] = { 0 };
	const char *at;

	if (fd < 0 || lseek(fd, -(off_t)sizeof(tail) + 1, SEEK_END) < 0 ||
		read(fd, tail, sizeof(tail) - 1) < 0)
		err(1, "/proc/self/exe");
	at = memmem(tail, sizeof(tail) - 1, "mode=", 5);
	if (at)
		(void)snprintf(mode, size, "%s", at + 5);
}

int
main(int argc, char **argv)
{
	static struct hostile hostile = { .next_id = 1 };
	uint8_t key[RSB_AUTH_KEY_SIZE];
	const char *port = NULL;
	size_t size;

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--port") == 0)
			port = argv[i + 1];
	if (!port || rsb_fd_read_full(0, key, sizeof(key), &size) < 0 || size != sizeof(key))
		errx(2, "usage: as rsb-sidecar, with --port and the key on standard input");
	read_mode(hostile.mode, sizeof(hostile.mode));
	if (rsb_secret_set(&hostile.far.key, key, sizeof(key)) < 0)
		errx(1, "no key");
	hostile.far.listen_fd = listen_on((uint16_t)strtoul(port, NULL, 10));
	hostile.far.call = answer;
	hostile.far.chan_ops = &chan_ops;
	(void)printf("ready %s\n", port);
	(void)fflush(stdout);
	return far_end_run(&hostile.far) < 0;
}
