"""Results appear together, whole, and never in the place of others that were not meant."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mb2fmu.errors import PackageError
from mb2fmu.fmu.package import make_unpublished_folder, publish_files, write_file_atomically
from mb2fmu.fmu.package.file_locks import FileLockHeldError, acquire_lock_with_waiting, acquire_lock_without_waiting
from mb2fmu.temporary_files import MIN_ABANDONED_AGE_S, remove_abandoned_temporary_folders

NAMES = ("unit", "report")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def pair(folder):
    return tuple((folder / name).read_bytes() if (folder / name).exists() else None for name in NAMES)


def put(folder, text, **more):
    with make_unpublished_folder(folder, "unit") as private:
        for name in NAMES:
            (private / name).write_bytes(text)
        publish_files(private, NAMES, **more)


def test_a_pair_replaces_a_pair_and_leaves_nothing_else(tmp_path):
    folder = tmp_path / "made" / "for it"
    for text in (b"one", b"two"):
        put(folder, text)
        assert pair(folder) == (text, text)
    assert names(folder) == sorted(NAMES)


def test_what_is_not_published_leaves_all_as_it_was(tmp_path):
    put(tmp_path, b"old")

    def fail():
        with make_unpublished_folder(tmp_path, "unit") as private:
            (private / "unit").write_bytes(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert pair(tmp_path) == (b"old", b"old")
    assert names(tmp_path) == sorted(NAMES)


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be locked")
def test_folders_that_were_made_go_where_nothing_is_published(tmp_path):
    folder = tmp_path / "results" / "today"
    with pytest.raises(KeyboardInterrupt), make_unpublished_folder(folder, "Made"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    folder.parent.mkdir()
    with make_unpublished_folder(folder, "Made") as private:
        (private / "Made.fmu").write_bytes(b"")
        publish_files(private, ["Made.fmu"])
    with pytest.raises(KeyboardInterrupt), make_unpublished_folder(folder, "Made"):
        raise KeyboardInterrupt
    assert [path.name for path in folder.iterdir()] == ["Made.fmu"]


def test_private_folders_of_killed_processes_are_removed_and_others_are_not(tmp_path):
    """By the next one that writes results of that name; whoever works in one keeps it."""
    work = (
        "import pathlib, time\n"
        "from mb2fmu.fmu.package import make_unpublished_folder\n"
        f"with make_unpublished_folder(pathlib.Path({str(tmp_path)!r}), 'unit') as made:\n"
        "    print(made.name, flush=True)\n"
        "    time.sleep(99)\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        killed, working = (worker.stdout.readline().strip() for worker in workers)
        others = [".unit.young_00.tmp", ".unit.b.abcdefgh.tmp", ".unit.abcdefgh", ".unit.and_more.tmp"]
        for each in others[:3]:
            (tmp_path / each).mkdir()
        (tmp_path / others[3]).write_bytes(b"a file of the user's")
        long_ago = time.time() - 2 * MIN_ABANDONED_AGE_S
        for each in (killed, working, *others[1:]):
            os.utime(tmp_path / each, (long_ago, long_ago))
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait()
        remove_abandoned_temporary_folders.cache_clear()
        put(tmp_path, b"new")
        assert names(tmp_path) == sorted([working, *others, *NAMES])
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "the disk"), KeyboardInterrupt()])
def test_a_failure_while_publishing_is_taken_back(tmp_path, monkeypatch, before, fails_at, error):
    if before:
        put(tmp_path, before)
    replace, done = Path.replace, []

    def failing(self, target):
        if self.parent != tmp_path and self.parent.name != "before":
            done.append(target)
            if len(done) == fails_at:
                raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(PackageError if isinstance(error, OSError) else KeyboardInterrupt):
        put(tmp_path, b"new")
    assert pair(tmp_path) == (before, before)


def test_a_file_system_without_links_is_served_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    put(tmp_path, b"one")
    put(tmp_path, b"two")
    assert pair(tmp_path) == (b"two", b"two")


def test_a_stale_report_goes_with_the_fmu_that_it_was_about(tmp_path):
    put(tmp_path, b"old")
    with make_unpublished_folder(tmp_path, "unit") as private:
        (private / "unit").write_bytes(b"new")
        publish_files(private, ["unit"], ["report"])
    assert pair(tmp_path) == (b"new", None)


def test_pairs_of_many_writers_do_not_mix(tmp_path):
    """Whoever looks while others publish sees an FMU; in the end it has its own report."""
    put(tmp_path, b"0")
    program = (
        "import sys; from pathlib import Path; from mb2fmu.fmu.package import make_unpublished_folder, publish_files\n"
        "folder = Path(sys.argv[1])\n"
        "for k in range(40):\n"
        "    with make_unpublished_folder(folder, 'unit') as private:\n"
        "        for name in ('unit', 'report'):\n"
        "            (private / name).write_text(f'{sys.argv[2]} {k}')\n"
        "        publish_files(private, ['unit', 'report'])\n"
        "        \n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, tmp_path, name]) for name in "ab"]
    missing = 0
    while any(each.poll() is None for each in writers):
        missing += not (tmp_path / "unit").exists()
        with make_unpublished_folder(tmp_path, "look") as private, acquire_lock_with_waiting(tmp_path / ".unit.lock"):
            assert private.exists()
            unit, report = pair(tmp_path)
            assert unit == report is not None
    assert missing == 0
    assert [each.returncode for each in writers] == [0, 0]
    unit, report = pair(tmp_path)
    assert unit == report
    assert names(tmp_path) == sorted(NAMES)


def test_the_lock_is_held_by_one_at_a_time(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(50):
            with acquire_lock_with_waiting(tmp_path / ".lock"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert max(most) == 1
    assert len(most) == 200
    assert names(tmp_path) == []


def test_a_lock_that_is_held_is_refused_by_name_and_one_of_a_dead_process_is_taken_over(tmp_path):
    path = tmp_path / ".lock"
    program = (
        "import sys; from pathlib import Path; from mb2fmu.fmu.package.file_locks import acquire_lock_without_waiting\n"
        "with acquire_lock_without_waiting(Path(sys.argv[1]), 'the first'):\n"
        "    print('has it', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"has it\n"
        with pytest.raises(FileLockHeldError, match="the first"), acquire_lock_without_waiting(path, "the second"):
            pass
        other.kill()
    assert path.read_text() == "the first"
    with acquire_lock_without_waiting(path, "the second"):
        assert path.read_text() == "the second"
        with pytest.raises(FileLockHeldError, match="the second"), acquire_lock_without_waiting(path, "the third"):
            pass
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_users_umask_decides(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_file_atomically(tmp_path / "file", b"content")
        write_file_atomically(tmp_path / "file", b"again")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


def test_a_full_disk_is_reported_and_the_old_file_stays(tmp_path, monkeypatch):
    write_file_atomically(tmp_path / "file", b"old")

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PackageError, match="No space left") as caught:
        write_file_atomically(tmp_path / "file", b"new")
    assert "free some space" in str(caught.value)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="there are no such files")
def test_missing_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "result.json"
    write_file_atomically(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert [each.name for each in path.parent.iterdir()] == ["result.json"]


def test_what_is_no_plain_file_is_written_to(tmp_path):
    write_file_atomically(Path("/dev/null"), b"content")
    assert not Path("/dev/null").is_file()
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_file_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
