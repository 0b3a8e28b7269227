"""Make the two files of the Matlab target from printed functions, fixed functions and templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import jinja2
import numpy as np

from mb2fmu.compiler.derivatives import form_jacobian
from mb2fmu.compiler.program.program import LEAF_OPERATIONS, Op, Program, read_initial_memory
from mb2fmu.compiler.program.pruning import find_needed_nodes
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import template_environment
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.model.scalar_operations import OPERATIONS

_PRINTED_ENTRIES = ("rhs", "outputs")
_FIXED_FILES = ("arithmetic.m", "linear_solves.m", "newton.m")

MAX_MODEL_NAME_LENGTH = 52
"""``namelengthmax`` of MATLAB, 63, less the longest ending that is added."""


@dataclass(frozen=True, slots=True)
class NamedQuantity:
    """Name and unit of one number of a vector."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class MatlabModelFacts:
    """Facts for the files beside the equations.

    Attributes:
        name: Of the model; a legal name of a MATLAB function.
        states: x, in its order; likewise the following.
        inputs: r.
        parameters: p.
        outputs: y.
        x0: Start values of the states, on the constraints.
        r0: Of the inputs.
        p0: Values of the free parameters.
        step: Communication step of the default experiment in s.
        held: Inputs over each step: one row per step, or one row if they never change.
        steps: Number of communication steps.
        tolerance: Relative tolerance of the experiment.
    """

    name: str
    states: tuple[NamedQuantity, ...]
    inputs: tuple[NamedQuantity, ...]
    parameters: tuple[NamedQuantity, ...]
    outputs: tuple[NamedQuantity, ...]
    x0: tuple[float, ...]
    r0: tuple[float, ...]
    p0: tuple[float, ...]
    step: float
    held: tuple[tuple[float, ...], ...]
    steps: int
    tolerance: float


def emit_matlab_files(program: Program, facts: MatlabModelFacts) -> FileTree:
    """Print the files.

    Args:
        program: With the entry points ``rhs`` and ``outputs``, and ``remember`` where there is discrete memory.
        facts: Of its model.

    Raises:
        EmitError: If the model's name is too long for MATLAB.
    """
    if len(facts.name) > MAX_MODEL_NAME_LENGTH:
        fault = Fault(f"it has {len(facts.name)} characters", facts.name, f"MATLAB allows {MAX_MODEL_NAME_LENGTH}")
        raise EmitError("the code for MATLAB cannot be printed:", [fault])
    memory = read_initial_memory(program)
    entries = (*_PRINTED_ENTRIES, *(("remember",) if memory else ()))
    slopes = form_jacobian(program, "rhs", ("states",))
    printed = [MatlabFunctionPrinter(program, f"{facts.name}_{entry}").function(entry) for entry in entries]
    printed.append(MatlabFunctionPrinter(slopes.program, f"{facts.name}_slopes").function(slopes.entry))
    context = {
        "facts": facts,
        "memory": memory,
        "rows": np.asarray(slopes.rows) + 1,
        "columns": np.asarray(slopes.columns) + 1,
        "functions": printed,
        "fixed": [_read_fixed_file(f"runtime/{name}") for name in _FIXED_FILES],
    }
    files = {f"{facts.name}.m": "model.m.jinja", f"{facts.name}_experiment.m": "experiment.m.jinja"}
    return FileTree(
        {
            name: _make_template_environment().get_template(file).render(**context).encode()
            for name, file in files.items()
        }
    )


def _read_fixed_file(path: str) -> str:
    """Return a fixed file with Unix line ends."""
    return resources.files("mb2fmu.targets.matlab").joinpath(path).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = template_environment.make_template_environment("mb2fmu.targets.matlab")
    environment.filters |= {"number": format_matlab_number, "text": format_matlab_text}
    return environment


