"""Faults of partial derivatives are found in any units of measure, and none is said to be where none is."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from rescaling import rescale

from mb2fmu import pipeline
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.instance.fmi_c_interface import FmuLibrary
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.trials.partial_derivative_trials import (
    try_partial_derivatives_at_initialization,
    try_partial_derivatives_in_continuous_mode,
)
from mb2fmu.audit.description.description_import import parse_model_description
from mb2fmu.audit.description.description_records import DESCRIPTION

MODELS = Path(__file__).parents[2] / "models"
SIZES = [(1.0, 1.0, 1.0), (1e-6, 1e-12, 1e-6), (1e6, 1e6, 1e6), (1e-6, 1.0, 1.0)]
PLANTED = {
    "bouncing_ball": [("der(v)", "g"), ("der(h)", "v"), ("total_energy", "v"), ("total_energy", "h")],
    "cart_pole": [("der(v)", "theta"), ("der(omega)", "theta"), ("tip.x", "theta"), ("der(v)", "force")],
}


def said(stage: TrialFixture) -> list[str]:
    """What the two probes say."""
    return [
        f"{found.rule}: {found.message}"
        for trial in (try_partial_derivatives_in_continuous_mode, try_partial_derivatives_at_initialization)
        for found in _each(trial(stage))
    ]


def _each(found: Iterator) -> Iterator:
    yield from found


@pytest.mark.parametrize(
    ("name", "fmi", "size"),
    [
        pytest.param(name, fmi, size, marks=() if size in sizes else pytest.mark.repeats)
        for name, fmi, sizes in (("bouncing_ball", "2.0", SIZES[1:2]), ("cart_pole", "3.0", SIZES[3:]))
        for size in SIZES
    ],
)
def test_a_partial_that_is_two_percent_off_is_found_in_any_units(tmp_path, monkeypatch, name, fmi, size):
    """Seen: derivatives of energies of 1e-12 J were below what was granted, and seeds of 1 kg drowned a nanogram's."""
    length, mass, time = size
    model = rescale(pipeline.load(MODELS / f"{name}.py"), length=length, mass=mass, time=time)
    files = pipeline.build(pipeline.derive(model), fmi=fmi).core.files
    binary = next(each for each in files if each.endswith(".so"))
    library = tmp_path / Path(binary).name
    library.write_bytes(files[binary])
    handle, described = ctypes.CDLL(str(library)), parse_model_description(files[DESCRIPTION])
    true = FmuInstance.get_partial_derivatives

    def stage() -> TrialFixture:
        return TrialFixture(FmuLibrary(handle, described, str(tmp_path)), "ModelExchange", tmp_path)

    assert said(stage()) == []
    for unknown, known in PLANTED[name]:
        asked = set()

        def wrong(self, unknowns, knowns, seed, *, adjoint=False, names=(unknown, known), asked=asked):
            status, values = true(self, unknowns, knowns, seed, adjoint=adjoint)
            rows, columns = [each.name for each in unknowns], [each.name for each in knowns]
            if names[0] in rows and names[1] in columns and not adjoint:
                i, j = rows.index(names[0]), columns.index(names[1])
                asked.add(names)
                only = true(self, [unknowns[i]], [knowns[j]], [seed[j]])[1][0]
                values = [value + 0.02 * only * (k == i) for k, value in enumerate(values)]
            return status, values

        monkeypatch.setattr(FmuInstance, "get_partial_derivatives", wrong)
        found = said(stage())
        monkeypatch.setattr(FmuInstance, "get_partial_derivatives", true)
        assert asked
        assert any(each.startswith("partials.directional") and unknown in each for each in found), (unknown, known)
