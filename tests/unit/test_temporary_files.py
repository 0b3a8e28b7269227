"""Folders for work: gone however the work ends; a full disk is reported with its remedy."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from mb2fmu.errors import ToolError
from mb2fmu.temporary_files import (
    MIN_ABANDONED_AGE_S,
    TEMPORARY_FOLDER_VARIABLE,
    make_temporary_folder,
    remove_abandoned_temporary_folders,
)

WORKER = """
import time
from mb2fmu.temporary_files import make_temporary_folder
with make_temporary_folder("wait") as folder:
    print(folder, flush=True)
    time.sleep(99)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), ValueError("other")])
def test_nothing_is_left(place, error):
    def work():
        with make_temporary_folder("work") as folder:
            (folder / "file").write_text("text")
            assert folder.parent == place.resolve()
            if error:
                raise error

    if error:
        with pytest.raises(type(error)):
            work()
    else:
        work()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device", "held.npy"), OSError("10 requested and 0 written")]
)
def test_a_full_disk_is_reported(place, error):
    def work():
        with make_temporary_folder("run the FMU"):
            raise error

    with pytest.raises(ToolError, match="no room to run the FMU") as caught:
        work()
    (fault,) = caught.value.faults
    assert TEMPORARY_FOLDER_VARIABLE in fault.remedy
    assert fault.where
    assert list(place.iterdir()) == []


def test_other_errors_are_not_of_the_disk(place):
    with pytest.raises(FileNotFoundError), make_temporary_folder("run the FMU") as folder:
        (folder / "none").read_bytes()
    assert list(place.iterdir()) == []


def test_a_place_that_is_not_there_is_reported(place, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(place / "nowhere"))
    with pytest.raises(ToolError, match="no room") as caught, make_temporary_folder("run the FMU"):
        np.zeros(1)
    assert "nowhere" in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be locked")
def test_folders_of_killed_processes_are_removed_and_others_are_not(place):
    """By the next one that needs a folder, once nobody can be about to lock them; whoever works in one keeps it."""
    command = [sys.executable, "-c", WORKER]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)})
        for _ in range(2)
    ]
    try:
        killed, working = (place / worker.stdout.readline().strip() for worker in workers)
        (killed / "inner").mkdir()
        (killed / "inner" / "file").write_text("text")
        foreign, young = place / "mb2fmu-else", place / "mb2fmu-work-young_00"
        foreign.mkdir()
        young.mkdir()
        long_ago = time.time() - 2 * MIN_ABANDONED_AGE_S
        for each in (killed, working, foreign):
            os.utime(each, (long_ago, long_ago))
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait()
        remove_abandoned_temporary_folders.cache_clear()
        with make_temporary_folder("work") as own:
            assert sorted(place.iterdir()) == sorted([own, working, foreign, young])
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
