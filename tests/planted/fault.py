"""What is planted: one fault in one place of what one stage hands to the next, and the models that are planted in."""

from __future__ import annotations

import atexit
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mb2fmu import pipeline, validation
from mb2fmu.compiler.derivatives import ProgramWithDerivatives, add_fmu_derivatives
from mb2fmu.fmu import emit_xml, interface, package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.model import Model
from mb2fmu.pipeline.derivation import model_derivation
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report.validation_run import ReferenceEquations, choose_reference_equations
from mb2fmu.robots import RobotMechanics
from mb2fmu.validation.experiment.perturbed_experiment import list_settable_fmu_variables
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations

ROOT = Path(__file__).parents[2]

Level = Literal["none", "reading", "equations", "program", "derivatives", "interface", "sources", "description"]
"""What a fault is planted in:

    none          nothing: the right FMU
    reading       ``Mechanism``: all that follows shares the fault, the reference of the validation too
    equations     ``EquationsOfMotion`` of the FMU
    program       ``ScalarProgram`` of the FMU: all that is printed from it shares the fault
    derivatives   ``ProgramWithDerivatives``: tangents and adjoints
    interface     ``FmuInterface``: code and description share the fault
    sources       C code
    description   ``modelDescription.xml``
"""


@dataclass(frozen=True, slots=True)
class Mutant:
    """An FMU that is wrong in one place.

    Attributes:
        kind: What is wrong, as the table says it.
        level: What is changed.
        place: Where, for people.
        change: From the right ``Mechanism`` (``EquationsOfMotion``, ``ScalarProgram``, …) to the wrong one.
        fmi: Version of FMI.
        by_construction: True: it is known that the FMU behaves differently. False: it is measured.
    """

    kind: str
    level: Level
    place: str
    change: Callable[[Any], Any] = field(repr=False, compare=False, default=lambda right: right)
    fmi: Literal["2", "3"] = "2"
    by_construction: bool = False


@dataclass(frozen=True)
class Subject:
    """A model that faults are planted in: everything right that all its mutants share is made once.

    Attributes:
        name: Of the model file, or ``tests.NAME`` of a mechanism of the tests.
        make: Gives the model.
    """

    name: str
    make: Callable[[], Model] = field(repr=False, compare=False)

    @cached_property
    def model(self) -> Model:
        """As the user wrote it."""
        return self.make()

    @cached_property
    def derivation(self) -> DerivationResult:
        """Everything right, down to the program."""
        return pipeline.derive(self.model)

    @property
    def mechanism(self) -> Mechanism:
        """As it was read, with the parameter of stabilization that the formulation has added to it, if any."""
        return self.derivation.mechanism

    @cached_property
    def read(self) -> Mechanism:
        """As it was read, and nothing more: what the formulation adds, it adds to every fault of reading too."""
        return model_derivation.load_model_and_mechanism(self.derivation.checked, None, StageStopwatch(None))[1]

    @cached_property
    def reference(self) -> ReferenceEquations:
        """As the pipeline chooses it."""
        return choose_reference_equations(self.mechanism, self.derivation.equations.method)

    @cached_property
    def native(self) -> ProgramWithDerivatives:
        """The right program with its derivatives."""
        return add_fmu_derivatives(self.derivation.program)

    def described(self, fmi: Literal["2", "3"]) -> InMemoryFileTree:
        """``modelDescription.xml`` of the right FMU."""
        if fmi not in self._descriptions:
            self._descriptions[fmi] = emit_xml.emit_fmu_description_files(self._interface(fmi), ())
        return self._descriptions[fmi]

    @cached_property
    def shown(self) -> frozenset[tuple[str, int]]:
        """(entry point, index of its result) of what an importer can read."""
        return frozenset((variable.source, variable.index) for variable in self._interface("2").variables)

    @cached_property
    def asked(self) -> frozenset[tuple[str, int]]:
        """The same of what the model structure lists: derivatives of nothing else may be asked for."""
        variables = self._interface("2").variables
        return frozenset((v.source, v.index) for v in variables if v.causality == "output" or v.derivative_of)

    def _interface(self, fmi: Literal["2", "3"]) -> FmuInterface:
        """What an importer of the right FMU sees."""
        d = self.derivation
        target = interface.FmuTarget(fmi, "native", None, "zig", False)  # noqa: FBT003
        return interface.form_fmu_interface(d.definition, d.equations, d.program, target)

    @cached_property
    def _descriptions(self) -> dict[str, InMemoryFileTree]:
        return {}

    @cached_property
    def yardstick(self) -> Any:
        """What the FMU and every mutant that does not change the reading is judged by."""
        with tempfile.TemporaryDirectory(prefix="mb2fmu-") as folder:
            path = Path(folder) / "right.fmu"
            package.write_fmu_archive(pipeline.build(self.derivation).core, path)
            description = read_fmu_description(package.read_archive(path))
        return validation.make_reference_and_bounds(
            self.mechanism.declared,
            self.reference.equations,
            mechanism=self.reference.mechanism,
            settable=list_settable_fmu_variables(description),
            any_step=description.any_step,
            states=description.state_names,
        )

    @cached_property
    def motions(self) -> Any:
        """What the user's own objects say at random points."""
        checked = self.derivation.checked
        if isinstance(checked.mechanics, RobotMechanics):
            return sample_independent_robot_accelerations(checked)
        return sample_source_accelerations(checked, self.mechanism, self.reach, visited_coordinates=self.visited)

    @cached_property
    def reach(self) -> dict[str, float]:
        """The largest magnitude of each speed in both experiments."""
        made = self.yardstick
        reach = made.reference.largest_speeds
        if made.perturbed is not None and made.perturbed.reference is not None:
            reach = {name: max(size, made.perturbed.reference.largest_speeds[name]) for name, size in reach.items()}
        return reach

    @cached_property
    def visited(self) -> tuple[dict[str, float], ...]:
        """Where both experiments go."""
        moved = self.yardstick.perturbed
        more = moved.reference.visited_coordinates if moved is not None and moved.reference is not None else ()
        return (*self.yardstick.reference.visited_coordinates, *more)

    @cached_property
    def redundant(self) -> bool:
        """Whether constraints follow from others at the start."""
        reference = self.yardstick.reference
        prepared = reference.numeric.prepare(reference.experiment.parameters)
        return bool(
            reference.numeric.has_redundant_rows(0.0, reference.states[0], reference.experiment.inputs_at(0), prepared)
        )


