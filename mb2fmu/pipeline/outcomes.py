"""What the pipeline takes and hands back: options of a unit, records with every intermediate, and who is told."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, get_args

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, InterfaceError
from mb2fmu.program.dependencies import operation_count
from mb2fmu.program.program import Program

if TYPE_CHECKING:
    from mb2fmu.analysis import Conditioning
    from mb2fmu.animation import Motion, Signals
    from mb2fmu.equations.motion import EquationsOfMotion
    from mb2fmu.filetree import FileTree
    from mb2fmu.interface.fmu_interface import FmuInterface, SolverName
    from mb2fmu.mechanism import Mechanism
    from mb2fmu.model import ModelDefinition
    from mb2fmu.toolchain import CompiledProgram, Compiler
    from mb2fmu.validation import ValidationResult

Floats = npt.NDArray[np.float64]
Backend = Literal["native", "python"]
FmiVersion = Literal["2", "3", "2.0", "3.0", 2, 3]


class BuildOptions(TypedDict, total=False):
    """How a unit is built; all may be left out.

    Attributes:
        backend: ``native`` (C code, Model Exchange and Co-Simulation) or ``python`` (pythonfmu, Co-Simulation).
        fmi: Version of the standard; ``python`` builds FMI 2.0 only.
        platforms: Native only: ``host``, ``all``, or names separated by commas (``x86_64-linux,win64``).
        compiler: Native only: ``zig`` (a package), or ``cc``, the system's.
        fast: Native only: allow fused multiply-adds; platforms then differ in the last digits.
        solver: Solver of the Co-Simulation at the start; None: as the model's experiment says.
    """

    backend: Backend
    fmi: FmiVersion
    platforms: str
    compiler: Compiler
    fast: bool
    solver: SolverName | None


def major_version(options: BuildOptions) -> Literal["2", "3"]:
    """The version of the standard that a unit is built for, however it was written.

    Raises:
        InterfaceError: It is none that units are built for.
    """
    asked = options.get("fmi", "2")
    for known in get_args(FmiVersion):
        if type(asked) is type(known) and asked == known:
            return "3" if str(known).startswith("3") else "2"
    fault = Fault(f"there are units of FMI 2.0 and 3.0, not of {asked!r}", "fmi", 'use "2" or "3"')
    raise InterfaceError("no such unit can be built:", [fault])


@dataclass(frozen=True, slots=True)
class Timing:
    """What one stage took, in s of wall clock; ``cached``: its result was there from an earlier time."""

    stage: str
    seconds: float
    cached: bool = False


class Observer(Protocol):
    """Is told which stage runs; the pipeline itself prints nothing."""

    def started(self, stage: str) -> None:
        """A stage begins."""

    def finished(self, timing: Timing) -> None:
        """It ended, without an error."""


@dataclass(frozen=True, slots=True)
class CompilableProgram(Program):
    """The program of a model, which can be compiled; here because the toolchain comes after the lowering."""

    @classmethod
    def of(cls, program: Program) -> CompilableProgram:
        """The same program."""
        return cls(**{field.name: getattr(program, field.name) for field in fields(program)})

    def compile(self, entry: str = "rhs", *, compiler: Compiler = "zig") -> CompiledProgram:
        """An entry point as machine code for this computer: ``f(t, x, r, p)``, of one instance or a row of each.

        Args:
            entry: One of ``entries``: ``rhs``, ``outputs``, ``accelerations``, ….
            compiler: ``zig`` (a package), or ``cc``, the system's.

        Raises:
            ToolError: If there is no compiler, or it fails.
        """
        from mb2fmu.toolchain import compile_program

        return compile_program(self, entry, compiler)


@dataclass(frozen=True, slots=True)
class Derivation:
    """From the model to its program.

    Attributes:
        definition: The checked model.
        mechanism: The mechanism as plain records.
        equations: The equations of motion by the chosen formulation.
        program: The same as one scalar graph.
        timings: Of the stages so far.
        why: Why this formulation, if it was left open; empty otherwise.
        treated: How holonomic constraints are treated, and why; empty where there are none.
    """

    definition: ModelDefinition
    mechanism: Mechanism
    equations: EquationsOfMotion
    program: CompilableProgram
    timings: tuple[Timing, ...]
    why: str = ""
    treated: str = ""

    def _repr_latex_(self) -> str:
        """The equations, for notebooks."""
        return self.equations._repr_latex_()

    @property
    def operations(self) -> int:
        """How many operations x' costs, linear solves included."""
        return sum(operation_count(self.program, "rhs").values())


