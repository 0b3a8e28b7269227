"""Results of the pipeline: records with every intermediate; and the observer of its stages.

They are plain data; how notebooks show them is registered by ``notebook_displays``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from mb2fmu.compiler.program.program_result_dependencies import count_operations
from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram

if TYPE_CHECKING:
    from mb2fmu.compiler.program.scalar_program import ScalarProgram
    from mb2fmu.fmu.emit_c.equations_c_source import EquationFunctionTable
    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
    from mb2fmu.fmu.interface.fmu_interface import FmuInterface
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.model import CheckedModel, DeclaredModelContent
    from mb2fmu.validation import ValidationResult
    from mb2fmu.validation.comparison.variable_error_table import VariableErrorTable
    from mb2fmu.visualization import Scene
    from mb2fmu.visualization.interactive_fmu import BrowserFmuModule


@dataclass(frozen=True, slots=True)
class StageTime:
    """Time of one stage, in s of wall clock; ``was_cached``: its result already existed."""

    stage: str
    seconds: float
    was_cached: bool = False


class StageObserver(Protocol):
    """Protocol: is notified which stage runs; the pipeline itself prints nothing."""

    def started(self, stage: str) -> None:
        """Note that a stage begins."""

    def finished(self, timing: StageTime) -> None:
        """Note that the stage ended without an error."""


@dataclass(frozen=True, slots=True, repr=False)
class DerivationResult:
    """Result of the stages from a model to its program.

    Attributes:
        checked: The checked model, with the user's own objects.
        definition: What it declares, at start values on the constraints.
        mechanism: The mechanism as plain records.
        equations: The equations of motion by the chosen formulation.
        program: The same as one scalar graph.
        program_with_modes: The same with each switch as a mode in discrete memory, as native FMUs are made of; the
            very same program where nothing switches.
        timings: Of the stages so far.
        why: Why this formulation, if it was left open; empty otherwise.
        treated: How holonomic constraints are treated, and why; empty where there are none.
    """

    checked: CheckedModel
    definition: DeclaredModelContent
    mechanism: Mechanism
    equations: EquationsOfMotion
    program: CompilableProgram
    program_with_modes: ScalarProgram
    timings: tuple[StageTime, ...]
    why: str = ""
    treated: str = ""
    _with_nominals: list[DeclaredModelContent] = field(default_factory=list, init=False, compare=False)

    def __repr__(self) -> str:
        """Return a line: the model, its states, its formulation."""
        states = ", ".join(map(str, self.equations.states))
        return f"<DerivationResult {self.definition.name}: by {self.equations.method}; states {states}>"

    def _repr_latex_(self) -> str:
        """Return the equations, for notebooks."""
        return notebook_display_registry.render_record_as_latex(self.equations)

    def add_nominal_values(self) -> DeclaredModelContent:
        """Return the definition with nominals for all states and inputs; they are estimated once, by a simulation."""
        from mb2fmu import analysis

        if not self._with_nominals:
            self._with_nominals.append(analysis.add_nominal_values(self.definition, self.equations, self.program))
        return self._with_nominals[0]

    @property
    def operations(self) -> int:
        """Number of operations of x', linear solves included."""
        return sum(count_operations(self.program, "rhs").values())


