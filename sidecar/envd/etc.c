/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/etc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/secret.h"
#include "util/str.h"

#define RESOLV_MAX ((size_t)64 << 10)

/*
 * Nothing that may hold a credential: no shadow, environment, gitconfig, npmrc, pip.conf, wgetrc,
 * apt/auth.conf, ssh, ssl/private, sudoers or krb5.
 */
static const char *const copied[] = {
	"alternatives",
	"bash.bashrc",
	"bash_completion.d",
	"ca-certificates",
	"ca-certificates.conf",
	"debconf.conf",
	"debian_version",
	"dpkg",
	"fonts",
	"gai.conf",
	"host.conf",
	"inputrc",
	"issue",
	"issue.net",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"locale.conf",
	"locale.gen",
	"localtime",
	"login.defs",
	"lsb-release",
	"magic",
	"magic.mime",
	"mime.types",
	"mke2fs.conf",
	"nanorc",
	"networks",
	"os-release",
	"pam.conf",
	"pam.d",
	"perl",
	"profile",
	"profile.d",
	"protocols",
	"python3",
	"python3.11",
	"python3.12",
	"python3.13",
	"rpc",
	"security",
	"services",
	"shells",
	"skel",
	"ssl/certs",
	"ssl/openssl.cnf",
	"terminfo",
	"timezone",
	"vim",
	"xattr.conf",
};

/* %u: uid and gid of "user", which is 0 where the sandbox has one id only. */
static const char passwd_text[] = "root:x:0:0:root:/root:/bin/bash\n"
				  "user:x:%u:%u:user:/home/user:/bin/bash\n"
				  "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
				  "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
				  "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
				  "sync:x:4:65534:sync:/bin:/bin/sync\n"
				  "games:x:5:60:games:/usr/games:/usr/sbin/nologin\n"
				  "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
				  "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
				  "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
				  "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
				  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

static const char group_text[] = "root:x:0:\n"
				 "user:x:%u:\n"
				 "daemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\n"
				 "disk:x:6:\nmail:x:8:\nman:x:12:\nsudo:x:27:user\n"
				 "www-data:x:33:\nutmp:x:43:\nstaff:x:50:\ngames:x:60:\n"
				 "users:x:100:\nnogroup:x:65534:\n";

static int
copy_listed(struct rsb_tree *tree)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(copied); i++) {
		char host[128], path[128];
		int r;

		(void)snprintf(host, sizeof(host), "/etc/%s", copied[i]);
		(void)snprintf(path, sizeof(path), "etc/%s", copied[i]);
		r = rsb_tree_copy(tree, host, path, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Through the link that it often is, since what it points to is not in the sandbox. */
static int
write_resolv(struct rsb_tree *tree)
{
	rsb_autofree char *text = NULL;

	if (rsb_fd_read_file(AT_FDCWD, "/etc/resolv.conf", RESOLV_MAX, &text) < 0)
		return rsb_tree_text(tree, "etc/resolv.conf", 0644, "");
	return rsb_tree_text(tree, "etc/resolv.conf", 0644, text);
}

static int
write_machine_id(struct rsb_tree *tree)
{
	uint8_t id[16];
	char text[2 * sizeof(id) + 2];
	int r = rsb_random(id, sizeof(id));

	if (r < 0)
		return r;
	rsb_str_hex(id, sizeof(id), text);
	text[2 * sizeof(id)] = '\n';
	text[2 * sizeof(id) + 1] = '\0';
	return rsb_tree_text(tree, "etc/machine-id", 0444, text);
}

static int
write_hosts(struct rsb_tree *tree, const char *hostname)
{
	char text[512];
	int r;

	(void)snprintf(text, sizeof(text), "%s\n", hostname);
	r = rsb_tree_text(tree, "etc/hostname", 0644, text);
	if (r < 0)
		return r;
	(void)snprintf(
		text, sizeof(text), "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost\n", hostname);
	return rsb_tree_text(tree, "etc/hosts", 0644, text);
}

static int
write_users(struct rsb_tree *tree)
{
	uint32_t id = tree->ns->count > RSB_USERNS_USER ? RSB_USERNS_USER : 0;
	char text[2048];
	int r;

	(void)snprintf(text, sizeof(text), passwd_text, id, id);
	r = rsb_tree_text(tree, "etc/passwd", 0644, text);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), group_text, id);
	r = rsb_tree_text(tree, "etc/group", 0644, text);
	if (r < 0)
		return r;
	/* Where the host has sudo(8), "user" becomes the sandbox's root without a password. */
	return rsb_tree_text(tree, "etc/sudoers", 0440,
		"root ALL=(ALL:ALL) ALL\nuser ALL=(ALL:ALL) NOPASSWD: ALL\n");
}

int
rsb_etc_build(struct rsb_tree *tree, const char *hostname)
{
	int r;

	r = rsb_tree_dir(tree, "etc", 0755, 0);
	if (r < 0)
		return r;
	r = rsb_tree_dir(tree, "etc/ssl", 0755, 0);
	if (r < 0)
		return r;
	r = copy_listed(tree);
	if (r < 0)
		return r;
	r = write_users(tree);
	if (r < 0)
		return r;
	r = write_hosts(tree, hostname);
	if (r < 0)
		return r;
	r = write_resolv(tree);
	if (r < 0)
		return r;
	r = write_machine_id(tree);
	if (r < 0)
		return r;
	r = rsb_tree_text(tree, "etc/nsswitch.conf", 0644,
		"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n");
	if (r < 0)
		return r;
	return rsb_tree_link(tree, "etc/mtab", "/proc/self/mounts");
}
