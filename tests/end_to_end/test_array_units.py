"""A robot's FMU of FMI 3.0 with arrays does what the FMU with scalars does, in both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fmpy import extract, read_model_description, simulate_fmu
from fmpy.fmi1 import FMICallException
from fmpy.fmi3 import FMU3Model, FMU3Slave
from unit.robots.robot_texts import joint, link, robot

from mb2fmu import pipeline
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package.fmu_archive import read_archive
from mb2fmu.fmu.runner.fmi3_array_elements import encode_array_element_reference
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description

ARM = robot(
    '<link name="base"/>\n',
    link("l1", 2.0),
    link("l2", 1.5, 0.05),
    joint("j1", "revolute", "base", "l1", '<limit lower="-2" upper="2" effort="90" velocity="9"/>'
          '<dynamics damping="0.3"/>'),
    joint("j2", "prismatic", "l1", "l2", '<limit lower="-1" upper="1" effort="60" velocity="9"/>', axis="2 0 0"),
    name="arm",
)  # fmt: skip
ASKED = {"quantities": ("mass-matrix",), "outputs": ("l2",), "speeds": {"j1": 0.4, "j2": -0.2}}
HELD = {
    "q": ["j1.angle", "j2.position"],
    "v": ["j1.speed", "j2.speed"],
    "acceleration": ["der(j1.speed)", "der(j2.speed)"],
    "tau": ["j1.effort", "j2.effort"],
    "mass_matrix": [f"mass_matrix[{i},{j}]" for i in (1, 2) for j in (1, 2)],
    "l2.position": [f"l2.position.{axis}" for axis in "xyz"],
    "l2.orientation": [f"l2.orientation.{part}" for part in "wxyz"],
}
COMPUTED = [name for name in HELD if name != "tau"]
TAU = [0.7, -1.3]


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The FMU with scalars, and the one with arrays."""
    folder = tmp_path_factory.mktemp("units")
    path = folder / "arm.urdf"
    path.write_text(ARM)
    return {
        name: pipeline.export(
            path, folder / name, arguments={**ASKED, "arrays": name == "arrays"}, fmi="3", method="recursive-composite"
        ).path
        for name in ("scalars", "arrays")
    }


class Unit:
    """An instance in its running mode, with values by names."""

    def __init__(self, path: Path, folder: Path, kind: str) -> None:
        about = read_model_description(path)
        self.of = {v.name: v for v in about.modelVariables}
        made: Any = FMU3Slave if kind == "CoSimulation" else FMU3Model
        side = about.coSimulation if kind == "CoSimulation" else about.modelExchange
        self.fmu = made(
            guid=about.guid, unzipDirectory=extract(path, folder), modelIdentifier=side.modelIdentifier,
            instanceName=path.stem,
        )  # fmt: skip
        self.fmu.instantiate()
        self.fmu.enterInitializationMode(startTime=0.0)

    def number(self, name: str) -> int:
        return int(self.of[name].valueReference)

    def numbers(self, names: list[str]) -> list[int]:
        return [self.number(name) for name in names]

    def set(self, names: list[str], values: list[float]) -> None:
        self.fmu.setFloat64(self.numbers(names), values)

    def get(self, names: list[str], size: int) -> list[float]:
        return list(self.fmu.getFloat64(self.numbers(names), size))


@pytest.fixture(params=["CoSimulation", "ModelExchange"])
def pair(request: pytest.FixtureRequest, units: dict[str, Path], tmp_path: Path) -> Iterator[tuple[Unit, Unit]]:
    """An instance with scalars and one with arrays, both in Initialization Mode with the same efforts."""
    made = {name: Unit(units[name], tmp_path / name, request.param) for name in units}
    scalars, arrays = made["scalars"], made["arrays"]
    scalars.set(HELD["tau"], TAU)
    arrays.set(["tau"], TAU)
    yield scalars, arrays
    for each in made.values():
        each.fmu.freeInstance()


def test_references_of_scalars_are_those_of_the_fmu_without_arrays(units: dict[str, Path]) -> None:
    plain = {v.name: int(v.valueReference) for v in read_model_description(units["scalars"]).modelVariables}
    found = {v.name: v for v in read_model_description(units["arrays"]).modelVariables}
    scalars = {name: int(v.valueReference) for name, v in found.items() if not v.dimensions}
    assert scalars.items() <= plain.items()
    assert {name for name, v in found.items() if v.dimensions} == set(HELD)
    gone = {name for array in ("tau", "mass_matrix", "l2.position", "l2.orientation") for name in HELD[array]}
    assert plain.keys() - scalars.keys() == gone
    assert min(int(found[name].valueReference) for name in HELD) > max(plain.values())


def test_values_are_those_of_the_scalars_in_one_call(pair: tuple[Unit, Unit]) -> None:
    scalars, arrays = pair
    together = [name for array in COMPUTED for name in HELD[array]]
    names, size = ["tau", *COMPUTED, "j1.speed"], len(together) + 3
    for run in (False, True):
        if run:
            for each in pair:
                _run_on(each.fmu)
        assert arrays.get(names, size) == [
            *TAU,
            *scalars.get(together, len(together)),
            *scalars.get(["j1.speed"], 1),
        ]