@dataclass(frozen=True, slots=True)
class Build:
    """From the program to a whole unit, in memory.

    Attributes:
        derivation: What it was made from.
        interface: What an importer sees.
        sources: The unit's code.
        description: ``modelDescription.xml``, and what else describes the unit.
        binaries: The compiled code; pythonfmu's is in ``core`` only.
        core: The whole unit, without its report.
        timings: Of the stages so far.
    """

    derivation: Derivation
    interface: FmuInterface
    sources: FileTree
    description: FileTree
    binaries: FileTree
    core: FileTree
    timings: tuple[Timing, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A unit on disk: ``build`` and the archive's ``path``."""

    build: Build
    path: Path
    timings: tuple[Timing, ...]

    def _repr_html_(self) -> str:
        """For notebooks."""
        from mb2fmu.pipeline.notebook import exported_html

        return exported_html(self)


class Evaluation(Protocol):
    """An entry point of a program: by NumPy, or compiled."""

    def __call__(self, t: npt.ArrayLike, x: npt.ArrayLike, r: npt.ArrayLike, p: npt.ArrayLike, /) -> Floats:
        """The results, shape (n_results,), or (n_batch, n_results) if any argument is a batch."""


@dataclass(frozen=True, slots=True)
class RightHandSide:
    """x' = f(t, x, r, p), ready for ``scipy.integrate.solve_ivp(f, (0, 10), f.x0)``.

    Attributes:
        states: Names of x = (q, independent u, z), as in the mechanics.
        inputs: Names of r.
        parameters: Names of the free parameters p.
        x0: Start values of the states.
        r0: Start values of the inputs, used where no others are given.
        p0: Values of the parameters, used where no others are given.
        evaluate: The program's ``rhs`` as a NumPy callable, or compiled.
        evaluate_outputs: The program's ``outputs`` likewise.
        output_names: FMU names of the outputs.
        program: What they evaluate.
    """

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    x0: npt.NDArray[np.float64]
    r0: npt.NDArray[np.float64]
    p0: npt.NDArray[np.float64]
    evaluate: Evaluation
    evaluate_outputs: Evaluation
    output_names: tuple[str, ...]
    program: CompilableProgram

    def __call__(
        self,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        r: npt.ArrayLike | None = None,
        p: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.float64]:
        """X' in SI units, shape (n_x,); (n, n_x) if t has shape (n,) or x has shape (n, n_x)."""
        return self.evaluate(t, x, self.r0 if r is None else r, self.p0 if p is None else p)

    def outputs(
        self,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        r: npt.ArrayLike | None = None,
        p: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.float64]:
        """The outputs in declared order, shape (n_y,), or (n, n_y) of a batch."""
        return self.evaluate_outputs(t, x, self.r0 if r is None else r, self.p0 if p is None else p)

    def conditioning(
        self,
        t: float = 0.0,
        x: npt.ArrayLike | None = None,
        r: npt.ArrayLike | None = None,
        p: npt.ArrayLike | None = None,
    ) -> Conditioning:
        """How many digits of x' are right at a point (none given: the start); printed, it says what cancels."""
        from mb2fmu.analysis import conditioning

        given = ((x, self.x0), (r, self.r0), (p, self.p0))
        point = (np.asarray(own if value is None else value, dtype=np.float64) for value, own in given)
        return conditioning(self.program, t, *point)

    def compile(self, *, compiler: Compiler = "zig") -> RightHandSide:
        """The same as machine code for this computer, for parameter studies: many instances at once.

        Rows of a batch that have no solution (a singular matrix, a loop that does not close) are NaN, and so is
        a single one.

        Args:
            compiler: ``zig`` (a package), or ``cc``, the system's.

        Raises:
            ToolError: If there is no compiler, or it fails.
        """
        return replace(
            self,
            evaluate=self.program.compile("rhs", compiler=compiler),
            evaluate_outputs=self.program.compile("outputs", compiler=compiler),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """How a model moves by its own equations, without any unit.

    Attributes:
        derivation: Model, mechanism, equations, program.
        motion: States and inputs over time.
        signals: States and outputs, by their FMU names.
    """

    derivation: Derivation
    motion: Motion
    signals: Signals

    def _repr_html_(self) -> str:
        """For notebooks."""
        from mb2fmu.pipeline.notebook import simulated_html

        return simulated_html(self)

    @property
    def time(self) -> npt.NDArray[np.float64]:
        """Times in s, shape (n_t,)."""
        return self.motion.time

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for."""
        return self.signals.names

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        """One state or output over time, shape (n_t,).

        Raises:
            KeyError: Naming what there is.
        """
        if name not in self.names:
            raise KeyError(f"{name} is none of {', '.join(self.names)}")
        return np.asarray(self.signals.values[:, self.names.index(name)])


@dataclass(frozen=True, slots=True)
class Validated:
    """A verdict on a unit.

    Attributes:
        definition: The checked model.
        mechanism: The mechanism as plain records.
        reference_equations: What the reference was integrated from.
        result: The verdict and all it rests on.
        timings: Of the stages so far.
    """

    definition: ModelDefinition
    mechanism: Mechanism
    reference_equations: EquationsOfMotion
    result: ValidationResult
    timings: tuple[Timing, ...]

    def _repr_html_(self) -> str:
        """For notebooks."""
        from mb2fmu.pipeline.notebook import validated_html

        return validated_html(self)

    @property
    def passed(self) -> bool:
        """True if the unit met all bounds."""
        return self.result.passed


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole way.

    Attributes:
        exported: The unit; its archive holds the report too.
        validated: The verdict on its core.
        page: The report beside the unit, with timings.
        timings: Of all stages.
    """

    exported: Exported
    validated: Validated
    page: Path
    timings: tuple[Timing, ...]

    def _repr_html_(self) -> str:
        """For notebooks."""
        from mb2fmu.pipeline.notebook import finished_html

        return finished_html(self)

    @property
    def passed(self) -> bool:
        """True if the unit met all bounds."""
        return self.validated.passed
