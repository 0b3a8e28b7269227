"""Bounds of the independent import of a robot's file: of the mechanism's own scale, whatever its lengths are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from unit.robots.test_robot_loops import PARALLEL

from mb2fmu import pipeline
from mb2fmu.model import check_model
from mb2fmu.robots import RobotMechanics
from mb2fmu.validation.independent_import.independent_robot_accelerations import (
    _IndependentRobotAccelerations,
    list_loop_closures,
)
from mb2fmu.validation.independent_import.mujoco_equations import MujocoEquations
from mb2fmu.validation.source_checks import source_acceleration_samples
from mb2fmu.validation.source_checks.random_admissible_points import RandomAdmissibleState
from mb2fmu.validation.source_checks.source_acceleration_samples import INDEPENDENT_IMPORT

POWERS = {"m": 1, "m/s": 1, "m/s2": 1, "N.m.s/rad": 2}
"""Of the factor on lengths, where masses and times stay."""
UNITS_OF_NORM = 4.0
"""The least-norm part of u' is of columns in m and rad: with other units another part is reported, of the same size."""
POINTS = 4


def longer(text: str, factor: float) -> str:
    """The same file with other lengths and the same masses and stiffnesses; a parameter changes gravity."""
    density = f'<default><geom density="{1000 / factor**3!r}"/></default><worldbody>'
    text = text.replace("<worldbody>", density, 1)

    def moved(match: re.Match[str]) -> str:
        numbers = " ".join(repr(float(each) * factor) for each in match[2].split())
        return f'{match[1]}="{numbers}"'

    return re.sub(r'\b(pos|size|fromto|anchor)="([^"]*)"', moved, text)


def test_bounds_are_of_the_lengths_of_the_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hinges, slides, balls and a free body in loops: bounds of slides go with the lengths, those of turns stay."""
    monkeypatch.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", POINTS)
    path = tmp_path / "parallel.xml"
    path.write_text(PARALLEL)
    definition = check_model(pipeline.load(path))
    robot = definition.mechanics
    assert isinstance(robot, RobotMechanics)
    moving = [robot.tree.parts[i].moving_joint.name for i in robot.variables]

    def sampler(factor: float) -> _IndependentRobotAccelerations:
        path.write_text(longer(PARALLEL, factor))
        reading = MujocoEquations(path, moving, ["m1", "m2"])
        return _IndependentRobotAccelerations(definition, robot, reading, list_loop_closures(reading, []))

    own = sampler(1.0)
    points = [sample.point.values for sample in own.sample_all().samples[:POINTS]]
    for factor in (1e-3, 1e3):
        other = sampler(factor)
        items = [*(p for p in definition.parameters if not p.calculated), *definition.coordinates]
        items += [*definition.speeds, *definition.inputs]
        by = [1.0]
        by += [factor if each.name.endswith(".control") else factor ** POWERS.get(each.unit, 0) for each in items]
        by += [1.0] * (len(points[0]) - len(by))  # what stands behind the items: rates, which are given as 0
        for point in points:
            here = own.sample_point(RandomAdmissibleState(point[0], point))
            scaled = tuple(value * k for value, k in zip(point, by, strict=True))
            there = other.sample_point(RandomAdmissibleState(scaled[0], scaled))
            for each in definition.speeds:
                k, name = factor ** POWERS.get(each.unit, 0), each.name
                assert there.rates[INDEPENDENT_IMPORT][name] / k == pytest.approx(
                    here.rates[INDEPENDENT_IMPORT][name], abs=4 * here.bounds[name]
                )
                assert 1 / UNITS_OF_NORM < there.bounds[name] / k / here.bounds[name] < UNITS_OF_NORM
