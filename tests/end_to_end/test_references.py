"""Stored references are current: made afresh by the formulation they name, they are the same within what they know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from representatives import marked

from mb2fmu import model
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.validation import make_reference
from mb2fmu.validation.reference import reference_files

ROOT = Path(__file__).parents[2]
MODELS = sorted(path.stem for path in (ROOT / "models").glob("*.py"))


def test_every_model_has_a_stored_reference():
    assert sorted(path.name for path in (ROOT / "reference").iterdir() if path.is_dir()) == MODELS


# By symbols, and in numbers: what a model's motion is, its FMU is held to in test_models.
@pytest.mark.parametrize("name", marked(MODELS, repeating=set(MODELS) - {"four_bar"}))
def test_stored_reference_is_current(name):
    old = reference_files.read_reference_files(ROOT / "reference" / name)
    read = mechanism.solve_loop_closure_start_values(
        mechanism.read_mechanism(model.check_model(model.load(ROOT / "models" / f"{name}.py")))
    )
    definition = read.declared
    numeric = str(old.provenance["formulation"]).startswith("Newton-Euler")
    equations = (
        formulations.form_equations_except_dynamics(read)
        if numeric
        else formulations.formulate(read, old.provenance["formulation"])
    )
    fresh = make_reference(definition, equations, mechanism=read if numeric else None)
    assert fresh.trajectory.provenance["formulation"] == old.provenance["formulation"]
    assert reference_files.explain_outdated_reference(old, reference_files.take_reference_excerpt(fresh)) == ()


def test_another_motion_is_not_current():
    """The same comparison, with gravity of Paris instead of the model's: it must not pass."""
    old = reference_files.read_reference_files(ROOT / "reference" / "msl_pendulum")
    definition = model.check_model(model.load(ROOT / "models" / "msl_pendulum.py"))
    equations = formulations.formulate(mechanism.read_mechanism(definition), old.provenance["formulation"])
    parameters = tuple(replace(p, value=9.80928) if p.name == "g" else p for p in definition.parameters)
    assert parameters != definition.parameters
    fresh = reference_files.take_reference_excerpt(
        make_reference(replace(definition, parameters=parameters), equations)
    )
    assert any("differs" in text for text in reference_files.explain_outdated_reference(old, fresh))
