"""The zoo, compiled once by each compiler."""

import pytest
from native_models.zoo import Library, available, built


# By day the bits of another compiler are compared in test_native_life.
@pytest.fixture(scope="session", params=["zig", pytest.param("gcc", marks=pytest.mark.repeats)])
def library(request, tmp_path_factory):
    if not available(request.param):
        pytest.skip(f"there is no {request.param} here")
    return Library(built(request.param, tmp_path_factory.mktemp("zoo")))


@pytest.fixture(scope="session")
def zig_library(tmp_path_factory):
    return Library(built("zig", tmp_path_factory.mktemp("zoo")))


@pytest.fixture(scope="session")
def impatient_library(tmp_path_factory):
    """Gives up after a thousand internal steps."""
    return Library(built("zig", tmp_path_factory.mktemp("zoo"), "-DMB2FMU_MAX_INTERNAL_STEPS=1000"))