def generator(*words: object) -> np.random.Generator:
    """Random numbers that depend on the words only, and are the same in every run."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def subjects() -> Iterator[Subject]:
    """All models of the repository, cheap ones first, the mechanisms of the tests, and a robot description."""
    files = {path.stem: path for path in sorted((ROOT / "models").glob("*.py"))}
    order = [name for name in CHEAP_FIRST if name in files]
    for name in (*order, *(name for name in files if name not in order)):
        yield Subject(name, lambda path=files[name]: pipeline.load(path))  # type: ignore[misc]
    yield from mechanisms_of_tests()
    yield Subject("tests.robot_arm", robot_of_tests)


def mechanisms_of_tests() -> Iterator[Subject]:
    """Mechanisms that other tests use, as models."""
    import event_models
    import mechanisms

    yield Subject("tests.pendulum_with_reactions", lambda: mechanisms.pendulum_with_reactions()[0])
    yield Subject("tests.dropped", event_models.dropped)
    yield Subject("tests.sympy_rolling_disc", falling_disc)
    for name in ("cart_with_pathways", "moving_pivot", "lagrangian_with_bodies"):
        yield Subject(f"tests.{name}", getattr(mechanisms, name))


def falling_disc() -> Model:
    """The rolling disc, released at rest and followed until before it lies flat: its angles are singular there."""
    import mechanisms

    model = mechanisms.sympy_rolling_disc()
    model.experiment(stop=0.5, step=0.005)
    return model


def robot_of_tests() -> Model:
    """The model of a robot description, which stays on disk until this process ends: the validation reads it again."""
    from unit.robots.robot_texts import ARM

    folder = tempfile.TemporaryDirectory(prefix="mb2fmu-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "arm.urdf"
    path.write_text(ARM, encoding="utf-8")
    return pipeline.load(path)


CHEAP_FIRST = (
    "simple_pendulum",
    "msl_pendulum",
    "double_pendulum",
    "cart_pole",
    "heavy_top",
    "chaplygin_sleigh",
    "rigid_body",
    "four_bar",
    "bowl",
    "two_rods",
    "crank_slider",
    "msl_double_pendulum",
    "transmission",
    "rolling_disc",
    "muscle_arm",
    "snakeboard",
    "driven_crank",
    "three_body_pendulum",
    "n_link_pendulum",
    "turntable_ball",
    "msl_planar_four_bar",
    "governor",
    "quadrotor_slung_load",
    "n_four_bar",
    "chain",
    "rolling_sphere",
    "excavator_arm",
    "robot_arm",
    "hand",
    "andrews",
    "bicycle",
)
"""Models by what their validation costs, the cheapest first."""
