"""Value references, and how the version of the standard may be written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import mb2fmu
from mb2fmu.compiler.derivatives.derivative_entry_points import add_fmu_derivatives
from mb2fmu.errors import EmitError, InterfaceError
from mb2fmu.fmu import interface
from mb2fmu.fmu.emit_c import emit_fmu_sources
from mb2fmu.fmu.interface.fmu_interface import FmuTarget
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices
from mb2fmu.pipeline.fmu_build import fmu_assembly

MODEL = Path(__file__).parents[4] / "models" / "double_pendulum.py"


@pytest.fixture(scope="module")
def derivation():
    return mb2fmu.derive(MODEL)


def described(derivation, fmi):
    target = FmuTarget(fmi, "native")
    return interface.form_fmu_interface(derivation.definition, derivation.equations, derivation.program, target)


def test_references_of_fmi_3_are_places_counted_from_1(derivation):
    """OMSimulator takes dependencies, which are value references there, for such places: 0 would be none."""
    variables = described(derivation, "3").variables
    assert [variable.value_reference for variable in variables] == list(range(1, len(variables) + 1))
    assert variables[0].name == "time"
    places = {variable.name: i for i, variable in enumerate(variables, start=1)}
    assert assign_model_structure_indices(described(derivation, "3")) == places


def test_those_of_fmi_2_begin_with_0(derivation):
    variables = described(derivation, "2").variables
    assert [variable.value_reference for variable in variables] == list(range(len(variables)))


def test_gaps_are_refused(derivation):
    made = described(derivation, "3")
    shifted = tuple(dataclasses.replace(v, value_reference=2 * v.value_reference) for v in made.variables)
    with pytest.raises(EmitError, match="without gaps"):
        emit_fmu_sources(add_fmu_derivatives(derivation.program), dataclasses.replace(made, variables=shifted))


@pytest.mark.parametrize(
    ("written", "version"), [("2", "2"), (2, "2"), ("2.0", "2"), ("3", "3"), (3, "3"), ("3.0", "3")]
)
def test_versions_may_be_written_as_numbers(written, version):
    assert fmu_assembly.fmi_major_version({"fmi": written}) == version


@pytest.mark.parametrize("written", [1, "1.0", True, 2.0, None, "3.1", [3]])
def test_other_versions_are_refused(written, derivation):
    with pytest.raises(InterfaceError, match=r"FMUs of FMI 2\.0 and 3\.0, not of"):
        mb2fmu.build(derivation, fmi=written)
