"""Correct FMUs, each made once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """Members of a correct FMU's archive, by its name."""
    import correct_fmus

    return correct_fmus.maker(tmp_path_factory.mktemp("correct"))
