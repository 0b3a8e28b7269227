"""The spelling of C# of printed functions, numbers and arrays, and its two files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.program_statement_printing import format_decimal
from mb2fmu.targets.single_module_target import TargetModuleLanguage, emit_single_module_target
from mb2fmu.targets.target_model_description import TargetModelDescription
from mb2fmu.targets.work_array_printing import WorkArrayFunctionPrinter

_KEYWORDS = (
    *("abstract", "as", "base", "bool", "break", "byte", "case", "catch", "char", "checked", "class", "const"),
    *("continue", "decimal", "default", "delegate", "do", "double", "else", "enum", "event", "explicit", "extern"),
    *("false", "finally", "fixed", "float", "for", "foreach", "goto", "if", "implicit", "in", "int", "interface"),
    *("internal", "is", "lock", "long", "namespace", "new", "null", "object", "operator", "out", "override", "params"),
    *("private", "protected", "public", "readonly", "ref", "return", "sbyte", "sealed", "short", "sizeof"),
    *("stackalloc", "static", "string", "struct", "switch", "this", "throw", "true", "try", "typeof", "uint", "ulong"),
    *("unchecked", "unsafe", "ushort", "using", "virtual", "void", "volatile", "while"),
)
_ELEMENTS_PER_LINE = 8
_NATIVE = ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh")
_NATIVE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{name: f"Math.{name.capitalize()}" for name in (*_NATIVE, "acosh", "atanh", "floor")},
        "power": "Math.Pow",
        "absolute": "Math.Abs",
        "ceil": "Math.Ceiling",
    }
)


class _CSharpPrinter(WorkArrayFunctionPrinter):
    """Prints methods of C#."""

    first_index = 0
    brackets = ("[", "]")
    functions_in_files = frozenset({"erf"})
    not_positive = "!({0} > 0.0 && {0} < double.PositiveInfinity)"

    def function_name(self, name: str) -> str:
        """Return the name of a method: words begin with capitals; public ones call those that evaluate."""
        if name in _NATIVE_NAMES:
            return _NATIVE_NAMES[name]
        pascal = "".join(word.capitalize() for word in name.split("_"))
        return f"Evaluate{pascal}" if name in {"rhs", "outputs", "initial_state", "remember"} else pascal

    def format_number(self, value: float) -> str:
        """Return a literal."""
        return _format_csharp_number(value)

    def section(self, vector: str, first: int, count: int) -> str:  # noqa: ARG002 (the callee knows it)
        """Return an array and where its elements begin."""
        return f"{vector}, {first}"

    def format_truth(self, value: bool) -> str:
        """Return a literal."""
        return "true" if value else "false"

    def define_value(self, name: str, text: str) -> None:
        """Print a declaration with its value."""
        self.lines.append(f"double {name} = {text};")

    def assign(self, target: str, text: str) -> None:
        """Print an assignment."""
        self.lines.append(f"{target} = {text};")

    def fail(self, condition: str, number: int) -> None:
        """Print the return of a failure number."""
        self.lines.append(f"if ({condition}) {{ return {number}; }}")

    def call(self, routine: str, arguments: Sequence[str], number: int | None) -> None:
        """Print a call, and the return of its failure."""
        text = f"{self.function_name(routine)}({', '.join(arguments)})"
        if number is None:
            self.lines.append(f"{text};")
        else:
            status = self.format_failure_number(number)
            self.lines.append(f"{{ int failed = {text}; if (failed != 0) {{ return {status}; }} }}")


def _format_csharp_number(value: float) -> str:
    """Return a double as a literal that reads back to the same bits; negative ones stand in parentheses."""
    return format_decimal(value, "double.PositiveInfinity", "double.NaN")


def _format_csharp_text(value: str) -> str:
    """Return a string literal."""
    shown = (f"\\u{ord(c):04x}" if not 32 <= ord(c) < 127 else c for c in value.replace("\\", "\\\\"))
    return '"' + "".join(shown).replace('"', '\\"') + '"'


def _format_csharp_array(values: Sequence[float | str], kind: str) -> str:
    """Return a new array with these elements, several on a line."""
    items = [_format_csharp_text(value) if isinstance(value, str) else _format_csharp_number(value) for value in values]
    if not items:
        return f"new {kind}[0]"
    return f"new {kind}[] {{ {_join_lines(items)} }}"


def _join_lines(items: Sequence[str]) -> str:
    """Return a list with line breaks."""

    def lines() -> Iterator[str]:
        for i in range(0, len(items), _ELEMENTS_PER_LINE):
            yield ", ".join(items[i : i + _ELEMENTS_PER_LINE])

    return ",\n        ".join(lines())


CSHARP = TargetModuleLanguage(
    title="C#",
    package="mb2fmu.targets.csharp",
    suffix="cs",
    printer=_CSharpPrinter,
    filters={"number": _format_csharp_number, "text": _format_csharp_text, "array": _format_csharp_array},
    files={".cs": "class.cs.jinja", "Main.cs": "main.cs.jinja"},
    strings=r'"(?:[^"\\]|\\.)*"',
    comment="//",
    max_name_length=511,
    keywords=frozenset(_KEYWORDS),
)


def emit_csharp_files(program: ScalarProgram, model: TargetModelDescription) -> InMemoryFileTree:
    """Print the class and the main program; arguments and errors as those of :func:`emit_single_module_target`."""
    return emit_single_module_target(program, model, CSHARP)
