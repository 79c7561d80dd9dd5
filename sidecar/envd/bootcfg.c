/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/bootcfg.h"

#include <errno.h>
#include <string.h>

static bool
id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n > 0 && n <= 63 && id[n] == '\0';
}

static int
read_members(struct rsb_bootcfg *cfg)
{
	int64_t base, size;
	int r;

	r = rsb_json_str(cfg->json, "id", &cfg->id);
	if (r < 0)
		return r;
	r = rsb_json_str(cfg->json, "boot_id", &cfg->boot_id);
	if (r < 0)
		return r;
	r = rsb_json_str(cfg->json, "disk_dir", &cfg->disk_dir);
	if (r < 0)
		return r;
	r = rsb_json_str(cfg->json, "token", &cfg->token);
	if (r < 0 && r != -ENOENT)
		return r;
	r = rsb_json_get(cfg->json, "env", &cfg->env);
	if (r < 0 && r != -ENOENT)
		return r;
	r = rsb_json_bool(cfg->json, "idmap", &cfg->idmap);
	if (r < 0)
		return r;
	r = rsb_json_i64(cfg->json, "disk_size", &size);
	if (r < 0)
		return r;
	r = rsb_json_i64(cfg->json, "uid_base", &base);
	if (r < 0)
		return r;
	if (!id_ok(cfg->id) || size < 0 || base < 0 || base > INT32_MAX)
		return -EBADMSG;
	cfg->disk_size = (uint64_t)size;
	cfg->uid_base = (uint32_t)base;
	return 0;
}

int
rsb_bootcfg_parse(struct rsb_bytes text, struct rsb_bootcfg *ret_cfg, struct rsb_diag *diag)
{
	struct rsb_bootcfg cfg = { 0 };
	int r;

	r = rsb_json_parse(text, &cfg.json, diag);
	if (r < 0)
		return r;
	if (read_members(&cfg) < 0) {
		rsb_json_free(cfg.json);
		return rsb_diag_set(diag, -EBADMSG, "the sandbox was given a wrong configuration");
	}
	*ret_cfg = cfg;
	return 0;
}

void
rsb_bootcfg_done(struct rsb_bootcfg *cfg)
{
	rsb_json_free(cfg->json);
	*cfg = (struct rsb_bootcfg){ 0 };
}
