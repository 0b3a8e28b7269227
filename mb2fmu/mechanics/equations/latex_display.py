"""Show equations of motion as one LaTeX formula in notebooks; long parts are shown by their size only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import sympy as sm
from sympy.printing.latex import LatexPrinter

from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion

DIMENSION, LONG, ROWS = 6, 400, 12
"""Largest matrix that is written out, longest entry (characters), most rows of a part."""


class _LatexEquationPrinter(LatexPrinter):  # type: ignore[misc]  # SymPy has no types
    """LaTeX printer that sets names of several letters upright: in italics they look like a product."""

    def _deal_with_super_sub(self, string: str, style: str = "plain") -> str:
        """Print a name with sub- and superscripts, with words of two letters or more upright."""
        latex = str(super()._deal_with_super_sub(string, style=style))
        return re.sub(
            r"(?<![\\A-Za-z{])[A-Za-z]{2,}(?![A-Za-z{])|(?<=[_^]{)[A-Za-z]{2,}[A-Za-z0-9 ]*(?=})", _upright_word, latex
        )


def _upright_word(match: re.Match[str]) -> str:
    """Return a word upright in LaTeX, its spaces kept."""
    return r"\mathrm{" + match[0].replace(" ", r"\,") + "}"


def _format_symbol(symbol: sm.Expr) -> str:
    """Return a symbol as LaTeX."""
    return str(_LatexEquationPrinter().doprint(symbol))


@notebook_display_registry.render_record_as_latex.register
def _format_equations_as_latex(equations: EquationsOfMotion) -> str:
    r"""Return ``$\displaystyle \begin{aligned} … \end{aligned}$``: kinematics, constraints, dynamics, intermediates.

    Args:
        equations: By any formulation.
    """
    e = equations
    dots = {dot: rf"\dot{{{_format_symbol(speed)}}}" for speed, dot in zip(e.u, e.u_dot, strict=True)}
    printer = _LatexEquationPrinter({"symbol_names": dots, "order": "none"})

    def format_latex(expression: Any) -> str:
        """Return an expression in LaTeX, or dots if it is long."""
        text = str(printer.doprint(expression))
        return text if len(text) <= LONG else r"\cdots"

    rows = [
        rf"\dot{{{_format_symbol(q)}}} &= {format_latex(rate)}"
        for q, rate in zip(e.q, _kinematic_rates(e), strict=True)
    ]
    lines = [*_truncate_rows(rows)]
    lines += _truncate_rows(
        [rf"0 &= {format_latex(phi)} && \text{{({_escape_latex(name)})}}" for name, phi in e.holonomic]
    )
    constraints = e.velocity_constraints
    if constraints:
        residuals = constraints.jacobian * sm.Matrix(e.u) + constraints.offset
        names = constraints.names
        lines += _truncate_rows(
            [
                rf"0 &= {format_latex(row)} && \text{{({_escape_latex(n)})}}"
                for n, row in zip(names, residuals, strict=True)
            ]
        )
    lines += _truncate_rows(
        [rf"\dot{{{_format_symbol(z)}}} &= {format_latex(f)}" for z, f in zip(e.z, e.z_dot, strict=True)]
    )
    lines += [_format_dynamics(e, format_latex)]
    assignments: list[Any] = [item for item in e.intermediates if hasattr(item, "symbol")]
    lines += _truncate_rows([rf"{printer.doprint(a.symbol)} &= {format_latex(a.expression)}" for a in assignments])
    return r"$\displaystyle \begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}$"


def _kinematic_rates(e: EquationsOfMotion) -> Iterator[sm.Expr]:
    """Yield the expressions of q' = K u + k0, one per coordinate."""
    yield from e.kinematics.matrix * sm.Matrix(e.u) + e.kinematics.offset if e.q else ()


def _format_dynamics(e: EquationsOfMotion, format_latex: Any) -> str:
    """Return M u' = f with its entries, or with its size where it is large."""
    d: Any = e.dynamics
    matrix = getattr(d, "mass_matrix", None)
    if matrix is None:
        return rf"\dot{{u}} &= \text{{link after link, by {_escape_latex(e.method)}: {len(e.u)} speeds}}"
    if max(matrix.shape) > DIMENSION:
        return rf"M \dot{{u}} &= f && \text{{({matrix.rows} × {matrix.cols})}}"
    body = r" \\ ".join(" & ".join(format_latex(entry) for entry in matrix.row(i)) for i in range(matrix.rows))
    speeds = r" \\ ".join(format_latex(dot) for dot in e.u_dot)
    forces = r" \\ ".join(format_latex(entry) for entry in d.forcing)
    sides = [rf"\begin{{bmatrix}} {part} \end{{bmatrix}}" for part in (body, speeds, forces)]
    return f"{sides[0]} {sides[1]} &= {sides[2]}"


def _truncate_rows(rows: list[str]) -> list[str]:
    """Return the first rows, and the number of rows that are left out."""
    if len(rows) <= ROWS:
        return rows
    return [*rows[:ROWS], rf"& \text{{… and {len(rows) - ROWS} more}}"]


def _escape_latex(name: str) -> str:
    """Return a name with LaTeX's special characters escaped."""
    for character in "_&%#$":
        name = name.replace(character, rf"\{character}")
    return name
