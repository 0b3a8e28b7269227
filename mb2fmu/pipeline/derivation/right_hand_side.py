"""x' = f(t, x, r, p) as a callable, and the program behind it, which can be compiled."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import repeat
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.scalar_program import ScalarProgram, read_initial_discrete_memory

if TYPE_CHECKING:
    from mb2fmu.analysis import RightHandSideAccuracy
    from mb2fmu.compiler.evaluation.numpy_evaluator import PositionDeterminedMemory
    from mb2fmu.fmu.toolchain import CompiledEntryPoint, Compiler

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CompilableProgram(ScalarProgram):
    """The program of a model, which can be compiled; defined here because the toolchain comes after the lowering."""

    @classmethod
    def of(cls, program: ScalarProgram) -> CompilableProgram:
        """Return the program as one that can be compiled."""
        return cls(**{field.name: getattr(program, field.name) for field in fields(program)})

    def compile(self, entry: str = "rhs", *, compiler: Compiler | None = None) -> CompiledEntryPoint:
        """Return an entry point as machine code for this computer: ``f(t, x, r, p)``, of one instance or a row of each.

        Args:
            entry: One of ``entries``: ``rhs``, ``outputs``, ``accelerations``, ….
            compiler: ``zig`` (a package), or ``cc``, the system's; None: zig where it is installed.

        Raises:
            ToolError: If there is no compiler, or it fails.
        """
        from mb2fmu.fmu.toolchain import compile_entry_point

        return compile_entry_point(self, entry, compiler)


class ProgramEntryPointCallable(Protocol):
    """An entry point of a program: by NumPy, or compiled."""

    def __call__(self, t: npt.ArrayLike, x: npt.ArrayLike, r: npt.ArrayLike, p: npt.ArrayLike, /) -> Floats:
        """Return the results, shape (n_results,), or (n_batch, n_results) if any argument is a batch."""


@dataclass(frozen=True, slots=True, repr=False)
class RightHandSide:
    """x' = f(t, x, r, p), ready for ``scipy.integrate.solve_ivp(f, (0, 10), f.x0)``.

    Attributes:
        states: FMU names of x = (q, independent u, z); ``program.layout`` has those of the mechanics' symbols.
        inputs: FMU names of r.
        parameters: FMU names of the free parameters p.
        x0: Start values of the states.
        r0: Start values of the inputs, used where no others are given.
        p0: Values of the parameters, used where no others are given.
        evaluate: The program's ``rhs`` as a NumPy callable, or compiled.
        evaluate_outputs: The program's ``outputs`` likewise.
        output_names: FMU names of the outputs.
        program: What they evaluate.
        memory: Discrete memory as a function of place (of the treatment ``partition``); None: the program has none.
    """

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    x0: npt.NDArray[np.float64]
    r0: npt.NDArray[np.float64]
    p0: npt.NDArray[np.float64]
    evaluate: ProgramEntryPointCallable
    evaluate_outputs: ProgramEntryPointCallable
    output_names: tuple[str, ...]
    program: CompilableProgram
    memory: PositionDeterminedMemory | None = None

    def __repr__(self) -> str:
        """Return a line: meaning of the vectors' entries."""
        given = f"states {', '.join(self.states)}; inputs {', '.join(self.inputs) or 'none'}"
        return f"<RightHandSide f(t, x, r, p): {given}; parameters {', '.join(self.parameters) or 'none'}>"

    def __call__(
        self,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        r: npt.ArrayLike | None = None,
        p: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return x' in SI units, shape (n_x,); (n, n_x) if t has shape (n,) or x has shape (n, n_x)."""
        return self.evaluate(t, x, self.r0 if r is None else r, self.p0 if p is None else p)

    def outputs(
        self,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        r: npt.ArrayLike | None = None,
        p: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return the outputs in declared order, shape (n_y,), or (n, n_y) of a batch."""
        return self.evaluate_outputs(t, x, self.r0 if r is None else r, self.p0 if p is None else p)

    def conditioning(
        self,
        t: float = 0.0,
        x: npt.ArrayLike | None = None,
        r: npt.ArrayLike | None = None,
        p: npt.ArrayLike | None = None,
    ) -> RightHandSideAccuracy:
        """Return how many digits of x' are right at a point (default: the start); printed, it names what cancels."""
        from mb2fmu.analysis import compute_right_hand_side_accuracy

        given = ((x, self.x0), (r, self.r0), (p, self.p0))
        point = (np.asarray(own if value is None else value, dtype=np.float64) for value, own in given)
        return compute_right_hand_side_accuracy(self.program, t, *point)

    def compile(self, *, compiler: Compiler | None = None) -> RightHandSide:
        """Return the function as machine code for this computer: many instances at once, for parameter studies.

        Rows of a batch that have no solution (a singular matrix, a loop that does not close) are NaN, and so is
        a single one.

        Args:
            compiler: ``zig`` (a package), or ``cc``, the system's; None: zig where it is installed.

        Raises:
            ToolError: If there is no compiler, or it fails.
        """
        rhs, outputs = (self.program.compile(entry, compiler=compiler) for entry in ("rhs", "outputs"))
        if self.memory is None:
            return replace(self, evaluate=rhs, evaluate_outputs=outputs)
        return replace(
            self,
            evaluate=_EntryPointWithDiscreteMemory(rhs, self.memory),
            evaluate_outputs=_EntryPointWithDiscreteMemory(outputs, self.memory),
        )

    def jax(self) -> ModuleType:
        """Return a module of pure functions for JAX: ``rhs``, ``outputs``, ``energy``, ``initial_state``.

        It is what ``mb2fmu equations --format jax`` writes, but for the units of variables.

        Raises:
            ToolError: If JAX is not installed.
        """
        from mb2fmu.deferred_imports import require_packages
        from mb2fmu.targets.jax import print_jax_module
        from mb2fmu.targets.target_model_description import TargetModelDescription, TargetModelVariable

        def name(names: tuple[str, ...], values: npt.NDArray[np.float64]) -> tuple[TargetModelVariable, ...]:
            return tuple(TargetModelVariable(*each) for each in zip(names, repeat(""), values.tolist(), strict=False))

        model = TargetModelDescription(
            name="Equations",
            description="",
            origin="mb2fmu",
            states=name(self.states, self.x0),
            inputs=name(self.inputs, self.r0),
            parameters=name(self.parameters, self.p0),
            outputs=tuple(TargetModelVariable(each, "") for each in self.output_names),
            stop=0.0,
            step=0.0,
            steps=1,
            held=((),),
            tolerance=0.0,
            memory=read_initial_discrete_memory(self.program),
        )
        require_packages("x' in JAX", "jax")
        source = print_jax_module(self.program, model)
        module = ModuleType(model.name, "Equations of motion in JAX.")
        exec(compile(source, "<equations in JAX>", "exec"), module.__dict__)  # noqa: S102 (our own printed source)
        return module


@dataclass(frozen=True, slots=True)
class _EntryPointWithDiscreteMemory:
    """A compiled entry point that is given the discrete memory of each place.

    Attributes:
        compiled: Takes it as an argument.
        memory: Finds it, in NumPy.
    """

    compiled: CompiledEntryPoint
    memory: PositionDeterminedMemory

    def __call__(self, t: npt.ArrayLike, x: npt.ArrayLike, r: npt.ArrayLike, p: npt.ArrayLike, /) -> Floats:
        """Return the results; where there is no memory the initial one is taken: then there is no solution either."""
        arrays = [np.asarray(value, dtype=np.float64) for value in (t, x, r, p)]
        batch = arrays[0].ndim == 1 or any(array.ndim == 2 for array in arrays[1:])
        rows = arrays if batch else [arrays[0][np.newaxis], *arrays[1:]]
        memory = self.memory.memory_along_rows(rows)
        return self.compiled(t, x, r, p, memory if batch else memory[0])