_LEAF_VECTORS = {Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p", Op.MEMORY: "m", Op.SEED: "s"}


def format_matlab_number(value: float) -> str:
    """Return a double as a MATLAB literal that reads back to the same bits; negative ones stand in parentheses."""
    if math.isfinite(value):
        return repr(float(value)) if math.copysign(1.0, value) > 0.0 else f"({float(value)!r})"
    return {math.inf: "Inf", -math.inf: "(-Inf)"}.get(value, "NaN")


def format_matlab_text(value: str) -> str:
    """Return a character vector on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return "'" + shown.replace("'", "''") + "'"


class MatlabFunctionPrinter:
    """Prints a function ``y = name(t, x, r, p, m)``, and those of the bodies of Newton's method that it needs.

    Args:
        program: Any.
        name: Of the function; functions beside it begin with this name.
    """

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self._name = name
        self._operands = program.all_operands()
        domains = program.entries.get("domains")
        self._domains = dict(zip(domains.results, domains.labels, strict=True)) if domains else {}
        self._bodies: dict[int, str] = {}
        self._printed_blocks: set[int] = set()

    def function(self, entries: str | Sequence[str], arguments: str = "t, x, r, p, m") -> str:
        """Return the source of the function.

        Args:
            entries: One entry point, or several whose results follow one another.
            arguments: Its formal arguments.
        """
        names = [entries] if isinstance(entries, str) else list(entries)
        results = [node for entry in names for node in self._program.entries[entry].results]
        nodes, _ = find_needed_nodes(self._program, results)
        leaf = np.isin(self._program.op, [int(op) for op in LEAF_OPERATIONS])
        self._printed_blocks.clear()
        lines = [line for node in np.flatnonzero(nodes & ~leaf).tolist() for line in self._statements(node)]
        lines.append(f"y = {self._vector(results)};" if results else "y = zeros(0, 1);")
        head = f"function y = {self._name}({arguments})  %#ok<INUSD>"
        bodies = [self._body(self._program.bodies[index], name) for index, name in sorted(self._bodies.items())]
        return "\n".join([head, *(f"  {line}" for line in lines), "end", "", *bodies])

    def _body(self, body: Program, name: str) -> str:
        """Return the function of Newton's residuals, then steps, at y with theta held."""
        return MatlabFunctionPrinter(body, name).function(("residual", "step"), "t, x, r, p, m")

    def _statements(self, node: int) -> list[str]:
        """Return the statement of a node, after the blocks that it reads."""
        program, op = self._program, Op(int(self._program.op[node]))
        if op is Op.BLOCK:
            block = int(program.a[node])
            return [*self._block(block), f"v{node} = b{block}({int(program.b[node]) + 1});"]
        expression = self._expression(node, op)
        if node in self._domains:
            expression = f"inside({expression}, {format_matlab_text(self._domains[node])})"
        return [f"v{node} = {expression};"]

    def _block(self, index: int) -> list[str]:
        """Return a solve with its factorization, or Newton's method; nothing if it has been printed."""
        if index in self._printed_blocks:
            return []
        self._printed_blocks.add(index)
        block = self._program.blocks[index]
        if block.kind == "newton":
            body = self._bodies.setdefault(block.body, f"{self._name}_body_{block.body}")
            theta, guess = block.operands[: -block.size], block.operands[-block.size :]
            at = f"@(y) {body}(0, y, [], {self._vector(theta)}, [])"
            rows = f"{{{', '.join(map(format_matlab_text, block.rows))}}}"
            limits = self._vector(theta[len(theta) - 2 * len(block.rows) :])
            return [
                f"b{index} = newton({format_matlab_text(block.name)}, {at}, {self._vector(guess)}, {rows}, {limits});"
            ]
        factor, lines = self._program.blocks[block.factor], []
        kind = factor.kind.removesuffix("_factor")
        if block.factor not in self._printed_blocks:
            self._printed_blocks.add(block.factor)
            rank = f", {factor.rank}" if factor.rank >= 0 else ""
            entries = self._vector(factor.operands)
            lines.append(
                f"b{block.factor} = {kind}_factor({factor.size}, {format_matlab_text(factor.name)}, {entries}{rank});"
            )
        return [*lines, f"b{index} = {kind}_solve(b{block.factor}, {self._vector(block.operands)});"]

    def _expression(self, node: int, op: Op) -> str:
        """Return the text of an operation."""
        program = self._program
        operands = [self._operand(each) for each in self._operands[node]]
        if op is Op.TABLE:
            table = program.tables[int(program.a[node])].derivative(int(program.b[node]))
            breaks = ", ".join(map(format_matlab_number, table.breaks))
            rows = "; ".join(", ".join(map(format_matlab_number, row)) for row in table.coefficients)
            return f"table_value([{breaks}], [{rows}], {operands[-1]})"
        return OPERATIONS[op].matlab.format(*operands)

    def _operand(self, node: int) -> str:
        """Return the text that reads a node."""
        program, op = self._program, Op(int(self._program.op[node]))
        if op is Op.CONSTANT:
            return format_matlab_number(float(program.constants[program.a[node]]))
        if op is Op.TIME:
            return "t"
        return f"{_LEAF_VECTORS[op]}({int(program.a[node]) + 1})" if op in _LEAF_VECTORS else f"v{node}"

    def _vector(self, nodes: Sequence[int]) -> str:
        """Return a column of nodes."""
        return f"[{'; '.join(self._operand(node) for node in nodes)}]"
