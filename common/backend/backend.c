/* SPDX-License-Identifier: MIT */
#include "backend/backend.h"

#include <string.h>
#include <sys/eventfd.h>

void
rsb_sandbox_done(struct rsb_sandbox *sandbox)
{
	rsb_secret_done(&sandbox->envd_token);
	rsb_secret_done(&sandbox->traffic_token);
}

void
rsb_backend_address_done(struct rsb_backend_address *address)
{
	size_t i;

	free(address->url);
	for (i = 0; address->headers[i]; i++) {
		/* one of them may carry a token */
		explicit_bzero(address->headers[i], strlen(address->headers[i]));
		free(address->headers[i]);
	}
	*address = (struct rsb_backend_address){ 0 };
}

void
rsb_backend_abort(struct rsb_backend *backend)
{
	/* EAGAIN: it is more than full of aborts */
	(void)eventfd_write(backend->abort_fd, 1);
}

void
rsb_backend_rearm(struct rsb_backend *backend)
{
	eventfd_t n;

	/* EAGAIN: it was not aborted */
	(void)eventfd_read(backend->abort_fd, &n);
}

void
rsb_backend_free(struct rsb_backend *backend)
{
	if (backend)
		backend->ops->free(backend);
}
