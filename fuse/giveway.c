/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "giveway"

#include "fuse/giveway.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fuse/fs.h"
#include "fuse/packet.h"
#include "fuse/relay.h"
#include "proto/version.h"
#include "util/log.h"
#include "util/str.h"

/*
 * The mapping has to mean the same to both, and the sidecar has to understand the new one as it
 * does us (proto/handshake.h): calls that are under way are sent again by it.
 */
static bool
is_alike(const struct rsb_ctl_upgrade_req *req)
{
	if (req->magic != RSB_SHARED_MAGIC || req->size != sizeof(struct rsb_shared))
		return false;
	return req->version > RSB_PROTO_VERSION ||
	       (req->version == RSB_PROTO_VERSION && req->table_hash == rsb_op_table_hash());
}

static int
open_program(struct rsb_bytes path, int *ret_program)
{
	rsb_autofree char *text = rsb_str_dup(path);
	rsb_autoclose int fd = -1;
	struct stat st;

	if (!text)
		return -ENOMEM;
	fd = open(text, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	*ret_program = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_giveway_check(
	struct rsb_control *control, const struct rsb_ctl_upgrade_req *req, int *ret_program)
{
	const struct rsb_control_config *config = rsb_control_config(control);
	const struct rsb_shared_head *head = &config->fs->shared->head;

	if (!is_alike(req))
		return -EPROTONOSUPPORT;
	if (!config->mountpoint[0] || !head->live)
		return -ENOTCONN;
	if (head->no_epoch)
		return -EOPNOTSUPP;
	/* Their streams cannot go on over another daemon's socket. */
	if (!req->force && rsb_relay_count(rsb_control_relay(control), true))
		return -EBUSY;
	return open_program(req->program, ret_program);
}

void
rsb_giveway_go(const struct rsb_control *control, int program)
{
	int r = rsb_packet_send_fd(rsb_control_config(control)->sock, RSB_PACKET_UPGRADE, program);

	if (r < 0)
		(void)rsb_err_r(r, "the supervisor cannot be asked for another program");
	(void)close(program);
}

uint32_t
rsb_giveway_outcome(const struct rsb_control *control)
{
	return rsb_control_config(control)->fs->shared->head.upgrade;
}
