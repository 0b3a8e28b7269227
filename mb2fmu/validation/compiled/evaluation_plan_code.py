"""``EvaluationPlanCode``: the plans of a set of equations as functions in C, and tables of their order."""

from __future__ import annotations

import ctypes
from typing import Any

from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_expressions import CExpressionWriter, LookupTableDefinitions
from mb2fmu.validation.evaluation_plans.evaluation_plan import EvaluationPlan, EvaluationStep

FIRST_SOLVE_NUMBER = 2  # 0 and 1 are the dependent speeds and the accelerations


class EvaluationPlanCode:
    """Collects plans, then their compiled code.

    Args:
        tables: Lookup tables that were printed before; those that are met are added.

    Attributes:
        names: Of the linear solves, for messages: the number of one less :data:`FIRST_SOLVE_NUMBER` is its place.
        largest: Number of results of any step.
    """

    def __init__(self, tables: LookupTableDefinitions) -> None:
        self.names: list[str] = []
        self.largest = 0
        self._functions: list[str] = []
        self._tables = tables
        self._plans: dict[str, list[tuple[int, EvaluationStep]]] = {}
        self._kept: list[Any] = []

    def add(self, name: str, plan: EvaluationPlan) -> None:
        """Write the functions of a plan.

        Raises:
            CannotWriteError: If there is no C for something in it.
        """
        self._plans[name] = [(self._write(step), step) for step in plan.steps if step.targets or step.assignments]

    def _write(self, step: EvaluationStep) -> int:
        """Return the number of the function that is written for a step."""
        writer = CExpressionWriter({symbol: f"v[{slot}]" for symbol, slot in step.places.items()}, self._tables)
        for i, assignment in enumerate(step.assignments):
            value = writer.write_atom(assignment.expression)
            writer.lines.append(f"v[{step.first + i}] = {value};")
            writer.define(assignment.symbol, value)
        for i, target in enumerate(step.targets):
            writer.lines.append(f"results[{i}] = {writer.write_atom(target)};")
        number = len(self._functions)
        body = "\n    ".join(writer.lines)
        self._functions.append(
            f"EXPORTED void step_{number}(double v[], double results[]);\n"
            f"void step_{number}(double v[], double results[])\n{{\n    (void)v;\n    (void)results;\n    {body}\n}}\n"
        )
        self.largest = max(self.largest, len(step.targets))
        return number

    def text(self) -> str:
        """Return the source text; it needs the prelude of ``c_expressions`` and the tables."""
        return "\n".join(self._functions)

    def plan(self, name: str, library: ctypes.CDLL) -> c_structures.EvaluationPlanStructure:
        """Return the table of a plan, whose functions are in ``library``; it lives as long as this object."""
        steps = self._plans.get(name, [])
        table = (c_structures.EvaluationStepStructure * max(len(steps), 1))()
        for row, (number, step) in zip(table, steps, strict=False):
            row.function = ctypes.cast(getattr(library, f"step_{number}"), ctypes.c_void_p).value
            if step.solve:
                row.n, row.k = step.solve.right_hand_side.shape
                row.first, row.name = step.unknowns, FIRST_SOLVE_NUMBER + len(self.names)
                self.names.append(step.solve.name)
        self._kept += [table, library]
        return c_structures.EvaluationPlanStructure(ctypes.addressof(table), len(steps))
