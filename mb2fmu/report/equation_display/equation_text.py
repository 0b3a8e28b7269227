"""Equations of motion in a terminal: as text, as LaTeX, or as NumPy code that runs.

The three formats print the same ``EquationsOfMotion``, every part by its name and nothing expanded. The Python code
is independent of mb2fmu and of SymPy: it needs NumPy only (and SciPy where an error function or a lookup table occurs).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sympy as sm
from sympy.printing.latex import LatexPrinter
from sympy.printing.numpy import NumPyPrinter, SciPyPrinter
from sympy.printing.str import StrPrinter

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    Intermediate,
    LinearSystemAssignment,
    MassMatrixDynamics,
    SymbolAssignment,
)
from mb2fmu.mechanics.equations.link_recursion import LinkRecursion
from mb2fmu.report.equation_display.equation_html import ExpressionOperationCounter

EquationFormat = Literal["text", "latex", "python"]


@dataclass(frozen=True, slots=True)
class _EquationSection:
    """Rows (left-hand side, right-hand side) under a title.

    Attributes:
        title: What they are.
        rows: A left-hand side is a symbol or text; a right-hand side an expression or text.
    """

    title: str
    rows: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class EquationStartValues:
    """Start values x of the states, r of the inputs, p of the free parameters, in the order of the equations."""

    x: tuple[float, ...]
    r: tuple[float, ...]
    p: tuple[float, ...]


def format_equations(
    equations: EquationsOfMotion, name: str, form: EquationFormat = "text", values: EquationStartValues | None = None
) -> str:
    """Return the equations of ``name`` in one of the formats, ending in a line break.

    Args:
        equations: What is printed.
        name: Of the model, for the head.
        form: ``text``, ``latex`` or ``python``.
        values: Numbers to start from; printed with the Python code only.

    Raises:
        FormulationError: For code of a recursion, which has no expressions.
    """
    if form == "python":
        if equations.recursion:
            what = f"{equations.method} evaluates links one after another and has no expressions to print as code"
            fault = Fault(what, remedy="use --method tmt or kane, or --format text")
            raise FormulationError(f"the equations of {name} cannot be listed:", [fault])
        return _PythonEquationModuleWriter(equations, name, values).text()
    return _format_plain_text(equations, name) if form == "text" else _format_latex(equations, name)


def _list_equation_sections(equations: EquationsOfMotion) -> Iterator[_EquationSection]:
    """Yield all parts in the order in which they are evaluated; matrices by their entries that are not 0."""
    u = sm.Matrix(equations.u)
    k, d, c = equations.kinematics, equations.dynamics, equations.velocity_constraints
    recursion = equations.recursion
    q_dot = k.matrix * u + k.offset
    yield _EquationSection(
        "Kinematics", tuple((_TimeDerivativeSymbol(q), rate) for q, rate in zip(equations.q, q_dot, strict=True))
    )
    yield _EquationSection(
        "Calculated parameters", tuple((a.symbol, a.expression) for a in equations.calculated_parameters)
    )
    forms = [a for form in equations.closed_forms for a in form.assignments]
    yield _EquationSection("Dependent coordinates", tuple((a.symbol, a.expression) for a in forms))
    yield _EquationSection(
        "Intermediates", tuple(row for item in equations.intermediates for row in _list_intermediate_rows(item))
    )
    if recursion:
        numbers = range(1, len(recursion.links))
        yield _EquationSection(
            "Links", tuple(row for number in numbers for row in _list_link_relations(recursion, number))
        )
    if isinstance(d, MassMatrixDynamics):
        yield _EquationSection("Mass matrix", tuple(_list_matrix_entries("M", d.mass_matrix)))
        yield _EquationSection("Forcing", tuple(_list_matrix_entries("f", d.forcing)))
    yield _EquationSection("Holonomic constraints", tuple((f"0 ({name})", phi) for name, phi in equations.holonomic))
    if c:
        rows = c.jacobian * u + c.offset
        yield _EquationSection(
            "Velocity constraints", tuple((f"0 ({n})", row) for n, row in zip(c.names, rows, strict=True))
        )
    yield _EquationSection(
        "Auxiliary states",
        tuple((_TimeDerivativeSymbol(z), f) for z, f in zip(equations.z, equations.z_dot, strict=True)),
    )
    energies = (("T", equations.energy.kinetic), ("V", equations.energy.potential))
    yield _EquationSection("Energy", tuple((letter, energy) for letter, energy in energies if energy is not None))


def count_operations_by_section(equations: EquationsOfMotion) -> dict[str, int]:
    """Return the operations of the parts as written out: the work of an evaluation by hand."""
    count = ExpressionOperationCounter()
    d, k = equations.dynamics, equations.kinematics
    solves = [item for item in equations.intermediates if isinstance(item, LinearSystemAssignment)]
    named = [item.expression for item in equations.intermediates if isinstance(item, SymbolAssignment)]
    return {
        "kinematics": count.of(*k.matrix, *k.offset),
        "intermediates": count.of(*named, *(e for s in solves for e in (*s.matrix, *s.right_hand_side))),
        "mass matrix": count.of(*d.mass_matrix) if isinstance(d, MassMatrixDynamics) else 0,
        "forcing": count.of(*d.forcing) if isinstance(d, MassMatrixDynamics) else 0,
    }


def _list_link_relations(recursion: LinkRecursion, number: int) -> Iterator[tuple[str, Any]]:
    """Yield the relations of one link to its predecessor."""
    link = recursion.links[number]
    parent = recursion.links[link.parent]
    yield f"link {number} {link.name}", f"on {parent.name}, axes of {recursion.frames[link.frame].name}"
    chain, spins = recursion.list_angular_velocity_terms(number)
    for vector in chain:
        what = "angular velocity" if spins else "angular velocity in N"
        for row in _format_joint_columns(vector.frame, vector.columns, recursion):
            yield f"  {what}", row
    for displacement in link.offset:
        components = ", ".join(map(str, displacement.components))
        yield "  origin", f"({components}) in {recursion.frames[displacement.frame].name}"
    for vector in link.velocity or ():
        for row in _format_joint_columns(vector.frame, vector.columns, recursion):
            yield "  velocity in N", row


def _format_joint_columns(frame: int, columns: Iterable[tuple[int, Any]], recursion: LinkRecursion) -> Iterator[str]:
    """Yield the columns of a joint as text: speed, components, frame."""
    for j, column in columns:
        yield f"u[{j + 1}] ({', '.join(map(str, column))}) in {recursion.frames[frame].name}"


@dataclass(frozen=True, slots=True)
class _TimeDerivativeSymbol:
    """The time derivative of a symbol, on a left-hand side."""

    symbol: sm.Symbol


def _list_intermediate_rows(item: Intermediate) -> Iterator[tuple[Any, Any]]:
    """Yield the rows (left side, right side) of an intermediate: one, or those of a linear system."""
    if isinstance(item, SymbolAssignment):
        yield item.symbol, item.expression
        return
    unknowns = ", ".join(map(str, item.unknowns))
    yield f"({unknowns})", f"X of A X = B ({item.name})"
    yield from _list_matrix_entries("A", item.matrix)
    yield from _list_matrix_entries("B", item.right_hand_side)


def _list_matrix_entries(letter: str, matrix: Any) -> Iterator[tuple[str, Any]]:
    """Yield the non-zero entries, counted from 1; of a symmetric matrix the lower triangle only."""
    square = matrix.rows == matrix.cols > 1
    symmetric = square and all(matrix[i, j] == matrix[j, i] for i in range(matrix.rows) for j in range(i))
    for i in range(matrix.rows):
        for j in range(i + 1 if symmetric else matrix.cols):
            if matrix[i, j] != 0:
                index = f"{i + 1}" if matrix.cols == 1 else f"{i + 1},{j + 1}"
                yield f"{letter}[{index}]", matrix[i, j]


def format_equation_sections(equations: EquationsOfMotion) -> list[dict[str, Any]]:
    """Return all sections that have rows, each with its title and its rows, both sides of them as text."""
    printer = StrPrinter({"order": "none"})
    dots = {dot: sm.Symbol(f"{u}'") for u, dot in zip(equations.u, equations.u_dot, strict=True)}

    def side(value: Any) -> str:
        """Return one side of an equation as text: the rate of a speed, an expression, or a name."""
        if isinstance(value, _TimeDerivativeSymbol):
            return f"{value.symbol}'"
        return str(printer.doprint(value.xreplace(dots)) if isinstance(value, sm.Basic) else value)

    return [
        {"title": section.title, "rows": [[side(left), side(right)] for left, right in section.rows]}
        for section in _list_equation_sections(equations)
        if section.rows
    ]


def _format_plain_text(equations: EquationsOfMotion, name: str) -> str:
    """Print the equations as plain text, section by section."""
    lines = [f"{name}: M u' = f by {equations.method}"]
    lines += [f"states: {', '.join(map(str, equations.states))}"]
    for section in format_equation_sections(equations):
        lines += ["", section["title"]]
        lines += [f"  {left} = {right}" for left, right in section["rows"]]
    return "\n".join(lines) + "\n"


def _format_latex(equations: EquationsOfMotion, name: str) -> str:
    """Print the equations as LaTeX, section by section."""
    speeds = zip(equations.u, equations.u_dot, strict=True)
    dots = {dot: rf"\dot{{{sm.latex(u)}}}" for u, dot in speeds}
    printer = LatexPrinter({"symbol_names": dots, "order": "none"})

    def side(value: Any) -> str:
        """Return an equation's side in LaTeX: an expression, an entry of a matrix, or a name."""
        if isinstance(value, _TimeDerivativeSymbol):
            return rf"\dot{{{printer.doprint(value.symbol)}}}"
        if isinstance(value, sm.Basic):
            return str(printer.doprint(value))
        entry = re.fullmatch(r"(\w)\[([\d,]+)\]", value)
        if entry:
            return rf"{entry[1]}_{{{entry[2]}}}"
        return value if len(value) == 1 else rf"\text{{{_escape_latex(value)}}}"

    lines = [f"% {name}: M u' = f by {equations.method}"]
    for section in _list_equation_sections(equations):
        if section.rows:
            rows = [rf"  {side(left)} &= {side(right)} \\" for left, right in section.rows]
            lines += [rf"\paragraph{{{section.title}}}", r"\begin{align*}", *rows, r"\end{align*}"]
    return "\n".join(lines) + "\n"


