"""The FMUs of the example of two masses, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

import mb2fmu

EXAMPLE = Path(__file__).parents[3] / "systems" / "two_masses"


@pytest.fixture(scope="session")
def mass_units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """FMI version → component → unit."""
    folder = tmp_path_factory.mktemp("masses")
    return {
        fmi: {
            name: mb2fmu.export(EXAMPLE / f"{name}.py", folder / fmi, fmi=fmi).path  # type: ignore[call-arg]
            for name in ("left", "right")
        }
        for fmi in ("2", "3")
    }
