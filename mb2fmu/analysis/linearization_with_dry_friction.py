"""Linearize with dry friction: it acts where something slides, and is left out where nothing does.

Which friction slides is seen at the point that is found: a sign whose argument is zero there is zero, whatever the
round-off of the search. So an equilibrium and its eigenvalues do not depend on the side from which the search came.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.linearization import Linearization, linearize
from mb2fmu.analysis.operating_point_start import OperatingPointStart
from mb2fmu.analysis.program_derivatives import ProgramDerivatives
from mb2fmu.compiler.arithmetic.python_newton import SingularMatrixError
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import SLIP_ENTRY, remove_friction_signs
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion

Floats = npt.NDArray[np.float64]

_REST_SLIP_RATIO = 1e-8
"""Part of what typical magnitudes of the states make of a slip that counts as none: more than a search leaves of it."""


class OperatingPointLinearizer:
    """Linearizes one model at any number of points, with its symbolic work done once for each set of resting frictions.

    Args:
        equations: Of any formulation.
        program: The same lowered.
    """

    def __init__(self, equations: EquationsOfMotion, program: ScalarProgram) -> None:
        self._equations = equations
        self._program = program
        self._sliding = remove_friction_signs(program, ())
        self._has_friction = self._sliding is not program
        self._labels = self._sliding.entries[SLIP_ENTRY].labels if self._has_friction else ()
        self._slip = make_evaluator(self._sliding, SLIP_ENTRY) if self._has_friction else None
        self._variants: dict[frozenset[int], tuple[ScalarProgram, ProgramDerivatives]] = {}

    def linearize(self, start: OperatingPointStart, *, search: bool = True) -> Linearization:
        """Find the operating point near ``start`` and linearize there; see :func:`linearize`.

        Raises:
            AnalysisError: If there is no such point, or what rests and what slides contradict each other.
        """
        resting = self._find_resting_frictions(start, start.t, start.x, start.r, start.p)
        tried: list[frozenset[int]] = []
        contradictory = False
        while resting not in tried:
            tried.append(resting)
            try:
                found = self._linearize_with(resting, start, search=search)
            except AnalysisError:
                if frozenset() in tried and not contradictory:
                    raise
                resting = frozenset()  # what slides in the end may begin at rest, too
                continue
            point = found.point
            actual = self._find_resting_frictions(start, point.t, point.x, point.r, point.p)
            if actual == resting:
                return replace(found, resting_friction=tuple(self._labels[place] for place in sorted(resting)))
            resting, contradictory = actual, True
        what = f"without dry friction something slides that friction brings to rest: {', '.join(self._labels)}"
        remedy = (
            "where friction holds, nothing moves: leave it out by its parameter, trim an input, or hold speeds by --at"
        )
        raise AnalysisError("no equilibrium or steady motion was found:", [Fault(what, remedy=remedy)])

    def _linearize_with(self, resting: frozenset[int], start: OperatingPointStart, *, search: bool) -> Linearization:
        """Linearize without the frictions that rest."""
        if resting not in self._variants:
            program = remove_friction_signs(self._program, resting)
            self._variants[resting] = (program, ProgramDerivatives(self._equations, program, start.t, start.p))
        program, slopes = self._variants[resting]
        slopes.set_time_and_parameters(start.t, start.p)
        return linearize(self._equations, program, start, search=search, slopes=slopes)

    def _find_resting_frictions(
        self, start: OperatingPointStart, t: float, x: Floats, r: Floats, p: Floats
    ) -> frozenset[int]:
        """Return the places of the frictions whose slip is zero."""
        if self._slip is None:
            return frozenset()
        speeds = [i for i in range(len(x)) if i not in start.coordinates]
        try:
            slip = np.asarray(self._slip(t, x, r, p), dtype=float)
            changes = [
                np.abs(np.asarray(self._slip(t, x + step, r, p), dtype=float) - slip)
                for step in np.diag(start.typical)[speeds]
            ]
        except SingularMatrixError:
            return frozenset()
        return frozenset(np.flatnonzero(np.abs(slip) <= _REST_SLIP_RATIO * sum(changes, np.zeros(len(slip)))).tolist())
