# SPDX-License-Identifier: MIT
"""The sidecar is killed again and again under whatever goes on, and so is the daemon."""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import harness
import mount_ops
import mountbox
from harness import how_many
from mountbox import crash, wait_until
from restartbox import RestartBox, box, said, went_on
from walker import Walker, Walking, tree

FULL = how_many(False, False, True)


def storm(b, seed, n_kill, also_daemon=False):
    """Names are made and taken away, each exactly once; what each of them said is what there is."""
    chance = random.Random(seed)
    stop = threading.Event()
    wrong = []
    want = {}
    unknown = set()

    def work(which):
        mine = random.Random(seed * 100 + which)
        made = []
        for i in range(1000000):
            if stop.is_set():
                return
            name = f"w{which}-{i}"
            path = f"{b.mount}/{name}"
            try:
                what = mine.choice(("mkdir", "create", "symlink", "rename", "unlink"))
                if what == "mkdir":
                    os.mkdir(path)
                elif what == "create":
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                    made.append(name)
                elif what == "symlink":
                    os.symlink("nowhere", path)
                    made.append(name)
                elif made:
                    old = made.pop()
                    if what == "rename":
                        os.rename(f"{b.mount}/{old}", path)
                        made.append(name)
                    else:
                        os.unlink(f"{b.mount}/{old}")
                    del want[old]
                    if what == "unlink":
                        continue
                else:
                    continue
                want[name] = what
            except OSError as e:
                if e.errno != errno.EIO:
                    wrong.append((what, name, e))
                    return
                unknown.add(name)
                if what in ("rename", "unlink"):
                    unknown.add(old)
                    want.pop(old, None)
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(n_kill):
        time.sleep(chance.uniform(0, 0.2))
        b.restart_sidecar()
        if also_daemon and chance.random() < 0.5:
            time.sleep(chance.uniform(0, 0.05))
            crash(b)
    time.sleep(0.2)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a process hangs"
    assert not wrong, wrong
    there = set(os.listdir(b.workspace)) - unknown
    assert there == set(want) - unknown, (there ^ set(want)) - unknown
    assert set(os.listdir(b.mount)) == set(os.listdir(b.workspace))
    print(f"     seed {seed}: {len(want)} names, {len(unknown)} unknown", flush=True)
    return len(unknown)


def test_a_storm_of_names(tmp):
    with box(tmp) as b:
        n = storm(b, int(os.environ.get("RSB_SEED", "1")), 40 if FULL else 10)
        assert n < 20, n
        if n:
            wait_until(lambda: len(said(b, "unknown")) > 0, "what is unknown is named")


def test_a_storm_of_names_with_the_daemon_killed_too(tmp):
    with box(tmp, "crashes=1000") as b:
        storm(b, int(os.environ.get("RSB_SEED", "2")), 30 if FULL else 8, True)


class FarBox(RestartBox):
    """At the end of a long path."""

    proxy = None

    def start(self):
        if not self.proxy:
            self.proxy = harness.DelayProxy(self.port, 40)
            self.options = self.options.replace(f":{self.port}/", f":{self.proxy.port}/")
        super().start()

    def end_sidecar(self):
        code = super().end_sidecar()
        self.proxy.close()
        return code


def content(i):
    return b"%d\n" % i * (1 + i % 50)


def write_files(b, first, last, failed):
    """One after the other, never waiting for any to arrive."""
    for i in range(first, last):
        try:
            with open(f"{b.mount}/f{i}", "xb", buffering=0) as f:
                f.write(content(i))
        except OSError as e:
            failed[i] = e