def _escape_latex(text: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    return re.sub(r"([_&%#$])", r"\\\1", text)


class _PythonEquationModuleWriter:
    """Writes a module with ``equations(t, q, u, z, r, p)`` and ``rhs(t, x, r, p)``."""

    def __init__(self, equations: EquationsOfMotion, name: str, values: EquationStartValues | None) -> None:
        self.equations = equations
        self.name = name
        self.values = values
        self.names = _choose_python_identifiers(equations)
        needs_scipy = any(e.has(sm.erf) for e in _list_right_sides(equations))
        kind = SciPyPrinter if needs_scipy else NumPyPrinter
        self._printer = kind({"fully_qualified_modules": True, "order": "none"})
        self._scipy = needs_scipy

    def text(self) -> str:
        """Return the module's text."""
        e = self.equations
        head = [
            f'"""{self.name}: M u\' = f by {e.method}, as plain NumPy code.',
            "",
            f"q = ({', '.join(map(str, e.q))}), u = ({', '.join(map(str, e.u))}), z = ({', '.join(map(str, e.z))}),",
            f"r = ({', '.join(map(str, e.r))}), p = ({', '.join(map(str, e.p))}); x = ({_describe_states(e)}).",
            '"""',
            "",
            "import numpy",
            *(["import scipy"] if self._scipy else []),
            "",
        ]
        return "\n".join([*head, *self._start(), "", "", *self._equations(), "", "", *self._rhs()]) + "\n"

    def _start(self) -> Iterator[str]:
        """Yield the code of start values, inputs and parameters; nothing if they are unknown."""
        if self.values:
            for name, numbers in (("x0", self.values.x), ("r0", self.values.r), ("p0", self.values.p)):
                yield f"{name} = numpy.array({list(numbers)!r})"

    def _equations(self) -> Iterator[str]:
        """Yield kinematics K, k0; dynamics M, f; constraints A, b, gamma."""
        e, c = self.equations, self.equations.reduction or self.equations.velocity_constraints
        yield "def equations(t, q, u, z, r, p):"
        yield '    """K, k0, M, f, A, b, gamma with q\' = K u + k0, M u\' = f, A u + b = 0, A u\' + gamma = 0."""'
        yield from self._unpack(e.q, "q")
        yield from self._unpack(e.u, "u")
        yield from self._unpack(e.z, "z")
        yield from self._prepare()
        yield from self._intermediates()
        yield f"    K = {self._matrix(e.kinematics.matrix)}"
        yield f"    k0 = {self._vector(e.kinematics.offset)}"
        yield f"    M = {self._matrix(e.mass_and_forcing.mass_matrix)}"
        yield f"    f = {self._vector(e.mass_and_forcing.forcing)}"
        if c:
            yield f"    A = {self._matrix(c.jacobian)}"
            yield f"    b = {self._vector(c.offset)}"
            yield f"    gamma = {self._vector(c.bias)}"
        else:
            yield f"    A, b, gamma = numpy.zeros((0, {len(e.u)})), numpy.zeros(0), numpy.zeros(0)"
        yield "    return K, k0, M, f, A, b, gamma"

    def _rhs(self) -> Iterator[str]:
        """Yield x' with dependent coordinates and speeds and the constraints' multipliers solved for."""
        e = self.equations
        placed, n_u, independent = list(e.q_independent), len(e.u), list(e.u_independent)
        n_q = len(placed)
        first_z = n_q + len(independent)
        if e.q_dependent:
            yield from self._dependent_coordinates()
        yield "def rhs(t, x, r, p):"
        yield f'    """x\' of the states x = ({_describe_states(e)})."""'
        yield f"    q, z = x[:{n_q}], x[{first_z}:]"
        if e.q_dependent:
            yield "    q = coordinates(t, q, r, p)"
        yield f"    u = numpy.zeros({n_u})"
        yield f"    u[{independent}] = x[{n_q}:{first_z}]"
        if e.u_dependent:
            dependent = list(e.u_dependent)
            yield "    _, _, _, _, A, b, _ = equations(t, q, u, z, r, p)"
            yield f"    u[{dependent}] = -numpy.linalg.solve(A[:, {dependent}], A @ u + b)"
        yield "    K, k0, M, f, A, b, gamma = equations(t, q, u, z, r, p)"
        yield f"    if len(M) == {n_u}:"
        yield "        M = numpy.block([[M, A.T], [A, numpy.zeros((len(A), len(A)))]])"
        yield "    else:"
        yield "        M = numpy.vstack([M, A])"
        yield f"    u_dot = numpy.linalg.solve(M, numpy.concatenate([f, -gamma]))[:{n_u}]"
        rates = f"(K @ u + k0)[{placed}]" if e.q_dependent else "K @ u + k0"
        if not e.z:
            yield f"    return numpy.concatenate([{rates}, u_dot[{independent}]])"
            return
        yield f"    return numpy.concatenate([{rates}, u_dot[{independent}], auxiliary(t, q, u, z, r, p, u_dot)])"
        yield ""
        yield ""
        yield "def auxiliary(t, q, u, z, r, p, u_dot):"
        yield '    """z\' of the auxiliary states."""'
        yield from self._unpack(e.q, "q")
        yield from self._unpack(e.u, "u")
        yield from self._unpack(e.z, "z")
        yield from self._prepare()
        yield from self._intermediates()
        yield from self._unpack(e.u_dot, "u_dot")
        yield f"    return {self._vector(e.z_dot)}"

    def _dependent_coordinates(self) -> Iterator[str]:
        """Yield all coordinates from the independent ones."""
        e = self.equations
        yield "def coordinates(t, q, r, p):"
        yield '    """All coordinates from the independent ones."""'
        yield from self._unpack([e.q[i] for i in e.q_independent], "q")
        yield from self._prepare()
        for form in e.closed_forms:
            yield from (f"    {self.names[a.symbol]} = {self._print(a.expression)}" for a in form.assignments)
        yield f"    return {self._vector(e.q)}"
        yield ""
        yield ""

    def _prepare(self) -> Iterator[str]:
        """Yield the code that unpacks inputs and parameters and calculates the calculated ones."""
        yield from self._unpack(self.equations.r, "r")
        yield from self._unpack(self.equations.p, "p")
        for item in self.equations.calculated_parameters:
            yield f"    {self.names[item.symbol]} = {self._print(item.expression)}"

    def _unpack(self, symbols: Sequence[sm.Symbol], array: str) -> Iterator[str]:
        """Yield the code that gives the elements of an array their names."""
        if symbols:
            yield f"    {', '.join(self.names[s] for s in symbols)}{',' * (len(symbols) == 1)} = {array}"

    def _intermediates(self) -> Iterator[str]:
        """Yield the lines of Python that compute the intermediates, in order."""
        for item in self.equations.intermediates:
            if isinstance(item, SymbolAssignment):
                yield f"    {self.names[item.symbol]} = {self._print(item.expression)}"
            else:
                unknowns = ", ".join(self.names[s] for s in item.unknowns)
                matrix, right = self._matrix(item.matrix), self._matrix(item.right_hand_side)
                yield f"    {unknowns}{',' * (len(item.unknowns) == 1)} = numpy.linalg.solve({matrix}, {right}).ravel()"

    def _matrix(self, matrix: Any) -> str:
        """Return the code of a matrix."""
        rows = [f"[{', '.join(self._print(e) for e in matrix.row(i))}]" for i in range(matrix.rows)]
        return f"numpy.array([{', '.join(rows)}], dtype=float).reshape({matrix.rows}, {matrix.cols})"

    def _vector(self, column: Any) -> str:
        """Return the code of a column as a one-dimensional array."""
        return f"numpy.array([{', '.join(self._print(e) for e in column)}], dtype=float)"

    def _print(self, expression: Any) -> str:
        """Return the code of an expression on one line, with names that Python accepts."""
        renamed = sm.sympify(expression).xreplace({s: sm.Symbol(n) for s, n in self.names.items() if s.name != n})
        return " ".join(str(self._printer.doprint(renamed)).split())


def _describe_states(equations: EquationsOfMotion) -> str:
    """Return what x consists of, in words."""
    return "independent q, independent u, z" if equations.q_dependent else "q, independent u, z"


def _list_right_sides(equations: EquationsOfMotion) -> Iterator[sm.Basic]:
    """Yield all right sides of the listed equations."""
    for section in _list_equation_sections(equations):
        yield from (right for _, right in section.rows if isinstance(right, sm.Basic))


# Names that the generated functions use themselves.
_RESERVED_NAMES = {
    "q",
    "u",
    "z",
    "r",
    "p",
    "x",
    "K",
    "k0",
    "M",
    "f",
    "A",
    "b",
    "gamma",
    "u_dot",
    "numpy",
    "scipy",
    "coordinates",
}


def _choose_python_identifiers(equations: EquationsOfMotion) -> dict[sm.Symbol, str]:
    """Return a Python identifier for every symbol, distinct from each other and from generated names."""
    e = equations
    symbols = [*e.q, *e.u, *e.z, *e.r, *e.p, *e.u_dot, *(a.symbol for a in e.calculated_parameters)]
    for item in e.intermediates:
        symbols += [item.symbol] if isinstance(item, SymbolAssignment) else list(item.unknowns)
    symbols += [a.symbol for form in e.closed_forms for a in form.assignments if a.symbol not in e.q]
    names: dict[sm.Symbol, str] = {e.t: "t"}
    taken = {*_RESERVED_NAMES, "t"}
    for symbol in symbols:
        name = re.sub(r"\W", "_", symbol.name)
        name = f"_{name}" if name[0].isdigit() else name
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        names[symbol] = name
    return names
