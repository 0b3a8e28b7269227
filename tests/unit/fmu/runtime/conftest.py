"""The oscillator, compiled once, as both versions and both kinds."""

from __future__ import annotations

import pytest
from native.building import build
from native.fmi import CS, ME, Unit, load


@pytest.fixture(scope="session", params=[2, 3], ids=["fmi2", "fmi3"])
def library(request):
    return load(build(request.param)), request.param


@pytest.fixture
def fresh(library):
    """Makes FMUs; frees them."""
    made: list[Unit] = []

    def make(kind: int = CS, **arguments: object) -> Unit:
        made.append(Unit(library[0], library[1], kind).instantiate(**arguments))
        assert made[-1].handle, made[-1].log
        return made[-1]

    make.fmi = library[1]
    yield make
    for unit in made:
        unit.free()


@pytest.fixture(params=[ME, CS], ids=["me", "cs"])
def kind(request):
    return request.param
