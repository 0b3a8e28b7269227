"""Make the file of the Julia target from printed functions, fixed functions and a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import ClassVar

import jinja2

from mb2fmu.compiler.program.program import Program
from mb2fmu.fmu import template_environment
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.targets.source_model import SourceModel
from mb2fmu.targets.statement_printing import Requirement, format_decimal
from mb2fmu.targets.work_array_printing import WorkArrayPrinter, list_table_arrays, print_module, require_model_name

_KEYWORDS = (
    *("baremodule", "begin", "break", "catch", "const", "continue", "do", "else", "elseif", "end", "export", "false"),
    *("finally", "for", "function", "global", "if", "import", "in", "isa", "let", "local", "macro", "module", "quote"),
    *("return", "struct", "true", "try", "using", "where", "while", "main", "base", "core"),
)
_NAMES_IN_MODULE = (
    *("rhs", "outputs", "initial_state", "remember", "motion", "rk4_step", "message", "require_success", "x0", "r0"),
    *("p0", "m0", "state_names", "input_names", "parameter_names", "output_names", "not_a_number", "power", "smaller"),
    *("larger", "signum", "is_less", "is_less_equal", "is_equal", "logical_not", "logical_and", "choose", "largest"),
    *("lookup", "newton", "newton_values", "newton_is_open", "newton_bend", "newton_stays", "newton_side"),
    *("orientation", "ldlt_factor", "ldlt_solve", "lu_factor", "lu_solve", "least_norm_factor", "least_norm_solve"),
    *("least_norm_share", "jacobi_rotate", "erf", "polynomial", "erf_coefficients", "erfc_coefficients"),
)
_MAX_NAME_LENGTH = 255
_ELEMENTS_PER_LINE = 8
_CHECKED_DOMAINS = ("sqrt", "log", "sin", "cos", "tan", "asin", "acos", "acosh", "atanh")


def emit_julia_file(program: Program, model: SourceModel) -> FileTree:
    """Print the file.

    Args:
        program: With the entry points ``rhs`` and ``outputs``, and ``remember`` where there is discrete memory.
        model: Names, units, start values.

    Raises:
        EmitError: If the model's name cannot be that of a module.
    """
    require_model_name(model, "Julia", _MAX_NAME_LENGTH - len(".jl"), (*_KEYWORDS, *_NAMES_IN_MODULE))
    contents = print_module(program, JuliaPrinter)
    template = _make_template_environment().get_template("module.jl.jinja")
    fixed = [
        template_environment.read_packaged_file("mb2fmu.targets.julia", f"runtime/{name}.jl").decode()
        for name in ("arithmetic", *sorted(contents.routines))
    ]
    tables = list(list_table_arrays(contents.tables))
    text = template.render(model=model, contents=contents, tables=tables, fixed=fixed)
    return FileTree({f"{model.name}.jl": text.encode()})


class JuliaPrinter(WorkArrayPrinter):
    """Prints functions of Julia."""

    brackets = ("[", "]")
    function_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            **{name: f"real_{name}" for name in _CHECKED_DOMAINS},
            "atan2": "atan",
            "absolute": "abs",
            "minimum": "smaller",
            "maximum": "larger",
            "sign": "signum",
            "less": "is_less",
            "less_equal": "is_less_equal",
            "equal": "is_equal",
            "logical_or": "larger",
            "select": "choose",
            "rhs": "evaluate_rhs",
            "outputs": "evaluate_outputs",
            "initial_state": "evaluate_initial_state",
            "remember": "evaluate_remember",
        }
    )
    functions_in_files = frozenset({"erf"})

    def format_number(self, value: float) -> str:
        """Return a literal."""
        return format_julia_number(value)

    def section(self, vector: str, first: int, count: int) -> str:
        """Return a view of an array."""
        return f"view({vector}, {first + 1}:{first + count})"

    def format_truth(self, value: bool) -> str:
        """Return a literal."""
        return "true" if value else "false"

    def format_violation(self, requirement: Requirement, value: str) -> str:
        """Return a condition."""
        size = value if requirement == "positive" else f"abs({value})"
        return f"!({size} > 0.0 && {size} < Inf)"

    def define_value(self, name: str, text: str) -> None:
        """Print an assignment."""
        self.assign(name, text)

    def assign(self, target: str, text: str) -> None:
        """Print an assignment."""
        self.lines.append(f"{target} = {text}")

    def fail(self, condition: str, number: int) -> None:
        """Print the return of a failure number."""
        self.lines += [f"if {condition}", f"    return {number}", "end"]

    def call(self, routine: str, arguments: Sequence[str], number: int | None) -> None:
        """Print a call, and the return of its failure."""
        text = f"{routine}({', '.join(arguments)})"
        if number is None:
            self.lines.append(text)
        else:
            status = "failed" if number == 1 else f"{number - 1} + failed"
            self.lines += [f"failed = {text}", "if failed != 0", f"    return {status}", "end"]


def format_julia_number(value: float) -> str:
    """Return a double as a literal that reads back to the same bits; negative ones stand in parentheses."""
    return format_decimal(value, "Inf", "NaN")


def format_julia_text(value: str) -> str:
    """Return a string literal on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def format_julia_array(values: Sequence[float | str], kind: str) -> str:
    """Return a vector with these elements, several on a line."""
    items = [format_julia_text(value) if isinstance(value, str) else format_julia_number(value) for value in values]
    rows = [", ".join(items[i : i + _ELEMENTS_PER_LINE]) for i in range(0, len(items), _ELEMENTS_PER_LINE)]
    return f"{kind}[{(',' + chr(10) + '    ').join(rows)}]"


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = template_environment.make_template_environment("mb2fmu.targets.julia")
    environment.filters |= {"number": format_julia_number, "text": format_julia_text, "array": format_julia_array}
    return environment
