# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: what a sandbox sees of the host, and that root stays inside. Usage: see localcases.py."""

import os
import re
import socket
import subprocess
import threading

import localcases
from localcases import eq, multi_uid
from rsblocal import Server, read_message, wait_for


def nothing_of_the_host(s):
    marker = f"/tmp/rsb-secret-{os.getpid()}"
    with open(marker, "w", encoding="utf-8") as f:
        f.write("secret")
    hidden = socket.socket(socket.AF_UNIX)
    hidden.bind(f"\0rsb-abstract-{os.getpid()}")
    hidden.listen()
    sleeper = subprocess.Popen(["sleep", "987"])
    try:
        a = s.create()
        for user in ("user", "root"):
            assert "987" not in a.text("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", user=user)
            eq(a.text("ls -A /tmp /run /home | grep -v lock | sort -u", user=user)
               .split(), ["/home:", "/run:", "/tmp:", "user"])
            eq(a.sh("ls -A /root", user=user).out, b"")
            r = a.sh(f"cat {marker} /etc/shadow /etc/gshadow /etc/ssh/* /etc/ssl/private/*", user=user)
            eq(r.out, b"")
            eq(a.sh("ls -A /etc/ssh /etc/ssl/private /var/lib/docker /boot /srv/*", user=user).out, b"")
            eq(a.run("python3", "-c", "import socket;s=socket.socket(socket.AF_UNIX);"
                     f"s.connect('\\0rsb-abstract-{os.getpid()}')", user=user).code, 1)
            eq(a.text("cat /proc/net/unix | grep -c rsb-abstract || true", user=user), "0\n")
            # No network but its own loopback.
            eq(a.text("ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev", user=user), "1\n")
            for host in ("127.0.0.1", "10.0.2.2", "1.1.1.1"):
                r = a.run("python3", "-c", f"import socket;socket.create_connection(('{host}',"
                          f"{s.port}),3)", user=user)
                eq(r.code, 1)
        boot = a.text("cat /proc/sys/kernel/random/boot_id")
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            assert boot != f.read()
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n", boot)
        eq(a.text("cat /proc/sys/kernel/random/boot_id"), boot)
        eq(a.text("hostname").strip(), a.id)
        b = s.create()
        assert b.text("cat /proc/sys/kernel/random/boot_id") != boot
        # No host uid 0 in the map when the host side is root.
        if s.by_root:
            maps = a.text("cat /proc/self/uid_map /proc/self/gid_map").split()
            assert maps[0] == "0" and int(maps[1]) >= 524288 and maps[2] == "65536", maps
            assert maps[1] != b.text("cat /proc/self/uid_map").split()[1]
        b.kill()
        a.kill()
    finally:
        sleeper.kill()
        sleeper.wait()
        hidden.close()
        os.unlink(marker)


ESCAPES = r"""
mknod /tmp/disk b 254 0 2>/dev/null && head -c 1 /tmp/disk && echo BAD mknod
mknod /tmp/mem c 1 1 2>/dev/null && head -c 1 /tmp/mem && echo BAD mem
umount -l /usr 2>/dev/null && echo BAD umount
umount -l /proc/sys/kernel/random/boot_id 2>/dev/null
mount -o remount,rw,bind /usr 2>/dev/null
for p in /proc/[0-9]*; do
	for f in $(ls $p/root/ 2>/dev/null); do case $f in work|lost+found|boot|vmlinuz*) echo BAD root $p $f;; esac; done
	ls -d $p/root/var/lib/dpkg 2>/dev/null
done
mount -t devtmpfs x /mnt 2>/dev/null && echo BAD devtmpfs
mount -t ext4 /dev/vda /mnt 2>/dev/null && echo BAD ext4
mount -t sysfs x /mnt 2>/dev/null && echo 1 2>/dev/null > /mnt/power/state && echo BAD sysfs
echo 1 2>/dev/null > /proc/sysrq-trigger && echo BAD sysrq
echo x 2>/dev/null > /proc/sys/kernel/core_pattern && echo BAD core_pattern
echo x 2>/dev/null > /proc/sys/kernel/hostname
true 2>/dev/null < /proc/kcore && echo BAD kcore
true 2>/dev/null >> /proc/1/exe && echo BAD exe
unshare -r -m sh -c 'umount -l /usr' 2>/dev/null && echo BAD unshare
nsenter -t 1 -m cat /etc/shadow >/dev/null 2>&1 && echo BAD nsenter
ls -A /proc/1/cwd/../../../etc 2>/dev/null | grep -qx shadow && echo BAD cwd
kill -9 1 2>/dev/null
echo end
"""


