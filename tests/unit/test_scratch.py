"""Folders for work: gone however the work ends; a full disk is told with its remedy."""

import errno
import tempfile

import numpy as np
import pytest

from mb2fmu.errors import ToolError
from mb2fmu.scratch import VARIABLE, work_folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), ValueError("other")])
def test_nothing_is_left(place, error):
    def work():
        with work_folder("work") as folder:
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
def test_a_full_disk_is_told(place, error):
    def work():
        with work_folder("run the unit"):
            raise error

    with pytest.raises(ToolError, match="no room to run the unit") as caught:
        work()
    (fault,) = caught.value.faults
    assert VARIABLE in fault.remedy
    assert fault.where
    assert list(place.iterdir()) == []


def test_other_errors_are_not_of_the_disk(place):
    with pytest.raises(FileNotFoundError), work_folder("run the unit") as folder:
        (folder / "none").read_bytes()
    assert list(place.iterdir()) == []


def test_a_place_that_is_not_there_is_told(place, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(place / "nowhere"))
    with pytest.raises(ToolError, match="no room") as caught, work_folder("run the unit"):
        np.zeros(1)
    assert "nowhere" in str(caught.value)
