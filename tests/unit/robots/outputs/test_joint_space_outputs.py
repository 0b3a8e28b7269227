"""Mass matrix, Jacobians, gravity, inverse dynamics beside the motion: against Pinocchio, MuJoCo, and the reference."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from representatives import by_night
from unit.robots.joints.test_inverse_dynamics_setup import GEAR, SPRINGS
from unit.robots.robot_texts import ARM, joint, link, robot

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations

FLYING = robot(link("body", 3.0), link("a"), link("b", 0.5), joint("h", "continuous", "body", "a", axis="1 2 2"),
               joint("s", "prismatic", "a", "b", '<limit lower="-9" upper="9" effort="9" velocity="9"/>'))  # fmt: skip
ALL = ["inverse-dynamics", "mass-matrix", "gravity-torques"]


def evaluate_outputs(derivation: pipeline.DerivationResult, x: list[float], wanted: list[float]) -> dict[str, float]:
    """Output → value, at a state and accelerations, whatever the efforts are."""
    f = pipeline.right_hand_side(derivation)
    given = iter(wanted)
    inputs = [next(given) if "desired" in item.name else 7.0 for item in derivation.checked.inputs]
    y = f.outputs(0.3, x, inputs, [p.value for p in derivation.checked.parameters])
    return dict(zip(f.output_names, map(float, y), strict=True))


def matrix(found: dict[str, float], name: str, rows: int, columns: int) -> np.ndarray:
    return np.array([[found[f"{name}[{i + 1},{j + 1}]"] for j in range(columns)] for i in range(rows)])


@pytest.mark.parametrize(
    ("base", "method"),
    [*by_night(("fixed", "tmt")), ("fixed", "recursive-composite"), ("floating", "recursive-articulated")],
)
def test_all_are_pinocchios(tmp_path: Path, base: str, method: str) -> None:
    """A rotor behind a gear, a joint that mimics, dampers; a robot that flies."""
    path = tmp_path / "robot.urdf"
    path.write_text(ARM.replace("</robot>", GEAR) if base == "fixed" else FLYING)
    frame, flies = ("l4", ()) if base == "fixed" else ("b", (pin.JointModelFreeFlyer(),))
    derivation = pipeline.derive(
        path, method=method, arguments={"base": base, "quantities": [*ALL, f"jacobian:{frame}"]}
    )
    model = pin.buildModelFromUrdf(str(path), *flies, mimic=True)
    data, random, n = model.createData(), np.random.default_rng(4), model.nv
    v, a = random.normal(size=(2, n))
    if flies:
        e = random.normal(size=4)
        e /= np.linalg.norm(e)
        r, q = random.normal(size=3), random.normal(size=2)
        place, x = np.array([*r, *e[1:], e[0], np.cos(q[0]), np.sin(q[0]), q[1]]), [*r, *e, *q, *v]
        damping, rotors = np.zeros(n), np.zeros(n)
        names = [f"base.{{}}_{kind}.{axis}" for kind in ("force", "torque") for axis in "xyz"] + [
            "h.{}_effort",
            "s.{}_effort",
        ]
    else:
        q = random.normal(size=3)
        place, x = np.array([q[0], np.cos(q[1]), np.sin(q[1]), q[2]]), [*q, *v]
        damping, rotors = np.array([0.3, 0.1, 0.0]), np.array([0.0, 0.0002 * 50**2, 0.0])
        names = [f"{j}.{{}}_effort" for j in ("j1", "j2", "j3")]
    found = evaluate_outputs(derivation, x, [*a])
    M = pin.crba(model, data, place)
    M = np.triu(M) + np.triu(M, 1).T + np.diag(rotors)
    assert matrix(found, "mass_matrix", n, n) == pytest.approx(M, rel=1e-12, abs=1e-12)
    gravity = pin.computeGeneralizedGravity(model, data, place)
    assert [found[name.format("gravity")] for name in names] == pytest.approx(gravity, rel=1e-12, abs=1e-12)
    efforts = pin.rnea(model, data, place, v, a) + damping * v + rotors * a
    assert [found[name.format("required")] for name in names] == pytest.approx(efforts, rel=1e-12, abs=1e-12)
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = pin.computeFrameJacobian(model, data, place, model.getFrameId(frame), world)
    assert matrix(found, f"{frame}.jacobian", 6, n) == pytest.approx(J, rel=1e-12, abs=1e-12)


def test_springs_and_tendons_count_and_actuators_do_not(tmp_path: Path) -> None:
    """MuJoCo's inverse dynamics; its unit's ``control`` makes no difference."""
    path = tmp_path / "springs.xml"
    path.write_text(SPRINGS)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, random = mujoco.MjData(model), np.random.default_rng(6)
    data.qpos[:], data.qvel[:], data.qacc[:] = random.normal(size=(3, 3))
    mujoco.mj_inverse(model, data)
    derivation = pipeline.derive(path, arguments={"quantities": ALL}, method="recursive-composite")
    found = evaluate_outputs(derivation, [*data.qpos, *data.qvel], [*data.qacc])
    expected = data.qfrc_inverse.tolist()
    assert [found[f"{n}.required_effort"] for n in ("h", "s", "g")] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("base", ["fixed", *by_night("floating")])
def test_the_reference_has_its_own(tmp_path: Path, base: str) -> None:
    """In NumPy and compiled, by the bodies alone: what the program has, without any of its equations."""
    path = tmp_path / "robot.urdf"
    path.write_text(ARM if base == "fixed" else FLYING)
    quantities = [*ALL, f"jacobian:{'tool' if base == 'fixed' else 'b'}"]
    derivation = pipeline.derive(path, arguments={"base": base, "quantities": quantities}, method="recursive-composite")
    mechanism = derivation.mechanism
    numbers = [NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))]
    if base == "fixed":
        numbers.append(NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism)))
        assert numbers[-1].compile()
    f, names = pipeline.right_hand_side(derivation), [output.name for output in derivation.equations.outputs]
    p = [item.value for item in derivation.checked.parameters]
    asked = [i for i, name in enumerate(names) if any(w in name for w in ("mass", "jacobian", "gravity_", "required"))]
    n = len(mechanism.u)
    assert len(asked) == n * n + 2 * n + 6 * n
    random = np.random.default_rng(1)
    for _ in range(3):
        r, x = random.normal(size=len(mechanism.r)).tolist(), random.normal(size=len(mechanism.q) + n)
        if base == "floating":
            x[3:7] /= np.linalg.norm(x[3:7])
        expected = f.outputs(0.3, x, r, p)[asked]
        for numeric in numbers:
            motion = numeric.motion(0.3, x, r, numeric.prepare(p))
            assert motion.outputs[asked] == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)

    def faults(**settings: object) -> str:
        with pytest.raises(ModelError) as caught:
            pipeline.Model.from_urdf(path, **settings)
        return str(caught.value)

    assert "a Jacobian is requested for 'tol'" in faults(quantities=["jacobian:tol"])
    assert "did you mean tool?" in faults(quantities="jacobian:tol,mass-matrix")
    assert "jacobian:LINK" in faults(quantities=["jacobian"])
    assert "one of inverse-dynamics, mass-matrix" in faults(quantities=["mass"])
    assert "has no states" in faults(quantities=["mass-matrix"], role="inverse-dynamics")
    assert "no joint moves by itself" in faults(quantities=["mass-matrix"], prescribed=["j1", "j2", "j3"])
    loop = [{"frames": ["tool", "base"], "name": "grip"}]
    assert "inverse-dynamics: grip closes a loop" in faults(quantities=ALL, loops=loop)
