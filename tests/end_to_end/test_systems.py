"""The examples in systems/, each within its stated bound of the whole model."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mb2fmu.cli import commands
from mb2fmu.pipeline.system_runs.coupled_system_run import run_coupled_system, wire_loaded_system
from mb2fmu.pipeline.system_runs.model_split_export import split_model
from mb2fmu.systems import simulate_system
from mb2fmu.systems.exports.foreign_masters import find_largest_master_difference

night = partial(pytest.param, marks=pytest.mark.repeats)
FOLDER = Path(__file__).parents[2] / "systems"


@pytest.mark.parametrize(  # by day driven_arm keeps its bound, below
    ("name", "arguments"),
    [
        night("two_masses", {}),
        night("cut_pendulum", {}),  # 1e-6 over 5 s, two minutes
        night("quarter_truck", {"stop": 1.2}),
    ],
)
def test_an_example_is_within_its_bound(name: str, arguments: dict[str, float], tmp_path: Path) -> None:
    done = run_coupled_system(FOLDER / name / "system.py", tmp_path, arguments=arguments)
    assert done.deviations
    worst = max(done.deviations, key=lambda each: each.relative_error)
    assert worst.relative_error <= (done.joined.system.run_settings.bound or 0.0), worst.name
    assert done.motion.statistics["unconverged_steps"] == 0


@pytest.mark.parametrize(
    ("name", "stop", "bounds"),
    [
        ("driven_arm", 0.4, {"libcosim": 0.1}),  # all run two masses in unit/systems/test_written_systems
        night("hydraulic_crane", 0.6, dict.fromkeys(("libcosim", "ecos"), 0.02)),
        # The whole experiments, half a minute each: nightly. FMPy begins with inputs of zero: a cylinder without
        # length, whose shock takes a second to die away; a first look of the rider that sees no lean rate.
        night("driven_arm", 2.0, dict.fromkeys(("fmpy", "libcosim", "ecos"), 0.02)),
        night("hydraulic_crane", 3.0, {"fmpy": 0.006, "libcosim": 0.003, "ecos": 0.003}),
        night("ridden_bicycle", 2.0, {"fmpy": 0.06, "libcosim": 0.005, "ecos": 0.005}),
    ],
)
def test_other_masters_stay_near_the_whole(name: str, stop: float, bounds: dict[str, float], tmp_path: Path) -> None:
    """Each with its bound at the example's step, held inputs; ours within that of the example."""
    done = run_coupled_system(FOLDER / name / "system.py", tmp_path, arguments={"stop": stop}, masters=list(bounds))
    assert done.passed
    assert done.deviations
    for answer, (key, bound) in zip(done.answers, bounds.items(), strict=True):
        if answer.failure.startswith("not run"):
            continue
        assert not answer.failure
        far = find_largest_master_difference(answer, done.deviations)
        assert far is not None
        assert 0.0 < far[0] <= bound, (key, far)


def test_the_truck_stands_still_until_the_bump() -> None:
    """The start is consistent over the connections: the suspension carries the weight from the first moment."""
    joined = wire_loaded_system(FOLDER / "quarter_truck" / "system.py", arguments={"stop": 0.3, "step": 0.01})
    motion = simulate_system(joined)
    assert np.max(np.abs(motion["body.v"])) < 1e-9