def _run_on(fmu: Any) -> None:
    """Out of Initialization Mode, and 0.01 s on."""
    fmu.exitInitializationMode()
    if isinstance(fmu, FMU3Slave):
        fmu.doStep(0.0, 0.01)
    else:
        fmu.enterContinuousTimeMode()
        fmu.setTime(0.01)


def test_derivatives_are_those_of_the_scalars(pair: tuple[Unit, Unit]) -> None:
    scalars, arrays = pair
    by, of = ["j1.angle", "tau", "j2.speed"], ["acceleration", "q", "l2.position", "der(j1.angle)"]
    by_scalars = [name for each in by for name in HELD.get(each, [each])]
    of_scalars = [name for each in of for name in HELD.get(each, [each])]
    seed = [0.3, -1.0, 2.0, 0.5]
    along = scalars.fmu.getDirectionalDerivative(scalars.numbers(of_scalars), scalars.numbers(by_scalars), seed)
    found = arrays.fmu.getDirectionalDerivative(arrays.numbers(of), arrays.numbers(by), seed, len(of_scalars))
    assert list(found) == list(along)
    assert any(along)
    seed = list(np.linspace(-1.0, 1.0, len(of_scalars)))
    along = scalars.fmu.getAdjointDerivative(
        scalars.numbers(of_scalars), scalars.numbers(by_scalars), seed, len(by_scalars)
    )
    found = arrays.fmu.getAdjointDerivative(arrays.numbers(of), arrays.numbers(by), seed, len(by_scalars))
    assert list(found) == list(along)


WRONG = {
    "a reference of an inner element": lambda unit: unit.fmu.getFloat64([unit.number("q") + 1]),
    "a reference beyond all": lambda unit: unit.fmu.getFloat64([100_000]),
    "too few values": lambda unit: unit.fmu.getFloat64([unit.number("q")], 1),
    "too many values": lambda unit: unit.fmu.setFloat64([unit.number("tau")], [1.0, 2.0, 3.0]),
    "an array of outputs is set": lambda unit: unit.fmu.setFloat64([unit.number("q")], [0.1, 0.1]),
    "a derivative by what is computed": lambda unit: unit.fmu.getDirectionalDerivative(
        [unit.number("acceleration")], [unit.number("q")], [1.0, 0.0], 2
    ),
    "a seed of another size": lambda unit: unit.fmu.getDirectionalDerivative(
        [unit.number("acceleration")], [unit.number("tau")], [1.0], 2
    ),
    "an element of an input that is in its array": lambda unit: unit.fmu.setFloat64([unit.number("tau") + 1], [1.0]),
    "one wrong value of an array": lambda unit: unit.fmu.setFloat64([unit.number("tau")], [5.0, float("nan")]),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_what_no_array_has_is_refused(pair: tuple[Unit, Unit], wrong: str) -> None:
    _, arrays = pair
    with pytest.raises(FMICallException):
        WRONG[wrong](arrays)
    if "value" in wrong:
        assert arrays.get(["tau"], 2) == TAU  # in the failed state values can be read, and nothing has changed


def test_fmpy_simulates_with_arrays_as_with_scalars(units: dict[str, Path]) -> None:
    time = np.linspace(0.0, 0.3, 31)
    waves = np.column_stack([np.sin(3 * time), np.cos(2 * time)])
    forms = {
        "scalars": ([("time", "f8"), *((name, "f8") for name in HELD["tau"])], HELD["q"]),
        "arrays": ([("time", "f8"), ("tau", "f8", (2,))], ["q"]),
    }
    ends = []
    for name, (form, asked) in forms.items():
        signals = np.zeros(len(time), dtype=form)
        signals["time"] = time
        for k, each in enumerate(HELD["tau"]):
            if name == "scalars":
                signals[each] = waves[:, k]
        if name == "arrays":
            signals["tau"] = waves
        done = simulate_fmu(
            str(units[name]), stop_time=0.3, step_size=0.01, output_interval=0.01, input=signals, output=asked
        )
        ends.append(np.hstack([np.ravel(done[each][-1]) for each in asked]))
    assert ends[0].tolist() == ends[1].tolist()


def test_the_proof_finds_elements_by_what_the_description_calls_them(units: dict[str, Path]) -> None:
    tree = read_archive(units["arrays"])
    found = read_fmu_description(tree)
    tau = found.variables["tau"]
    assert [found.variables[name].reference for name in HELD["tau"]] == [
        encode_array_element_reference(tau.reference, k) for k in (0, 1)
    ]
    assert found.variables["j2.effort"].start == "0.0"
    assert not tau.is_scalar
    text = tree["modelDescription.xml"].replace(b"j1.effort j2.effort", b"j2.effort j1.effort")
    swapped = read_fmu_description(InMemoryFileTree({**tree.files, "modelDescription.xml": text}))
    assert swapped.variables["j1.effort"].reference == found.variables["j2.effort"].reference
