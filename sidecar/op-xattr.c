/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes. ACLs are refused: what they allow would be the sandbox's users, not the
 * host's.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sidecar/node.h"
#include "sidecar/resolve.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

#define ACL_PREFIX "system.posix_acl_"

/* The calls take no O_PATH descriptor: a path through /proc does, else the file is opened. */
struct subject {
	int fd;      /* O_PATH */
	int open_fd; /* -1: path counts */
	char path[RSB_PROC_PATH_SIZE];
};

#define SUBJECT_NONE                    \
	{                               \
		.fd = -1, .open_fd = -1 \
	}

static void
subject_done(struct subject *s)
{
	if (s->fd >= 0)
		(void)close(s->fd);
	if (s->open_fd >= 0)
		(void)close(s->open_fd);
}

static int
subject_init(struct subject *s, struct rsb_nodes *nodes, const struct rsb_node *node)
{
	const struct rsb_root *root = rsb_nodes_root(nodes);

	s->fd = rsb_resolve(nodes, node);
	if (s->fd < 0)
		return s->fd;
	if (rsb_root_proc_path(root, s->fd, s->path) == 0)
		return 0;
	s->open_fd = rsb_root_reopen(root, s->fd, O_RDONLY);
	return s->open_fd < 0 ? s->open_fd : 0;
}

static int
check_name(struct rsb_bytes name, char ret_name[static RSB_XATTR_NAME_MAX + 1])
{
	if (name.size == 0 || memchr(name.data, 0, name.size))
		return -EINVAL;
	if (name.size > RSB_XATTR_NAME_MAX)
		return -ERANGE;
	memcpy(ret_name, name.data, name.size);
	ret_name[name.size] = '\0';
	return strncmp(ret_name, ACL_PREFIX, strlen(ACL_PREFIX)) == 0 ? -EOPNOTSUPP : 0;
}

static int
get(struct rsb_nodes *nodes, const struct rsb_getxattr_req *req, uint8_t *value, size_t *ret_size)
{
	RSB_CLEANUP(subject_done) struct subject s = SUBJECT_NONE;
	char name[RSB_XATTR_NAME_MAX + 1];
	ssize_t n;
	int r = check_name(req->name, name);

	if (r < 0)
		return r;
	r = subject_init(&s, nodes, &req->node);
	if (r < 0)
		return r;
	if (s.open_fd >= 0)
		n = fgetxattr(s.open_fd, name, value, RSB_XATTR_MAX);
	else
		n = getxattr(s.path, name, value, RSB_XATTR_MAX);
	if (n < 0)
		return -errno;
	*ret_size = (size_t)n;
	return 0;
}

void
rsb_serve_getxattr(struct rsb_request *rq, const struct rsb_getxattr_req *req)
{
	rsb_autofree uint8_t *value = malloc(RSB_XATTR_MAX);
	struct rsb_xattr_rep rep = { .value = { .data = value } };
	int r = value ? get(rq->sess->nodes, req, value, &rep.value.size) : -ENOMEM;

	rsb_request_reply(rq, r, &rep);
}

/* Takes the names out that getxattr would refuse. Returns what is left. */
static size_t
filter(char *names, size_t size)
{
	size_t kept = 0;

	for (size_t i = 0, n; i < size; i += n) {
		n = strnlen(names + i, size - i - 1) + 1;
		if (strncmp(names + i, ACL_PREFIX, strlen(ACL_PREFIX)) == 0)
			continue;
		memmove(names + kept, names + i, n);
		kept += n;
	}
	return kept;
}

static int
list(struct rsb_nodes *nodes, const struct rsb_listxattr_req *req, char *names, size_t *ret_size)
{
	RSB_CLEANUP(subject_done) struct subject s = SUBJECT_NONE;
	ssize_t n;
	int r = subject_init(&s, nodes, &req->node);

	if (r < 0)
		return r;
	if (s.open_fd >= 0)
		n = flistxattr(s.open_fd, names, RSB_XATTR_MAX);
	else
		n = listxattr(s.path, names, RSB_XATTR_MAX);
	if (n < 0)
		return -errno;
	*ret_size = filter(names, (size_t)n);
	return 0;
}

void
rsb_serve_listxattr(struct rsb_request *rq, const struct rsb_listxattr_req *req)
{
	rsb_autofree char *names = malloc(RSB_XATTR_MAX);
	struct rsb_xattr_rep rep = { .value = { .data = (const uint8_t *)names } };
	int r = names ? list(rq->sess->nodes, req, names, &rep.value.size) : -ENOMEM;

	rsb_request_reply(rq, r, &rep);
}

static int
set(struct rsb_nodes *nodes, const struct rsb_setxattr_req *req, struct rsb_attr_rep *rep)
{
	RSB_CLEANUP(subject_done) struct subject s = SUBJECT_NONE;
	char name[RSB_XATTR_NAME_MAX + 1];
	int r = check_name(req->name, name);

	if (r < 0)
		return r;
	if (req->flags & ~(uint64_t)(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	r = subject_init(&s, nodes, &req->node);
	if (r < 0)
		return r;
	if (s.open_fd >= 0)
		r = fsetxattr(s.open_fd, name, req->value.data, req->value.size, (int)req->flags);
	else
		r = setxattr(s.path, name, req->value.data, req->value.size, (int)req->flags);
	if (r < 0)
		return -errno;
	return rsb_nodes_attr(nodes, req->node.id, s.fd, &rep->attr);
}

void
rsb_serve_setxattr(struct rsb_request *rq, const struct rsb_setxattr_req *req)
{
	struct rsb_attr_rep rep;
	int r = set(rq->sess->nodes, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
drop(struct rsb_nodes *nodes, const struct rsb_getxattr_req *req, struct rsb_attr_rep *rep)
{
	RSB_CLEANUP(subject_done) struct subject s = SUBJECT_NONE;
	char name[RSB_XATTR_NAME_MAX + 1];
	int r = check_name(req->name, name);

	if (r < 0)
		return r;
	r = subject_init(&s, nodes, &req->node);
	if (r < 0)
		return r;
	r = s.open_fd >= 0 ? fremovexattr(s.open_fd, name) : removexattr(s.path, name);
	if (r < 0)
		return -errno;
	return rsb_nodes_attr(nodes, req->node.id, s.fd, &rep->attr);
}

void
rsb_serve_removexattr(struct rsb_request *rq, const struct rsb_getxattr_req *req)
{
	struct rsb_attr_rep rep;
	int r = drop(rq->sess->nodes, req, &rep);

	rsb_request_reply(rq, r, &rep);
}