def test_joints_on_lines_give_way_no_more_than_they_are_said_to(tmp_path: Path) -> None:
    """Three units by one call; each takes the others' waves late, nothing is iterated, and the truth is the model."""
    model = FOLDER / "cut_pendulum" / "whole.py"
    asked = ["split", str(model), "--at", "P1", "--at", "P2", "--by", "line", "-o", str(tmp_path)]
    result = CliRunner().invoke(commands, [*asked, "--step", "1e-3", "--json", str(tmp_path / "split.json")])
    assert result.exit_code == 0, result.output
    facts = json.loads((tmp_path / "split.json").read_text())
    assert [unit["part"] for unit in facts["fmus"]] == ["part1", "part2", "part3"]
    assert all(Path(unit["fmu"]).is_file() and unit["states"] and unit["takes"] for unit in facts["fmus"])
    assert Path(facts["system"]) == tmp_path / "system.py"
    # Nobody chose a stiffness: the lightest part, a link of 1 kg, decides.
    assert "compliance 0.0001 m/N, parasitic inertia 0.01 kg" in result.output
    done = run_coupled_system(tmp_path / "system.py", tmp_path, arguments={"stop": 0.1})
    assert [component.name for component in done.joined.components] == ["part1", "part2", "part3"]
    assert len(done.motion.bonds) == 4
    assert len(done.deviations) == 8
    # No angle errs by more than what the joints give way under the whole's weight, 39.2 N / k, over a link of 0.5 m.
    assert max(each.max_error for each in done.deviations if each.unit == "rad") < 4.0 * 9.81 / 1e4 / 0.5
    assert done.motion.statistics["total_passes"] == done.motion.statistics["steps"] == 100


@pytest.mark.repeats  # what is chosen is known in unit/systems/test_splitting
def test_joints_on_bushings_that_nobody_chose_stay_near_the_whole(tmp_path: Path) -> None:
    """Three units; the bushings were so soft that speeds were off by 3.2e-2 of their size."""
    split_model(FOLDER / "cut_pendulum" / "whole.py", ["P1", "P2"], tmp_path, way="bushing")
    done = run_coupled_system(tmp_path / "system.py", tmp_path, arguments={"stop": 0.5})
    assert len(done.deviations) == 8
    assert max(each.relative_error for each in done.deviations) < 1e-3


@pytest.mark.repeats
@pytest.mark.parametrize("masses", [{"m1": 1.0, "m2": 0.2, "m3": 3.0}, {"m1": 0.2, "m2": 1.0, "m3": 3.0}])
@pytest.mark.parametrize(("step", "bound"), [(1e-3, 8e-3), (5e-4, 1e-3)])
def test_bushings_between_unequal_links_stay_near_the_whole(
    masses: dict[str, float], step: float, bound: float, tmp_path: Path
) -> None:
    """With a stiffness by the lightest link's mass speeds were off by 1.6e-2 and 4.7e-2 of their size at 1 ms."""
    model = Path(__file__).parents[1] / "unequal_links.py"
    split_model(model, ["P1", "P2"], tmp_path, way="bushing", arguments=masses, step=step)
    done = run_coupled_system(tmp_path / "system.py", tmp_path, arguments={"stop": 0.3, "step": step})
    assert len(done.deviations) == 6
    assert max(each.relative_error for each in done.deviations) < bound


@pytest.mark.repeats  # a split model runs by day on lines, above; masters run driven_arm
def test_a_model_is_split_and_runs_in_a_master_that_reads_old_outputs(tmp_path: Path) -> None:
    """Cut so that no output depends on an input, FMPy's SSP simulation is 80 times nearer to the exact x1(1) = 1."""
    model = FOLDER / "two_masses" / "whole.py"
    asked = ["split", str(model), "--at", "load[1]", "--at", "load[2]", "-o", str(tmp_path)]
    result = CliRunner().invoke(commands, asked)
    assert result.exit_code == 0, result.output
    assert "part1" in result.output
    done = run_coupled_system(tmp_path / "system.py", tmp_path, arguments={"stop": 1.0}, masters=["fmpy"])
    assert max(each.relative_error for each in done.deviations) < 2e-6
    assert done.answers[0].final_values["part1.x1"] == pytest.approx(1.00077408, abs=2e-8)
    assert done.motion.bonds == ()


def test_a_cut_through_one_of_two_joints_is_refused(tmp_path: Path) -> None:
    asked = ["split", str(FOLDER / "two_masses" / "whole.py"), "--at", "load[1]", "-o", str(tmp_path / "none")]
    refused = CliRunner().invoke(commands, asked)
    assert refused.exit_code != 0
    assert "name all between two sides" in refused.output
    assert not (tmp_path / "none").exists()
