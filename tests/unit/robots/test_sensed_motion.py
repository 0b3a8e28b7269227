"""Positions and velocities of links in expressions: in the unit, the reference, the independent import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
from compiled_reference import largest_difference
from representatives import by_night
from unit.robots.robot_texts import ARM, link
from unit.robots.test_robot_equations import worst_of

from mb2fmu import pipeline
from mb2fmu.errors import FormulationError, ModelError
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.robots.tree import mechanism_from_robot
from mb2fmu.systems.splitting import cut_mechanism
from mb2fmu.systems.wired_system import CouplingError
from mb2fmu.validation.compiled import link_tree
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations

OFFSET = (0.1, 0.0, 0.2)
ANCHOR = (0.4, 0.1, 0.9)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('<link name="base"/>', link("base", 3.0)))
    return path


def held(file: Path, **settings: Any) -> pipeline.Model:
    """A spring and damper from the tool to a place in the world, drag on the turning of l1, an effort along j2."""
    model = pipeline.Model.from_urdf(file, friction="ignore", **settings)
    arm, k = model.mechanics, sm.Symbol("k")
    model.parameter(k, 200.0, "N/m")
    place, speed, turn = arm.position_of("tool", OFFSET), arm.velocity_of("tool", OFFSET), arm.angular_velocity_of("l1")
    arm.add_force("tool", [k * (a - x) - 5 * v for a, x, v in zip(ANCHOR, place, speed, strict=True)], offset=OFFSET)
    arm.add_torque("l1", [-0.3 * w for w in turn])
    arm.add_effort("j2", place[0] - 3 * place[1] + 0.2 * place[0].diff())
    model.output("height", place[2], "m")
    return model


@pytest.mark.parametrize(
    "method", ["recursive-articulated", "recursive-composite", *by_night("tmt", "kane", "lagrange")]
)
def test_they_are_what_outputs_of_the_points_are(file: Path, method: str) -> None:
    """Numbers of the points, put in as forces of another unit of the robot, move it in the same way."""
    mimic = "free" if method == "recursive-articulated" else "couple"  # whose leader moves two links
    f = pipeline.right_hand_side(pipeline.derive(held(file, mimic=mimic), method=method))
    asked = {
        "loads": [{"frame": "tool", "offset": OFFSET}, {"frame": "l1", "of": "torque"}],
        "outputs": [
            {"frame": "tool", "of": ["position", "velocity"], "offset": OFFSET},
            {"frame": "l1", "of": "angular_velocity"},
        ],
    }
    derivation = pipeline.derive(file, arguments={"mimic": mimic, **asked}, method="recursive-composite")
    g = pipeline.right_hand_side(derivation)
    inputs = [item.name for item in derivation.definition.inputs]
    x = np.random.default_rng(1).uniform(-1, 1, 6 if mimic == "couple" else 8)
    seen = dict(zip(g.output_names, g.outputs(0.0, x), strict=True))
    place, speed = (np.array([seen[f"tool.{word}.{i}"] for i in "xyz"]) for word in ("position", "velocity"))
    force = 200 * (ANCHOR - place) - 5 * speed
    r = {f"tool.force.{i}": value for i, value in zip("xyz", force, strict=True)}
    r |= {f"l1.torque.{i}": -0.3 * seen[f"l1.angular_velocity.{i}"] for i in "xyz"}
    r["j2.effort"] = place[0] - 3 * place[1] + 0.2 * speed[0]
    wanted = g(0.0, x, [r.get(name, 0.0) for name in inputs])
    assert f(0.0, x) == pytest.approx(wanted, abs=1e-12 * np.abs(wanted).max())
    assert f.outputs(0.0, x)[list(f.output_names).index("height")] == pytest.approx(place[2], rel=1e-13)


@pytest.mark.parametrize("base", ["fixed", *by_night("floating")])
def test_the_reference_and_the_second_reading_have_their_own(
    file: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    derivation = pipeline.derive(held(file, base=base), method="recursive-composite")
    assert worst_of(derivation) < 1
    for fewest in (1, 99):  # link after link, and by M u' = f
        monkeypatch.setattr(link_tree, "MIN_SPEEDS_FOR_TREE", fewest)
        compiled = NewtonEulerEquations(derivation.mechanism, form_equations_except_dynamics(derivation.mechanism))
        assert compiled.compile()
        assert largest_difference(compiled, derivation.mechanism, count=4, seed=5) < 1e-11
    f, numbers = pipeline.right_hand_side(derivation), [p.value for p in derivation.checked.parameters]
    x = np.array([item.start for item in (*derivation.checked.coordinates, *derivation.checked.speeds)]) + 0.1
    own = compiled.motion(0.0, x, [0.0] * len(f.inputs), compiled.prepare(numbers)).outputs
    assert list(own) == pytest.approx(list(f.outputs(0.0, x)), rel=1e-11)


def test_another_point_is_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the unit a millionth of a metre beside the point that the model says."""
    whole = mechanism_from_robot.make_motion_vector_symbols

    def beside(robot: Any, number_of: Any, plain: Any) -> Any:
        def shifted(item: Any) -> int:
            if getattr(item, "frame", "") == "tool":
                item = type(item)("tool", (OFFSET[0] + 1e-6, *OFFSET[1:]))
            return int(number_of(item))

        return whole(robot, shifted, plain)

    monkeypatch.setattr(mechanism_from_robot, "make_motion_vector_symbols", beside)
    assert worst_of(pipeline.derive(held(file), method="recursive-composite")) > 1e3


