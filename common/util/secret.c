/* SPDX-License-Identifier: MIT */
#include "util/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int
rsb_secret_set(struct rsb_secret *secret, const void *data, size_t size)
{
	if (size > sizeof(secret->data))
		return -EMSGSIZE;
	rsb_secret_done(secret);
	if (size > 0)
		memcpy(secret->data, data, size);
	secret->size = size;
	return 0;
}

int
rsb_secret_generate(struct rsb_secret *secret, size_t size)
{
	int r;

	if (size > sizeof(secret->data))
		return -EMSGSIZE;
	rsb_secret_done(secret);
	r = rsb_random(secret->data, size);
	if (r < 0) {
		rsb_secret_done(secret);
		return r;
	}
	secret->size = size;
	return 0;
}

int
rsb_secret_equal(const void *a, size_t a_size, const void *b, size_t b_size)
{
	/* volatile: the compiler may not leave the loop early. */
	const volatile uint8_t *x = a;
	const volatile uint8_t *y = b;
	uint8_t diff = 0;
	size_t i;

	if (a_size != b_size)
		return 0;
	for (i = 0; i < a_size; i++)
		diff = (uint8_t)(diff | (x[i] ^ y[i]));
	return diff == 0;
}

void
rsb_secret_done(struct rsb_secret *secret)
{
	if (secret)
		explicit_bzero(secret, sizeof(*secret));
}

int
rsb_random(void *out, size_t size)
{
	uint8_t *p = out;
	ssize_t n;

	while (size > 0) {
		n = getrandom(p, size, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}
