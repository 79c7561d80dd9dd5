/* SPDX-License-Identifier: MIT */
#include "sidecar/own.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

int
rsb_own_init(
	struct rsb_own *own, const struct rsb_sidecar_config *config, const struct rsb_who *who)
{
	*own = (struct rsb_own){ .uid = config->cmd_uid, .gid = config->cmd_gid };
	if (who->has) {
		/* The highest value means "no change" to the kernel. */
		if (who->uid >= UINT32_MAX || who->gid >= UINT32_MAX)
			return -EINVAL;
		own->uid = (uid_t)who->uid;
		own->gid = (gid_t)who->gid;
	}
	own->change = config->is_root && (own->uid != 0 || own->gid != 0);
	return 0;
}

/*
 * Leaving uid 0 took the file capabilities out of the effective set (capabilities(7)). Going on
 * without them is no harm: then the call is refused as it would be to the owner.
 */
static void
raise_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data) < 0)
		return;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(data); i++)
		data[i].effective = data[i].permitted;
	(void)syscall(SYS_capset, &head, data);
}

int
rsb_own_begin(const struct rsb_own *own)
{
	if (!own->change)
		return 0;
	(void)setfsgid(own->gid);
	(void)setfsuid(own->uid);
	/* They report nothing but the id before; an impossible one asks for the present. */
	if ((uid_t)setfsuid((uid_t)-1) != own->uid || (gid_t)setfsgid((gid_t)-1) != own->gid) {
		rsb_own_end(own);
		return -EPERM;
	}
	raise_caps();
	return 0;
}

void
rsb_own_end(const struct rsb_own *own)
{
	int saved = errno;

	if (own->change) {
		/* Back at uid 0 the kernel makes the file capabilities effective again. */
		(void)setfsuid(0);
		(void)setfsgid(0);
	}
	errno = saved;
}