def test_events_and_states_may_contain_them(file: Path) -> None:
    model = held(file)
    arm, count, path = model.mechanics, sm.Function("count")(sm.Symbol("t")), sm.Function("path")(sm.Symbol("t"))
    place, speed = arm.position_of("tool", OFFSET), arm.velocity_of("tool", OFFSET)
    model.discrete(count, 0.0)
    model.when(place[2] < 0.7, {count: count + 1}, name="low")
    model.state(path, sm.sqrt(sum(v**2 for v in speed) + 1e-6), 0.0, "m")
    result = pipeline.simulate(model)
    low = np.array(result["height"]) < 0.7
    assert result["count"][-1] == np.sum(np.diff(low.astype(int)) == 1) > 0
    assert result["path"][-1] > 0.01


def test_a_model_that_names_positions_is_not_split(file: Path) -> None:
    with pytest.raises(CouplingError, match="name positions and velocities of points"):
        cut_mechanism(pipeline.derive(held(file), method="recursive-composite").mechanism, ["j2"])


def test_an_acceleration_is_refused(file: Path) -> None:
    model = held(file)
    x = model.mechanics.position_of("tool")[0]
    model.mechanics.add_effort("j1", x.diff().diff() + x.diff())
    with pytest.raises(ModelError, match="is an acceleration of the robot"):
        pipeline.derive(model)


def test_a_potential_energy_that_is_given_counts(file: Path) -> None:
    """It was left out, and nothing said so: that of the weights alone was put out."""
    model = pipeline.Model.from_urdf(file, friction="ignore", inputs="none", gravity=(0, 0, 0))
    arm = model.mechanics
    place = arm.position_of("tool", OFFSET)
    arm.add_force("tool", [200 * (a - x) for a, x in zip(ANCHOR, place, strict=True)], offset=OFFSET)
    model.output_kinetic_energy()
    model.output_total_energy()
    model.output_position("tip", arm.point("tool", OFFSET))
    with pytest.raises(FormulationError, match="force 1 on tool"):
        pipeline.derive(model)
    model.potential_energy(sum(100 * (a - x) ** 2 for a, x in zip(ANCHOR, place, strict=True)))
    f = pipeline.right_hand_side(pipeline.derive(model, method="recursive-composite"))
    found = dict(zip(f.output_names, f.outputs(0.0, np.linspace(-0.5, 0.5, 6)), strict=True))
    tip = np.array([found[f"tip.{axis}"] for axis in "xyz"])
    stored = 100 * np.sum((ANCHOR - tip) ** 2)
    assert found["total_energy"] - found["kinetic_energy"] == pytest.approx(stored, rel=1e-12)
