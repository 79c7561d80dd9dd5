/* SPDX-License-Identifier: MIT */
#include "keeper/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/hash.h"
#include "util/str.h"

#define NAME ".trusted"
#define LINE_SIZE (2 * RSB_SHA256_SIZE + 1)

struct line {
	char hex[LINE_SIZE + 1]; /* with the newline */
};

static int
digest(const char *path, const char *text, struct line *ret_line)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf both = { 0 };
	uint8_t sum[RSB_SHA256_SIZE];
	int r;

	r = rsb_buf_append(&both, path, strlen(path) + 1);
	if (r >= 0)
		r = rsb_buf_append(&both, text, strlen(text));
	if (r < 0)
		return r;
	rsb_sha256(rsb_buf_view(&both), sum);
	rsb_str_hex(sum, sizeof(sum), ret_line->hex);
	strcpy(ret_line->hex + LINE_SIZE - 1, "\n");
	return 0;
}

static int
read_list(int dir_fd, char **ret_text)
{
	int r = rsb_fd_read_file(dir_fd, NAME, (size_t)RSB_TRUST_MAX * LINE_SIZE, ret_text);

	if (r != -ENOENT)
		return r;
	*ret_text = strdup("");
	return *ret_text ? 0 : -ENOMEM;
}

int
rsb_trust_add(const char *root, const char *path, const char *text, struct rsb_diag *diag)
{
	rsb_autoclose int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf list = { 0 };
	rsb_autofree char *old = NULL;
	const char *kept;
	struct line line;
	size_t size;
	int r;

	r = fd < 0 ? -errno : read_list(fd, &old);
	if (r >= 0)
		r = digest(path, text, &line);
	if (r >= 0 && strstr(old, line.hex))
		return 0;
	if (r >= 0) {
		size = strlen(old);
		kept = size + LINE_SIZE > (size_t)RSB_TRUST_MAX * LINE_SIZE ? old + LINE_SIZE : old;
		r = rsb_buf_append(&list, kept, strlen(kept));
	}
	if (r >= 0)
		r = rsb_buf_append(&list, line.hex, LINE_SIZE);
	if (r >= 0)
		r = rsb_fd_replace_file(fd, NAME, rsb_buf_view(&list), 0600);
	return r < 0 ? rsb_diag_set(diag, r, "%s/" NAME " cannot be changed: %s", root,
			       rsb_diag_text(NULL, r))
		     : 0;
}

bool
rsb_trust_has(const char *root, const char *path, const char *text)
{
	rsb_autoclose int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autofree char *list = NULL;
	struct line line;

	return fd >= 0 && read_list(fd, &list) >= 0 && digest(path, text, &line) >= 0 &&
	       strstr(list, line.hex);
}
