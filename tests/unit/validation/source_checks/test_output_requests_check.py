"""Requests of outputs as imported, compared with the model's: a request of another object is found, for every kind."""

from dataclasses import replace
from pathlib import Path

import pytest
from unit.robots.robot_texts import ARM

import mb2fmu
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import RequestedOutput
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputKind
from mb2fmu.model.quantity_declarations import Coordinate, Speed
from mb2fmu.pipeline.derivation.model_derivation import load_model_and_mechanism
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.validation.source_checks.output_requests_check import compare_imported_output_requests


def two_rods():
    model = mb2fmu.load("models/two_rods.py")
    rod_a, rod_b = model.mechanics.bodies
    model.output_angular_acceleration("alpha", rod_b.frame)
    model.output_centre_of_mass("com", [rod_b])
    model.output_momenta("one", [rod_a], about=rod_b.masscenter)
    model.output_twist("seen", (rod_b.masscenter, rod_b.frame), relative_to=(rod_a.masscenter, rod_a.frame))
    for kind in (Coordinate, Speed):
        symbol = next(item.symbol for item in model.declared if isinstance(item, kind))
        model.output_momentum(f"momentum_{kind.__name__}", symbol, unit="kg.m2/s")
    model.output_power("gravity_power", model.mechanics.loads[0])
    return load_model_and_mechanism(model, None, StageStopwatch(None))


def arm(tmp_path: Path):
    path = tmp_path / "robot.urdf"
    path.write_text(ARM)
    quantities = ["inverse-dynamics", "mass-matrix", "gravity-torques", "jacobian:l4"]
    return load_model_and_mechanism(path, {"quantities": quantities}, StageStopwatch(None))


def with_other_subject(output: RequestedOutput, place: int, number: int) -> RequestedOutput:
    return replace(output, subject=(*output.subject[:place], number, *output.subject[place + 1 :]))


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (
            two_rods,
            {"angular_acceleration", "centre_of_mass", "centre_of_mass_velocity", "linear_momentum", "angular_momentum"}
            | {"relative_velocity", "angular_velocity", "momentum", "coordinate_momentum", "power"},
        ),
        (arm, {"mass_matrix", "gravity_effort", "inverse_effort", "partial_velocity", "partial_angular_velocity"}),
    ],
)
def test_another_object_is_found(make, kinds: set[OutputKind], tmp_path: Path) -> None:
    definition, mechanism = make(tmp_path) if make is arm else make()
    assert [what for what, right in compare_imported_output_requests(definition, mechanism) if not right] == []
    seen = set()
    for i, output in enumerate(mechanism.outputs):
        if not isinstance(output, RequestedOutput) or output.kind not in kinds:
            continue
        assert output.kind in OUTPUT_KINDS
        for place, number in enumerate(output.subject):
            other = with_other_subject(output, place, number - 1 if number else number + 1)
            changed = replace(mechanism, outputs=(*mechanism.outputs[:i], other, *mechanism.outputs[i + 1 :]))
            wrong = [what for what, right in compare_imported_output_requests(definition, changed) if not right]
            assert len(wrong) == 1, (output.name, place)
            assert wrong[0].startswith(output.name)
            seen.add(output.kind)
    assert seen == kinds
