"""Fortran's spelling of printed functions, numbers and declarations, and its two files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.program_statement_printing import format_decimal
from mb2fmu.targets.single_module_target import TargetModuleLanguage, emit_single_module_target
from mb2fmu.targets.target_model_description import TargetModelDescription
from mb2fmu.targets.work_array_printing import WorkArrayFunctionPrinter

_MAX_LINE_LENGTH = 132
_MAX_ELEMENTS_PER_CONSTANT = 900  # a statement may have 255 continuation lines


class _FortranPrinter(WorkArrayFunctionPrinter):
    """Prints procedures of Fortran."""

    function_names = MappingProxyType(
        {"absolute": "abs", "sign": "signum", "floor": "floor_real", "ceil": "ceiling_real"}
    )

    not_positive = ".not. ({0} > 0.0_rk .and. {0} < infinity())"

    def format_number(self, value: float) -> str:
        """Return a literal."""
        return _format_fortran_number(value)

    def section(self, vector: str, first: int, count: int) -> str:
        """Return an array section."""
        return f"{vector}({first + 1}:{first + count})"

    def format_truth(self, value: bool) -> str:
        """Return a literal."""
        return ".true." if value else ".false."

    def assign(self, target: str, text: str) -> None:
        """Print an assignment."""
        self.lines.append(f"{target} = {text}")

    def fail(self, condition: str, number: int) -> None:
        """Print the return of a failure number."""
        self.lines += [f"if ({condition}) then", f"  status = {number}", "  return", "end if"]

    def call(self, routine: str, arguments: Sequence[str], number: int | None) -> None:
        """Print a call, and the return of its failure."""
        failed = ["failed"] if number is not None else []
        self.lines.append(f"call {routine}({', '.join([*arguments, *failed])})")
        if number is not None:
            self.lines += [
                "if (failed /= 0) then",
                f"  status = {self.format_failure_number(number)}",
                "  return",
                "end if",
            ]


def _format_fortran_number(value: float) -> str:
    """Return a double as a literal of kind ``rk`` that reads back to the same bits; negative ones in parentheses."""
    return format_decimal(value, "infinity()", "not_a_number()", "_rk")


def _format_fortran_text(value: str) -> str:
    """Return a character literal on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return "'" + shown.replace("'", "''") + "'"


def declare_fortran_reals(names: Sequence[str]) -> Iterator[str]:
    """Yield declarations of real variables, as many on a line as fit there."""
    line = ""
    for name in names:
        if line and len(line) + len(name) > _MAX_LINE_LENGTH - len("    real(rk) :: , "):
            yield f"real(rk) :: {line}"
            line = ""
        line = f"{line}, {name}" if line else name
    if line:
        yield f"real(rk) :: {line}"


def declare_fortran_number_array(values: Sequence[float], name: str, attributes: str = "parameter") -> Iterator[str]:
    """Yield the declarations of a constant vector of numbers; long ones are joined from several."""
    items = [_format_fortran_number(float(value)) for value in values]
    yield from _declare_items(items, name, "real(rk)", attributes)


def declare_fortran_texts(values: Sequence[str], name: str, attributes: str = "parameter") -> Iterator[str]:
    """Yield the declarations of a constant vector of character strings of one length."""
    length = max((len(value.encode()) for value in values), default=1)
    items = [_format_fortran_text(value) for value in values]
    yield from _declare_items(items, name, f"character(len={length})", attributes)


def _declare_items(items: Sequence[str], name: str, kind: str, attributes: str) -> Iterator[str]:
    """Yield the declarations of a constant vector."""
    step = _MAX_ELEMENTS_PER_CONSTANT
    if len(items) <= step:
        yield from _wrap_items(f"{kind}, {attributes} :: {name}({len(items)}) = [{kind} ::", items)
        return
    parts: list[str] = []
    for i in range(0, len(items), step):
        parts.append(f"{name}_{len(parts) + 1}")
        part = items[i : i + step]
        yield from _wrap_items(f"{kind}, parameter :: {parts[-1]}({len(part)}) = [{kind} ::", part)
    yield from _wrap_items(f"{kind}, {attributes} :: {name}({len(items)}) = [{kind} ::", parts)


def _wrap_items(head: str, items: Sequence[str]) -> Iterator[str]:
    """Yield a statement that ends with a list in brackets, on as many lines as needed."""
    lines = [head]
    for i, item in enumerate(items):
        text = f"{item}{',' if i < len(items) - 1 else ''}"
        if len(f"{lines[-1]} {text}".encode()) > _MAX_LINE_LENGTH - len("    ] &"):
            lines.append(f"  {text}")
        else:
            lines[-1] += f" {text}"
    yield from (f"{_wrap_fortran_statement(line)} &" for line in lines[:-1])
    yield _wrap_fortran_statement(f"{lines[-1]}]")


def _wrap_fortran_statement(text: str, indent: int = 0) -> str:
    """Return a statement with continuation lines where it is longer than a line; also inside of character strings."""
    room = _MAX_LINE_LENGTH - indent - len("  && &")
    lines = [""]
    for character in text:
        if len(f"{lines[-1]}{character}".encode()) > room:
            lines.append("")
        lines[-1] += character
    return f"&\n{' ' * indent}&".join(lines)


FORTRAN = TargetModuleLanguage(
    title="Fortran",
    package="mb2fmu.targets.fortran",
    suffix="f90",
    printer=_FortranPrinter,
    filters={
        "number": _format_fortran_number, "text": _format_fortran_text, "wrap": _wrap_fortran_statement,
        "declare_fortran_number_array": declare_fortran_number_array,
        "declare_fortran_texts": declare_fortran_texts,
        "declare_fortran_reals": declare_fortran_reals,
    },
    files={".f90": "module.f90.jinja", "_main.f90": "main.f90.jinja"},
    strings="'(?:[^']|'')*'",
    comment="!",
    max_name_length=63,
    ignores_case=True,
)  # fmt: skip


def emit_fortran_files(program: ScalarProgram, model: TargetModelDescription) -> InMemoryFileTree:
    """Print the module and the main program; arguments and errors as those of :func:`emit_single_module_target`."""
    return emit_single_module_target(program, model, FORTRAN)
