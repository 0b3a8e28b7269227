"""Julia's spelling of printed functions, numbers and arrays, and its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.program_statement_printing import format_decimal
from mb2fmu.targets.single_module_target import TargetModuleLanguage, emit_single_module_target
from mb2fmu.targets.target_model_description import TargetModelDescription
from mb2fmu.targets.work_array_printing import WorkArrayFunctionPrinter

_KEYWORDS = (
    *("baremodule", "begin", "break", "catch", "const", "continue", "do", "else", "elseif", "end", "export", "false"),
    *("finally", "for", "function", "global", "if", "import", "in", "isa", "let", "local", "macro", "module", "quote"),
    *("return", "struct", "true", "try", "using", "where", "while", "Main", "Base", "Core"),
)
_ELEMENTS_PER_LINE = 8
_CHECKED_DOMAINS = ("sqrt", "log", "sin", "cos", "tan", "asin", "acos", "acosh", "atanh")


class _JuliaPrinter(WorkArrayFunctionPrinter):
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
    not_positive = "!({0} > 0.0 && {0} < Inf)"

    def format_number(self, value: float) -> str:
        """Return a literal."""
        return _format_julia_number(value)

    def section(self, vector: str, first: int, count: int) -> str:
        """Return a view of an array."""
        return f"view({vector}, {first + 1}:{first + count})"

    def format_truth(self, value: bool) -> str:
        """Return a literal."""
        return "true" if value else "false"

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
            self.lines += [
                f"failed = {text}",
                "if failed != 0",
                f"    return {self.format_failure_number(number)}",
                "end",
            ]


def _format_julia_number(value: float) -> str:
    """Return a double as a literal that reads back to the same bits; negative ones stand in parentheses."""
    return format_decimal(value, "Inf", "NaN")


def _format_julia_text(value: str) -> str:
    """Return a string literal on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def _format_julia_array(values: Sequence[float | str], kind: str) -> str:
    """Return a vector with these elements, several on a line."""
    items = [_format_julia_text(value) if isinstance(value, str) else _format_julia_number(value) for value in values]
    rows = [", ".join(items[i : i + _ELEMENTS_PER_LINE]) for i in range(0, len(items), _ELEMENTS_PER_LINE)]
    return f"{kind}[{(',' + chr(10) + '    ').join(rows)}]"


JULIA = TargetModuleLanguage(
    title="Julia",
    package="mb2fmu.targets.julia",
    suffix="jl",
    printer=_JuliaPrinter,
    filters={"number": _format_julia_number, "text": _format_julia_text, "array": _format_julia_array},
    files={".jl": "module.jl.jinja"},
    strings=r'"(?:[^"\\]|\\.)*"',
    comment="#",
    max_name_length=252,  # of a file, without its ending
    keywords=frozenset(_KEYWORDS),
)


def emit_julia_file(program: ScalarProgram, model: TargetModelDescription) -> InMemoryFileTree:
    """Print the module; arguments and errors as those of :func:`emit_single_module_target`."""
    return emit_single_module_target(program, model, JULIA)
