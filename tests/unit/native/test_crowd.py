"""Twenty different units in one process, loaded locally and globally: each answers for itself."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import pytest
from native.building import build
from native.fmi import CS, OK, Unit, bits, load

CROWD = [(2 + i % 2, f"0b5b1a56-6b0e-5d5c-8e52-0000000000{i:02d}", f"1e-{3 + i // 2}") for i in range(20)]
"""FMI version, token and tolerance of each: no two move alike to the last bit."""


def library(fmi: int, token: str, tolerance: str) -> Path:
    return build(fmi, "-O0", f'-DMB2FMU_TOKEN="{token}"', f"-DMB2FMU_DEFAULT_TOLERANCE={tolerance}")


def moved(units: list[Unit]) -> list[str]:
    """Final values of units that take turns."""
    for step in range(10):
        for unit in units:
            assert unit.step(0.5 * step, 0.5) == OK
    return [bits(unit.get("x", "v", "load", "omega")[1]).hex() for unit in units]


def begun(opened: ctypes.CDLL, number: int) -> Unit:
    fmi, token, _ = CROWD[number]
    stranger = CROWD[number - 2][1]
    assert not Unit(opened, fmi, CS).instantiate(token=stranger.encode()).handle
    return Unit(opened, fmi, CS).instantiate(token=token.encode()).start(force=0.1)


def in_one_process(paths: list[str], mode: int) -> list[str]:
    """What all units say that are loaded into this process, one after the other."""
    opened = [ctypes.CDLL(path, mode=mode) for path in paths]
    return moved([begun(each, number) for number, each in enumerate(opened)])


@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL"])
def test_twenty_units_in_one_process(mode):
    paths = [str(library(*each)) for each in CROWD]
    alone = [moved([begun(load(Path(path)), number)])[0] for number, path in enumerate(paths)]
    assert len(set(alone[::2])) == 10
    code = f"""
import ctypes, json, sys
sys.path[:0] = {sys.path!r}
from unit.native.test_crowd import in_one_process
print(json.dumps(in_one_process({paths!r}, ctypes.{mode})))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == alone
