"""Attitudes as the random points have them agree with the reference's formulas, which are others."""

from __future__ import annotations

import pytest
import sympy as sm
from scipy.spatial.transform import Rotation

from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.validation.reference_equations.observables import convert_rotation_to_quaternion, euler_angles
from mb2fmu.validation.source_checks.numeric_kane_equations import PointAndFrameMotion
from mb2fmu.validation.source_checks.source_outputs import _evaluate_orientation


@pytest.mark.parametrize("representation", ["quaternion", "zxy", "XYZ", "313", "yxy"])
@pytest.mark.parametrize("relative", [False, True])
def test_attitudes_are_those_of_the_reference(representation, relative):
    compared = 0
    for seed in range(12):
        frame, base = (Rotation.random(random_state=2 * seed + k).as_matrix() for k in (0, 1))
        asked = PointAndFrameMotion({}, {}, {}, {"B": frame, "A": base})
        request = OutputRequest(
            name="a", kind="orientation", subject=("B",), representation=representation,
            relative_to="A" if relative else None,
        )  # fmt: skip
        found = _evaluate_orientation(request, asked)
        turned = sm.Matrix(base.T @ frame if relative else frame)
        quaternion = representation == "quaternion"
        wanted = convert_rotation_to_quaternion(turned) if quaternion else euler_angles(turned, representation)
        names = [f"a.{part}" for part in "wxyz"] if quaternion else [f"a[{k}]" for k in (1, 2, 3)]
        if found:
            assert list(found) == names
            assert [value for value, _ in found.values()] == pytest.approx([float(w) for w in wanted], abs=1e-12)
            compared += 1
    assert compared > 8


def test_nothing_is_said_where_numbers_jump():
    half = Rotation.from_euler("z", 180.0, degrees=True).as_matrix()
    for representation in ("quaternion", "zxy"):
        request = OutputRequest(name="a", kind="orientation", subject=("B",), representation=representation)
        assert _evaluate_orientation(request, PointAndFrameMotion({}, {}, {}, {"B": half})) == {}
