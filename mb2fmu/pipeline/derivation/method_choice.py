"""Choose the formulation of ``auto`` and ``recursive``: lower all candidates, and compare their costs.

Equations that people can read (Kane's for one or two bodies, TMT's for a few) win where they are not much dearer than
the cheaper recursion; many bodies are left to the recursions from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mb2fmu.compiler.lowering import lower
from mb2fmu.compiler.program.operation_cost import cost
from mb2fmu.compiler.program.program import Program
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method
from mb2fmu.mechanics.mechanism import Mechanism

OPEN = ("auto", "recursive")
"""What leaves a choice open."""
_READABLE = 2.0  # what equations that people can read may cost, in multiples of a recursion's
_WORTH = 500.0  # and at most, in additions: what is longer by more is not read
_WRITTEN = 4  # bodies up to which TMT's equations are short enough to be tried
_FULL = 20  # speeds up to which a full mass matrix is tried where articulated bodies apply


@dataclass(frozen=True, slots=True)
class Choice:
    """Equations by the method that was picked.

    Attributes:
        equations: Of the method that was picked.
        program: The same, lowered.
        why: What was compared, a clause.
    """

    equations: EquationsOfMotion
    program: Program
    why: str


def candidates(mechanism: Mechanism, asked: Method | Literal["auto"]) -> tuple[EquationsOfMotion, ...]:
    """Return the equations by every formulation that may be cheapest, or by the requested one.

    Args:
        mechanism: As read.
        asked: ``auto`` leaves all open, ``recursive`` the choice between its variants only.

    Raises:
        FormulationError: If none applies, with every reason.
    """
    if asked not in OPEN:
        return (formulations.formulate(mechanism, asked),)
    answers = formulations.check_all_formulations(mechanism)
    if not answers["recursive"].is_applicable:
        return (formulations.formulate(mechanism, asked),)
    methods: list[Method] = []
    if asked == "auto" and len(mechanism.bodies) <= _WRITTEN:
        methods.append(formulations.choose_formulation(mechanism)[0])
    articulated = answers["recursive-articulated"].is_applicable
    if not articulated or len(mechanism.u) <= _FULL:
        methods.append("recursive-composite")
    if articulated:
        methods.append("recursive-articulated")
    return tuple(formulations.formulate(mechanism, method, answers) for method in methods)


def cheapest(equations: Sequence[EquationsOfMotion]) -> Choice:
    """Lower all candidates, and return the one whose x' costs least; written-out equations have an advantage."""
    programs = [lower(one) for one in equations]
    if len(programs) == 1:
        return Choice(equations[0], programs[0], "nothing else was worth trying")
    costs = [cost(program, "rhs") or cost(program, "outputs") for program in programs]
    judged = [c if one.recursion else max(c / _READABLE, c - _WORTH) for one, c in zip(equations, costs, strict=True)]
    best = judged.index(min(judged))
    others = [f"{c:.0f} by {one.method}" for i, (one, c) in enumerate(zip(equations, costs, strict=True)) if i != best]
    what = "x' costs" if equations[best].states else "without states, outputs cost"
    why = f"{what} as much as {costs[best]:.0f} additions, against {' and '.join(others)}"
    return Choice(equations[best], programs[best], why)
