/* SPDX-License-Identifier: MIT */
#include "sidecar/epoch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/secret.h"
#include "util/str.h"

static void
read_boot_id(struct rsb_epoch *epoch)
{
	rsb_autofree char *text = NULL;

	/* A sandbox may hide it; then the nonce alone tells two starts apart. */
	if (rsb_fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text) < 0)
		return;
	text[strcspn(text, "\n")] = 0;
	if (strlen(text) == RSB_BOOT_ID_SIZE - 1)
		memcpy(epoch->boot_id, text, RSB_BOOT_ID_SIZE);
}

static void
name(const struct rsb_epoch *epoch, uint64_t number, char ret_text[static RSB_EPOCH_SIZE])
{
	(void)snprintf(ret_text, RSB_EPOCH_SIZE, "%s:%08" PRIx32 ":%" PRIu32, epoch->boot_id,
		(uint32_t)(number >> 32), (uint32_t)number);
}

static void
set(struct rsb_epoch *epoch, uint32_t nonce, uint32_t generation)
{
	epoch->number = ((uint64_t)nonce << 32) | generation;
	name(epoch, epoch->number, epoch->text);
}

int
rsb_epoch_init(struct rsb_epoch *epoch)
{
	uint32_t nonce;
	int r = rsb_random(&nonce, sizeof(nonce));

	if (r < 0)
		return r;
	*epoch = (struct rsb_epoch){ .number = 0 };
	read_boot_id(epoch);
	set(epoch, nonce, 0);
	return 0;
}

void
rsb_epoch_next(struct rsb_epoch *epoch)
{
	uint32_t nonce = (uint32_t)(epoch->number >> 32);

	/* Two copies of one memory count alike; without randomness the count has to do. */
	(void)rsb_random(&nonce, sizeof(nonce));
	set(epoch, nonce, (uint32_t)epoch->number + 1);
}

bool
rsb_epoch_is(const struct rsb_epoch *epoch, uint64_t number, struct rsb_bytes text)
{
	char expected[RSB_EPOCH_SIZE];

	name(epoch, number, expected);
	return rsb_str_is(text, expected);
}
