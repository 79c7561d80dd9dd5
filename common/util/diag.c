/* SPDX-License-Identifier: MIT */
#include "util/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/str.h"

int
rsb_diag_set(struct rsb_diag *diag, int r, const char *fmt, ...)
{
	char text[RSB_DIAG_MAX];
	va_list ap;

	if (!diag)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut at its maximum */
	va_end(ap);
	rsb_str_clean(text, diag->text, sizeof(diag->text));
	return r;
}

const char *
rsb_diag_text(const struct rsb_diag *diag, int r)
{
	const char *text;

	if (diag && diag->text[0])
		return diag->text;
	text = r > -4096 && r <= 0 ? strerrordesc_np(-r) : NULL;
	return text ? text : "unknown error";
}