def root_stays_inside(s):
    a = s.create()
    probe = "/usr/bin/env"
    before = os.stat(probe)
    r = a.sh(ESCAPES, user="root")
    eq(r.out, b"end\n")
    if s.by_root:
        # It may change its own /usr, which is not the host's.
        a.text("echo changed > /usr/bin/env; rm -rf /usr/share/doc; mkdir /usr/mine; "
               "chmod 700 /usr/lib; mv /usr/include /usr/moved; cat /usr/bin/env | grep changed",
               user="root")
        eq(a.text("stat -c '%u %g' /usr /usr/bin /bin/ls", user="root"), "0 0\n0 0\n0 0\n")
    else:
        eq(a.sh("echo changed > /usr/bin/env", user="root").code != 0, True)
        eq(a.text("echo '#!/bin/sh' > /usr/local/bin/mine; chmod 755 /usr/local/bin/mine; mine; "
                  "echo ok", user="root"), "ok\n")
        assert not os.path.exists("/usr/local/bin/mine")
    after = os.stat(probe)
    eq((before.st_size, before.st_mtime_ns), (after.st_size, after.st_mtime_ns))
    assert not os.path.exists("/usr/mine") and os.path.isdir("/usr/include")
    # A stopped or traced pid 1 does not keep the host from its end.
    c, r = a.start("python3", "-c", "import ctypes,os,time; l=ctypes.CDLL(None); os.kill(1,19); "
                   "print(l.ptrace(16,1,0,0),flush=True); time.sleep(100)", user="root")
    read_message(r)
    eq(a.kill(), 204)
    c.close()


def user_is_no_root(s):
    a = s.create()
    if not multi_uid(a):
        return "one uid"
    eq(a.text("id"), "uid=1000(user) gid=1000(user) groups=1000(user),27(sudo)\n")
    for script in ("touch /etc/x", "touch /usr/x", "cat /etc/sudoers", "ls /root", "kill -9 1",
                   "mount -t tmpfs x /mnt", "chown root /home/user"):
        eq(a.sh(script).code != 0, True)
    a.kill()
    return None


def dev_works(s):
    a = s.create()
    eq(a.text("echo x > /dev/null; head -c 4 /dev/zero | od -An -c | tr -d ' '; head -c 9 /dev/urandom | wc -c;"
              " echo hi > /dev/shm/f; cat /dev/shm/f; cat /dev/fd/0 < /dev/null; "
              "python3 -c 'import os,pty;m,s=pty.openpty();print(os.ttyname(s)[:9])'; ls -l /dev/ptmx | wc -l"),
       "\\0\\0\\0\\0\n9\nhi\n/dev/pts/\n1\n")
    eq(a.text("nproc >/dev/null; getent passwd user; df / >/dev/null; date >/dev/null; ldconfig -p | wc -l")
       .split("\n")[0].split(":")[0], "user")
    a.kill()


def disk_is_limited(program, uid):
    with Server(program, "--disk", "64M", uid=uid) as s:
        a = s.create()
        size = int(a.text("df --output=size -k / | tail -1"))
        assert 50000 < size <= 65536, size
        r = a.sh("dd if=/dev/zero of=/home/user/big bs=1M count=100")
        assert r.code != 0 and b"No space" in r.err
        eq(a.put("/home/user/more", b"x" * 4000000)[0], 507)
        a.text("rm /home/user/big")
        eq(a.put("/home/user/more", b"x" * 4000000)[0], 200)
        if s.by_root:
            eq(a.text("stat -f -c %T /home", user="root").strip(), "ext2/ext3")
        a.kill()
        wait_for(lambda: s.state not in subprocess.run(["losetup", "-a"], capture_output=True, text=True,
                                                       check=False).stdout)


def without_idmapped_mounts(program, uid):
    """The rung below: system directories read-only, and nothing else is different."""
    with Server(program, "--no-idmap", uid=uid) as s:
        a = s.create()
        eq(a.sh("touch /usr/x", user="root").code != 0, True)
        eq(a.sh("echo x > /usr/bin/env", user="root").code != 0, True)
        eq(a.text("stat -c %U /usr; touch /etc/x /root/x /var/lib/x; python3 -c 'print(1)'", user="root"),
           "nobody\n1\n")
        eq(a.text("touch /usr/local/bin/mine && echo ok", user="root"), "ok\n")
        eq(a.sh(ESCAPES, user="root").out, b"end\n")
        a.kill()
        nothing_of_the_host(s)


def many_at_once(program, uid):
    with Server(program, "--disk", "32M", uid=uid) as s:
        made, errors = [], []

        def one():
            try:
                made.append(s.create())
            except AssertionError as e:
                errors.append(e)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        eq(errors, [])
        eq(len({a.text("cat /proc/sys/kernel/random/boot_id; hostname") for a in made}), 8)
        for a in made:
            eq(a.kill(), 204)


localcases.main(
    shared=[nothing_of_the_host, root_stays_inside, user_is_no_root, dev_works],
    own=[disk_is_limited, without_idmapped_mounts, many_at_once])
