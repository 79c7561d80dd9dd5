/* SPDX-License-Identifier: MIT */
#include "exec/beside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "util/str.h"

char *
rsb_beside(const char *name)
{
	char self[RSB_PATH_MAX + 1];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *path;
	char *slash;

	if (n < 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	path = rsb_str_path(self, name);
	if (path && access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}
