"""x' of MJCF files against MuJoCo, at 30 random states each; and what the validation makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from representatives import by_night
from unit.robots.mjcf_texts import DEGREES, EVERYTHING, LEG, honoured_part_of, mujoco_test_model
from unit.robots.test_robot_equations import worst_against_second_reading, worst_of

from mb2fmu import pipeline
from mb2fmu.validation.independent_import import independent_robot_accelerations
from mb2fmu.validation.source_checks import source_acceleration_samples


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "robot.xml"
    path.write_text(EVERYTHING)
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {"friction": "stick"},
        {"locked": {"j2": 0.3}, "prescribed": ["j1"], "inputs": ["j4"], "gravity": [1.0, 2.0, -5.0]},
        *by_night({"mimic": "free"}),
    ],
)
def test_every_element_moves_as_in_mujoco(file: Path, settings: dict[str, object]) -> None:
    assert worst_against_second_reading(file, **settings) < 0.1


@pytest.mark.parametrize("content", [DEGREES.encode(), honoured_part_of(mujoco_test_model())])
def test_other_files_move_as_in_mujoco(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert worst_against_second_reading(file) < 0.1


@pytest.mark.parametrize("setting", ["", '<compiler alignfree="true"/>'])
def test_a_free_body_keeps_the_axes_of_its_file(file: Path, setting: str) -> None:
    """``align`` would turn them into the axes of its inertia, of which our unit knows nothing: a note tells that."""
    aligned = '<freejoint align="true"/>' if not setting else "<freejoint/>"
    geoms = '<geom size="0.01 0.1" type="cylinder" euler="20 30 0"/><geom size="0.03" pos="0.1 0.02 0.1"/>'
    file.write_text(f"<mujoco>{setting}<worldbody><body>{aligned}{geoms}</body></worldbody></mujoco>")
    derivation = pipeline.derive(file, method="recursive-composite")
    assert worst_of(derivation) < 1.0
    notes = " ".join(derivation.checked.mechanics.notes)
    assert "align" in notes


def test_mujoco_notices_every_fault_of_the_reader(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is changed between the two: as if the first reader had misread it."""
    monkeypatch.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", 5)
    derivation = pipeline.derive(file, arguments={"friction": "stick"}, method="recursive-composite")
    f, d = pipeline.right_hand_side(derivation), derivation.checked
    names = [item.name for item in (*d.coordinates, *d.speeds)]
    for given, instead in (
        ('ref="0.3"', 'ref="0.30001"'),
        ('eulerseq="zYx"', 'eulerseq="zyx"'),
        ('gear="20"', 'gear="20.001"'),
        ('springlength="0.1 0.3"', 'springlength="-9 0.3"'),
        ('forcerange="-3 3"', 'forcerange="-30 30"'),
        ('size="0.1 0.05 0.02"', 'size="0.1 0.05 0.0201"'),
        ('polycoef="0.25"', 'polycoef="0.2501"'),
        ('frictionloss="0.3"', 'frictionloss="0.3001"'),
    ):
        assert given in EVERYTHING
        file.write_text(EVERYTHING.replace(given, instead, 1))
        made = independent_robot_accelerations.sample_independent_robot_accelerations(d)
        worst = 0.0
        for sample in made.samples:
            values = sample.point.values
            x, p = [values[made.starts[n]] for n in names], [values[made.starts[q.name]] for q in d.parameters]
            rates = f(sample.point.time, x, [values[k] for k in made.inputs.values()], p)
            own = sample.rates[source_acceleration_samples.INDEPENDENT_IMPORT]
            worst = max(worst, *(abs(a - own[n]) / sample.bounds[n] for n, a in zip(names, rates, strict=True)))
        assert worst > 100, instead


def test_rotors_on_a_hip_of_three_hinges_leave_the_recursion_linear(file: Path) -> None:
    """Each hinge moves the thigh and a rotor: articulated bodies take that, and move as MuJoCo does."""
    file.write_text(LEG)
    derivation = pipeline.derive(file, method="recursive-articulated")
    assert worst_of(derivation) < 0.1