@dataclass(frozen=True, slots=True, repr=False)
class FmuBuildResult:
    """Result of the stages from a program to a whole FMU, in memory.

    Attributes:
        derivation: What it was made from.
        interface: What an importer sees.
        sources: The FMU's code.
        description: ``modelDescription.xml``, and what else describes the FMU.
        binaries: The compiled code; pythonfmu's is in ``core`` only.
        scene: What the mechanism looks like; None where nothing can be drawn.
        core: The whole FMU, without its report.
        timings: Of the stages so far.
        live: The FMU as a page runs it; None where there is none.
        printed: Functions of a native FMU's motion, from which those of the page are printed.
    """

    derivation: DerivationResult
    interface: FmuInterface
    sources: InMemoryFileTree
    description: InMemoryFileTree
    binaries: InMemoryFileTree
    scene: Scene | None
    core: InMemoryFileTree
    timings: tuple[StageTime, ...]
    live: BrowserFmuModule | None = None
    printed: EquationFunctionTable | None = None

    def __repr__(self) -> str:
        """Return a line: the model, and the contents of the FMU."""
        return f"<FmuBuildResult {self.derivation.definition.name}: {len(self.core)} files in the FMU>"

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that the FMU has a binary for, by FMI's names; () for an FMU of Python code."""
        if self.interface.target.backend != "native":
            return ()
        paths = (PurePosixPath(path).parts for path in self.core.files)
        return tuple(sorted({parts[1] for parts in paths if parts[0] == "binaries"}))


@dataclass(frozen=True, slots=True, repr=False)
class ExportResult:
    """An FMU on disk: ``build`` and the archive's ``path``; ``sources`` are files of other languages beside it."""

    build: FmuBuildResult
    path: Path
    timings: tuple[StageTime, ...]
    sources: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        """Return a line: the model, and the FMU's path."""
        return f"<ExportResult {self.build.derivation.definition.name}: {self.path}>"

    def _repr_html_(self) -> str:
        """Return the FMU's place and page, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)


def _format_outcome_verdict(result: ValidationResult) -> str:
    """Return the verdict in a word or few; failures in capitals."""
    return result.verdict.upper() if result.verdict in ("failed", "not judged") else result.verdict


@dataclass(frozen=True, slots=True, repr=False)
class ValidationOutcome:
    """A verdict on an FMU.

    Attributes:
        definition: What the model declares.
        mechanism: The mechanism as plain records.
        reference_equations: What the reference was integrated from.
        result: The verdict and all it rests on.
        timings: Of the stages so far.
    """

    definition: DeclaredModelContent
    mechanism: Mechanism
    reference_equations: EquationsOfMotion
    result: ValidationResult
    timings: tuple[StageTime, ...]

    def __repr__(self) -> str:
        """Return a line: the model and the verdict."""
        return f"<ValidationOutcome {self.definition.name}: {_format_outcome_verdict(self.result)}>"

    def _repr_html_(self) -> str:
        """Return the report, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)

    @property
    def passed(self) -> bool:
        """True if the FMU met all bounds, with other values than the defaults too unless ``default_only`` was given."""
        return self.result.passed

    @property
    def errors(self) -> VariableErrorTable:
        """The error of each variable, over all runs of the FMU; prints as a table."""
        from mb2fmu.validation.comparison.variable_error_table import list_variable_errors

        return list_variable_errors(self.result)


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """Result of all stages.

    Attributes:
        exported: The FMU; its archive holds the report too.
        validated: The verdict on its core.
        page: The report beside the FMU, with timings.
        timings: Of all stages.
    """

    exported: ExportResult
    validated: ValidationOutcome
    page: Path
    timings: tuple[StageTime, ...]

    def __repr__(self) -> str:
        """Return a line: the model, the verdict, the FMU's path, and its worst error."""
        verdict = _format_outcome_verdict(self.validated.result)
        return f"<RunResult {self.validated.definition.name}: {verdict}; {self.path}; {self.errors.worst}>"

    def _repr_html_(self) -> str:
        """Return the report, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)

    @property
    def passed(self) -> bool:
        """True if the FMU met all bounds, with other values than the defaults too unless ``default_only`` was given."""
        return self.validated.passed

    @property
    def path(self) -> Path:
        """The FMU."""
        return self.exported.path

    @property
    def report(self) -> Path:
        """The report, an HTML page beside the FMU."""
        return self.page

    @property
    def errors(self) -> VariableErrorTable:
        """The error of each variable, over all runs of the FMU; prints as a table."""
        from mb2fmu.validation.comparison.variable_error_table import list_variable_errors

        return list_variable_errors(self.validated.result)
