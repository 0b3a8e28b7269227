"""The potential energy of a robot is that of its weights and of its springs along joints and tendons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import sympy as sm
from mechanisms import closed_mechanism_of

from mb2fmu import pipeline
from mb2fmu.mechanics import formulations
from mb2fmu.validation.independent_checks import check_potential_energy

ARM = """
<mujoco model="arm"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<worldbody><body name="a" pos="0 0 1"><joint name="j1" type="hinge" axis="0 1 0" stiffness="20" springref="0.3"/>
<inertial pos="0 0 -0.3" mass="1" diaginertia="0.02 0.02 0.01"/>
<body name="b" pos="0 0 -0.6"><joint name="j2" type="hinge" axis="0 1 0" stiffness="5"/>
<inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.01"/></body></body></worldbody>
<tendon><fixed name="t" stiffness="3" springlength="{lengths}"><joint joint="j1" coef="1"/><joint joint="j2" coef="-2"/>
</fixed></tendon></mujoco>
"""


def test_potential_energy_is_that_of_weights_and_springs(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(lengths="0.1"), encoding="utf-8")
    derivation = pipeline.derive(path, arguments={"energy": True}, method="tmt")
    mechanism = derivation.mechanism
    for springs, verdict in ((mechanism.spring_potential, "passed"), (sm.S.Zero, "failed")):
        changed = replace(mechanism, spring_potential=springs)
        equations = formulations.formulate(changed, derivation.equations.method)
        assert [each.verdict for each in check_potential_energy(derivation.checked, changed, equations)] == [verdict]


def test_a_slack_tendon_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(lengths="-0.5 0.5"), encoding="utf-8")
    mechanism = closed_mechanism_of(path, {"energy": True})
    for q1, q2, stretch in ((0.2, 0.1, 0.0), (1.0, 0.1, 0.3), (-1.0, 0.1, -0.7)):
        stored = mechanism.spring_potential.subs(dict(zip(mechanism.q, (q1, q2), strict=True)))
        expected = 20.0 * (q1 - 0.3) ** 2 / 2 + 5.0 * q2**2 / 2 + 3.0 * stretch**2 / 2
        assert abs(float(stored) - expected) < 1e-12


def test_a_position_drive_stores_nothing(tmp_path: Path) -> None:
    """What its law makes of a position is no spring."""
    path = tmp_path / "arm.xml"
    drive = '<actuator><position joint="j2" kp="12" kv="0.4"/><motor joint="j1"/></actuator></mujoco>'
    path.write_text(ARM.format(lengths="0.1").replace("</mujoco>", drive), encoding="utf-8")
    derivation = pipeline.derive(path, arguments={"energy": True}, method="tmt")
    checks = check_potential_energy(derivation.checked, derivation.mechanism, derivation.equations)
    assert [each.verdict for each in checks] == ["passed"]
