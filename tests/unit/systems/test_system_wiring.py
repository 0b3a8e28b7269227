"""Systems that are wrong: every fault is reported at once, where it stands, with a remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mb2fmu.errors import Mb2FmuError
from mb2fmu.model.model_loading import resolve_model_argument
from mb2fmu.systems import CoupledSystem, CouplingError, FmuComponent, read_fmu_component, wire_system
from mb2fmu.systems.fmu_component import FmuUnitDefinition, compute_unit_conversion

Units = dict[str, dict[str, Path]]


@pytest.fixture(scope="session")
def components(mass_units: Units) -> list[FmuComponent]:
    return [read_fmu_component(name, mass_units["2"][name]) for name in ("left", "right")]


def system(*links: tuple[str, str], **options: object) -> CoupledSystem:
    made = CoupledSystem("Wrong")
    made.component("left", "left.fmu")
    made.component("right", "right.fmu")
    for source, target in links:
        made.connect(source, target)
    made.experiment(**{"stop": 1.0, "step": 0.1, **options})  # type: ignore[arg-type]
    return made


def read_message(given: CoupledSystem, components: list[FmuComponent]) -> str:
    with pytest.raises(CouplingError) as error:
        wire_system(given, components)
    assert all(fault.where.startswith("test_system_wiring.py:") for fault in error.value.faults)
    return str(error.value)


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ([("left.x", "right.s"), ("right.x", "right.s")], ["right.s has two sources", "keep one of left.x"]),
        ([("left.v", "right.s")], ["left.v → right.s: m/s is not m", "same kind"]),
        ([("right.s", "left.F")], ["right.s is no output, but input", "turn the connection around"]),
        ([("left.x", "right.x")], ["right.x is no input, but output"]),
        ([("left.y", "right.s")], ["left has no variable or terminal y", "did you mean"]),
        ([("middle.x", "right.s")], ["'middle.x' names no component", "left"]),
        ([("left", "right.s")], ["'left' names no component"]),
        ([("left.F", "right.s")], ["left.F is no output"]),
    ],
)
def test_wrong_connections_are_named(
    components: list[FmuComponent], links: list[tuple[str, str]], words: list[str]
) -> None:
    said = read_message(system(*links), components)
    for word in words:
        assert word in said


def test_what_cannot_be_connected_is_reported_with_its_type(components: list[FmuComponent]) -> None:
    """An FMU may have outputs of other types; one that has nothing else is not asked what was meant."""
    left, right = components
    described = [replace(each, type="Integer") if each.name == "x" else each for each in left.description.variables]
    counting = replace(left, variables={}, terminals={}, description=replace(left.description, variables=described))
    assert "left.x is of type Integer: only scalars of doubles can be connected" in read_message(
        system(("left.x", "right.s")), [counting, right]
    )
    said = read_message(system(("left.none", "right.s")), [counting, right])
    assert "left has no variable or terminal none" in said
    assert "did you mean" not in said


def test_all_faults_are_reported_at_once(components: list[FmuComponent]) -> None:
    said = read_message(system(("left.v", "right.s"), ("left.y", "right.s"), ("middle.x", "left.F")), components)
    assert said.count("•") == 3


def test_an_algebraic_loop_is_refused_by_name_or_solved(components: list[FmuComponent]) -> None:
    """The left unit is said to pass its force on to its place at once."""
    looping = [_through(components[0]), components[1]]
    links = (("left.x", "right.s"), ("right.force", "left.F"))
    said = read_message(system(*links), looping)
    assert "algebraic loop: left.F → left.x → right.s → right.force → left.F" in said
    assert 'loops="solve"' in said
    joined = wire_system(system(*links, loops="solve"), looping)
    assert any("algebraic loop" in note for note in joined.notes)


def _through(component: FmuComponent) -> FmuComponent:
    """The same without declared dependencies: everything depends on everything."""
    unknowns = tuple(replace(each, dependencies=None) for each in component.description.unknowns)
    return replace(component, description=replace(component.description, unknowns=unknowns))


def test_who_cannot_go_back_is_named(components: list[FmuComponent]) -> None:
    stuck = [replace(each, capabilities=replace(each.capabilities, saves_state=False)) for each in components]
    said = read_message(system(("left.x", "right.s"), passes=3), stuck)
    assert "which left cannot" in said
    assert "which right cannot" in said
    said = read_message(system(("left.x", "right.s"), accuracy=1e-3), stuck)
    assert "steps of adapted size" in said


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mass": 1.0}, "no such variable"),
        ({"force": 1.0}, "cannot be set"),
        ({"m": (1.0, "N")}, "N is not kg"),
    ],
)
def test_wrong_values_are_named(components: list[FmuComponent], values: dict[str, object], words: str) -> None:
    given = system(("left.x", "right.s"))
    given.components[1] = replace(given.components[1], values=values)
    assert words in read_message(given, components)


def test_values_are_converted(components: list[FmuComponent]) -> None:
    given = system(("left.x", "right.s"))
    given.components[1] = replace(given.components[1], values={"m": (2500.0, "g"), "x": 0.1})
    assert wire_system(given, components).values[1] == pytest.approx({"m": 2.5, "x": 0.1})


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (["middle.m"], "'middle.m' names no component"),
        (["left.mass"], "the FMU has no such variable"),
        (["left.v"], "kg is not m/s"),
        (["right.force"], "cannot be set"),
        (["left.m", "right.m"], "right.m has two values"),
        ([], "the parameter common goes nowhere"),
    ],
)
def test_wrong_parameters_of_the_system_are_named(components: list[FmuComponent], to: list[str], words: str) -> None:
    given = system(("left.x", "right.s"))
    given.components[1] = replace(given.components[1], values={"m": 2.5})
    given.parameter("common", (1.0, "kg"), to)
    assert words in read_message(given, components)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step": 0.0}, "step is 0.0"),
        ({"order": 3}, "order is 3"),
        ({"passes": 0}, "passes is 0"),
        ({"passes": "20"}, "passes is '20'"),
        ({"method": "gauss_seidel"}, "method is 'gauss_seidel'"),
        ({"loops": "newton"}, "loops is 'newton'"),
        ({"unstable": "ignore"}, "unstable is 'ignore'"),
        ({"accuracy": 0.0}, "accuracy is 0.0"),
        ({"converged": float("nan")}, "converged is nan"),
        ({"bound": -1.0}, "bound is -1.0"),
        ({"sequence": ("left",)}, "must name each of left, right once"),
    ],
)
def test_wrong_numbers_are_named(components: list[FmuComponent], change: dict[str, object], words: str) -> None:
    assert words in read_message(system(("left.x", "right.s"), **change), components)


def test_names_that_collide_are_named(components: list[FmuComponent]) -> None:
    given = system()
    given.component("Left", "other.fmu")
    assert "two components are called Left" in read_message(given, [*components, components[0]])


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        (
            FmuUnitDefinition("mm", (0, 1, 0, 0, 0, 0, 0, 0), 1e-3),
            FmuUnitDefinition("m", (0, 1, 0, 0, 0, 0, 0, 0)),
            (1e-3, 0.0),
        ),
        (
            FmuUnitDefinition("degC", (0, 0, 0, 0, 1, 0, 0, 0), 1.0, 273.15),
            FmuUnitDefinition("K", (0, 0, 0, 0, 1, 0, 0, 0)),
            (1.0, 273.15),
        ),
        (
            FmuUnitDefinition("N.m/rad", (1, 2, -2, 0, 0, 0, 0, -1)),
            FmuUnitDefinition("N.m", (1, 2, -2, 0, 0, 0, 0, 0)),
            (1.0, 0.0),
        ),
    ],
)
def test_units_of_measure_are_converted(
    source: FmuUnitDefinition, target: FmuUnitDefinition, wanted: tuple[float, float]
) -> None:
    assert compute_unit_conversion(source, target) == pytest.approx(wanted)


def test_a_fmu_without_a_binary_for_this_machine_is_named(mass_units: Units, tmp_path: Path) -> None:
    from mb2fmu.fmu import package
    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree

    tree = package.read_archive(mass_units["2"]["left"])
    other = InMemoryFileTree({path.replace("linux64", "elsewhere"): tree[path] for path in tree})
    package.write_fmu_archive(other, tmp_path / "other.fmu")
    with pytest.raises(Mb2FmuError, match="left cannot be a component") as error:
        read_fmu_component("left", tmp_path / "other.fmu")
    assert "no binary for this machine" in str(error.value)


def test_sources_are_files_beside_the_system_or_models_that_come_along(tmp_path: Path) -> None:
    assert resolve_model_argument("whole.py", tmp_path) == tmp_path / "whole.py"
    assert resolve_model_argument("double_pendulum", tmp_path).read_text().count("-> Model")
    (tmp_path / "double_pendulum.py").write_text("")
    assert resolve_model_argument("double_pendulum", tmp_path) == tmp_path / "double_pendulum.py"
