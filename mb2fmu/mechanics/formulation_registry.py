"""``FORMULATIONS``: one row per formulation of the equations of motion.

A new formulation is a file in ``formulations/``, a row here, its line in the contract of independence (pyproject.toml),
and a line in docs/explanation/theory.md. Choices of the command, messages and the names in reports come from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _FormulationRow:
    """A formulation.

    Attributes:
        name: What ``--method`` calls it.
        title: What equations are formed by, in reports.
        module: Of ``mb2fmu.mechanics.formulations``; has the functions ``formulate`` and ``check_applicability``.
        variant: Of the module's functions, as ``formulate_<variant>``; empty: the plain ones.
    """

    name: str
    title: str
    module: str
    variant: str = ""


FORMULATIONS = (
    _FormulationRow("tmt", "the TMT method", "tmt"),
    _FormulationRow("kane", "Kane's method", "kane"),
    _FormulationRow("lagrange", "Lagrange's method", "lagrange"),
    _FormulationRow("recursive", "a recursion over the bodies", "recursive_formulation"),
    _FormulationRow(
        "recursive-articulated", "a recursion over articulated bodies", "recursive_formulation", "articulated"
    ),
    _FormulationRow("recursive-composite", "a recursion over composite bodies", "recursive_formulation", "composite"),
)
"""In the order of preference."""

METHOD_TITLES = {row.name: row.title for row in FORMULATIONS}
