"""Correct FMUs, each made once, and supervisors that are forked where many FMUs are audited."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """Members of a correct FMU's archive, by its name."""
    import correct_fmus

    return correct_fmus.maker(tmp_path_factory.mktemp("correct"))


STARTED = ("test_hostile_fmus", "test_wine_and_valgrind_hosts")
"""Here each supervisor is a program that is started, as it is for a user."""


@pytest.fixture(scope="session")
def server() -> Iterator[SimpleNamespace]:
    """One process that forks supervisors for all tests."""
    from forked_supervisors import supervisor_server

    with supervisor_server() as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def forked_supervisors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Two thirds of the time of an FMU with one fault are its supervisor's imports."""
    from mb2fmu.audit.behaviour.runner import supervised_trial_runs

    with pytest.MonkeyPatch.context() as monkeypatch:
        if request.path.stem not in STARTED and sys.platform == "linux":
            monkeypatch.setattr(supervised_trial_runs, "subprocess", request.getfixturevalue("server"))
        yield


@pytest.fixture
def started_supervisors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisors are started in one test of a module that has forked ones."""
    from mb2fmu.audit.behaviour.runner import supervised_trial_runs

    monkeypatch.setattr(supervised_trial_runs, "subprocess", subprocess)