def written_in_a_row(b, n, n_at_once, n_kill=0):
    """What nobody was told of is there as it was written."""
    failed = {}
    share = n // n_at_once
    threads = [threading.Thread(target=write_files, args=(b, i * share, (i + 1) * share, failed), daemon=True)
               for i in range(n_at_once)]
    for thread in threads:
        thread.start()
    for i in range(n_kill):
        wait_until(lambda: len(os.listdir(b.workspace)) >= n * (i + 1) // (n_kill + 1), "some are there", 300)
        b.restart_sidecar()
    for thread in threads:
        thread.join(800)
    assert not any(thread.is_alive() for thread in threads), "a process hangs"
    assert all(e.errno == errno.EIO for e in failed.values()), failed
    for i in range(n):
        path = f"{b.workspace}/f{i}"
        if i not in failed:
            assert mount_ops.get(path) == content(i), i
            assert i % 20 or mount_ops.get(f"{b.mount}/f{i}") == content(i), i
        elif os.path.exists(path):
            assert mount_ops.get(path) in (b"", content(i)), i
    print(f"     {n} files, {len(failed)} unknown", flush=True)
    return failed


def test_files_in_a_row(tmp):
    with box(tmp) as b:
        assert not written_in_a_row(b, how_many(500, 5000, 5000), 1)


def test_files_in_a_row_over_a_long_path(tmp):
    with mountbox.box(tmp, kind=FarBox) as b:
        assert not written_in_a_row(b, how_many(500, 2000, 5000), 50)


def test_files_in_a_row_over_kills(tmp):
    for kind in (RestartBox, FarBox):
        with mountbox.box(tmp, kind=kind) as b:
            failed = written_in_a_row(b, how_many(400, 2000, 2000), 20, 2)
            went_on(b, 2)
            # One mutation was under way at each kill.
            assert len(failed) <= 2, failed
            if failed:
                wait_until(lambda: len(said(b, "unknown")) > 0, "what is unknown is named")


def cut(path):
    os.truncate(path, os.stat(path).st_size // 2)


def scribble(path):
    with open(path, "r+b") as f:
        f.seek(200)
        f.write(os.urandom(3000))


def test_a_damaged_journal(tmp):
    """Nothing of it is believed: the session is over, which whoever had something under way hears."""
    for damage in (cut, scribble, os.unlink):
        with box(tmp) as b:
            failed = {}
            writer = threading.Thread(target=write_files, args=(b, 0, 60, failed), daemon=True)
            writer.start()
            wait_until(lambda: len(os.listdir(b.workspace)) >= 20, "some are there")
            b.sidecar.send_signal(signal.SIGKILL)
            b.sidecar.wait()
            damage(b.dir + "/journal")
            b.start_sidecar()
            writer.join(60)
            assert not writer.is_alive(), "a process hangs"
            assert all(e.errno == errno.EIO for e in failed.values()), failed
            assert not said(b, "restarted")
            for i in set(range(60)) - set(failed):
                assert mount_ops.get(f"{b.workspace}/f{i}") == content(i), i
            mount_ops.put(b.mount + "/after", b"it")
            assert mount_ops.get(b.workspace + "/after") == b"it"
            print(f"     {damage.__name__}: {len(failed)} unknown", flush=True)


class Forgiving(Walker):
    """
    A file without a name does not outlive the sidecar, and one that was opened by a name that it has no more only if the
    mount saw it by another one. After an operation of which nobody knows whether it was done the model is what there is.
    """

    def __init__(self, here, model, there, seed):
        super().__init__(here, model, seed)
        self.there = there
        self.n_unknown = 0
        self.n_stale = 0

    def both(self, fn):
        try:
            return super().both(fn)
        except AssertionError as e:
            (_, _, results), = e.args
            if results[0] == ("errno", errno.EIO):
                self.n_unknown += 1
                self.begin_anew()
            else:
                self.forget_stale(e)
            return ("errno", 0)

    def list(self):
        self.asks(super().list)

    def look(self):
        self.asks(super().look)

    def asks(self, what):
        """What changes nothing is asked again by the mount itself: it does not fail."""
        n = self.n_unknown
        what()
        assert self.n_unknown == n, (self.n, "EIO for a question")

    @staticmethod
    def may_be_stale(fds):
        return os.fstat(fds[1]).st_nlink == 0 or os.readlink(f"/proc/self/fd/{fds[1]}").endswith(" (deleted)")

    @staticmethod
    def error_of(fds):
        try:
            os.fsync(fds[0])
        except OSError as e:
            return e.errno
        return 0

    def forget_stale(self, what):
        """
        What went with it had been written, and is missing under the name that it still has. A write that was cut in the
        middle may be seen before its writer is told.
        """
        errors = [(fds, self.error_of(fds)) for fds in self.held]
        if any(error == errno.EIO for _, error in errors):
            self.n_unknown += 1
            self.begin_anew()
            return
        stale = [fds for fds, error in errors if error == errno.ESTALE and self.may_be_stale(fds)]
        assert stale, ("something else differs than what is open without a name", what)
        self.n_stale += 1
        if any(os.fstat(fds[1]).st_nlink for fds in stale):
            self.begin_anew()
            return
        for fds in stale:
            self.held.remove(fds)
            self.close(fds)

    def close(self, fds):
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)

    def begin_anew(self):
        while self.held:
            self.close(self.held.pop())
        shutil.rmtree(self.roots[1])
        subprocess.run(["cp", "-a", self.there, self.roots[1]], check=True)

    def drop(self):
        if not self.held:
            return
        fds = self.held.pop(self.random.randrange(len(self.held)))
        may_be_stale, nlink = self.may_be_stale(fds), os.fstat(fds[1]).st_nlink
        os.close(fds[1])
        try:
            os.close(fds[0])
        except OSError as e:
            if e.errno == errno.ESTALE and may_be_stale:
                self.n_stale += 1
            elif e.errno == errno.EIO:
                self.n_unknown += 1
            else:
                raise
            if nlink or e.errno == errno.EIO:
                self.begin_anew()


def restart_at_random(tmp, seed, n_restart, also_daemon):
    chance = random.Random(seed)
    with box(tmp, "crashes=1000") as b:
        model = tempfile.mkdtemp(dir=tmp)
        walkers = [Forgiving(f"{b.mount}/w{i}", f"{model}/w{i}", f"{b.workspace}/w{i}", seed * 10 + i) for i in range(3)]
        walking = Walking(walkers, seed)
        for _ in range(n_restart):
            time.sleep(chance.uniform(0, 0.3))
            if walking.stop.is_set():
                break
            for _ in range(chance.choice((1, 1, 2))):
                b.restart_sidecar()
                time.sleep(chance.uniform(0, 0.1))
                if also_daemon and chance.random() < 0.5:
                    crash(b)
        time.sleep(0.5)
        walking.end()
        print(f"     seed {seed}: {[w.n for w in walkers]} operations, {[w.n_unknown for w in walkers]} unknown, "
              f"{[w.n_stale for w in walkers]} stale", flush=True)
        want = tree(model)
        assert tree(b.mount) == want, "mount"
        assert tree(b.workspace) == want, "workspace"
        # A restart makes at most one change unknown, which one or two of them learn of.
        assert sum(w.n_unknown for w in walkers) <= 4 * n_restart


def test_restarts_at_random(tmp):
    first = int(os.environ.get("RSB_SEED", "1"))
    for seed in range(first, first + (10 if FULL else 2)):
        restart_at_random(tmp, seed, 10 if FULL else 6, False)


def test_restarts_and_crashes_at_random(tmp):
    first = int(os.environ.get("RSB_SEED", "101"))
    for seed in range(first, first + (10 if FULL else 2)):
        restart_at_random(tmp, seed, 10 if FULL else 6, True)


mountbox.main(globals())
