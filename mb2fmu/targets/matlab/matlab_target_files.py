"""Make the two files of the Matlab target from printed functions, fixed functions and templates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import MappingProxyType

import jinja2
import numpy as np

from mb2fmu.compiler.derivatives import form_jacobian
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, PiecewisePolynomial, ScalarProgram
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.program_statement_printing import ProgramStatementPrinter, Requirement, format_decimal
from mb2fmu.targets.target_model_description import TargetModelDescription

_PRINTED_ENTRIES = ("rhs", "outputs")
FIXED_FILES = ("runtime/arithmetic.m", "runtime/linear_solves.m", "runtime/newton.m")

MAX_MODEL_NAME_LENGTH = 52
"""``namelengthmax`` of MATLAB, 63, less the longest ending that is added."""


def emit_matlab_files(program: ScalarProgram, model: TargetModelDescription) -> InMemoryFileTree:
    """Print the files.

    Args:
        program: With the entry points ``rhs`` and ``outputs``, and ``remember`` where there is discrete memory.
        model: Names, units, start values, experiment.

    Raises:
        EmitError: If the model's name is too long for MATLAB.
    """
    if len(model.name) > MAX_MODEL_NAME_LENGTH:
        fault = Fault(f"it has {len(model.name)} characters", model.name, f"MATLAB allows {MAX_MODEL_NAME_LENGTH}")
        raise EmitError("the code for MATLAB cannot be printed:", [fault])
    entries = (*_PRINTED_ENTRIES, *(("remember",) if model.memory else ()))
    slopes = form_jacobian(program, "rhs", ("states",))
    printed = [MatlabFunctionPrinter(program, f"{model.name}_{entry}").function(entry) for entry in entries]
    printed.append(MatlabFunctionPrinter(slopes.program, f"{model.name}_slopes").function(slopes.entry))
    context = {
        "model": model,
        "memory": model.memory,
        "rows": np.asarray(slopes.rows) + 1,
        "columns": np.asarray(slopes.columns) + 1,
        "functions": printed,
        "fixed": [
            packaged_templates.read_packaged_file("mb2fmu.targets.matlab", path).decode() for path in FIXED_FILES
        ],
    }
    files = {f"{model.name}.m": "model.m.jinja", f"{model.name}_experiment.m": "experiment.m.jinja"}
    return InMemoryFileTree(
        {
            name: _make_template_environment().get_template(file).render(**context).encode()
            for name, file in files.items()
        }
    )


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = packaged_templates.make_template_environment("mb2fmu.targets.matlab")
    environment.filters |= {"number": _format_matlab_number, "text": _format_matlab_text}
    return environment


def _format_matlab_number(value: float) -> str:
    """Return a double as a MATLAB literal that reads back to the same bits; negative ones stand in parentheses."""
    return format_decimal(value, "Inf", "NaN")


def _format_matlab_text(value: str) -> str:
    """Return a character vector on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return "'" + shown.replace("'", "''") + "'"


_COMPLEX_BEYOND_DOMAIN = ("sqrt", "log", "asin", "acos", "acosh", "atanh", "power")
"""MATLAB's own functions give complex numbers outside of their domain; ``real_…`` of the runtime gives NaN."""


class MatlabFunctionPrinter(ProgramStatementPrinter):
    """Prints a function ``y = name(t, x, r, p, m)``, and those of the bodies of Newton's method that it needs.

    Args:
        program: Any.
        name: Of the function; functions beside it begin with this name.
    """

    function_names = MappingProxyType({name: f"real_{name}" for name in _COMPLEX_BEYOND_DOMAIN} | {"absolute": "abs"})

    def __init__(self, program: ScalarProgram, name: str) -> None:
        super().__init__(program)
        self._name = name
        self._bodies: dict[int, str] = {}

    def function(self, entries: str | Sequence[str]) -> str:
        """Return the source of the function.

        Args:
            entries: One entry point, or several whose results follow one another.
        """
        names = [entries] if isinstance(entries, str) else list(entries)
        results = [node for entry in names for node in self.program.entries[entry].results]
        for statement in self.schedule(results):
            self.add(statement)
        self.require_leaves(results)
        self.lines.append(f"y = {self._vector(results)};" if results else "y = zeros(0, 1);")
        head = f"function y = {self._name}(t, x, r, p, m)  %#ok<INUSD>"
        bodies = [
            MatlabFunctionPrinter(self.program.bodies[index], name).function(("residual", "step"))
            for index, name in sorted(self._bodies.items())
        ]
        return "\n".join([head, *(f"  {line}" for line in self.lines), "end", "", *bodies])

    def format_number(self, value: float) -> str:
        """Return a literal."""
        return _format_matlab_number(value)

    def look_up(self, table: PiecewisePolynomial, operand: str) -> str:
        """Return a call with the table as its arguments."""
        breaks = ", ".join(map(_format_matlab_number, table.breaks))
        rows = "; ".join(", ".join(map(_format_matlab_number, row)) for row in reversed(table.coefficients))
        return f"table_value([{breaks}], [{rows}], {operand})"

    def define(self, node: int, text: str) -> None:
        """Print an assignment."""
        self.lines.append(f"v{node} = {text};")

    def require(self, node: int, requirement: Requirement, clause: str) -> None:
        """Print a check that raises an error."""
        function = "require_positive" if requirement == "positive" else "require_nonzero"
        self.lines.append(f"{function}({self.read(node)}, {_format_matlab_text(clause)});")

    def factorize(self, index: int, block: EquationSolveBlock) -> None:
        """Print a factorization, whose factors are a structure."""
        rank = f", {block.rank}" if block.rank >= 0 else ""
        arguments = f"{block.size}, {_format_matlab_text(block.name)}, {self._vector(block.operands)}{rank}"
        self.lines.append(f"b{index} = {block.kind}({arguments});")

    def solve(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:
        """Print a solve."""
        kind = self.program.blocks[block.factor].kind.removesuffix("_factor")
        self.lines.append(f"b{index} = {kind}_solve(b{block.factor}, {self._vector(block.operands)});")
        return f"b{index}", 0

    def print_newton_iteration(self, index: int, block: EquationSolveBlock) -> tuple[str, int]:
        """Print a call of Newton's method with its body, of which parameters are held."""
        body = self._bodies.setdefault(block.body, f"{self._name}_body_{block.body}")
        theta, guess = block.operands[: -block.size], block.operands[-block.size :]
        at = f"@(y) {body}(0, y, [], {self._vector(theta)}, [])"
        rows = f"{{{', '.join(map(_format_matlab_text, block.rows))}}}"
        limits = self._vector(theta[len(theta) - 2 * len(block.rows) :])
        name = _format_matlab_text(block.name)
        self.lines.append(f"b{index} = newton({name}, {at}, {self._vector(guess)}, {rows}, {limits});")
        return f"b{index}", 0

    def _vector(self, nodes: Sequence[int]) -> str:
        """Return a column of nodes."""
        return f"[{'; '.join(self.read(node) for node in nodes)}]"
