/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "util/fd.h"

/*
 * A main() for a fuzz target under any compiler: runs it on every file of the directory that is
 * named.
 */

static int
replay(int dir_fd, const char *name)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = 0 };
	rsb_autoclose int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	rsb_autofree uint8_t *exact = NULL;
	int r;

	if (fd < 0)
		return -errno;
	r = rsb_fd_read_all(fd, &buf);
	if (r < 0)
		return r;
	/* A copy of just the size, as libFuzzer gives it. */
	exact = malloc(rsb_max(rsb_buf_len(&buf), (size_t)1));
	if (!exact)
		return -ENOMEM;
	if (rsb_buf_len(&buf) > 0)
		memcpy(exact, rsb_buf_head(&buf), rsb_buf_len(&buf));
	(void)LLVMFuzzerTestOneInput(exact, rsb_buf_len(&buf)); /* always 0 */
	return 0;
}

int
main(int argc, char **argv)
{
	rsb_autoclosedir DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int n = 0, r;

	if (!dir) {
		perror(argc == 2 ? argv[1] : "one directory expected");
		return 1;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		printf("%s\n", entry->d_name);
		(void)fflush(stdout); /* the last one printed is the one that crashed */
		r = replay(dirfd(dir), entry->d_name);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", entry->d_name, strerror(-r));
			return 1;
		}
		n++;
	}
	printf("%d inputs\n", n);
	return n > 0 ? 0 : 1;
}
