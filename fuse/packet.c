/* SPDX-License-Identifier: MIT */
#include "fuse/packet.h"

#include <errno.h>
#include <stdio.h>

#include "util/fd.h"

int
rsb_packet_send(int sock, uint32_t type, int error, const char *text)
{
	struct rsb_packet packet = { .type = type, .error = error };

	(void)snprintf(packet.text, sizeof(packet.text), "%s", text ? text : "");
	return rsb_fd_send(sock, &packet, sizeof(packet), NULL, 0);
}

int
rsb_packet_send_fd(int sock, uint32_t type, int fd)
{
	const struct rsb_packet packet = { .type = type };

	return rsb_fd_send(sock, &packet, sizeof(packet), &fd, 1);
}

int
rsb_packet_recv(int sock, struct rsb_packet *ret_packet, int *ret_fd)
{
	size_t n_fd = 1;
	int r;

	*ret_fd = -1;
	r = rsb_fd_recv(sock, ret_packet, sizeof(*ret_packet), ret_fd, &n_fd);
	if (r <= 0)
		return r == -ECONNRESET ? 0 : r;
	if (!n_fd)
		*ret_fd = -1;
	ret_packet->text[sizeof(ret_packet->text) - 1] = 0;
	return r == sizeof(*ret_packet) ? 1 : -EBADMSG;
}
