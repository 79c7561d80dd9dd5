/* SPDX-License-Identifier: MIT */
#include "fuse/fixed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

#define CONNECT_NS (20 * RSB_NSEC_PER_SEC)
#define POLL_NS (10 * RSB_NSEC_PER_MSEC)
#define KEY_FILE_MAX 4096u

int
rsb_fixed_key(const struct rsb_options *options, struct rsb_secret *ret_key, struct rsb_diag *diag)
{
	const char *path = options->key_file;
	rsb_autofree char *text = NULL;
	uint8_t key[RSB_SECRET_MAX];
	struct rsb_bytes hex;
	int r;

	if (!path)
		return rsb_diag_set(diag, -EINVAL, "the option url= takes key=FILE as well");
	r = rsb_fd_read_file(AT_FDCWD, path, KEY_FILE_MAX, &text);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "the key file '%s' cannot be read: %s", path, strerror(-r));
	hex = (struct rsb_bytes){ .data = (uint8_t *)text, .size = strcspn(text, " \t\r\n") };
	r = hex.size / 2 > sizeof(key) ? -EINVAL : rsb_str_unhex(hex, key, hex.size / 2);
	if (r >= 0)
		r = rsb_secret_set(ret_key, key, hex.size / 2);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, strlen(text));
	if (r < 0)
		return rsb_diag_set(diag, -EINVAL, "'%s' is no file with a key in hex", path);
	return 0;
}

int
rsb_fixed_connect(const struct rsb_options *options, struct rsb_link *link)
{
	const struct rsb_link_target target = {
		.url = options->url,
		.fd = -1,
		.timeout_ns = CONNECT_NS,
	};

	return rsb_link_connect(link, &target);
}

int
rsb_fixed_wait(const struct rsb_options *options, struct rsb_link *link, uint64_t wait_ns,
	struct rsb_diag *diag)
{
	const uint64_t end_ns = rsb_now_ns() + wait_ns;
	const struct timespec pause = { .tv_nsec = (long)POLL_NS };
	struct rsb_diag why = { .text = "" };

	while (rsb_now_ns() < end_ns) {
		enum rsb_link_state state = rsb_link_state(link);

		if (state == RSB_LINK_LIVE)
			return 0;
		if (state == RSB_LINK_DOWN || state == RSB_LINK_FAILED) {
			rsb_link_why(link, &why);
			return rsb_diag_set(diag, -ENOTCONN, "no link to '%s': %s", options->url,
				why.text[0] ? why.text : "no reason given");
		}
		(void)nanosleep(&pause, NULL);
	}
	return rsb_diag_set(diag, -ETIMEDOUT, "no link to '%s' in time", options->url);
}
