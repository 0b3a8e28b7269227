"""Notes on flexible bodies: those that spin fast without foreshortening, and fast modes; none where all is slow."""

from __future__ import annotations

import numpy as np
import pytest
import sympy.physics.mechanics as me
from flexible_bodies import pinned_body
from mechanisms import mechanism_of

from mb2fmu import BeamSection, FlexibleBody
from mb2fmu.mechanics import formulations
from mb2fmu.model import check_model
from mb2fmu.model.flexible.runge_kutta_stability_constants import STABLE_STEP
from mb2fmu.validation.flexible_body_limitations import find_largest_flexible_body_spin, list_flexible_body_limitations
from mb2fmu.validation.reference.reference_run import make_reference

LOWEST = 1.8751040687119611**2 * np.sqrt(20.0 / 0.5) / 2.0**2
"""rad/s, of the beam below."""


def notes_of(*, spin: float = 0.1, foreshortening: bool = False, count: int = 1, start: float = 0.0, **experiment):
    """Notes on a cantilever that spins freely on its pin, its fastest frequency, and its largest spin."""
    section = BeamSection(area=1e-4, I_y=2.5e-9, I_z=1e-8)
    beam = FlexibleBody.beam(
        "beam", length=2.0, E=20.0 / 1e-8, rho=0.5 / 1e-4, section=section, modes={"bending_y": count},
        rotary_inertia=False, foreshortening=foreshortening, start=[start, *[0.0] * (count - 1)],
    )  # fmt: skip
    model = pinned_body(beam, gravity=0.0)
    model.speed(me.dynamicsymbols("omega"), spin, "rad/s", name="omega")
    model.declared = [item for item in model.declared if not (item.name == "omega" and item.start == 0.0)]
    model.experiment(**{"stop": 0.02, "step": 0.01, **experiment})
    definition, mechanism = check_model(model), mechanism_of(model)
    reference = make_reference(definition, formulations.formulate(mechanism, "tmt"))
    found = list_flexible_body_limitations(definition, mechanism, reference)
    return found, float(beam.data.frequencies()[-1]), find_largest_flexible_body_spin(mechanism, beam, reference)


@pytest.mark.parametrize(("share", "expected"), [(0.05, 0), (0.2, 1)])
def test_a_body_that_spins_fast_without_foreshortening_is_reported(share, expected):
    notes, _, spin = notes_of(spin=share * LOWEST)
    assert spin == pytest.approx(share * LOWEST, rel=1e-6)  # no torque, undeformed: a rigid motion at first
    assert len(notes) == expected
    assert all("foreshortening" in note for note in notes)


def test_a_body_with_foreshortening_may_spin():
    assert notes_of(spin=0.5 * LOWEST, foreshortening=True)[0] == ()


@pytest.mark.parametrize(("share", "expected"), [(0.09, 0), (0.11, 1)])
def test_displacements_that_are_not_small_are_reported(share, expected):
    """The modal coordinate is the displacement of the tip; at the start it is largest."""
    notes = notes_of(start=share * 2.0, foreshortening=True)[0]
    assert len(notes) == expected
    assert all(f"displaced by up to {share * 2.0:.3g} m, 11 % of its size" in note for note in notes)


def test_fast_modes_are_reported_with_the_step_that_they_allow():
    fast = {"count": 6, "step": 0.1, "stop": 0.2}
    notes, fastest, _ = notes_of(**fast)
    assert len(notes) == 1
    assert f"{STABLE_STEP / fastest:.2g} s" in notes[0]
    assert notes_of(**fast, stiff=True)[0] == ()


@pytest.mark.parametrize(("share", "expected"), [(0.9, 0), (1.1, 1)])
def test_a_fixed_step_beyond_the_stable_one_is_reported(share, expected):
    step = share * STABLE_STEP / LOWEST
    assert len(notes_of(solver="fixed", internal_step=step, step=step, stop=4 * step)[0]) == expected
